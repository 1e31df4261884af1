"""A bucket in memory as far as a gateway's metadata files need one: each PUT takes its time, as in an object store."""

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Final

import uvicorn

from hms_gateway.runtime.door import listening_sockets

BUCKET: Final = "lake"
Messages = Callable[[], Awaitable[dict[str, Any]]]
Sends = Callable[[dict[str, Any]], Awaitable[None]]


@contextmanager
def slow_bucket(put_seconds: float) -> Iterator[int]:
    """The port of one, in a process of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(put_seconds, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def options(port: int) -> str:
    """A file for `storage_file`."""
    lines = [f'endpoint_url = "http://127.0.0.1:{port}"', 'key = "k"', 'secret = "s"']
    return "\n".join(["[s3]", *lines, 'client_kwargs = { region_name = "us-east-1" }', ""])


def _serve(put_seconds: float, pipe: Connection) -> None:
    (listener,) = listening_sockets("127.0.0.1", 0)
    pipe.send(listener.getsockname()[1])
    config = uvicorn.Config(_Bucket(put_seconds), log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run([listener])


class _Bucket:
    """An ASGI application: objects by key."""

    def __init__(self, put_seconds: float) -> None:
        self._put_seconds = put_seconds
        self._objects: dict[str, bytes] = {}

    async def __call__(self, scope: dict[str, Any], receive: Messages, send: Sends) -> None:
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        body += message["body"]
        key, method = scope["path"].removeprefix(f"/{BUCKET}").lstrip("/"), scope["method"]
        status, found = 200, b""
        if method == "PUT":
            await asyncio.sleep(self._put_seconds)
            self._objects[key] = body
        elif b"prefix=" in scope["query_string"]:
            # Nobody asks for more than whether there is anything.
            found = b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>'
        elif method in ("GET", "HEAD") and key in self._objects:
            status, found = (200 if method == "HEAD" else 206), self._objects[key]
        elif method in ("GET", "HEAD"):
            status, found = 404, b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code><Message>no</Message></Error>'
        headers = [(b"content-length", b"%d" % len(found)), (b"etag", b'"1"')]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else found})
