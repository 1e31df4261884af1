"""A real HTTP server on loopback that answers what a test wants, for tests of clients."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hms_gateway.gateway.certificates.tls import ensure_certificate, server_context

# From the request's body and headers to status and body of the answer.
Answer = Callable[[bytes, dict[str, str]], tuple[int, bytes]]


@contextmanager
def answering(answer: Answer, tls_folder: Path | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, content = answer(body, dict(self.headers))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that does not trust us hangs up; that is the test."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls_folder is not None:
            files = ensure_certificate(tls_folder)
            context = server_context(files.certificate, files.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{'http' if tls_folder is None else 'https'}://127.0.0.1:{server.server_port}/hms"
        finally:
            server.shutdown()
            thread.join()


def always(status: int, content: bytes) -> Answer:
    return lambda body, headers: (status, content)
