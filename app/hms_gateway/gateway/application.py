"""The ASGI application: which path goes to the Thrift endpoint, and the few pages beside it.

Its status is the cost of calls, kept up to date once a second and shared with the other workers of the same gateway.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.admission.request_rules import check_headers
from hms_gateway.gateway.certificates.served_certificate import ServedCertificate
from hms_gateway.gateway.http.asgi_endpoint import AsgiEndpoint
from hms_gateway.gateway.http.request_body import Receive, Scope, Send
from hms_gateway.gateway.observability.call_logs import AuditLog
from hms_gateway.gateway.observability.figures import Figures, Health, WorkerFigures
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Dialect
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.shares import Connections

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from hms_gateway.gateway.http.exchange import Answer, Exchange
    from hms_gateway.gateway.http.iceberg_door import IcebergDoor
    from hms_gateway.iceberg.processor import RestProcessor

# The figures of calls are brought up to date so often.
STATUS_LOOK_SECONDS = 1.0
# Behind each path: Hive's HTTP client ends its path with a literal star.
_ENDINGS = ("", "/", "/*")
_SLASHES = re.compile("//+")

_log = structlog.get_logger("hms_gateway.application")


class SecondaryListenerFailed(Exception):
    """A secondary listener could not start; the text says which and why."""


class NotReady(Exception):
    """Calls cannot be answered; the text says why in one line, and names nothing secret."""


class SecondaryListener(Protocol):
    """Accepts calls to the same metastore by another protocol, as long as the gateway serves."""

    async def start(self) -> None:
        """Accept calls. Raises SecondaryListenerFailed."""

    async def stop(self) -> None:
        """Accept none any more and finish those in flight."""


class GatewayStatus:
    """Used from the event loop's thread.

    `newest_event` asks the database for the catalog's newest event; it may take time and raise. `administrators` see
    the names of users and objects. `follow` is called with each look.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        newest_event: Callable[[], int] | None = None,
        administrators: Collection[str] = (),
        follow: Callable[[], None],
    ) -> None:
        self._metrics = metrics
        self._newest_event = newest_event
        self._follow = follow
        self._administrators = administrators
        self._workers: WorkerFigures | None = None
        self._timer: asyncio.TimerHandle | None = None

    def share(self, folder: Path) -> None:
        """From now on these are the figures of all workers that use the folder."""
        self._workers = WorkerFigures(folder)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._workers is not None:
            self._workers.leave(self._metrics.figures())

    async def figures(self) -> Figures | None:
        """Figures of all workers; None where this process is the only one."""
        if self._workers is None:
            return None
        return await asyncio.to_thread(self._workers.all, self._metrics.figures())

    async def report(self, user: str) -> dict[str, Any]:
        """Costs of calls, as far as the user may know."""
        # Only here, since a gateway that is not asked does not need it.
        from hms_gateway.gateway.observability.costs import cost_report

        figures = await self.figures() or self._metrics.figures()
        sees_all = user in self._administrators
        newest = await asyncio.to_thread(self._find_newest)
        return cost_report(figures, user=user, sees_all=sees_all, newest_event=newest)

    def _find_newest(self) -> int | None:
        try:
            return None if self._newest_event is None else self._newest_event()
        except Exception:
            # The database may be what the caller wants to know about.
            return None

    def look(self) -> None:
        """Bring the figures up to date, now and from now on."""
        self._metrics.served.look()
        self._follow()
        loop = asyncio.get_running_loop()
        if self._workers is not None:
            loop.run_in_executor(None, self._workers.leave, self._metrics.figures())
        self._timer = loop.call_later(STATUS_LOOK_SECONDS, self.look)


class Gateway:
    """Everything a server process serves. `ready` raises when the gateway cannot answer calls, best NotReady.

    `on_stop` are called in order when the last call is finished. `health` gives gauges for /metrics.
    """

    def __init__(
        self,
        asgi_endpoint: AsgiEndpoint,
        settings: Settings,
        *,
        connections: Connections,
        certificate: ServedCertificate | None = None,
        audit_log: AuditLog | None = None,
        ready: Callable[[], None],
        on_stop: Sequence[Callable[[], None]] = (),
        secondary_listener: SecondaryListener | None = None,
        newest_event: Callable[[], int] | None = None,
        health: Callable[[], Health] = dict,
        iceberg: "Callable[[], RestProcessor] | None" = None,
    ) -> None:
        self.settings = settings
        self.asgi_endpoint = asgi_endpoint
        self.endpoint = asgi_endpoint.endpoint
        self.metrics = self.endpoint.metrics
        self._health = health
        self.status = GatewayStatus(
            self.metrics,
            newest_event=newest_event,
            administrators=settings.administrators,
            follow=self.endpoint.cache.follow,
        )
        self.connections = connections
        self.certificate = certificate
        self._audit_log = audit_log
        self._secondary_listener = secondary_listener
        self._is_secondary_listening = False
        self._listener_stopping: asyncio.Task[None] | None = None
        self._on_stop = on_stop
        self._dialects = {
            path + ending: Dialect(dialect) for path, dialect in settings.paths.items() for ending in _ENDINGS
        }
        # The paths as they are in a request line.
        self.dialect_of_url = {path.encode(): dialect for path, dialect in self._dialects.items()}
        self._iceberg = iceberg
        self._iceberg_beginning = f"{settings.iceberg_path}/" if iceberg is not None and settings.iceberg_path else None
        self._ready = ready
        self._is_stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            dialect = self._dialects.get(_SLASHES.sub("/", scope["path"]))
            if self._iceberg_beginning is not None and scope["path"].startswith(self._iceberg_beginning):
                await self._iceberg_door(scope, receive, send)
            elif dialect is None:
                try:
                    await self._page(scope, receive, send)
                except Exception as error:
                    await self.asgi_endpoint.fail(error, scope, receive, send)
            else:
                await self.asgi_endpoint(scope, receive, send, dialect)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = RequestHead(dict(scope["headers"]), scope["headers"], b"", "")
        try:
            check_headers(head, scope["http_version"])
        except Refused as refused:
            body = f"{refused.text}\n".encode()
            fields = [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", b"%d" % len(body)),
                (b"connection", b"close"),
            ]
            await send({"type": "http.response.start", "status": refused.status, "headers": fields})
            await send({"type": "http.response.body", "body": body})
        else:
            await self._pages(scope, receive, send)

    def load(self, exchange: "Exchange", path: bytes, query: bytes) -> "Answer | None":
        """Answer a request to Iceberg's catalog from memory; None for one that has to be read."""
        return None if self._iceberg is None else self._iceberg_door.load(exchange, path, query)

    @cached_property
    def _iceberg_door(self) -> "IcebergDoor":
        from hms_gateway.gateway.http.iceberg_door import IcebergDoor

        assert self._iceberg is not None
        return IcebergDoor(self.settings.iceberg_path, self._iceberg(), self.asgi_endpoint)

    @cached_property
    def _pages(self) -> "Starlette":
        # Starlette takes a tenth of the time until the first call is answered, so it is loaded with the first page.
        from hms_gateway.gateway.pages import pages

        return pages(
            self.metrics,
            self._ready,
            lambda: self._is_stopping,
            tuple(self.settings.paths),
            self.asgi_endpoint.identify,
            self.status,
            self._health,
            console=self.settings.console,
            show_names=self.settings.metrics_show_names,
        )

    async def start_secondary_listener(self) -> None:
        """Start it, if there is one. Raises SecondaryListenerFailed."""
        if self._secondary_listener is not None:
            await self._secondary_listener.start()
            self._is_secondary_listening = True

    def hang_up(self) -> None:
        """SIGHUP: files may have been replaced or moved away."""
        if self.certificate is not None:
            self.certificate.read_again()
        if self._audit_log is not None:
            try:
                self._audit_log.open_again()
            except OSError as error:
                _log.error("the audit log cannot be opened again; the old file stays in use", problem=str(error))

    def stop_being_ready(self) -> None:
        """Make /readyz say no, so that load balancers look elsewhere while calls in flight finish."""
        self._is_stopping = True
        self.endpoint.calls.stop_waiting()
        if self._secondary_listener is not None and self._is_secondary_listening:
            self._is_secondary_listening = False
            self._listener_stopping = asyncio.get_running_loop().create_task(self._secondary_listener.stop())

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self.status.look()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.status.stop()
        if self._listener_stopping is not None:
            await asyncio.wait([self._listener_stopping])
        self._close()
        await send({"type": "lifespan.shutdown.complete"})

    def _close(self) -> None:
        for close in (self.endpoint.calls.close, *self._on_stop):
            try:
                close()
            except Exception:
                _log.exception("stopping")
