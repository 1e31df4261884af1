"""A program that serves S3 (moto's) on loopback, which refuses, fails and records requests as tests ask it to.

Without credentials of `KEY` a request is refused, as moto does not. `GET /-/requests` gives the requests since the last
`POST /-/orders`, which takes a dictionary:

    holds            texts that method, path, query and source of a copy contain, in requests that fail
    after, times     pass this many of them, then let this many fail
    status, code     the answer to these; with 0 they wait for the next orders
    keeps            a key that is not deleted with others
    ahead_seconds    the clock of the bucket
"""

import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

KEY, SECRET, BUCKET = "bucket-key", "bucket-secret", "lake"


class Faults:
    """WSGI application around another one; `set_clock` takes how far its clock is ahead."""

    def __init__(self, application: Callable[..., Iterable[bytes]], set_clock: Callable[[timedelta], None]) -> None:
        self._application, self._set_clock = application, set_clock
        self._lock = threading.Lock()
        self._orders: dict[str, Any] = {}
        self._replaced = threading.Event()
        self._seen = 0
        self._requests: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/-/orders":
            with self._lock:
                self._orders, self._seen, self._requests = json.loads(_body(environ)), 0, []
                self._replaced.set()
                self._replaced = threading.Event()
            self._set_clock(timedelta(seconds=self._orders.get("ahead_seconds", 0)))
            return _answer(start_response, 200, b"")
        if path == "/-/requests":
            return _answer(start_response, 200, json.dumps(self._requests).encode())
        copied = environ.get("HTTP_X_AMZ_COPY_SOURCE")
        asked = f"{environ['REQUEST_METHOD']} {path}?{environ['QUERY_STRING']}" + (f" from {copied}" if copied else "")
        if f"Credential={KEY}/" not in environ.get("HTTP_AUTHORIZATION", ""):
            return _error(start_response, 403, "InvalidAccessKeyId", "The key you gave is not known.")
        with self._lock:
            self._requests.append(asked)
            orders, replaced = self._orders, self._replaced
            fails = self._fails(asked)
        if fails:
            if not orders["status"]:
                replaced.wait()
            return _error(start_response, orders["status"] or 503, orders["code"], "as the test wants it")
        if "keeps" in self._orders and environ["QUERY_STRING"] == "delete":
            return self._deleted(environ, start_response, self._orders["keeps"])
        return self._application(environ, start_response)

    def _fails(self, asked: str) -> bool:
        holds = self._orders.get("holds")
        if not holds or not all(text in asked for text in holds):
            return False
        self._seen += 1
        after: int = self._orders["after"]
        return after < self._seen <= after + self._orders["times"]

    def _deleted(self, environ: dict[str, Any], start_response: Callable[..., Any], kept: str) -> Iterable[bytes]:
        """Delete several objects except one, which the answer says."""
        body = _body(environ).replace(f"<Object><Key>{kept}</Key></Object>".encode(), b"")
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        list(self._application(environ, lambda *_: None))
        error = f"<Error><Key>{kept}</Key><Code>AccessDenied</Code><Message>kept</Message></Error>"
        return _answer(start_response, 200, f"<DeleteResult>{error}</DeleteResult>".encode(), "application/xml")


def _body(environ: dict[str, Any]) -> bytes:
    body: bytes = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    return body


def _answer(
    start_response: Callable[..., Any], status: int, body: bytes, kind: str = "application/json"
) -> list[bytes]:
    start_response(f"{status} X", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


def _error(start_response: Callable[..., Any], status: int, code: str, message: str) -> list[bytes]:
    text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return _answer(start_response, status, text.encode(), "application/xml")


def main() -> None:
    """Print the port, then serve until standard input ends."""
    import moto.s3.models
    from moto.core.utils import utcnow
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    setattr(moto.s3.models, "S3_UPLOAD_PART_MIN_SIZE", 1)  # noqa: B010

    def set_clock(ahead: timedelta) -> None:
        setattr(moto.s3.models, "utcnow", lambda: utcnow() + ahead)  # noqa: B010

    application = Faults(DomainDispatcherApplication(create_backend_app), set_clock)
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
