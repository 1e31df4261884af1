"""Answers to requests: those that fail (clients §10, row by row), and the way of the others to their calls."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import structlog

from hms_gateway.cache import InvalidList, ReplyCache, ReplyKey
from hms_gateway.cache.scopes import is_cacheable
from hms_gateway.gateway.admission.identity import (
    NOT_TRIED,
    Authenticator,
    ClientGone,
    HeaderList,
    Identity,
    Refusals,
    Refused,
)
from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.admission.rates import Rates
from hms_gateway.gateway.calls.dispatcher import CompletedCall, Dispatcher, InFlightCall
from hms_gateway.gateway.calls.streaming import COMPRESSED_FROM_BYTES, StreamFailed, compress, compressed, enclosed
from hms_gateway.gateway.http.exchange import TEXT, WRITE_IDS_HEADER, Answer, Exchange, Pending, Response, settled
from hms_gateway.gateway.http.request_body import KEPT_BYTES_MAX, unescaped
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.traces import Traces
from hms_gateway.rpc.call import Releases, Unavailable, Waiting
from hms_gateway.rpc.processor import MessageProcessor, Reply
from hms_gateway.rpc.repeatable import KeyReused
from hms_gateway.rpc.wire import (
    ApplicationError,
    ApplicationErrorType,
    Codec,
    Codecs,
    Message,
    MessageType,
    NotThrift,
    ProtocolError,
)
from hms_gateway.rpc.wire.message import TApplicationException
from hms_gateway.runtime.call_record import CallRecord, TraceSpans, object_names
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.shares import Bound, Holder
from hms_gateway.runtime.tracebacks import forget_frames

_log = structlog.get_logger("hms_gateway.endpoint")


class Failures:
    """Makes responses of errors. `content_types` are those of the codecs, by name."""

    def __init__(self, codecs: Codecs, content_types: Mapping[str, bytes], metrics: Metrics) -> None:
        self._codecs = codecs
        self._content_types = content_types
        self._refusals = Refusals(metrics)

    def response(self, exchange: Exchange, error: Exception) -> Response:
        """The response to a request that failed with `error`. Raises ClientGone, which has none."""
        if isinstance(error, ClientGone):
            raise error
        try:
            return self._expected(exchange, error)
        except Exception as unexpected:
            request = exchange.request_id.decode()
            _log.error("request failed", request=request, exc_info=unexpected)
            text = f"Internal error in request {request}; the log of the gateway says why"
            return self._refused(exchange, Refused(500, text, reason="internal_error"))
        finally:
            forget_frames(error)

    def _expected(self, exchange: Exchange, error: Exception) -> Response:
        """The same as `response`. Raises what is none of the errors of a request whose message is not read."""
        if isinstance(error, (Refused, Unavailable, ApplicationError)) and error.limit:
            self.note(exchange, error.limit)
        if exchange.is_read:
            return self._failed_call(exchange, exchange.codec, exchange.message, error)
        if isinstance(error, NotThrift):
            error = Refused(400, str(error), reason="not_thrift")
        if isinstance(error, Refused):
            return self._refused(exchange, error)
        if isinstance(error, ProtocolError):
            return self._unreadable(exchange, exchange.codec, error)
        raise error

    def _failed_call(self, exchange: Exchange, codec: Codec, message: Message, error: Exception) -> Response:
        """For a call that was read. JSON clients parse the body whatever the status is."""
        headers: HeaderList = ()
        kind = ApplicationErrorType.INTERNAL_ERROR
        if isinstance(error, Unavailable):
            # What keeps calls from being answered is logged where it is: a limit above, an outage by the store.
            status, text, exchange.outcome = 503, f"The metastore is not available: {error}", "unavailable"
            headers = NOT_TRIED
        elif isinstance(error, KeyReused):
            status, text, exchange.outcome, kind = 422, error.message, "key_reused", error.type
        elif isinstance(error, ApplicationError):
            exchange.outcome = error.type.name
            return self._exception(codec, message.name, message.seqid, error)
        elif isinstance(error, Refused):
            status, text, exchange.outcome, headers = error.status, error.text, error.reason, error.headers
        else:
            _log.error("call failed", method=message.name, request=exchange.request_id.decode(), exc_info=error)
            status, text, exchange.outcome = 500, f"Internal error processing {message.name}", "internal_error"
        if codec.name != "tjson" or message.type is MessageType.ONEWAY:
            return Response(status, TEXT, _text(text), headers)
        return self._exception(codec, message.name, message.seqid, ApplicationError(text, kind), status, headers)

    def _unreadable(self, exchange: Exchange, codec: Codec, error: ProtocolError) -> Response:
        """400 for every refused envelope: an answer with 200 needs a seqid, which may be what is wrong."""
        exchange.outcome = error.type.name
        exchange.method = error.name or ""
        if codec.name != "tjson":
            return Response(400, TEXT, _text(str(error)))
        return self._exception(codec, error.name or "", error.seqid or 0, error, 400)

    def _refused(self, exchange: Exchange, refused: Refused) -> Response:
        """For a request whose message was not looked at: an application exception if it is TJSON.

        Without one Node never calls back (clients §0 rule 6).
        """
        exchange.outcome = refused.reason
        beginning = exchange.beginning if refused.beginning is None else refused.beginning
        try:
            codec = self._codecs.sniff(beginning) if beginning else None
        except NotThrift:
            codec = None
        if codec is None or codec.name != "tjson":
            return Response(refused.status, TEXT, _text(refused.text), refused.headers)
        exchange.method, seqid = _addressee(codec, beginning)
        kind = ApplicationErrorType.INTERNAL_ERROR if refused.status >= 500 else ApplicationErrorType.UNKNOWN
        error = ApplicationError(refused.text, kind)
        return self._exception(codec, exchange.method, seqid, error, refused.status, refused.headers)

    def _exception(
        self,
        codec: Codec,
        name: str,
        seqid: int,
        error: ApplicationError,
        status: int = 200,
        headers: HeaderList = (),
    ) -> Response:
        before, after = codec.envelope(name, MessageType.EXCEPTION, seqid)
        payload = codec.encode(TApplicationException(error.message, int(error.type)))
        assert isinstance(payload, bytes)
        return Response(status, self._content_types[codec.name], before + payload + after, headers)

    def note(self, exchange: Exchange, limit: str) -> None:
        """The request was refused, or its reply cut off, because of `limit`."""
        identity = exchange.identity
        user, address = ("", exchange.head.address) if identity is None else (identity.user, identity.address)
        self._refusals.note(limit, user=user, address=address)


def _addressee(codec: Codec, beginning: bytes) -> tuple[str, int]:
    """Method and seqid as far as the beginning of a body says; errors carry what was read before they occurred."""
    try:
        message = codec.read_message(beginning)
    except ProtocolError as error:
        return error.name or "", error.seqid or 0
    except Exception:
        # What is to be answered may be just that.
        return "", 0
    return message.name, message.seqid


def _text(text: str) -> bytes:
    return f"{text}\n".encode("utf-8", "replace")


# The one path of a request: sender, message, cache, call, response, record, each once and without any I/O.
#
# `http_protocol` and `asgi_endpoint` bring requests here and send the responses. Every step goes on to the next at once
# where it can, so a cached reply is made while the request is parsed. Where a step has to wait for a future, the next
# step is handed back with it; where more is awaited, the rest of the path is handed back as a coroutine. What is
# answered when is clients §10, row by row.


GZIPPED: HeaderList = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))
COMPRESSED_IN_THREAD_BYTES = 256 * 1024
# Bodies from this size on are not read by the event loop, which would answer no other caller meanwhile.
READ_IN_THREAD_BYTES = 256 * 1024
# Replies to calls with longer arguments are not kept: looking for them would take longer than most answers.
CACHED_ARGUMENTS_BYTES_MAX = 64 * 1024

Respond: TypeAlias = Callable[[Response], Awaitable[None]]

# Looking up a member of an enumeration, and hashing one, costs more than what is done with these.
_CALL = MessageType.CALL
_REPLY = MessageType.REPLY


class Endpoint:
    """Answers Thrift messages in every protocol that the codecs know. Used from the event loop's thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        codecs: Codecs,
        processor: MessageProcessor,
        cache: ReplyCache,
        authenticator: Authenticator,
        proxies: Proxies,
        metrics: Metrics,
        sinks: Sequence[Callable[[CallRecord], None]],
        releases: Releases | None = None,
        rates: Rates | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Every call that has ended is handed to each of `sinks`."""
        self._codecs = codecs
        self._content_types: Mapping[str, bytes] = {codec.name: codec.content_type.encode() for codec in codecs}
        self.cache = cache
        self.authenticator = authenticator
        self.proxies = proxies
        self.metrics = metrics
        self.sinks = sinks
        self.rates = rates
        self.traces = traces
        self._slow_call_seconds = settings.slow_call_seconds
        self.failures = Failures(codecs, self._content_types, metrics)
        self.calls = Dispatcher(
            processor,
            settings.limits,
            metrics,
            releases or Releases(),
            threads=settings.threads,
            streams_max=min(settings.streams_max, settings.database_connections_max * 3 // 5),
            call_seconds_max=settings.call_seconds_max,
        )

    def answer_whole(self, exchange: Exchange, body: bytes) -> Answer:
        """Answer a request whose body, in no content encoding, came with its head."""
        exchange.bytes_in = len(body)
        exchange.beginning = body[:KEPT_BYTES_MAX]
        exchange.identity = self.authenticator.remembered(exchange.head)
        if exchange.identity is None:
            return self._answer_stranger(exchange, body)
        if exchange.claim is not None:
            _claim_connection(exchange.claim, exchange.identity)
        return self.answer(exchange, body)

    async def identify(self, exchange: Exchange) -> None:
        """Find out who sends the request, and whose its connection is. Raises Refused."""
        exchange.identity = self.authenticator.remembered(exchange.head)
        if exchange.identity is None:
            await self._authenticate(exchange)
        elif exchange.claim is not None:
            _claim_connection(exchange.claim, exchange.identity)

    def holder(self, exchange: Exchange) -> Holder:
        """Who holds what an identified request takes of the gateway."""
        identity = exchange.identity
        assert identity is not None
        return Holder(identity.user, self.proxies.share_of(identity.address))

    def answer(self, exchange: Exchange, body: bytes) -> Answer:
        """Answer a request whose sender is known. Raises what `Failures.response` makes a response of."""
        if body[:1] == b"%":
            body = unescaped(body, exchange.head)
        exchange.codec = codec = self._codecs.sniff(body)
        if self.traces is not None:
            self._begin_trace(exchange, self.traces)
        begin = time.perf_counter()
        if len(body) >= READ_IN_THREAD_BYTES:
            return self._answer_long(exchange, body, begin)
        message = codec.read_message(body)
        if exchange.notes is not None:
            exchange.notes.add("parse", begin)
        return self._answer_message(exchange, message)

    async def conclude(self, exchange: Exchange, answer: Answer, respond: Respond, respond_plainly: Respond) -> None:
        """Have the response sent, whatever comes of the answer and of sending it, and record it."""
        try:
            try:
                response = await settled(answer)
            except asyncio.CancelledError:
                text = "The gateway stops before the call has ended; it may still take effect"
                refused = Refused(503, text, headers=((b"retry-after", b"1"),), reason="stopping")
                response = self.failures.response(exchange, refused)
            except Exception as error:
                response = self.failures.response(exchange, error)
            try:
                await respond(response)
            except (ClientGone, StreamFailed):
                raise
            except Exception as error:
                await respond_plainly(self.failures.response(exchange, error))
        except ClientGone:
            exchange.outcome = "client_gone"
        except StreamFailed as error:
            exchange.outcome = "stream_failed"
            if error.limit:
                self.failures.note(exchange, error.limit)
            request = exchange.request_id.decode()
            _log.error("reply not finished", method=exchange.method, request=request, exc_info=error)
        finally:
            self.record(exchange)

    def record(self, exchange: Exchange) -> None:
        """Hand a request that was answered, or whose client has left, to all that record calls."""
        try:
            ended = time.perf_counter()
            head, objects = exchange.head, exchange.objects
            identity = exchange.identity or Identity("", head.address)
            if exchange.cached and exchange.key is not None:
                objects = self.cache.scopes_of(exchange.key) or objects
            # By position: names would take three times as long, as much as counting the call.
            record = CallRecord(
                time.time(),
                ended,
                ended - exchange.started,
                exchange.request_id.decode(),
                exchange.method,
                identity.user,
                exchange.outcome,
                exchange.status,
                exchange.cached,
                identity.address,
                exchange.bytes_in,
                exchange.bytes_out,
                objects,
                head.peer,
                identity.groups,
                identity.real_user,
                exchange.tried_user,
                "",
                exchange.partitions,
                exchange.is_read and exchange.identity is not None,
                exchange.spans,
                () if exchange.notes is None else exchange.notes.parts,
                exchange.trace,
            )
            for sink in self.sinks:
                sink(record)
            if record.seconds >= self._slow_call_seconds:
                self.metrics.served.add_slow(record)
        except Exception as error:
            # It has its answer.
            _log.error("request not recorded", request=exchange.request_id.decode(), exc_info=error)

    @staticmethod
    def _begin_trace(exchange: Exchange, traces: Traces) -> None:
        head = exchange.head
        exchange.trace = traces.begin(head.values(b"traceparent"), head.values(b"tracestate"))
        if exchange.trace is not None and exchange.notes is None:
            exchange.notes = TraceSpans()

    async def _authenticate(self, exchange: Exchange) -> None:
        """As `identify`, for a sender that is not remembered."""
        try:
            exchange.identity = identity = await self.authenticator.authenticate(exchange.head)
        except Refused as refused:
            self.metrics.refusals[refused.reason] += 1
            exchange.tried_user = refused.user
            raise
        if exchange.claim is not None:
            _claim_connection(exchange.claim, identity)

    async def _answer_stranger(self, exchange: Exchange, body: bytes) -> Response:
        await self._authenticate(exchange)
        return await settled(self.answer(exchange, body))

    async def _answer_long(self, exchange: Exchange, body: bytes, begin: float) -> Response:
        message = await asyncio.get_running_loop().run_in_executor(None, exchange.codec.read_message, body)
        del body
        if exchange.notes is not None:
            exchange.notes.add("parse", begin)
        return await settled(self._answer_message(exchange, message))

    def _answer_message(self, exchange: Exchange, message: Message, *, is_compared: bool = False) -> Answer:
        """Answer from the cache, else by the call itself. `is_compared`: what the client holds is not current."""
        exchange.message, exchange.method, exchange.is_read = message, message.name, True
        if self.rates is not None and exchange.identity is not None and not is_compared:
            self.rates.check(exchange.identity, message.name)
        if message.type is not _CALL or len(message.payload) > CACHED_ARGUMENTS_BYTES_MAX:
            return self._call(exchange)
        exchange.key = key = self.key(exchange, exchange.codec.name, message.name, message.payload)
        if exchange.held is not None and not is_compared and not self.cache.is_apart:
            return self._unless_current(exchange, key, exchange.held)
        listed = exchange.head.headers.get(WRITE_IDS_HEADER)
        if listed is not None:
            return self._answer_reader(exchange, key, listed)
        known = self.look_up(key)
        if known is not None:
            return self.found(exchange, known, partial(self._whole, exchange, _REPLY), partial(self._call, exchange))
        # Only the arguments themselves may still hold a list.
        if message.name in self.cache.with_lists:
            return self._answer_reader(exchange, key, None)
        return self._call(exchange)

    async def _unless_current(self, exchange: Exchange, key: ReplyKey, held: bytes) -> Response:
        """304 where the client has an answer that was not kept here, and nothing has changed that it was read from."""
        current = None
        try:
            current = await self.cache.current(key, exchange.codec, held)
        except Exception as error:
            _log_unusable(error)
        if current is None:
            return await settled(self._answer_message(exchange, exchange.message, is_compared=True))
        self.metrics.cache_hits += 1
        exchange.cached, exchange.objects = True, (*object_names(current.scopes),)
        return Response(304, None, b"", ((b"etag", current.tag),))

    def _answer_reader(self, exchange: Exchange, key: ReplyKey, listed: bytes | None) -> Answer:
        """Answer a call that may say which write ids its reader sees."""
        try:
            reading = self.cache.reading(key, exchange.codec, listed)
        except InvalidList as error:
            raise Refused(400, f"x-hms-valid-write-ids: {error}") from error
        known = None
        try:
            if reading is not None:
                exchange.key, exchange.reading = reading.key, reading
                known = self.cache.lookup_for(reading)
            elif listed is not None and self.cache.keeps_apart:
                # Too long to compare: what comes of it is for no other reader.
                exchange.key = None
            elif listed is not None:
                known = self.cache.lookup(key)
        except Exception as error:
            _log_unusable(error)
        if known is None:
            return self._call(exchange)
        return self.found(exchange, known, partial(self._whole, exchange, _REPLY), partial(self._call, exchange))

    def key(self, exchange: Exchange, codec_name: str, method: str, arguments: bytes) -> ReplyKey:
        """The key of a call by an identified sender in the cache of replies."""
        key: ReplyKey = (codec_name, exchange.dialect, method, arguments)
        identity = exchange.identity
        if not self.cache.is_apart or identity is None:
            return key
        return (*key, self.cache.viewer(identity.user, identity.groups, identity.may_administer))

    def look_up(self, key: ReplyKey) -> "bytes | asyncio.Future[bytes | None] | None":
        """The reply that the cache has, or a future of it, as `ReplyCache.lookup`; None where it cannot be used."""
        try:
            return self.cache.lookup(key)
        except Exception as error:
            _log_unusable(error)
            return None

    def found(
        self,
        exchange: Exchange,
        known: "bytes | asyncio.Future[bytes | None]",
        respond: Callable[[bytes], Answer],
        call: Callable[[], Answer],
    ) -> Answer:
        """Answer by `respond` with what the cache has, by `call` where that is not current any more."""
        if isinstance(known, bytes):
            self.metrics.cache_hits += 1
            exchange.cached = True
            if exchange.notes is not None:
                _note_look_up(exchange.notes)
            return respond(known)
        return Pending(known, partial(self._looked_up, exchange, known, respond, call))

    def _looked_up(
        self,
        exchange: Exchange,
        known: "asyncio.Future[bytes | None]",
        respond: Callable[[bytes], Answer],
        call: Callable[[], Answer],
    ) -> Answer:
        try:
            payload = known.result()
        except Exception as error:
            _log_unusable(error)
            payload = None
        return call() if payload is None else self.found(exchange, payload, respond, call)

    def _call(self, exchange: Exchange) -> Answer:
        """Have the processor answer."""
        if exchange.key is not None:
            self.metrics.cache_misses += 1
            if exchange.notes is not None:
                _note_look_up(exchange.notes)
        if exchange.reading is not None:
            exchange.tagged = self.cache.tag_reading(exchange.reading)
        call = exchange.call(self.holder(exchange))
        ticket, codec, message = self.cache.ticket(), exchange.codec, exchange.message
        wrap = partial(_wrap, codec, message, accepts_gzip(exchange.head.headers))
        started = self.calls.start(codec, message, call, wrap)
        if isinstance(started, Reply):
            return self._reply(exchange, ticket, CompletedCall(started))
        return Pending(started.completed, partial(self._completed, exchange, ticket, started))

    def _completed(self, exchange: Exchange, ticket: int, started: InFlightCall) -> Answer:
        exchange.spans = started.spans
        try:
            completed = started.completed.result()
        except Waiting as waiting:
            return self._wait(exchange, ticket, started, waiting)
        except BaseException:
            # What is not known to be done may be done.
            self.cache.note_answered(exchange.method)
            raise
        return self._reply(exchange, ticket, completed)

    async def _wait(self, exchange: Exchange, ticket: int, started: InFlightCall, waiting: Waiting) -> Response:
        completed = await self.calls.wait(started, waiting, exchange.until_gone)
        return await settled(self._reply(exchange, ticket, completed))

    def _reply(self, exchange: Exchange, ticket: int, completed: CompletedCall) -> Answer:
        reply = completed.reply
        self.cache.note_answered(exchange.method)
        exchange.outcome, exchange.objects, exchange.partitions = reply.outcome, reply.objects, reply.partitions
        if reply.limit:
            self.failures.note(exchange, reply.limit)
        if completed.stream is not None:
            headers = (*(GZIPPED if accepts_gzip(exchange.head.headers) else ()), *self._tag(exchange, reply, ticket))
            return Response(200, self._content_types[exchange.codec.name], completed.stream, headers)
        if reply.payload is None:
            # Oneway: a body would make Node complain about a reply it did not ask for, 204 about the status.
            return Response(200, self._content_types[exchange.codec.name])
        assert isinstance(reply.payload, bytes)
        if exchange.key is not None and reply.outcome == "ok" and reply.type is _REPLY:
            self.cache.remember(exchange.key, reply.arguments, reply.payload, ticket, exchange.tagged)
        return self._whole(exchange, reply.type, reply.payload)

    def _tag(self, exchange: Exchange, reply: Reply, ticket: int) -> HeaderList:
        """By which a client can ask whether a long reply is still the answer."""
        if exchange.key is None or reply.type is not _REPLY or reply.outcome != "ok":
            return ()
        tag = self.cache.version_tag(exchange.method, reply.arguments, ticket)
        return () if tag is None else ((b"etag", tag),)

    def _whole(self, exchange: Exchange, type: MessageType, payload: bytes, headers: HeaderList = ()) -> Answer:
        codec, message = exchange.codec, exchange.message
        if exchange.held is not None and _has_tag(exchange, type):
            return self._unless_held(exchange, payload, exchange.held)
        before, after = codec.envelope(message.name, type, message.seqid)
        body = before + payload + after
        if len(body) < COMPRESSED_FROM_BYTES or not accepts_gzip(exchange.head.headers):
            return Response(200, self._content_types[codec.name], body, headers)
        if len(body) < COMPRESSED_IN_THREAD_BYTES:
            return Response(200, self._content_types[codec.name], compress(body), (*GZIPPED, *headers))
        return compressed_response(self._content_types[codec.name], body, headers)

    async def _unless_held(self, exchange: Exchange, payload: bytes, held: bytes) -> Response:
        """304 where the client has this answer already."""
        tag = await asyncio.get_running_loop().run_in_executor(None, _tag_of, payload)
        if tag in {each.strip().removeprefix(b"W/") for each in held.split(b",")}:
            return Response(304, None, b"", ((b"etag", tag),))
        exchange.held = None
        return await settled(self._whole(exchange, _REPLY, payload, ((b"etag", tag),)))


def _claim_connection(claim: Callable[[str], Bound | None], identity: Identity) -> None:
    """Count the connection as that of its first user. Raises Refused (503), and the connection ends with it."""
    bound = claim(identity.user)
    if bound is not None:
        text = f"You have too many connections ({bound.name}); use those that are open, or try again"
        headers = (*NOT_TRIED, (b"connection", b"close"))
        raise Refused(503, text, headers=headers, reason="overload", limit=bound.name)


def _note_look_up(notes: TraceSpans) -> None:
    """The cache was asked since the message was read."""
    if notes.parts:
        notes.add("cache", notes.parts[-1].end)


async def compressed_response(content_type: bytes, body: bytes, headers: HeaderList) -> Response:
    """The response with a long body, which a thread compresses."""
    body = await asyncio.get_running_loop().run_in_executor(None, compress, body)
    return Response(200, content_type, body, (*GZIPPED, *headers))


def _has_tag(exchange: Exchange, type: MessageType) -> bool:
    return type is _REPLY and exchange.outcome == "ok" and is_cacheable(exchange.method)


def _tag_of(payload: bytes) -> bytes:
    """The same for the same answer, on every replica and after a restart."""
    return b'"%b"' % hashlib.blake2b(payload, digest_size=16).hexdigest().encode()


def _log_unusable(error: Exception) -> None:
    """The call itself will show the client what is wrong with the database."""
    _log.debug("reply cache not usable", problem=repr(error))
    forget_frames(error)


def _wrap(codec: Codec, message: Message, is_compressed: bool, chunks: Iterator[bytes]) -> Iterator[bytes]:
    before, after = codec.envelope(message.name, MessageType.REPLY, message.seqid)
    whole = enclosed(before, chunks, after)
    return compressed(whole) if is_compressed else whole


def accepts_gzip(headers: Mapping[bytes, bytes]) -> bool:
    accepted = headers.get(b"accept-encoding")
    if accepted is None or b"gzip" not in accepted:
        return False
    for coding in accepted.split(b","):
        name, _, quality = coding.partition(b";")
        if name.strip() == b"gzip":
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False
