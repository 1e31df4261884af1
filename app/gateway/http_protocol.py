"""uvicorn's HTTP protocol with the bounds it lacks: time and size of headers, and who leaves when there are too many.

uvicorn never times out a connection that says nothing or sends its headers one byte a minute, and its limit on
connections refuses requests of everybody instead of closing those that are silent.
"""

import asyncio
from itertools import islice
from typing import Any, cast

import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.gateway.direct import CYCLE
from app.gateway.exchange import ABORT
from app.gateway.metrics import Metrics
from app.gateway.request_body import Scope

HEADER_BYTES_MAX = 64 * 1024
# When there are too many connections, so many of a hundred are closed in one go: looking for them is not free.
CLOSED_PERCENT = 5

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_log = structlog.get_logger("hms_gateway.http")


class BoundedConfig(Config):
    """uvicorn's configuration and our bounds, which it hands to every connection."""

    def __init__(
        self, app: Any, *, connections_max: int, header_seconds_max: float, metrics: Metrics | None, **others: Any
    ) -> None:
        super().__init__(app, http=BoundedHttpProtocol, **others)
        self.connections_max = connections_max
        self.header_seconds_max = header_seconds_max
        self.metrics = metrics


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection."""

    config: BoundedConfig

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._header_timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._reads_headers = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        is_welcome = len(self.connections) < self.config.connections_max or self._make_room()
        super().connection_made(transport)
        if is_welcome:
            self._start_header_timer()
        else:
            transport.write(_TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        # On every way out, not only on a clean one as in uvicorn: the timer would keep the connection alive.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        is_first: bool = self.cycle is None
        if is_first and _looks_like_binary_thrift(data):
            _log.warning("a Thrift client without HTTP transport called; it needs the bridge", peer=self.client)
        super().data_received(data)
        if self._reads_headers:
            self._still_reading_headers(len(data))
        elif self.cycle.response_complete and self.timeout_keep_alive_task is None:
            # Line ends between requests, or the body of a request that was answered already: no time without end.
            self._reads_headers = True
            self._still_reading_headers(0)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reads_headers = True
        # The scope is made for the application; its type knows only what ASGI defines.
        cast(Scope, self.scope)[ABORT] = self.transport.abort

    def on_headers_complete(self) -> None:
        self._reads_headers = False
        self._header_bytes = 0
        if self._header_timer is not None:
            self._stop_header_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # When all of a request came at once, the task that answers it starts after this and finds its body there.
        cast(Scope, self.cycle.scope)[CYCLE] = self.cycle

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def is_silent(self) -> bool:
        """Whether nothing is being done for this connection."""
        return self.cycle is None or self.cycle.response_complete

    def _still_reading_headers(self, received: int) -> None:
        self._header_bytes += received
        if self._header_bytes > HEADER_BYTES_MAX and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._header_timer is None:
            self._start_header_timer()

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.config.header_seconds_max, self._headers_too_late)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _headers_too_late(self) -> None:
        self._header_timer = None
        if self.transport.is_closing() or not self._reads_headers:
            return
        if self._header_bytes:
            self.transport.write(_TOO_SLOW)
        self.transport.close()

    def _make_room(self) -> bool:
        """Cut off some connections that nothing is being done for, so that silent ones keep nobody out."""
        wanted = max(1, self.config.connections_max * CLOSED_PERCENT // 100)
        silent = (peer for peer in self.connections if isinstance(peer, BoundedHttpProtocol) and peer.is_silent())
        chosen = list(islice(silent, wanted))
        _log.warning("too many connections", connections=len(self.connections), silent_ones_closed=len(chosen))
        for connection in chosen:
            connection.transport.abort()
            self.connections.discard(connection)
        if self.config.metrics is not None:
            self.config.metrics.connections_refused += len(chosen) or 1
        return bool(chosen)


def _looks_like_binary_thrift(data: bytes) -> bool:
    """A strict binary message, bare or behind the length of a frame."""
    return data[:2] == b"\x80\x01" or data[4:6] == b"\x80\x01"
