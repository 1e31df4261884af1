"""/healthz and /metrics of the bridge, on a port of their own: the Thrift port speaks no HTTP."""

import asyncio
from collections.abc import Callable

REQUEST_BYTES_MAX = 8 * 1024
REQUEST_SECONDS_MAX = 10.0

Page = Callable[[], bytes]


class SidePort:
    """Answers GETs of the pages it was given; one request for each connection."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, chosen by the system if 0 was asked for. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _response(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        page = self._pages.get(path)
        if page is None:
            status, body = b"404 Not Found", b"Not found\n"
        elif method not in (b"GET", b"HEAD"):
            status, body = b"405 Method Not Allowed", b"Send GET\n"
        else:
            status, body = b"200 OK", page()
        kind = b"text/plain; version=0.0.4; charset=utf-8"
        response = b"HTTP/1.1 %b\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        return response % (status, kind, len(body)) + (b"" if method == b"HEAD" else body)
