"""The ASGI application: which path goes to the Thrift endpoint, and the few pages beside it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from app.gateway.endpoint import Endpoint
from app.gateway.identity import HeaderList
from app.gateway.metrics import CONTENT_TYPE, Metrics
from app.gateway.request_body import Receive, Scope, Send
from app.rpc.call import Dialect

HIVE_4_PATHS = ("/metastore", "/metastore/", "/metastore/*")
READY_SECONDS_MAX = 5.0

_log = structlog.get_logger("hms_gateway.application")


class CompanionFailed(Exception):
    """The other door of the gateway could not be opened; the text says which and why."""


class Companion(Protocol):
    """Another door to the same metastore, open as long as the gateway serves."""

    async def start(self) -> None:
        """Accept calls. Raises CompanionFailed."""

    async def stop(self) -> None:
        """Accept none any more and finish those in flight."""


class Gateway:
    """Everything a server process serves. `ready` raises when the gateway cannot answer calls (database, migrations).

    `on_stop` are called in order when the last call is finished.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        path: str,
        metrics: Metrics,
        ready: Callable[[], None],
        on_stop: Sequence[Callable[[], None]] = (),
        companion: Companion | None = None,
    ) -> None:
        self.metrics = metrics
        self._companion = companion
        self._companion_stopping: asyncio.Task[None] | None = None
        self._endpoint = endpoint
        self._on_stop = on_stop
        self._dialects = {
            path.rstrip("/"): Dialect.HIVE_2_3,
            f"{path.rstrip('/')}/": Dialect.HIVE_2_3,
            **dict.fromkeys(HIVE_4_PATHS, Dialect.HIVE_4),
        }
        self.direct_answers = endpoint.direct_answers(self._dialects)
        self._pages = Pages(metrics, ready)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            dialect = self._dialects.get(scope["path"])
            if dialect is None:
                await self._pages(scope, send)
            else:
                await self._endpoint(scope, receive, send, dialect)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def start_companion(self) -> None:
        """Open the other door, if there is one. Raises CompanionFailed."""
        if self._companion is not None:
            await self._companion.start()

    def stop_being_ready(self) -> None:
        """Make /readyz say no, so that load balancers look elsewhere while calls in flight finish."""
        self._pages.is_stopping = True
        self._endpoint.calls.stop_waiting()
        if self._companion is not None and self._companion_stopping is None:
            self._companion_stopping = asyncio.get_running_loop().create_task(self._companion.stop())

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._companion_stopping is not None:
            await asyncio.wait([self._companion_stopping])
        self._close()
        await send({"type": "lifespan.shutdown.complete"})

    def _close(self) -> None:
        for close in (self._endpoint.calls.close, *self._on_stop):
            try:
                close()
            except Exception:
                _log.exception("stopping")


class Pages:
    """What operators and their tools look at."""

    def __init__(self, metrics: Metrics, ready: Callable[[], None]) -> None:
        self._metrics = metrics
        self._ready = ready
        self._makers = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics_text}
        self.is_stopping = False

    async def __call__(self, scope: Scope, send: Send) -> None:
        """Answer an HTTP request, whatever its path."""
        page = await self._page(scope["method"], scope["path"])
        headers = [
            (b"content-type", page.content_type),
            (b"content-length", str(len(page.body)).encode()),
            *page.headers,
        ]
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else page.body})

    async def _page(self, method: str, path: str) -> "Page":
        make = self._makers.get(path.rstrip("/"))
        if make is None:
            return Page(404, b"Not Found")
        if method not in ("GET", "HEAD"):
            return Page(405, b"Method Not Allowed", headers=((b"allow", b"GET, HEAD"),))
        return await make()

    async def _healthz(self) -> "Page":
        return Page(200, b"ok\n")

    async def _readyz(self) -> "Page":
        if self.is_stopping:
            return Page(503, b"stopping\n")
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                await asyncio.to_thread(self._ready)
        except TimeoutError:
            return Page(503, f"no answer from the database in {READY_SECONDS_MAX:g} seconds\n".encode())
        except Exception as error:
            _log.warning("not ready", problem=repr(error))
            return Page(503, b"the database cannot be used; the log says why\n")
        return Page(200, b"ready\n")

    async def _metrics_text(self) -> "Page":
        return Page(200, self._metrics.text(), CONTENT_TYPE)


@dataclass(frozen=True, slots=True)
class Page:
    """One answer."""

    status: int
    body: bytes
    content_type: bytes = b"text/plain; charset=utf-8"
    headers: HeaderList = ()
