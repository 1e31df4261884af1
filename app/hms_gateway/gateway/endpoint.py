"""The Thrift endpoint: an HTTP request becomes a message and a Call, the reply becomes an HTTP response.

A plain ASGI callable, because routing and request objects would halve the calls per second. What is answered when is
clients §10, row by row. A call that the reply cache can answer never leaves the event loop.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import structlog

from hms_gateway.cache import ReplyCache, ReplyKey
from hms_gateway.gateway.access_log import AccessLog, AccessRecord
from hms_gateway.gateway.body_shares import BodyShare, BodyShares
from hms_gateway.gateway.call_answers import Begun, CallAnswers
from hms_gateway.gateway.calls import Answered
from hms_gateway.gateway.cors import ALLOWED_METHODS, CrossOrigin
from hms_gateway.gateway.direct import BEGUN, CLAIM
from hms_gateway.gateway.direct_answers import BegunCall, DirectAnswers
from hms_gateway.gateway.exchange import TEXT, Exchange
from hms_gateway.gateway.header_rules import check_headers
from hms_gateway.gateway.identity import Authenticator, HeaderList, Identity
from hms_gateway.gateway.metrics import Metrics
from hms_gateway.gateway.proxies import Proxies
from hms_gateway.gateway.refusals import NOT_TRIED, ClientGone, Refusals, Refused
from hms_gateway.gateway.request_body import SLOW_BODY, BodyReader, Receive, Scope, Send
from hms_gateway.gateway.requested_call import requested_call
from hms_gateway.gateway.streaming import COMPRESSED_FROM_BYTES, StreamFailed, compress, compressed, enclosed
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.errors import Unavailable
from hms_gateway.rpc.processor import MessageProcessor
from hms_gateway.rpc.releases import Releases
from hms_gateway.rpc.repeatable import KeyReused
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder
from hms_gateway.wire import (
    ApplicationError,
    ApplicationErrorType,
    Codec,
    Codecs,
    Message,
    MessageType,
    NotThrift,
    ProtocolError,
)
from hms_gateway.wire.errors import TApplicationException

GZIPPED: HeaderList = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))
COMPRESSED_IN_THREAD_BYTES = 256 * 1024
# Bodies from this size on are not read by the event loop, which would answer no other caller meanwhile.
READ_IN_THREAD_BYTES = 256 * 1024
# Replies to calls with longer arguments are not kept: looking for them would take longer than most answers.
CACHED_ARGUMENTS_BYTES_MAX = 64 * 1024
RETRY_SOON = NOT_TRIED

# Looking up a member of an enumeration, and hashing one, costs more than what is done with these.
_CALL = MessageType.CALL
_REPLY = MessageType.REPLY

_log = structlog.get_logger("hms_gateway.endpoint")


class Endpoint:
    """Answers POSTs of Thrift messages in every protocol that the codecs know."""

    def __init__(
        self,
        *,
        codecs: Codecs,
        processor: MessageProcessor,
        cache: ReplyCache | None,
        authenticator: Authenticator,
        limits: Limits,
        metrics: Metrics,
        access_log: AccessLog | None,
        cross_origin: CrossOrigin,
        proxies: Proxies | None = None,
        releases: Releases | None = None,
        threads: int = 32,
        streams_max: int = 100,
        call_seconds_max: float = 600.0,
        write_stall_seconds_max: float = 60.0,
    ) -> None:
        self._codecs = codecs
        self._content_types = {codec.name: codec.content_type.encode() for codec in codecs}
        self._cache = cache
        self._authenticator = authenticator
        self._metrics = metrics
        self._access_log = access_log
        self._cross_origin = cross_origin
        self._proxies = proxies or Proxies()
        self._call_seconds_max = call_seconds_max
        self._write_stall_seconds_max = write_stall_seconds_max
        self._body_reader = BodyReader(limits)
        self.bodies = BodyShares(limits)
        self._refusals = Refusals(metrics)
        self.calls = CallAnswers(
            processor,
            limits,
            metrics,
            releases or Releases(),
            threads=threads,
            streams_max=streams_max,
            call_seconds_max=call_seconds_max,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send, dialect: Dialect) -> None:
        """Answer one request. `dialect` belongs to the path it came by (design D2)."""
        exchange = Exchange(
            scope,
            receive,
            send,
            proxies=self._proxies,
            cross_origin=self._cross_origin,
            write_stall_seconds_max=self._write_stall_seconds_max,
        )
        try:
            self._check_head(exchange)
            if scope["method"] == "POST":
                await self._post(exchange, receive, dialect)
            else:
                await self._other_method(exchange)
        except Refused as refused:
            exchange.outcome = refused.reason
            self._note(exchange, refused.limit)
            await self._refuse(exchange, refused)
        except ClientGone:
            exchange.outcome = "client_gone"
        except StreamFailed as error:
            exchange.outcome = "stream_failed"
            self._note(exchange, error.limit)
            _log.error("reply not finished", method=exchange.method, request=exchange.request_id, exc_info=error)
        finally:
            self._record(exchange)

    def direct_answers(self, dialects: Mapping[str, Dialect]) -> DirectAnswers:
        """The short cut for calls on these paths that need neither ASGI nor a thread."""
        return DirectAnswers(
            dialects,
            codecs=self._codecs,
            cache=self._cache,
            calls=self.calls,
            call_seconds_max=self._call_seconds_max,
            authenticator=self._authenticator,
            proxies=self._proxies,
            metrics=self._metrics,
            access_log=self._access_log,
        )

    def _check_head(self, exchange: Exchange) -> None:
        """Raises Refused for a request that is not decoded at all, right password or not."""
        try:
            check_headers(exchange.head, exchange.scope["http_version"])
            self._cross_origin.check(exchange.head, exchange.scope["scheme"])
        except Refused as refused:
            self._metrics.authentication_refused(refused.reason)
            raise

    async def _post(self, exchange: Exchange, receive: Receive, dialect: Dialect) -> None:
        begun: BegunCall | None = exchange.scope.get(BEGUN)
        if begun is not None:
            await self._finish(exchange, begun)
            return
        head = exchange.head
        try:
            identity = self._authenticator.remembered(head) or await self._authenticator.authenticate(head)
        except Refused as refused:
            self._metrics.authentication_refused(refused.reason)
            raise
        exchange.identity = identity
        _claim_connection(exchange.scope, identity.user)
        holder = Holder(identity.user, self._proxies.share_of(identity.address))
        with self.bodies.of(holder) as share:
            await self._answer_body(exchange, receive, dialect, identity, holder, share)

    async def _answer_body(
        self,
        exchange: Exchange,
        receive: Receive,
        dialect: Dialect,
        identity: Identity,
        holder: Holder,
        share: BodyShare,
    ) -> None:
        """Read the body and answer it; until then it is counted."""
        body = await self._body(exchange, receive, share)
        try:
            codec = self._codecs.sniff(body)
        except NotThrift as error:
            raise Refused(400, str(error), reason="not_thrift") from None
        try:
            if len(body) < READ_IN_THREAD_BYTES:
                message = codec.read_message(body)
            else:
                message = await asyncio.get_running_loop().run_in_executor(None, codec.read_message, body)
        except ProtocolError as error:
            await self._unreadable(exchange, codec, error)
            return
        del body
        exchange.method = message.name
        if not await self._answer_from_cache(exchange, codec, message, dialect):
            call = requested_call(
                identity, holder.address, dialect, exchange.headers, exchange.request_id, self._call_seconds_max
            )
            await self._answer(exchange, codec, message, call)

    async def _body(self, exchange: Exchange, receive: Receive, share: BodyShare) -> bytes:
        body = self._body_reader.arrived(exchange.scope)
        if body is None:
            body = await self._body_reader.read(exchange.headers, receive, share)
        exchange.body_is_read = True
        exchange.bytes_in = len(body)
        if body[:1] == b"%" or b"content-encoding" in exchange.headers:
            body = await self._body_reader.plain(body, exchange.head, share)
        return body

    async def _finish(self, exchange: Exchange, begun: BegunCall) -> None:
        """Answer a request whose call is under way: it was read while it was received."""
        exchange.identity = begun.identity
        exchange.body_is_read = True
        exchange.bytes_in = begun.bytes_in
        exchange.method = begun.message.name
        exchange.request_id = begun.call.request_id.encode("latin-1")
        await self._answer(exchange, begun.codec, begun.message, begun.call, begun.reply)

    async def _answer_from_cache(self, exchange: Exchange, codec: Codec, message: Message, dialect: Dialect) -> bool:
        cache = self._cache
        if cache is None or message.type is not _CALL or len(message.payload) > CACHED_ARGUMENTS_BYTES_MAX:
            return False
        try:
            found = cache.lookup(_cache_key(codec, message, dialect))
            if found is not None and not isinstance(found, bytes):
                found = await found
        except Exception as error:
            # The call itself will tell the client what is wrong with the database.
            _log.warning("reply cache not usable", problem=repr(error))
            found = None
        if found is None:
            self._metrics.cache_misses += 1
            return False
        self._metrics.cache_hits += 1
        exchange.cached = True
        await self._send_whole(exchange, codec, message, _REPLY, found)
        return True

    async def _answer(
        self, exchange: Exchange, codec: Codec, message: Message, call: Call, begun: Begun | None = None
    ) -> None:
        """Have the processor answer."""
        ticket = 0 if self._cache is None else self._cache.ticket()
        is_compressed = _accepts_gzip(exchange)
        wrap = partial(_wrap, codec, message, is_compressed)
        try:
            answered = await self.calls.answer(codec, message, call, wrap, exchange.until_gone, begun)
        except ClientGone:
            raise
        except Unavailable as error:
            said = {"problem": str(error), "detail": error.detail}
            _log.warning("call not possible", method=message.name, request=call.request_id, **said)
            self._note(exchange, error.limit)
            await self._failed(exchange, codec, message, 503, f"The metastore is not available: {error}", "unavailable")
            return
        except KeyReused as error:
            await self._failed(exchange, codec, message, 422, error.message, "key_reused", headers=(), kind=error.type)
            return
        except ApplicationError as error:
            exchange.outcome = error.type.name
            await self._send_whole(exchange, codec, message, MessageType.EXCEPTION, _encoded(codec, error))
            return
        except Refused as refused:
            self._note(exchange, refused.limit)
            await self._failed(
                exchange, codec, message, refused.status, refused.text, refused.reason, headers=refused.headers
            )
            return
        except Exception:
            _log.exception("call failed", method=message.name, request=call.request_id)
            text = f"Internal error processing {message.name}"
            await self._failed(exchange, codec, message, 500, text, "internal_error", headers=())
            return
        self._remember(answered, codec, message, call.dialect, ticket)
        await self._send_answer(exchange, codec, message, answered, is_compressed)

    def _remember(self, answered: Answered, codec: Codec, message: Message, dialect: Dialect, ticket: int) -> None:
        reply = answered.reply
        if self._cache is None or reply.outcome != "ok" or reply.type is not MessageType.REPLY:
            return
        if isinstance(reply.payload, bytes) and len(message.payload) <= CACHED_ARGUMENTS_BYTES_MAX:
            self._cache.remember(_cache_key(codec, message, dialect), reply.arguments, reply.payload, ticket)

    async def _send_answer(
        self, exchange: Exchange, codec: Codec, message: Message, answered: Answered, is_compressed: bool
    ) -> None:
        reply = answered.reply
        exchange.outcome = reply.outcome
        if answered.stream is not None:
            headers = GZIPPED if is_compressed else ()
            await exchange.respond_stream(self._content_types[codec.name], answered.stream, headers)
        elif reply.payload is None:
            # Oneway: a body would make Node complain about a reply it did not ask for, 204 about the status.
            await exchange.respond(200, self._content_types[codec.name], b"")
        else:
            assert isinstance(reply.payload, bytes)
            await self._send_whole(exchange, codec, message, reply.type, reply.payload)

    async def _send_whole(
        self, exchange: Exchange, codec: Codec, message: Message, type: MessageType, payload: bytes
    ) -> None:
        before, after = codec.envelope(message.name, type, message.seqid)
        body = before + payload + after
        headers: HeaderList = ()
        if len(body) >= COMPRESSED_FROM_BYTES and _accepts_gzip(exchange):
            headers = GZIPPED
            if len(body) < COMPRESSED_IN_THREAD_BYTES:
                body = compress(body)
            else:
                body = await asyncio.get_running_loop().run_in_executor(None, compress, body)
        await exchange.respond(200, self._content_types[codec.name], body, headers)

    async def _unreadable(self, exchange: Exchange, codec: Codec, error: ProtocolError) -> None:
        """An application exception: with HTTP 200 if it can be addressed, so that clients show it, else with 400."""
        exchange.outcome = error.type.name
        exchange.method = error.name or ""
        is_addressed = error.name is not None and error.seqid is not None
        if not is_addressed and codec.name != "tjson":
            await exchange.respond(400, TEXT, _text(str(error)))
            return
        body = _exception_body(codec, error.name or "", error.seqid or 0, error)
        await exchange.respond(200 if is_addressed else 400, self._content_types[codec.name], body)

    async def _failed(
        self,
        exchange: Exchange,
        codec: Codec,
        message: Message,
        status: int,
        text: str,
        outcome: str,
        headers: HeaderList = RETRY_SOON,
        kind: ApplicationErrorType = ApplicationErrorType.INTERNAL_ERROR,
    ) -> None:
        """A call that was read and not answered. JSON clients parse the body whatever the status is."""
        exchange.outcome = outcome
        if codec.name != "tjson" or message.type is MessageType.ONEWAY:
            await exchange.respond(status, TEXT, _text(text), headers)
            return
        body = _exception_body(codec, message.name, message.seqid, ApplicationError(text, kind))
        await exchange.respond(status, self._content_types[codec.name], body, headers)

    def _note(self, exchange: Exchange, limit: str) -> None:
        if limit:
            identity = exchange.identity
            user, address = ("", exchange.head.address) if identity is None else (identity.user, identity.address)
            self._refusals.note(limit, user=user, address=address)

    async def _refuse(self, exchange: Exchange, refused: Refused) -> None:
        """Answer a request whose message was not looked at; with an application exception if it is TJSON.

        Without one Node never calls back (clients §0 rule 6).
        """
        beginning = refused.beginning
        if beginning is None:
            try:
                beginning = await exchange.read_beginning(is_too_large=refused.status == 413)
            except ClientGone:
                exchange.outcome = "client_gone"
                return
        content_type, body = self._refusal_body(exchange, refused, beginning)
        if exchange.body_is_read:
            await exchange.respond(refused.status, content_type, body, refused.headers)
        else:
            drains = refused.reason != SLOW_BODY
            await exchange.respond_and_close(refused.status, content_type, body, refused.headers, drains=drains)

    def _refusal_body(self, exchange: Exchange, refused: Refused, beginning: bytes) -> tuple[bytes, bytes]:
        try:
            codec = self._codecs.sniff(beginning) if beginning else None
        except ProtocolError:
            codec = None
        if codec is None or codec.name != "tjson":
            return TEXT, _text(refused.text)
        name, seqid = _addressee(codec, beginning)
        exchange.method = name
        kind = ApplicationErrorType.INTERNAL_ERROR if refused.status >= 500 else ApplicationErrorType.UNKNOWN
        body = _exception_body(codec, name, seqid, ApplicationError(refused.text, kind))
        return self._content_types[codec.name], body

    async def _other_method(self, exchange: Exchange) -> None:
        if exchange.scope["method"] == "OPTIONS":
            exchange.outcome = "preflight"
            exchange.body_is_read = True
            headers = self._cross_origin.preflight_headers(exchange.headers.pop(b"origin", None))
            await exchange.respond_empty(204, (*headers, (b"allow", ALLOWED_METHODS)))
            return
        exchange.outcome = "method_not_allowed"
        text = "Send Thrift messages with POST"
        await exchange.respond(405, TEXT, _text(text), ((b"allow", ALLOWED_METHODS),))

    def _record(self, exchange: Exchange) -> None:
        seconds = time.perf_counter() - exchange.started
        method = exchange.method
        self._metrics.response(exchange.status, exchange.bytes_in, exchange.bytes_out)
        if method:
            self._metrics.call(method, exchange.outcome, seconds)
        if self._access_log is None:
            return
        user, address = "", exchange.head.address
        if exchange.identity is not None:
            user, address = exchange.identity.user, exchange.identity.address
        record = AccessRecord(
            time.time(),
            exchange.request_id,
            seconds * 1000,
            method,
            user,
            exchange.bytes_in,
            exchange.bytes_out,
            exchange.outcome,
            exchange.status,
            address,
            exchange.cached,
        )
        self._access_log.write(record)


def _claim_connection(scope: Scope, user: str) -> None:
    """Count the connection as that of its first user. Raises Refused (503), and the connection ends with it."""
    claim: Callable[[str], Bound | None] | None = scope.get(CLAIM)
    bound = None if claim is None else claim(user)
    if bound is not None:
        text = f"You have too many connections ({bound.name}); use those that are open, or try again"
        headers = (*NOT_TRIED, (b"connection", b"close"))
        raise Refused(503, text, headers=headers, reason="overload", limit=bound.name)


def _cache_key(codec: Codec, message: Message, dialect: Dialect) -> ReplyKey:
    return (codec.name, dialect.value, message.name, message.payload)


def _wrap(codec: Codec, message: Message, is_compressed: bool, chunks: Iterator[bytes]) -> Iterator[bytes]:
    before, after = codec.envelope(message.name, MessageType.REPLY, message.seqid)
    whole = enclosed(before, chunks, after)
    return compressed(whole) if is_compressed else whole


def _accepts_gzip(exchange: Exchange) -> bool:
    accepted = exchange.headers.get(b"accept-encoding")
    if accepted is None or b"gzip" not in accepted:
        return False
    for coding in accepted.split(b","):
        name, _, quality = coding.partition(b";")
        if name.strip() == b"gzip":
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _addressee(codec: Codec, beginning: bytes) -> tuple[str, int]:
    """Method and seqid as far as the beginning of a body tells; errors carry what was read before they occurred."""
    try:
        message = codec.read_message(beginning)
    except ProtocolError as error:
        return error.name or "", error.seqid or 0
    return message.name, message.seqid


def _exception_body(codec: Codec, name: str, seqid: int, error: ApplicationError) -> bytes:
    before, after = codec.envelope(name, MessageType.EXCEPTION, seqid)
    return before + _encoded(codec, error) + after


def _encoded(codec: Codec, error: ApplicationError) -> bytes:
    payload = codec.encode(TApplicationException(error.message, int(error.type)))
    assert isinstance(payload, bytes)
    return payload


def _text(text: str) -> bytes:
    return f"{text}\n".encode("utf-8", "replace")
