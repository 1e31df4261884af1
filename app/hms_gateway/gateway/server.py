"""Accepts connections. They count from the moment they are accepted, before and during the TLS handshake.

The event loop's own server knows a connection only when its handshake is done, keeps 50 KB for each that says nothing,
and runs out of open files without a word. Here a connection that says nothing is a bare socket; TLS begins with its
first byte.
"""

import asyncio
import contextlib
import ctypes
import errno
import gc
import resource
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import structlog
import uvicorn

from hms_gateway.gateway.admission.identity import Refusals
from hms_gateway.gateway.admission.memory import UnreadReplies
from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.http.http_protocol import TOO_MANY, BoundedConfig, BoundedHttpProtocol
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Connections, Holder, Ledger, Silence

# Between two looks at the sockets, so many are accepted from each listener.
ACCEPTED_AT_ONCE = 16
# How long nothing is accepted when the process has no file left.
OUT_OF_FILES_PAUSE_SECONDS = 0.1
CLOSED_EVERY_SECONDS = 0.02
# How long a connection that the gateway closes waits for its client to say so too; by default half a minute.
TLS_CLOSE_SECONDS_MAX = 2.0
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_log = structlog.get_logger("hms_gateway.server")


class Arrival:
    """An accepted connection on its way to a protocol, and what is counted for it afterwards."""

    __slots__ = ("_door", "accepted_at", "address", "protocol", "socket", "task")

    def __init__(self, door: "Door", accepted: socket.socket, address: str, accepted_at: float) -> None:
        self._door = door
        self.socket = accepted
        self.address = address
        self.accepted_at = accepted_at
        self.task: asyncio.Task[None] | None = None
        self.protocol: BoundedHttpProtocol | None = None

    def silence(self) -> Silence | None:
        return (False, self.accepted_at) if self.protocol is None else self.protocol.silence(self.accepted_at)

    def cut(self) -> None:
        if self.protocol is not None:
            self.protocol.transport.abort()
        elif self.task is not None:
            self.task.cancel()
        else:
            self._door.forget(self)

    def established(self, protocol: BoundedHttpProtocol) -> None:
        """The protocol has its transport, and hears what comes."""
        self.protocol = protocol
        if self._door.is_closed:
            protocol.shutdown()

    def claim(self, user: str) -> Bound | None:
        """Its first request is the user's. Those of a proxy are of many users', so its connections are none's."""
        return self._door.claimed(self, user)

    def holder(self) -> Holder:
        """User and address that hold the connection."""
        return self._door.connections.holder_of(self)

    def timed_out(self) -> None:
        """It is closed because it said nothing, or not enough."""
        self._door.note_silent(self)

    def lost(self) -> None:
        """The protocol has lost its transport."""
        self._door.left(self)


class Door:
    """The listening sockets of a server; looks to uvicorn like one of asyncio's servers."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        make_protocol: Callable[[Arrival], BoundedHttpProtocol],
        gateway: Gateway,
    ) -> None:
        self.connections = gateway.connections
        self._listeners = listeners
        self._make_protocol = make_protocol
        self._settings = gateway.settings
        self._refusals = Refusals(gateway.metrics)
        self._tls = None if gateway.certificate is None else gateway.certificate.context
        self._silent_seconds_max = gateway.settings.header_seconds_max
        # None for a proxy: its connections are no user's, and may be all that there are.
        self._share = gateway.endpoint.proxies.share_of
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Arrival, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._open: set[Arrival] = set()
        self.is_closed = False
        self._handshakes = Connections(
            Ledger(gateway.settings.limits, "handshakes_max"),
            lambda limit, holder: self._refusals.note(limit, address=holder.address or ""),
        )

    def open(self) -> None:
        """Accept connections at all listeners, or at none. Raises OSError."""
        for listener in self._listeners:
            listener.setblocking(False)
            listener.listen(self._settings.backlog)
        for listener in self._listeners:
            self._loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """Accept none any more but those that the kernel has accepted.

        Connections that have not said anything yet stay for drain_idle_seconds, like those between two requests.
        """
        if self.is_closed:
            return
        for listener in self._listeners:
            self._accept(listener)
            self._loop.remove_reader(listener)
            listener.close()
        self.is_closed = True
        if self._settings.drain_idle_seconds:
            self._loop.call_later(self._settings.drain_idle_seconds, self._cut_unestablished)
        else:
            self._cut_unestablished()

    async def wait_closed(self) -> None:
        """Returns when the last connection is gone; uvicorn knows only those that are established."""
        while self._open:
            await asyncio.sleep(CLOSED_EVERY_SECONDS)

    def forget(self, arrival: Arrival) -> None:
        """Close a connection that has not said anything."""
        del self._waiting[arrival]
        self._loop.remove_reader(arrival.socket)
        arrival.socket.close()
        self.left(arrival)

    def claimed(self, arrival: Arrival, user: str) -> Bound | None:
        """Do as `Connections.claim`."""
        return None if self._share(arrival.address) is None else self.connections.claim(arrival, user)

    def left(self, arrival: Arrival) -> None:
        """A connection has gone."""
        self.connections.leave(arrival)
        self._open.discard(arrival)

    def _cut_unestablished(self) -> None:
        for arrival in [arrival for arrival in self._open if arrival.protocol is None]:
            arrival.cut()

    def note_silent(self, arrival: Arrival) -> None:
        """Count and log a connection that was silent for too long."""
        self._refusals.note("header_seconds_max", address=arrival.address)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                self._out_of_files(listener)
                return
            self._arrive(accepted, peer[0])

    def _out_of_files(self, listener: socket.socket) -> None:
        self.connections.make_room("open_files")
        self._loop.remove_reader(listener)
        self._loop.call_later(OUT_OF_FILES_PAUSE_SECONDS, self._accept_again, listener)

    def _accept_again(self, listener: socket.socket) -> None:
        if not self.is_closed:
            self._loop.add_reader(listener, self._accept, listener)

    def _arrive(self, accepted: socket.socket, address: str) -> None:
        accepted.setblocking(False)
        arrival = Arrival(self, accepted, address, self._loop.time())
        if not self.connections.enter(arrival, self._share(address)):
            if self._tls is None:
                with contextlib.suppress(OSError):
                    accepted.send(TOO_MANY)
            accepted.close()
            return
        self._open.add(arrival)
        self._waiting[arrival] = None
        self._loop.add_reader(accepted, self._hear, arrival)
        if self._timer is None:
            self._timer = self._loop.call_later(self._silent_seconds_max, self._end_silent)

    def _end_silent(self) -> None:
        """Close those that have said nothing for too long; the first of those waiting was accepted first."""
        self._timer = None
        now = self._loop.time()
        for arrival in list(self._waiting):
            left = arrival.accepted_at + self._silent_seconds_max - now
            if left > 0:
                self._timer = self._loop.call_later(left, self._end_silent)
                break
            self.note_silent(arrival)
            self.forget(arrival)

    def _hear(self, arrival: Arrival) -> None:
        """Its first bytes are there, or its end."""
        self._loop.remove_reader(arrival.socket)
        del self._waiting[arrival]
        arrival.task = self._loop.create_task(self._establish(arrival))
        arrival.task.add_done_callback(partial(self._established, arrival))

    async def _establish(self, arrival: Arrival) -> None:
        protocol = self._make_protocol(arrival)
        if self._tls is None:
            await self._loop.connect_accepted_socket(lambda: protocol, arrival.socket)
        else:
            await self._shake_hands(arrival, protocol, self._tls)

    def _established(self, arrival: Arrival, task: asyncio.Task[None]) -> None:
        arrival.task = None
        if arrival.protocol is None:
            self.left(arrival)
            arrival.socket.close()
        error = None if task.cancelled() else task.exception()
        if arrival.protocol is not None and (task.cancelled() or error is not None):
            # It was cut while its protocol got the transport, which uvloop then closes without a word to the protocol.
            arrival.protocol.transport.abort()
            self._loop.call_soon(self._lose, arrival, arrival.protocol)
        # What a client does wrong in its handshake is nothing to log.
        if error is not None and not isinstance(error, OSError):
            _log.error("connection not established", address=arrival.address, exc_info=error)

    def _lose(self, arrival: Arrival, protocol: BoundedHttpProtocol) -> None:
        if arrival in self._open:
            protocol.connection_lost(None)

    async def _shake_hands(self, arrival: Arrival, protocol: BoundedHttpProtocol, tls: ssl.SSLContext) -> None:
        left = arrival.accepted_at + self._silent_seconds_max - self._loop.time()
        self._handshakes.enter(arrival, self._share(arrival.address))
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                arrival.socket,
                ssl=tls,
                ssl_handshake_timeout=max(left, 0.001),
                ssl_shutdown_timeout=TLS_CLOSE_SECONDS_MAX,
            )
        except ConnectionAbortedError:
            self.note_silent(arrival)
            raise
        finally:
            self._handshakes.leave(arrival)


# The server process: sockets, TLS, event loop, graceful stop; and the parent of several such processes.


# A collection of young objects every 700 allocations would cost more than it frees: calls leave few cycles behind.
COLLECTION_THRESHOLDS = (50_000, 20, 50)
SWITCH_SECONDS = 0.0001
# Below what hashing a password and a large body take, above what replies are sent in. While 40 clients repeat uploads
# of 32 MiB, 343 MiB are resident (peak 702); with 16 MiB here it was 510 (peak 728). Long replies cost the same.
LARGE_BLOCK_BYTES = 4 * 1024 * 1024
# glibc gives threads arenas of their own, eight for each core, and what is freed in one helps no other: after 200,000
# mutated messages 292 MiB stayed, with one arena 135. Threads that hold Python's lock have nothing to gain from more.
ARENAS_MAX = 2
# The numbers of malloc.h.
MALLOC_TRIM_THRESHOLD, MALLOC_MMAP_THRESHOLD, MALLOC_ARENA_MAX = -1, -3, -8
# Files besides connections: database, log, libraries.
OTHER_FILES = 200


class Server(uvicorn.Server):
    """Serves one gateway until `stop` or a signal; calls in flight finish, for drain_seconds_max at most."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        on_listening: Callable[[list[tuple[Any, ...]]], None] = lambda addresses: None,
    ) -> None:
        settings, refusals = gateway.settings, Refusals(gateway.metrics)
        tls = None if gateway.certificate is None else gateway.certificate.context
        self.unread_replies = UnreadReplies(
            settings.limits, refusals, stall_seconds_max=settings.write_stall_seconds_max
        )
        config = BoundedConfig(
            gateway,
            settings,
            gateway.asgi_endpoint,
            gateway.dialect_of_url,
            self.unread_replies,
            loop="uvloop",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=settings.idle_seconds_max,
            timeout_graceful_shutdown=settings.limits.drain_seconds_max,
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
            door = Door(listeners, self._connection, self._gateway)
            door.open()
        except BaseException:
            for listener in listeners:
                listener.close()
            self._gateway.stop_being_ready()
            await self.lifespan.shutdown()
            raise
        # uvicorn closes it, and waits for that.
        self.servers = [cast("asyncio.Server", door)]
        self.started = True
        _quiet_collector()
        # A thread that runs Python gives way soon: the event loop waits for it, some twenty times in a call it answers.
        sys.setswitchinterval(SWITCH_SECONDS)
        self._on_listening([listener.getsockname() for listener in listeners])

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


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Bound sockets, one per address family of the host. Raises OSError."""
    sockets: list[socket.socket] = []
    for family, _, _, _, address in socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], sockets[0].getsockname()[1] if sockets else port))
        except OSError:
            for opened in (listener, *sockets):
                opened.close()
            raise
        listener.setblocking(False)
        listener.set_inheritable(True)
        sockets.append(listener)
    return sockets


def _quiet_collector() -> None:
    """What start-up made stays: leave it out of every later collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    keep_little_free_memory()


def keep_little_free_memory() -> None:
    """From now on give every large block back at once, such as the 19 MiB of a password's hash, and share the rest.

    glibc would keep both for the next call in each thread, for ever.
    """
    with contextlib.suppress(AttributeError, OSError):
        glibc = ctypes.CDLL(None)
        glibc.mallopt(MALLOC_ARENA_MAX, ARENAS_MAX)
        glibc.mallopt(MALLOC_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        glibc.mallopt(MALLOC_TRIM_THRESHOLD, 2 * LARGE_BLOCK_BYTES)
