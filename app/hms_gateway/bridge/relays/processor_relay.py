"""Answers the Thrift port of the gateway's own process: no HTTP, straight to the processor in a worker thread.

Threads, streaming and the reply cache are the gateway's.
"""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any

import structlog

from hms_gateway.bridge.relays.relay import RelayedReply
from hms_gateway.bridge.thrift.connection import Session
from hms_gateway.bridge.thrift.messages import (
    BridgeError,
    CallFailed,
    NotTried,
    ReplyBroken,
    ThriftMessage,
    application_exception,
    codec_of,
    enclosed,
)
from hms_gateway.cache import ReplyCache, ReplyKey
from hms_gateway.gateway.calls.dispatcher import CompletedCall, Dispatcher
from hms_gateway.gateway.calls.streaming import ReplyStream
from hms_gateway.rpc.call import Call, Caller, Dialect, Unavailable
from hms_gateway.rpc.wire import ApplicationError, Codec, Codecs, Message, MessageType
from hms_gateway.runtime.call_record import Objects
from hms_gateway.runtime.shares import Holder
from hms_gateway.runtime.tracebacks import forget_frames

ANONYMOUS = "anonymous"

_log = structlog.get_logger("hms_gateway.bridge")


async def user_as_named(session: Session) -> Caller:
    """The user that `set_ugi` named, as a Thrift metastore without authentication takes it; groups need a proof."""
    return Caller(session.user or ANONYMOUS)


async def at_once(caller: Caller, method: str, session: Session) -> None:
    """Calls do not wait for their turn."""


class ProcessorRelay:
    """A relay into the metastore of the same process.

    `identify` gives the caller of a session and raises CallFailed for one that may not call. `failure_of` says what
    an exception of `answers` means for the Thrift client of a session, None for a bug. `note_limit` counts a message
    that was over a limit. `admit` returns when a caller may make a call of that method, and raises CallFailed.
    """

    def __init__(
        self,
        answers: Dispatcher,
        codecs: Codecs,
        *,
        dialect: Dialect = Dialect.HIVE_2_3,
        cache: ReplyCache | None = None,
        identify: Callable[[Session], Awaitable[Caller]] = user_as_named,
        failure_of: Callable[[Exception, Session], BridgeError | None] = lambda error, session: None,
        note_limit: Callable[[str, Session], None] = lambda limit, session: None,
        admit: Callable[[Caller, str, Session], Awaitable[None]] = at_once,
        reply_bytes_max: int = 256 * 1024 * 1024,
    ) -> None:
        self._answers = answers
        self._codecs = codecs
        self._dialect = dialect
        self._cache = cache
        self._identify = identify
        self._admit = admit
        self._failure_of = failure_of
        self._note_limit = note_limit
        self._reply_bytes_max = reply_bytes_max

    async def call(self, message: ThriftMessage, session: Session) -> RelayedReply | None:
        """See `Relay.call`."""
        caller = await self._identify(session)
        await self._admit(caller, message.name, session)
        reply = await self._answer(message, session, caller)
        if reply is not None:
            reply.groups = caller.groups
        return reply

    async def _answer(self, message: ThriftMessage, session: Session, caller: Caller) -> RelayedReply | None:
        codec = codec_of(self._codecs, message.protocol)
        call = Message(message.name, message.type, message.seqid, message.body[message.payload_begin :])
        key: ReplyKey = (codec.name, self._dialect, message.name, call.payload)
        if self._cache is not None and self._cache.is_apart:
            key = (*key, self._cache.viewer(caller.user, caller.groups, caller.may_administer))
        known = await self._known(key, message)
        tagged = None
        if known is None and self._cache is not None and message.name in self._cache.with_lists:
            reading = self._cache.reading(key, codec, None)
            if reading is not None:
                key, tagged = reading.key, self._cache.tag_reading(reading)
                known = await self._found(self._cache.lookup_for, reading)
        if known is not None:
            body = enclosed(codec, message.name, MessageType.REPLY, message.seqid, known)
            return RelayedReply(body, cached=True, about=self._scopes_of(key))
        ticket = 0 if self._cache is None else self._cache.ticket()
        request_id = f"{random.getrandbits(128):032x}"
        try:
            ran = await self._run(codec, call, caller, session, request_id, tagged)
        except ApplicationError as error:
            body = application_exception(codec, message.name, message.seqid, error.message, error.type)
            return None if message.is_oneway else RelayedReply(body, outcome=error.type.name, request_id=request_id)
        finally:
            if self._cache is not None:
                self._cache.note_answered(message.name)
        if ran.stream is not None:
            long = await self._long_reply(ran.stream, session, request_id)
            long.partitions = ran.reply.partitions
            return long
        reply = ran.reply
        if reply.limit:
            self._note_limit(reply.limit, session)
        if reply.payload is None:
            return None
        assert isinstance(reply.payload, bytes)
        if self._cache is not None and reply.outcome == "ok" and reply.type is MessageType.REPLY:
            self._cache.remember(key, reply.arguments, reply.payload, ticket, tagged)
        body = enclosed(codec, message.name, reply.type, message.seqid, reply.payload)
        return RelayedReply(
            body, outcome=reply.outcome, request_id=request_id, about=reply.objects, partitions=reply.partitions
        )

    async def close(self) -> None:
        """Threads and cache are the gateway's."""

    def _scopes_of(self, key: Any) -> Objects:
        return () if self._cache is None else self._cache.scopes_of(key)

    async def _known(self, key: Any, message: ThriftMessage) -> bytes | None:
        return None if self._cache is None or message.is_oneway else await self._found(self._cache.lookup, key)

    async def _found(self, find: Callable[[Any], Any], asked: Any) -> bytes | None:
        try:
            found = find(asked)
            if found is not None and not isinstance(found, bytes):
                found = await found
        except Exception as error:
            # The call itself will return what is wrong with the database.
            _log.debug("reply cache not usable", problem=repr(error))
            forget_frames(error)
            return None
        return found if isinstance(found, bytes) else None

    async def _run(
        self, codec: Codec, message: Message, caller: Caller, session: Session, request_id: str, tagged: Any
    ) -> CompletedCall:
        call = Call(
            principal=caller.user,
            groups=caller.groups,
            dialect=self._dialect,
            request_id=request_id,
            client_address=session.address,
            holder=Holder(caller.user, session.share_address),
            first=tagged,
            last=None if tagged is None else tagged.confirm,
            may_get_token=caller.may_get_token,
            real_user=caller.real_user,
            may_administer=caller.may_administer,
        )

        def wrap(chunks: Iterator[bytes]) -> Iterator[bytes]:
            before, after = codec.envelope(message.name, MessageType.REPLY, message.seqid)
            yield before
            yield from chunks
            yield after

        try:
            return await self._answers.answer(codec, message, call, wrap, session.until_gone)
        except Unavailable as error:
            raise self._failure_of(error, session) or NotTried(f"the metastore is not available: {error}") from error
        except ApplicationError:
            raise
        except Exception as error:
            failure = self._failure_of(error, session)
            if failure is not None:
                raise failure from error
            _log.exception("call failed", method=message.name, request=request_id)
            raise CallFailed(f"Internal error processing {message.name}", "internal_error") from error

    async def _long_reply(self, stream: ReplyStream, session: Session, request_id: str) -> RelayedReply:
        chunks = _passed_on(stream)
        if not session.needs_length:
            return RelayedReply(chunks=chunks, request_id=request_id)
        parts, size = [], 0
        async with aclosing(chunks):
            try:
                async for chunk in chunks:
                    parts.append(chunk)
                    size += len(chunk)
                    if size > self._reply_bytes_max:
                        text = f"the reply is over the limit of {self._reply_bytes_max} bytes"
                        raise CallFailed(text, "too_large")
            except ReplyBroken as error:
                raise CallFailed(str(error), "reply_broken") from error
        return RelayedReply(b"".join(parts), request_id=request_id)


async def _passed_on(stream: ReplyStream) -> AsyncGenerator[bytes, None]:
    is_finished = False
    try:
        async for chunk in stream.chunks():
            yield chunk
        is_finished = True
    except Exception as error:
        _log.exception("reply not finished")
        raise ReplyBroken("the reply could not be finished") from error
    finally:
        if not is_finished:
            stream.cancel()
