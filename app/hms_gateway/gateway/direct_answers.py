"""Answers a call without ASGI between: the whole request in, the whole response out.

The HTTP protocol class asks here before it makes what ASGI needs for a request, which would cost more than the answer.
None means that `endpoint` has to look at the request, and nothing has happened then: whatever is unusual, unknown or
wrong is decided there, and only there. What is answered here is the same response, counted and logged in the same way.

Two kinds of calls are answered: those whose reply is in the cache, at once where the cache can tell at once what is
current, else as soon as the database has told it; and those that need no thread (`runtime.suspension`), as soon as
their unit of work is committed.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeAlias, TypeVar

import structlog

from hms_gateway.cache import ReplyCache
from hms_gateway.gateway.access_log import AccessLog, AccessRecord
from hms_gateway.gateway.call_answers import Begun, CallAnswers
from hms_gateway.gateway.cors import BROWSER_HEADERS
from hms_gateway.gateway.direct import response
from hms_gateway.gateway.identity import Authenticator, Identity, RequestHead
from hms_gateway.gateway.metrics import Metrics
from hms_gateway.gateway.proxies import Proxies
from hms_gateway.gateway.refusals import Refused
from hms_gateway.gateway.request_id import request_id_of
from hms_gateway.gateway.requested_call import requested_call
from hms_gateway.gateway.streaming import COMPRESSED_FROM_BYTES
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.errors import Unavailable
from hms_gateway.rpc.processor import Reply
from hms_gateway.wire import Codec, Codecs, Message, MessageType, ProtocolError

T = TypeVar("T")

# Requests with these are read or answered in ways that `endpoint` knows.
UNUSUAL_HEADERS = BROWSER_HEADERS | {b"expect", b"upgrade", b"transfer-encoding", b"content-encoding"}

# Looking up a member of an enumeration costs more than comparing with it.
_CALL = MessageType.CALL
_REPLY = MessageType.REPLY


class Later:
    """The response comes by `deliver`. `begun` is the call, where it has begun and must not be begun again.

    Whoever answers the request another way meanwhile says so by `is_taken_over`, and answers with what `begun` gives.
    """

    __slots__ = ("begun", "is_taken_over")

    def __init__(self, begun: "BegunCall | None" = None) -> None:
        self.begun = begun
        self.is_taken_over = False


class BegunCall(NamedTuple):
    """A call under way, with what was read of its request."""

    reply: Begun
    codec: Codec
    message: Message
    call: Call
    identity: Identity
    bytes_in: int


Deliver: TypeAlias = Callable[[Callable[[], bytes | None]], bool]
"""Called with what makes the response, which counts and logs the call when it is called; it gives None where `endpoint`
has to answer. False when nobody waits for the response any more."""

FROM_CACHE: Final = Later()

_log = structlog.get_logger("hms_gateway.direct_answers")


class DirectAnswers:
    """`dialects` are the paths of the Thrift endpoint. Used from the event loop's thread."""

    def __init__(
        self,
        dialects: Mapping[str, Dialect],
        *,
        codecs: Codecs,
        cache: ReplyCache | None,
        calls: CallAnswers,
        call_seconds_max: float,
        authenticator: Authenticator,
        proxies: Proxies,
        metrics: Metrics,
        access_log: AccessLog | None,
    ) -> None:
        # As they stand in a request line, so only those that are written there without escapes.
        self._dialects = {
            path.encode(): dialect
            for path, dialect in dialects.items()
            if path.isascii() and not set("%?#") & set(path)
        }
        self._content_types = {codec.name: codec.content_type.encode() for codec in codecs}
        self._codecs = codecs
        self._cache = cache
        self._calls = calls
        self._call_seconds_max = call_seconds_max
        self._authenticator = authenticator
        self.proxies = proxies
        self._metrics = metrics
        self._access_log = access_log

    def may_answer(self, url: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Whether it is worth waiting for the body of a POST that keeps its connection.

        `headers` without a repeated one: which of two counts is decided by `endpoint`.
        """
        return url in self._dialects and b"host" in headers and headers.keys().isdisjoint(UNUSUAL_HEADERS)

    def user(self, head: RequestHead) -> str | None:
        """Who sends the request, where that is known already."""
        identity = self._authenticator.remembered(head)
        return None if identity is None else identity.user

    def answer(self, url: bytes, head: RequestHead, body: bytes, date: bytes, deliver: Deliver) -> bytes | Later | None:
        """The HTTP response to a request that `may_answer` said yes to; None where `endpoint` has to answer."""
        try:
            return self._answer(url, head, body, date, deliver)
        except (ProtocolError, Refused, Unavailable):
            return None
        except Exception as error:
            # It happens again there, and is answered.
            _log.warning("call not answered directly", problem=repr(error))
            return None

    def _answer(
        self, url: bytes, head: RequestHead, body: bytes, date: bytes, deliver: Deliver
    ) -> bytes | Later | None:
        started = time.perf_counter()
        identity = self._authenticator.remembered(head)
        if identity is None:
            return None
        codec = self._codecs.sniff(body)
        message = codec.read_message(body)
        name, type, _, arguments = message
        if type is not _CALL:
            return None
        dialect = self._dialects[url]
        request = _Request(codec, message, identity, head, request_id_of(head.headers), len(body), date, started)
        if self._calls.is_deferrable(name):
            return self._begin(request, dialect, deliver)
        if self._cache is None:
            return None
        key = (codec.name, dialect.value, name, arguments)
        payload = self._cache.current(key)
        if payload is not None:
            return self._cached(request, payload)

        def told(payload: bytes | None) -> None:
            deliver(partial(self._unless_it_fails, self._cached, request, payload))

        return FROM_CACHE if self._cache.when_current(key, told) else None

    def _begin(self, request: "_Request", dialect: Dialect, deliver: Deliver) -> bytes | Later | None:
        identity = request.identity
        share_address = self.proxies.share_of(identity.address)
        call = requested_call(
            identity, share_address, dialect, request.head.headers, request.id, self._call_seconds_max
        )
        reply = self._calls.begin(request.codec, request.message, call)
        if reply is None:
            return None
        self._metrics.cache_misses += 1
        if isinstance(reply, Reply):
            return self._replied(request, reply)
        later = Later(BegunCall(reply, request.codec, request.message, call, identity, request.bytes_in))

        def told(reply: Begun) -> None:
            if later.is_taken_over:
                return
            given = None if reply.cancelled() or reply.exception() is not None else reply.result()
            make_response = partial(self._unless_it_fails, self._replied, request, given)
            if not deliver(make_response):
                # What was done is counted and logged although the client has gone.
                make_response()

        reply.add_done_callback(told)
        return later

    def _unless_it_fails(
        self, make_response: Callable[["_Request", T | None], bytes | None], request: "_Request", given: T | None
    ) -> bytes | None:
        try:
            return make_response(request, given)
        except Exception as error:
            _log.warning("call not answered directly", problem=repr(error))
            return None

    def _cached(self, request: "_Request", payload: bytes | None) -> bytes | None:
        whole = None if payload is None else self._whole(request, _REPLY, payload, "ok", is_cached=True)
        if whole is not None:
            self._metrics.cache_hits += 1
        return whole

    def _replied(self, request: "_Request", reply: Reply | None) -> bytes | None:
        if reply is None or not isinstance(reply.payload, bytes):
            return None
        return self._whole(request, reply.type, reply.payload, reply.outcome, is_cached=False)

    def _whole(
        self, request: "_Request", type: MessageType, payload: bytes, outcome: str, *, is_cached: bool
    ) -> bytes | None:
        """The response, counted and logged; None where it may be compressed."""
        codec, message, identity, head, request_id, bytes_in, date, started = request
        name = message.name
        before, after = codec.envelope(name, type, message.seqid)
        answer = before + payload + after
        if len(answer) >= COMPRESSED_FROM_BYTES and b"accept-encoding" in head.headers:
            return None
        whole = response(200, date, request_id, self._content_types[codec.name], answer)
        seconds = time.perf_counter() - started
        self._metrics.response(200, bytes_in, len(answer))
        self._metrics.call(name, outcome, seconds)
        if self._access_log is not None:
            self._access_log.write(
                AccessRecord(
                    time.time(),
                    request_id,
                    seconds * 1000,
                    name,
                    identity.user,
                    bytes_in,
                    len(answer),
                    outcome,
                    200,
                    identity.address,
                    is_cached,
                )
            )
        return whole


class _Request(NamedTuple):
    """What of a request its response needs; `date` is that of the response, `started` on the clock of performance."""

    codec: Codec
    message: Message
    identity: Identity
    head: RequestHead
    id: bytes
    bytes_in: int
    date: bytes
    started: float
