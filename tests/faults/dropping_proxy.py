"""A proxy between bridge and gateway that loses one request or one reply, at the point that the test says."""

import contextlib
import socket
import threading
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.support.server import GatewayServer


class Loss(Enum):
    """What happens to the next exchange that carries this proxy's watchword."""

    REQUEST = "the request does not arrive"
    REPLY = "the reply is lost after the change was made"
    HALF_REPLY = "the reply breaks off in the middle"


class DroppingProxy:
    """Plain HTTP on loopback in front of a gateway. A context manager."""

    def __init__(self, gateway: GatewayServer) -> None:
        self._gateway = gateway
        self._lock = threading.Lock()
        self._watchword = b""
        self._loss: Loss | None = None
        self.losses = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def lose(self, watchword: bytes, loss: Loss | None) -> None:
        """Do this to the next request whose body has the watchword; the ones after it pass."""
        with self._lock:
            self._watchword, self._loss = watchword, loss

    def next_loss(self, body: bytes) -> Loss | None:
        with self._lock:
            if self._loss is None or self._watchword not in body:
                return None
            loss, self._loss = self._loss, None
            self.losses += 1
            return loss

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                loss = proxy.next_loss(body)
                if loss is Loss.REQUEST:
                    self._cut_off()
                    return
                with proxy._gateway.connection() as upstream:
                    upstream.request("POST", self.path, body, dict(self.headers.items()))
                    answer = upstream.getresponse()
                    content = answer.read()
                if loss is Loss.REPLY:
                    self._cut_off()
                    return
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name not in ("connection", "transfer-encoding", "content-length", "date"):
                        self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                if loss is Loss.HALF_REPLY:
                    self.wfile.write(content[: len(content) // 2])
                    self.wfile.flush()
                    self._cut_off()
                    return
                self.wfile.write(content)

            def _cut_off(self) -> None:
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
