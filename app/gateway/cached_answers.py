"""Answers a call out of the reply cache at once: the whole request in, the whole response out, nothing awaited.

The HTTP protocol class asks here before it makes what ASGI needs for a request, which would cost more than the answer.
None means that `endpoint` has to look at the request, and nothing has happened then: whatever is unusual, unknown or
wrong is decided there, and only there. What is answered here is the same response, counted and logged in the same way.
"""

import time
from collections.abc import Mapping

import structlog

from app.cache import ReplyCache
from app.gateway.access_log import AccessLog, AccessRecord
from app.gateway.direct import response
from app.gateway.identity import Authenticator, RequestHead
from app.gateway.metrics import Metrics
from app.gateway.request_id import request_id_of
from app.gateway.streaming import COMPRESSED_FROM_BYTES
from app.rpc.call import Dialect
from app.wire import Codecs, MessageType, ProtocolError

# Requests with these are read or answered in ways that `endpoint` knows.
UNUSUAL_HEADERS = frozenset({b"expect", b"upgrade", b"transfer-encoding", b"content-encoding", b"origin"})

# Looking up a member of an enumeration costs more than comparing with it.
_CALL = MessageType.CALL
_REPLY = MessageType.REPLY

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

    def answer(self, url: bytes, head: RequestHead, body: bytes, date: bytes) -> bytes | None:
        """The HTTP response to a request that `may_answer` said yes to; None where `endpoint` has to answer."""
        try:
            return self._answer(url, head, body, date)
        except ProtocolError:
            return None
        except Exception as error:
            # It happens again there, and is answered.
            _log.warning("call not answered from the cache", problem=repr(error))
            return None

    def _answer(self, url: bytes, head: RequestHead, body: bytes, date: bytes) -> bytes | None:
        started = time.perf_counter()
        identity = self._authenticator.remembered(head)
        if identity is None:
            return None
        codec = self._codecs.sniff(body)
        name, type, seqid, arguments = codec.read_message(body)
        if type is not _CALL:
            return None
        codec_name = codec.name
        payload = self._cache.current((codec_name, self._dialects[url], name, arguments))
        if payload is None:
            return None
        before, after = codec.envelope(name, _REPLY, seqid)
        answer = before + payload + after
        if len(answer) >= COMPRESSED_FROM_BYTES and b"accept-encoding" in head.headers:
            return None
        request_id = request_id_of(head.headers)
        whole = response(200, date, request_id, self._content_types[codec_name], answer)
        self._record(name, identity.user, identity.address, request_id, len(body), len(answer), started)
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
