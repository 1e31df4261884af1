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
from typing import Any, NamedTuple, Protocol, cast

import structlog

from hms_gateway.runtime.heap import keep_place_for_handshake
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Connections, Holder, Ledger, Silence

# Between two looks at the sockets, so many are accepted from each listener.
ACCEPTED_AT_ONCE = 16
# How long nothing is accepted when the process has no file left.
OUT_OF_FILES_PAUSE_SECONDS = 0.1
CLOSED_EVERY_SECONDS = 0.02
# How long a connection that the gateway closes waits for its client to say so too; by default half a minute.
TLS_CLOSE_SECONDS_MAX = 2.0
PIECE_BYTES = 256 * 1024
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# The type of TLS's first record.
_HANDSHAKE = b"\x16"

_log = structlog.get_logger("hms_gateway.server")


class Serial(NamedTuple):
    """The authority that signed a certificate, and the number that this gave it."""

    authority: bytes
    number: int


class ShownCertificate(NamedTuple):
    """What the certificate of a connection's other end proves: that it is this user, or, without one, a trusted proxy.

    `expires` is in seconds since 1970; `serial` is by which a list of revoked certificates names it.
    """

    user: str
    expires: float
    serial: Serial


class Guest(Protocol):
    """The protocol, in asyncio's sense, of a connection that was accepted.

    It calls `Arrival.established` when it has its transport, and `Arrival.lost` when it has lost it.
    """

    transport: asyncio.Transport

    def silence(self, accepted_at: float) -> Silence | None:
        """As in `Counted`; `accepted_at` is on the loop's clock."""

    def shutdown(self) -> None:
        """Close when what is in flight has ended."""

    def connection_lost(self, exc: Exception | None, /) -> None: ...


class Arrival:
    """An accepted connection on its way to a protocol, and what is counted for it afterwards."""

    __slots__ = ("_door", "accepted_at", "address", "protocol", "socket", "task")

    def __init__(self, door: "Door", accepted: socket.socket, address: str, accepted_at: float) -> None:
        self._door = door
        self.socket = accepted
        self.address = address
        self.accepted_at = accepted_at
        self.task: asyncio.Task[None] | None = None
        self.protocol: Guest | None = None

    def silence(self) -> Silence | None:
        return (False, self.accepted_at) if self.protocol is None else self.protocol.silence(self.accepted_at)

    def cut(self) -> None:
        if self.protocol is not None:
            self.protocol.transport.abort()
        elif self.task is not None:
            self.task.cancel()
        else:
            self._door.forget(self)

    def established(self, protocol: Guest) -> None:
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
        """The protocol has lost its transport; without this reference to it, it is freed at once."""
        self._door.left(self)
        self.protocol = None


class Door:
    """The listening sockets of a server; looks to uvicorn like one of asyncio's servers.

    With `tls`, which is the context of handshakes, and with `waits_for_bytes`, a connection gets its protocol from
    `make_protocol` with its first byte, which has to come in `silent_seconds_max` as the end of the handshake has.
    `share_of` gives the share of an address, None for one that many use. `note` hears the limit and the address of each
    connection that a limit ends, `failed` the address and the error of a handshake that fails. With `answers_plain`
    a client that begins without TLS gets a protocol without TLS, which tells it so. `too_many` is sent without TLS to
    a connection that does not fit.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        make_protocol: Callable[[Arrival], Guest],
        connections: Connections,
        limits: Limits,
        *,
        note: Callable[[str, str], None],
        share_of: Callable[[str], str | None],
        backlog: int,
        silent_seconds_max: float,
        tls: ssl.SSLContext | None = None,
        failed: Callable[[str, ssl.SSLError], None] = lambda address, error: None,
        waits_for_bytes: bool = True,
        answers_plain: bool = False,
        too_many: bytes = b"",
        drain_idle_seconds: float = 0.0,
    ) -> None:
        self.connections = connections
        self._listeners = listeners
        self._make_protocol = make_protocol
        self._note = note
        self._failed = failed
        self._share = share_of
        self._backlog = backlog
        self._silent_seconds_max = silent_seconds_max
        self._drain_idle_seconds = drain_idle_seconds
        self._tls = tls
        self._waits_for_bytes = waits_for_bytes or tls is not None
        self._answers_plain = answers_plain
        self._too_many = too_many
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Arrival, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._open: set[Arrival] = set()
        self.is_closed = False
        self._handshakes = Connections(
            Ledger(limits, "handshakes_max"), lambda limit, holder: note(limit, holder.address or "")
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
        """Do as `Connections.claim`, except for an address that many use."""
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
        self._note("header_seconds_max", arrival.address)

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
            if self._too_many and self._tls is None:
                with contextlib.suppress(OSError):
                    accepted.send(self._too_many)
            accepted.close()
            return
        self._open.add(arrival)
        if not self._waits_for_bytes:
            self._begin(arrival, None)
            return
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
        self._begin(arrival, None if self._answers_plain and _is_plain(arrival.socket) else self._tls)

    def _begin(self, arrival: Arrival, tls: ssl.SSLContext | None) -> None:
        arrival.task = self._loop.create_task(self._establish(arrival, tls))
        arrival.task.add_done_callback(partial(self._established, arrival))

    async def _establish(self, arrival: Arrival, tls: ssl.SSLContext | None) -> None:
        guest = self._make_protocol(arrival)
        protocol = cast("asyncio.Protocol", guest)
        if tls is None:
            await self._loop.connect_accepted_socket(lambda: protocol, arrival.socket)
        else:
            await self._shake_hands(arrival, protocol, tls)

    def _established(self, arrival: Arrival, task: asyncio.Task[None]) -> None:
        arrival.task = None
        if arrival.protocol is None and arrival in self._open:
            self.left(arrival)
            arrival.socket.close()
        error = None if task.cancelled() else task.exception()
        if arrival.protocol is not None and (task.cancelled() or error is not None):
            # It was cut while its protocol got the transport, which uvloop then closes without a word to the protocol.
            arrival.protocol.transport.abort()
            self._loop.call_soon(self._lose, arrival, arrival.protocol)
        if isinstance(error, ssl.SSLError):
            self._failed(arrival.address, error)
        elif error is not None and not isinstance(error, OSError):
            _log.error("connection not established", address=arrival.address, exc_info=error)

    def _lose(self, arrival: Arrival, protocol: Guest) -> None:
        if arrival in self._open:
            protocol.connection_lost(None)

    async def _shake_hands(self, arrival: Arrival, protocol: asyncio.Protocol, tls: ssl.SSLContext) -> None:
        left = arrival.accepted_at + self._silent_seconds_max - self._loop.time()
        self._handshakes.enter(arrival, self._share(arrival.address))
        keep_place_for_handshake(self._loop)
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


def _is_plain(accepted: socket.socket) -> bool:
    """True if the first byte of a connection, which is there, does not begin a handshake."""
    try:
        first = accepted.recv(1, socket.MSG_PEEK)
    except OSError:
        return False
    return first not in (b"", _HANDSHAKE)


class PiecewiseTransport:
    """Writes what is long in pieces to a transport of TLS.

    That hands each write on as a whole to the transport below it, where what waits is not seen; when that one has
    enough, the next writes wait where they are. `has_written` is called after the last piece.
    """

    def __init__(self, transport: asyncio.Transport, has_written: Callable[[], None]) -> None:
        self._transport = transport
        self._has_written = has_written
        # Called for each request, where `__getattr__` would take a microsecond.
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if len(data) <= PIECE_BYTES:
            self._transport.write(data)
            return
        whole = memoryview(data)
        for begin in range(0, len(whole), PIECE_BYTES):
            self._transport.write(whole[begin : begin + PIECE_BYTES])
        self._has_written()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def listening_sockets(host: str, port: int, *, shares_port: bool = False) -> list[socket.socket]:
    """Bound sockets, one per address family of the host; with `shares_port` several processes may bind it.

    Raises OSError.
    """
    sockets: list[socket.socket] = []
    for family, _, _, _, address in socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shares_port:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
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
