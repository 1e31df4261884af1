"""The server process: sockets, TLS, event loop, graceful stop; and the parent of several such processes."""

import asyncio
import contextlib
import gc
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import structlog
import uvicorn

from hms_gateway.gateway.admission.identity import Refusals
from hms_gateway.gateway.admission.memory import UnreadReplies
from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.http.http_protocol import TOO_MANY, BoundedConfig, BoundedHttpProtocol
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.runtime.door import Arrival, Door, listening_sockets
from hms_gateway.runtime.heap import keep_little_free_memory
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Connections, Holder, Ledger

_log = structlog.get_logger("hms_gateway.server")

# A collection of young objects every 700 allocations would cost more than it frees: calls leave few cycles behind.
# Those that changes leave, SQLAlchemy's expressions, take 1 MiB before a collection of 10,000, and 4 of 50,000.
COLLECTION_THRESHOLDS = (10_000, 100, 50)
SWITCH_SECONDS = 0.0001
# Files besides connections: database, log, libraries.
OTHER_FILES = 200


class Server(uvicorn.Server):
    """Serves one gateway until `stop` or a signal; calls in flight finish, for stopping_seconds_max at most."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        on_listening: Callable[[list[tuple[Any, ...]]], None] = lambda addresses: None,
    ) -> None:
        settings, refusals = gateway.settings, Refusals(gateway.metrics)
        self._tls = tls = None if gateway.certificate is None else gateway.certificate.context
        self.unread_replies = UnreadReplies(
            settings.limits, refusals, stall_seconds_max=settings.write_stall_seconds_max
        )
        config = BoundedConfig(
            gateway,
            settings,
            gateway.asgi_endpoint,
            gateway.dialect_of_url,
            self.unread_replies,
            gateway.load,
            loop="uvloop",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=settings.idle_seconds_max,
            timeout_graceful_shutdown=settings.stopping_seconds_max,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
        super().__init__(config)
        self._gateway = gateway
        self._on_listening = on_listening

    def stop(self) -> None:
        """Ask the server to stop; safe from any thread and from signal handlers."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, but with a door of our own, and the addresses are announced."""
        settings = self._gateway.settings
        listeners = sockets or listening_sockets(settings.host, settings.port)
        await self.lifespan.startup()
        try:
            # First, since /readyz speaks for both listeners.
            await self._gateway.start_secondary_listener()
            door = self._door(listeners)
            door.open()
        except BaseException:
            for listener in listeners:
                listener.close()
            self._gateway.stop_being_ready()
            await self.lifespan.shutdown()
            raise
        # uvicorn closes it, and waits for that.
        self.servers = [cast(asyncio.Server, door)]
        self.started = True
        _quiet_collector()
        # A thread that runs Python gives way soon: the event loop waits for it, some twenty times in a call it answers.
        sys.setswitchinterval(SWITCH_SECONDS)
        self._on_listening([listener.getsockname() for listener in listeners])

    def _door(self, listeners: list[socket.socket]) -> Door:
        gateway, refusals = self._gateway, Refusals(self._gateway.metrics)
        return Door(
            listeners,
            self._connection,
            gateway.connections,
            gateway.settings.limits,
            note=lambda limit, address: refusals.note(limit, address=address),
            # None for a proxy: its connections are no user's, and may be all that there are.
            share_of=gateway.endpoint.proxies.share_of,
            backlog=gateway.settings.backlog,
            silent_seconds_max=gateway.settings.header_seconds_max,
            tls=self._tls,
            too_many=TOO_MANY,
            drain_idle_seconds=gateway.settings.drain_idle_seconds,
        )

    def _connection(self, arrival: Arrival) -> BoundedHttpProtocol:
        assert isinstance(self.config, BoundedConfig)
        return BoundedHttpProtocol(self.config, self.server_state, self.lifespan.state, arrival)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        causes = [signal.Signals(number).name for number in self._captured_signals]
        _log.info("stopping when the calls in flight are finished", cause=", ".join(causes) or None)
        self._gateway.stop_being_ready()
        await super().shutdown(sockets=sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn raises the signal again when it is done, which would end the process before its owner has cleaned up.
        with super().capture_signals():
            if threading.current_thread() is threading.main_thread():
                # Until the process ends: it may come while the last calls are finished.
                signal.signal(signal.SIGHUP, lambda *_: self._gateway.hang_up())
            try:
                yield
            finally:
                self._captured_signals.clear()


def bounded_connections(limits: Limits, metrics: Metrics) -> Connections:
    """Make the counter of a process's connections; it says so where fewer fit than the limit allows."""
    refusals = Refusals(metrics)

    def refused(limit: str, holder: Holder) -> None:
        metrics.connections_refused += 1
        refusals.note(limit, user=holder.user or "", address=holder.address or "")

    total = Bound("connections_max", _connections_that_fit(limits.connections_max))
    return Connections(Ledger(limits, total), refused)


def _connections_that_fit(wanted: int) -> int:
    files = _files_allowed(wanted + OTHER_FILES)
    fitting = max(files - OTHER_FILES, files // 4)
    if fitting >= wanted:
        return wanted
    _log.warning(
        "fewer connections fit than connections_max; raise the limit of open files (ulimit -n, LimitNOFILE)",
        connections_max=wanted,
        connections=fitting,
        open_files=files,
    )
    return fitting


def _files_allowed(needed: int) -> int:
    """Raise the limit of open files as far as it goes; the limit that holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return needed
    wanted = max(soft, needed) if hard == resource.RLIM_INFINITY else hard
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _quiet_collector() -> None:
    """What start-up made stays: leave it out of every later collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    keep_little_free_memory()
