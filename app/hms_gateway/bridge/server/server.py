"""A Thrift port that hands its messages to a relay, and the connections of its clients."""

import asyncio
import contextlib
import signal
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import structlog

from hms_gateway.bridge.relays.relay import LOCAL_METHODS, Relay, RelayedReply, answer_locally
from hms_gateway.bridge.server.admission import Admission, BridgeOptions, Ends
from hms_gateway.bridge.server.metrics import BridgeMetrics, Recorder
from hms_gateway.bridge.thrift.connection import Session, ThriftConnection, share_address
from hms_gateway.bridge.thrift.messages import (
    BridgeError,
    CallFailed,
    NotTried,
    ReplyBroken,
    ThriftMessage,
    Unspeakable,
    application_exception,
    codec_of,
    failure_reply,
)
from hms_gateway.bridge.thrift.sasl import Asked
from hms_gateway.rpc.wire import ApplicationErrorType, Codecs, LimitExceeded, ProtocolError, make_codecs
from hms_gateway.runtime.addresses import host_and_port, is_loopback
from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.door import Arrival, Door, PiecewiseTransport, ShownCertificate, listening_sockets
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Connections, Holder, Ledger, Silence
from hms_gateway.runtime.tracebacks import forget_frames

# While a call is being answered, so much of the next ones is read; then the client has to wait.
READ_AHEAD_BYTES_MAX = 64 * 1024
# From this size on, messages that are arriving count towards what all connections may keep together.
LARGE_BYTES = 1024 * 1024
WRITE_BUFFER_BYTES = 256 * 1024
BACKLOG = 2048

_log = structlog.get_logger("hms_gateway.bridge")


class _ClientGone(Exception):
    """The client does not read."""


class ClientConnection(asyncio.Protocol):
    """Reads messages, has them answered in order, writes the replies no faster than the client takes them."""

    def __init__(self, server: "BridgeServer", arrival: Arrival) -> None:
        self._server = server
        self._arrival = arrival
        self._loop = asyncio.get_running_loop()
        self._thrift = ThriftConnection(server.limits, server.options.sasl, server.options.mechanisms)
        self._session = Session(claim=partial(server.claim, arrival))
        self._certificate: ShownCertificate | None = None
        self.transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._more: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._host = arrival.address
        self._has_called = False
        self._is_lost = False
        self._is_at_end = False
        self._is_draining = False
        self._is_busy = False
        self._is_large = False
        self._is_reading = True
        self._is_writing_paused = False
        self._is_tls = False
        self._stall_timer: asyncio.TimerHandle | None = None

    # asyncio's protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self._session.address = host_and_port(*peer[:2]) if isinstance(peer, tuple) else self._host
        self._session.share_address = self._thrift.share_address = share_address(self._host)
        self.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self._look_at_tls()
        self._server.welcome(self)
        self._arrival.established(self)
        raw = transport.get_extra_info("socket")
        if raw is not None:
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._thrift.needs_tls:
            return
        policy = self._server.admission.policy_for(_ends(transport), has_logged_in=self._certificate is not None)
        if policy is None:
            self._server.metrics.refused("other_network" if self._server.admission.networks else "other_account")
            self.transport.abort()
        else:
            self._thrift.sasl = policy
            is_in_network = self._server.admission.networks.contain(self._host)
            self._session.is_in_network = is_in_network and self._certificate is None

    def data_received(self, data: bytes) -> None:
        self._thrift.receive_data(data)
        if self._task is None:
            # A connection that never says a byte costs no task.
            self._task = self._loop.create_task(self._run())
        elif self._more is not None and not self._more.done():
            self._more.set_result(None)
        elif self._is_busy and self._is_reading and self._thrift.buffered_bytes > READ_AHEAD_BYTES_MAX:
            self._is_reading = False
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        self._is_at_end = True
        # It may be a client that went away; what it waits for it can ask for again.
        self._session.gone.set()
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
        # The reply to a call in flight may still be read; TLS has no such half of a connection.
        return self._is_busy and not self._is_tls

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._session.gone.set()
        self._stop_stall_timer()
        for waiter in (self._more, self._drained):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        self._server.goodbye(self)
        self._arrival.lost()

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        self._start_stall_timer()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._stop_stall_timer()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # What the server uses.

    def shutdown(self) -> None:
        """Close between two calls; now, if no call is in flight or on its way in."""
        self._is_draining = True
        if not self._is_busy and self._thrift.is_between_messages:
            self.transport.close()

    def silence(self, accepted_at: float) -> Silence | None:
        """Clients keep their connections for hours between two calls: only those that never called are silent."""
        return None if self._has_called else (False, accepted_at)

    def cut(self) -> None:
        """Close now, whatever is in flight."""
        self.transport.abort()

    # Inside.

    def _look_at_tls(self) -> None:
        tls = self._server.options.tls
        if tls is None:
            return
        self._is_tls = self.transport.get_extra_info("ssl_object") is not None
        if self._is_tls:
            shown = tls.certificate_of(self.transport)
            # That of a proxy names no user.
            self._certificate = shown if shown is not None and shown.user else None
            self.transport = cast("asyncio.Transport", PiecewiseTransport(self.transport, lambda: None))
        else:
            self._thrift.needs_tls = True

    async def _run(self) -> None:
        try:
            while not self._is_lost:
                message = self._thrift.next_message()
                self._send_negotiation()
                self._account(message)
                if self._thrift.asked is not None:
                    await self._log_in(self._thrift.asked)
                elif message is not None:
                    await self._serve(message)
                elif self._is_at_end or (self._is_draining and self._thrift.is_between_messages):
                    break
                else:
                    await self._wait_for_more()
        except Unspeakable as error:
            self._refuse(str(error), error.reason, error.last_words)
        except ProtocolError as error:
            reason = error.limit if isinstance(error, LimitExceeded) else error.type.name
            self._refuse(error.message, reason, self._last_reply(error))
        except (_ClientGone, ReplyBroken, NotTried) as error:
            forget_frames(error)
        except Exception:
            _log.exception("bridge connection failed", address=self._session.address)
        finally:
            self._close()

    async def _log_in(self, asked: Asked) -> None:
        """Answer one message of a login. Raises Unspeakable."""
        self._is_busy = True
        try:
            self._thrift.answer_login(await asked.answer())
        finally:
            self._is_busy = False

    def _account(self, message: ThriftMessage | None) -> None:
        """Report to the server what is kept of a large message; raises LimitExceeded when all of them are too much."""
        size = self._thrift.buffered_bytes if message is None else 0
        if size < LARGE_BYTES and not self._is_large:
            return
        self._is_large = size >= LARGE_BYTES
        bound = self._server.keep(self, size, self._session.shown_user, self._host)
        if bound is not None:
            pending = self._thrift.pending
            error = LimitExceeded(bound.name, bound.value)
            error.name, error.seqid = (pending.name, pending.seqid) if pending is not None else (None, None)
            raise error

    async def _wait_for_more(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()
        self._more = self._loop.create_future()
        try:
            await self._more
        finally:
            self._more = None

    async def _serve(self, message: ThriftMessage) -> None:
        """Answer one call. Raises NotTried, ReplyBroken and _ClientGone when the connection has to be closed."""
        started = time.perf_counter()
        self._is_busy = self._has_called = True
        outcome, problem, sent = "ok", "", 0
        reply: RelayedReply | None = None
        try:
            reply = await self._reply(message)
            if reply is not None:
                outcome = reply.outcome
                sent = await self._send(reply)
        except CallFailed as error:
            outcome, problem = error.outcome, str(error)
            forget_frames(error)
            if not message.is_oneway:
                body = failure_reply(self._server.codecs, message, problem)
                sent = await self._send(RelayedReply(body))
        except NotTried as error:
            outcome, problem = "not_tried", str(error)
            raise
        except ReplyBroken as error:
            outcome, problem = "reply_broken", str(error)
            # What the client has of the reply is worthless; closing in order would look like its end.
            self.transport.abort()
            raise
        except _ClientGone:
            outcome, problem = "client_gone", "the client left before it had its reply"
            raise
        finally:
            self._is_busy = False
            self._record(message, started, outcome, problem, sent, reply or RelayedReply())

    async def _reply(self, message: ThriftMessage) -> RelayedReply | None:
        session = self._session
        session.needs_length = self._thrift.is_framed
        session.credentials, session.proven_user = self._thrift.credentials, self._thrift.proven_user
        session.proof = self._thrift.proof
        if message.name in LOCAL_METHODS:
            names_are_logins = self._server.options.names_are_logins
            return answer_locally(self._server.codecs, message, session, names_are_logins=names_are_logins)
        if self._certificate is not None and session.credentials is None and session.proven_user is None:
            session.proven_user = self._user_of(self._certificate)
        try:
            return await self._server.relay.call(message, session)
        except BridgeError:
            raise
        except Exception as error:
            # Closing the connection would make the client repeat a call that may have happened.
            _log.exception("call failed in the bridge", method=message.name, address=session.address)
            raise CallFailed(f"The bridge failed at {message.name}; its log says why", "internal_error") from error

    def _user_of(self, certificate: ShownCertificate) -> str:
        """The user of a certificate that is valid now. Raises CallFailed."""
        tls = self._server.options.tls
        assert tls is not None
        if objection := tls.objection(certificate):
            raise CallFailed(f"The client certificate {objection}", "certificate")
        return certificate.user

    async def _send(self, reply: RelayedReply) -> int:
        """Write the reply as fast as the client takes it; the bytes written."""
        if reply.chunks is None:
            await self._write(self._thrift.wrap(reply.body or b""))
            return len(reply.body or b"")
        sent = 0
        head = b"" if reply.length is None else self._thrift.wrap_head(reply.length)
        async with contextlib.aclosing(reply.chunks) as chunks:
            # Nothing is written before the first chunk is there: chunks that were not begun cannot be closed either.
            async for chunk in chunks:
                await self._write(head + self._thrift.wrap_chunk(chunk))
                head = b""
                sent += len(chunk)
        return sent

    async def _write(self, data: bytes) -> None:
        if self._is_lost:
            raise _ClientGone
        if data:
            self.transport.write(data)
        while self._is_writing_paused:
            self._drained = self._loop.create_future()
            await self._drained
            if self._is_lost:
                raise _ClientGone

    def _send_negotiation(self) -> None:
        data = self._thrift.data_to_send()
        if data:
            self.transport.write(data)

    def _refuse(self, text: str, reason: str, last_words: bytes) -> None:
        _log.warning("connection closed", address=self._session.address, reason=reason, problem=text)
        self._server.metrics.refused(reason, user=self._session.shown_user, address=self._host)
        if last_words and not self._is_lost:
            self.transport.write(last_words)

    def _last_reply(self, error: ProtocolError) -> bytes:
        """The answer to a message that cannot be read. The connection ends with it: the next one cannot be found."""
        codec = codec_of(self._server.codecs, self._thrift.protocol)
        seqid = error.seqid if error.seqid is not None else 0
        kind = error.type if error.type in ApplicationErrorType else ApplicationErrorType.PROTOCOL_ERROR
        return self._thrift.wrap(application_exception(codec, error.name or "", seqid, error.message, kind))

    def _close(self) -> None:
        """Let what was written reach the client, for a while."""
        if not self._is_lost:
            self.transport.close()
            if not self._is_lost and self._stall_timer is None:
                self._start_stall_timer()

    def _start_stall_timer(self) -> None:
        self._stop_stall_timer()
        self._stall_timer = self._loop.call_later(self._server.options.write_stall_seconds_max, self._stalled)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _stalled(self) -> None:
        _log.warning("connection closed: the client does not read its reply", address=self._session.address)
        self.transport.abort()

    def _record(
        self, message: ThriftMessage, started: float, outcome: str, problem: str, sent: int, reply: RelayedReply
    ) -> None:
        ended = time.perf_counter()
        self._server.metrics.write(
            CallRecord(
                time=time.time(),
                ended=ended,
                seconds=ended - started,
                request_id=reply.request_id,
                method=message.name,
                user=self._session.shown_user,
                outcome=outcome,
                status=0,
                cached=reply.cached,
                address=self._session.address,
                bytes_in=len(message.body),
                bytes_out=sent,
                objects=reply.about,
                groups=reply.groups,
                real_user=self._session.real_user,
                tried_user=self._session.tried_user,
                problem=problem,
                partitions=reply.partitions,
            )
        )


def _ends(transport: asyncio.BaseTransport) -> Ends | None:
    peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    return Ends(peer[:2], own[:2]) if isinstance(peer, tuple) and isinstance(own, tuple) else None


class BridgeServer:
    """Accepts Thrift clients and answers them through `relay`."""

    def __init__(
        self,
        relay: Relay,
        options: BridgeOptions,
        limits: Limits,
        *,
        codecs: Codecs | None = None,
        metrics: Recorder | None = None,
        admission: Admission | None = None,
        connections: Connections | None = None,
        memory: Ledger | None = None,
    ) -> None:
        self.admission = admission or Admission(options)
        self.relay = relay
        self.options = options
        self.limits = limits
        self.codecs = codecs or make_codecs(limits)
        self.metrics = metrics or BridgeMetrics()
        self._counted = connections or Connections(Ledger(limits, "connections_max"), self._refused)
        self._memory = memory or Ledger(limits, "body_memory_bytes_max")
        self._connections: set[ClientConnection] = set()
        self._arriving: dict[ClientConnection, _Arriving] = {}
        self._door: Door | None = None
        self._all_gone: asyncio.Future[None] | None = None
        self.metrics.watch("connections", "Clients connected", lambda: self.connections)

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self._connections)

    async def start(self) -> int:
        """Listen; the port, chosen by the system if 0 was asked for. Raises OSError, ValueError for an address
        that others can reach when that is not allowed."""
        options = self.options
        if not options.allows_remote and not is_loopback(options.host):
            raise ValueError(
                f"{options.host} can be reached by others, who would act with this bridge's password: "
                "listen on 127.0.0.1, or say --allow-remote"
            )
        self.admission.start()
        try:
            listeners = listening_sockets(options.host, options.port, shares_port=options.shares_port)
            chosen: int = listeners[0].getsockname()[1]
            self._door = self._make_door(listeners)
            self._door.open()
        except BaseException:
            self.admission.stop()
            raise
        return chosen

    def _make_door(self, listeners: list[socket.socket]) -> Door:
        options, tls = self.options, self.options.tls
        return Door(
            listeners,
            lambda arrival: ClientConnection(self, arrival),
            self._counted,
            self.limits,
            note=lambda limit, address: self._refused(limit, Holder(None, address)),
            failed=self._failed,
            share_of=share_address,
            backlog=BACKLOG,
            silent_seconds_max=options.handshake_seconds_max,
            tls=None if tls is None else tls.context,
            waits_for_bytes=False,
            answers_plain=True,
        )

    async def stop(self) -> None:
        """Take no more clients, let calls in flight finish for `drain_seconds_max`, then cut off the rest."""
        if self._door is not None:
            self._door.close()
        for connection in list(self._connections):
            connection.shutdown()
        if self._connections:
            self._all_gone = asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.limits.drain_seconds_max):
                    await self._all_gone
        if self._connections:
            _log.warning("stopping with calls in flight", connections=len(self._connections))
            for connection in list(self._connections):
                connection.cut()
        self.admission.stop()
        await self.relay.close()

    def _refused(self, limit: str, holder: Holder) -> None:
        self.metrics.refused(limit, user=holder.user or "", address=holder.address or "")
        _log.warning("a connection was closed or refused", limit=limit, address=holder.address or "")

    def _failed(self, address: str, error: ssl.SSLError) -> None:
        """A client has ended the handshake, or shown a certificate that does not let in."""
        self.metrics.refused("handshake", address=address)
        self.admission.refusals.write(
            "connection closed", address, reason="handshake", problem=_handshake_problem(error)
        )

    def welcome(self, connection: ClientConnection) -> None:
        """One more client."""
        self._connections.add(connection)

    def claim(self, arrival: Arrival, user: str) -> Bound | None:
        """Count the connection as that of a user who has logged in; the bound that is in the way."""
        return self._counted.claim(arrival, user)

    def keep(self, connection: ClientConnection, size: int, user: str, host: str) -> Bound | None:
        """Keep `size` bytes of a message of the user's that has not all arrived; the bound that is in the way."""
        before = self._arriving.pop(connection, None)
        if before is not None:
            self._memory.give_back(*before)
        if not size:
            return None
        arriving = _Arriving(size, Holder(user, share_address(host)))
        bound = self._memory.take(*arriving)
        if bound is None:
            self._arriving[connection] = arriving
        return bound

    def goodbye(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)
        self.keep(connection, 0, "", "")
        if not self._connections and self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)


def _handshake_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not accepted: {error.verify_message}"
    return f"the TLS handshake failed: {(error.reason or str(error)).lower().replace('_', ' ')}"


class _Arriving(NamedTuple):
    """Amount and holder of a message on its way in, as a `Ledger` counts them."""

    size: int
    holder: Holder


async def serve_until_told(server: BridgeServer, on_listening: Callable[[int], None]) -> None:
    """Run until SIGTERM or SIGINT, then drain. Raises OSError, ValueError like `start`."""
    loop = asyncio.get_running_loop()
    stop_asked = asyncio.Event()
    on_listening(await server.start())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_asked.set)
    try:
        await stop_asked.wait()
    finally:
        await server.stop()
