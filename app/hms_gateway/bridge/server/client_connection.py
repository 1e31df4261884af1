"""asyncio around ThriftConnection: one client's socket, its calls one after the other."""

import asyncio
import contextlib
import socket
import time
from functools import partial
from typing import cast

import structlog

from hms_gateway.bridge.relays.local_answers import LOCAL_METHODS, answer_locally
from hms_gateway.bridge.relays.relay import RelayedReply
from hms_gateway.bridge.server.peer_accounts import Ends
from hms_gateway.bridge.server.serving import Serving
from hms_gateway.bridge.thrift.connection import ThriftConnection
from hms_gateway.bridge.thrift.errors import BridgeError, CallFailed, NotTried, ReplyBroken, Unspeakable
from hms_gateway.bridge.thrift.exception_replies import application_exception, codec_of, failure_reply
from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.bridge.thrift.sasl import Asked, SaslPolicy
from hms_gateway.bridge.thrift.session import Session, share_address
from hms_gateway.rpc.wire import ApplicationErrorType, LimitExceeded, ProtocolError
from hms_gateway.runtime.addresses import host_and_port
from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.shares import Silence

# While a call is being answered, so much of the next ones is read; then the client has to wait.
READ_AHEAD_BYTES_MAX = 64 * 1024
# From this size on, messages that are arriving count towards what all connections may keep together.
LARGE_BYTES = 1024 * 1024
WRITE_BUFFER_BYTES = 256 * 1024

_log = structlog.get_logger("hms_gateway.bridge")


class _ClientGone(Exception):
    """The client does not read."""


class ClientConnection(asyncio.Protocol):
    """Reads messages, has them answered in order, writes the replies no faster than the client takes them."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._thrift = ThriftConnection(server.limits, server.options.sasl, server.options.mechanisms)
        self._session = Session(claim=partial(server.claim, self))
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._more: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._host = ""
        self._connected_at = self._loop.time()
        self._has_called = False
        self._is_lost = False
        self._is_at_end = False
        self._is_draining = False
        self._is_busy = False
        self._is_large = False
        self._is_reading = True
        self._is_writing_paused = False
        self._stall_timer: asyncio.TimerHandle | None = None

    # asyncio's protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self._session.address = host_and_port(*peer[:2]) if isinstance(peer, tuple) else str(peer or "")
        self._host = peer[0] if isinstance(peer, tuple) else ""
        self._session.share_address = self._thrift.share_address = share_address(self._host)
        if not self._server.welcome(self, self._host):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        raw = transport.get_extra_info("socket")
        if raw is not None:
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        policy = self._server.admission.policy_for(_ends(transport))
        if isinstance(policy, asyncio.Future):
            self._is_busy = True
            self._task = self._loop.create_task(self._run_after(policy))
        else:
            self._admit(policy)

    def data_received(self, data: bytes) -> None:
        self._thrift.receive_data(data)
        if self._task is None:
            # A connection that never says a byte costs no task.
            self._task = self._loop.create_task(self._run())
        elif self._more is not None and not self._more.done():
            self._more.set_result(None)
        elif self._is_busy and self._is_reading and self._thrift.buffered_bytes > READ_AHEAD_BYTES_MAX:
            self._is_reading = False
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._is_at_end = True
        # It may be a client that went away; what it waits for it can ask for again.
        self._session.gone.set()
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
        # The reply to a call in flight may still be read.
        return self._is_busy

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._session.gone.set()
        self._stop_stall_timer()
        for waiter in (self._more, self._drained):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        self._server.goodbye(self)

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        self._start_stall_timer()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._stop_stall_timer()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # What the server uses.

    def drain(self) -> None:
        """Close between two calls; now, if no call is in flight or on its way in."""
        self._is_draining = True
        if not self._is_busy and self._thrift.is_between_messages:
            self._transport.close()

    def silence(self) -> Silence | None:
        """Clients keep their connections for hours between two calls: only those that never called are silent."""
        return None if self._has_called else (False, self._connected_at)

    def cut(self) -> None:
        """Close now, whatever is in flight."""
        self._transport.abort()

    # Inside.

    async def _run_after(self, deciding: "asyncio.Future[SaslPolicy | None]") -> None:
        policy = await deciding
        self._is_busy = False
        if self._admit(policy):
            await self._run()

    def _admit(self, policy: SaslPolicy | None) -> bool:
        if policy is None:
            self._server.metrics.refused("other_account")
            self._transport.abort()
            return False
        self._thrift.sasl = policy
        return True

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
        except (_ClientGone, ReplyBroken, NotTried):
            pass
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
            self._transport.resume_reading()
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
            if not message.is_oneway:
                body = failure_reply(self._server.codecs, message, problem)
                sent = await self._send(RelayedReply(body))
        except NotTried as error:
            outcome, problem = "not_tried", str(error)
            raise
        except ReplyBroken as error:
            outcome, problem = "reply_broken", str(error)
            # What the client has of the reply is worthless; closing in order would look like its end.
            self._transport.abort()
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
            return answer_locally(self._server.codecs, message, session)
        try:
            return await self._server.relay.call(message, session)
        except BridgeError:
            raise
        except Exception as error:
            # Closing the connection would make the client repeat a call that may have happened.
            _log.exception("call failed in the bridge", method=message.name, address=session.address)
            raise CallFailed(f"The bridge failed at {message.name}; its log says why", "internal_error") from error

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
            self._transport.write(data)
        while self._is_writing_paused:
            self._drained = self._loop.create_future()
            await self._drained
            if self._is_lost:
                raise _ClientGone

    def _send_negotiation(self) -> None:
        data = self._thrift.data_to_send()
        if data:
            self._transport.write(data)

    def _refuse(self, text: str, reason: str, last_words: bytes) -> None:
        _log.warning("connection closed", address=self._session.address, reason=reason, problem=text)
        self._server.metrics.refused(reason, user=self._session.shown_user, address=self._host)
        if last_words and not self._is_lost:
            self._transport.write(last_words)

    def _last_reply(self, error: ProtocolError) -> bytes:
        """The answer to a message that cannot be read. The connection ends with it: the next one cannot be found."""
        codec = codec_of(self._server.codecs, self._thrift.protocol)
        seqid = error.seqid if error.seqid is not None else 0
        kind = error.type if error.type in ApplicationErrorType else ApplicationErrorType.PROTOCOL_ERROR
        return self._thrift.wrap(application_exception(codec, error.name or "", seqid, error.message, kind))

    def _close(self) -> None:
        """Let what was written reach the client, for a while."""
        if not self._is_lost:
            self._transport.close()
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
        self._transport.abort()

    def _record(
        self,
        message: ThriftMessage,
        started: float,
        outcome: str,
        problem: str,
        sent: int,
        reply: RelayedReply,
    ) -> None:
        ended = time.perf_counter()
        seconds = ended - started
        received = len(message.body)
        self._server.metrics.call(message.name, outcome, seconds, received, sent)
        log = self._server.call_log
        if log is not None:
            log.write(
                CallRecord(
                    time=time.time(),
                    ended=ended,
                    seconds=seconds,
                    request_id=reply.request_id,
                    method=message.name,
                    user=self._session.shown_user,
                    outcome=outcome,
                    status=0,
                    cached=reply.cached,
                    address=self._session.address,
                    bytes_in=received,
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
