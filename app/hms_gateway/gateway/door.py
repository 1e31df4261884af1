"""Accepts connections. They count from the moment they are accepted, before and during the TLS handshake.

The event loop's own server knows a connection only when its handshake is done, keeps 50 KB for each that says nothing,
and runs out of open files without a word. Here a connection that says nothing is a bare socket; TLS begins with its
first byte.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from hms_gateway.gateway.admission.refusals import Refusals
from hms_gateway.gateway.http.http_protocol import TOO_MANY, BoundedHttpProtocol
from hms_gateway.runtime.addresses import share_of
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

_log = structlog.get_logger("hms_gateway.door")


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
        """Whose the connection is."""
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
        connections: Connections,
        refusals: Refusals,
        limits: Limits,
        *,
        tls: ssl.SSLContext | None,
        backlog: int,
        silent_seconds_max: float,
        drain_idle_seconds: float,
        is_proxy: Callable[[str], bool],
    ) -> None:
        self.connections = connections
        self._listeners = listeners
        self._make_protocol = make_protocol
        self._refusals = refusals
        self._tls = tls
        self._backlog = backlog
        self._silent_seconds_max = silent_seconds_max
        self._drain_idle_seconds = drain_idle_seconds
        self._is_proxy = is_proxy
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Arrival, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._open: set[Arrival] = set()
        self.is_closed = False
        self._handshakes = Connections(
            Ledger(limits, "handshakes_max"),
            lambda limit, holder: self._refusals.note(limit, address=holder.address or ""),
        )

    def open(self) -> None:
        """Accept connections at all listeners, or at none. Raises OSError."""
        for listener in self._listeners:
            listener.setblocking(False)
            listener.listen(self._backlog)
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
        if self._drain_idle_seconds:
            self._loop.call_later(self._drain_idle_seconds, self._cut_unestablished)
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
        """As `Connections.claim`."""
        return None if self._is_proxy(arrival.address) else self.connections.claim(arrival, user)

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

    def _share(self, address: str) -> str | None:
        return None if self._is_proxy(address) else share_of(address)

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
