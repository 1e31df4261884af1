"""Answers a call out of the reply cache: the whole request in, the whole response out, without ASGI between.

The HTTP protocol class asks here before it makes what ASGI needs for a request, which would cost more than the answer.
None means that `endpoint` has to look at the request, and nothing has happened then: whatever is unusual, unknown or
wrong is decided there, and only there. What is answered here is the same response, counted and logged in the same way.
The response comes at once where the cache can tell at once what is current, else as soon as the database has told it.
"""

import enum
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal, TypeAlias

import structlog

from app.cache import ReplyCache
from app.gateway.access_log import AccessLog, AccessRecord
from app.gateway.direct import response
from app.gateway.identity import Authenticator, Identity, RequestHead
from app.gateway.metrics import Metrics
from app.gateway.request_id import request_id_of
from app.gateway.streaming import COMPRESSED_FROM_BYTES
from app.rpc.call import Dialect
from app.wire import Codec, Codecs, Message, MessageType, ProtocolError

# Requests with these are read or answered in ways that `endpoint` knows.
UNUSUAL_HEADERS = frozenset({b"expect", b"upgrade", b"transfer-encoding", b"content-encoding", b"origin"})

# Looking up a member of an enumeration costs more than comparing with it.
_CALL = MessageType.CALL
_REPLY = MessageType.REPLY


class _Later(enum.Enum):
    LATER = enum.auto()


LATER: Final = _Later.LATER
"""The response comes by `deliver`."""

Deliver: TypeAlias = Callable[[Callable[[], bytes | None]], None]
"""Called with what makes the response, which counts and logs the call when it is called; it gives None where `endpoint`
has to answer."""

_log = structlog.get_logger("hms_gateway.cached_answers")


class CachedAnswers:
    """`dialects` are the paths of the Thrift endpoint. Used from the event loop's thread."""

    def __init__(
        self,
        dialects: Mapping[str, Dialect],
        *,
        codecs: Codecs,
        cache: ReplyCache,
        authenticator: Authenticator,
        metrics: Metrics,
        access_log: AccessLog | None,
    ) -> None:
        # As they stand in a request line, so only those that are written there without escapes.
        self._dialects = {
            path.encode(): dialect.value
            for path, dialect in dialects.items()
            if path.isascii() and not set("%?#") & set(path)
        }
        self._content_types = {
            codec.name: codec.content_type.encode() for codec in (codecs.tjson, codecs.binary, codecs.compact)
        }
        self._codecs = codecs
        self._cache = cache
        self._authenticator = authenticator
        self._metrics = metrics
        self._access_log = access_log

    def may_answer(self, url: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Whether it is worth waiting for the body of a POST that keeps its connection."""
        return url in self._dialects and headers.keys().isdisjoint(UNUSUAL_HEADERS)

    def answer(
        self, url: bytes, head: RequestHead, body: bytes, date: bytes, deliver: Deliver
    ) -> bytes | Literal[_Later.LATER] | None:
        """The HTTP response to a request that `may_answer` said yes to; None where `endpoint` has to answer."""
        try:
            return self._answer(url, head, body, date, deliver)
        except ProtocolError:
            return None
        except Exception as error:
            # It happens again there, and is answered.
            _log.warning("call not answered from the cache", problem=repr(error))
            return None

    def _answer(
        self, url: bytes, head: RequestHead, body: bytes, date: bytes, deliver: Deliver
    ) -> bytes | Literal[_Later.LATER] | None:
        started = time.perf_counter()
        identity = self._authenticator.remembered(head)
        if identity is None:
            return None
        codec = self._codecs.sniff(body)
        message = codec.read_message(body)
        name, type, _, arguments = message
        if type is not _CALL:
            return None
        key = (codec.name, self._dialects[url], name, arguments)
        make_response = partial(self._response, codec, message, identity, head, len(body), date, started)
        payload = self._cache.current(key)
        if payload is not None:
            return make_response(payload)
        if self._cache.when_current(
            key, lambda payload: deliver(partial(self._unless_it_fails, make_response, payload))
        ):
            return LATER
        return None

    def _unless_it_fails(
        self, make_response: Callable[[bytes | None], bytes | None], payload: bytes | None
    ) -> bytes | None:
        try:
            return make_response(payload)
        except Exception as error:
            _log.warning("call not answered from the cache", problem=repr(error))
            return None

    def _response(
        self,
        codec: Codec,
        message: Message,
        identity: Identity,
        head: RequestHead,
        bytes_in: int,
        date: bytes,
        started: float,
        payload: bytes | None,
    ) -> bytes | None:
        if payload is None:
            return None
        name, _, seqid, _ = message
        before, after = codec.envelope(name, _REPLY, seqid)
        answer = before + payload + after
        if len(answer) >= COMPRESSED_FROM_BYTES and b"accept-encoding" in head.headers:
            return None
        request_id = request_id_of(head.headers)
        whole = response(200, date, request_id, self._content_types[codec.name], answer)
        self._record(name, identity.user, identity.address, request_id, bytes_in, len(answer), started)
        return whole

    def _record(
        self, method: str, user: str, address: str, request_id: bytes, bytes_in: int, bytes_out: int, started: float
    ) -> None:
        seconds = time.perf_counter() - started
        self._metrics.cache_hits += 1
        self._metrics.response(200, bytes_in, bytes_out)
        self._metrics.call(method, "ok", seconds)
        if self._access_log is not None:
            self._access_log.write(
                AccessRecord(
                    time.time(),
                    request_id,
                    seconds * 1000,
                    method,
                    user,
                    bytes_in,
                    bytes_out,
                    "ok",
                    200,
                    address,
                    True,
                )
            )
