"""Iceberg's REST catalog at its own path: the same logins, bounds and records as at the Thrift endpoint."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from hms_gateway.cache import ReplyKey
from hms_gateway.gateway.admission.identity import NOT_TRIED, ClientGone, HeaderList, Refused
from hms_gateway.gateway.calls.streaming import COMPRESSED_FROM_BYTES, compress, compressed
from hms_gateway.gateway.http.asgi_endpoint import AsgiEndpoint, Channel
from hms_gateway.gateway.http.endpoint import COMPRESSED_IN_THREAD_BYTES, GZIPPED, accepts_gzip, compressed_response
from hms_gateway.gateway.http.exchange import HELD_HEADER, Exchange, Response, settled
from hms_gateway.gateway.http.exchange import Answer as HttpAnswer
from hms_gateway.gateway.http.request_body import Receive, Scope, Send
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.processor import READ, LongReply, RestProcessor, read_reply
from hms_gateway.iceberg.routes import TOKEN, Answer, Request, failure, routed
from hms_gateway.rpc.call import Call, Dialect, Unavailable, Waiting
from hms_gateway.rpc.repeatable import KeyReused
from hms_gateway.rpc.wire import LimitExceeded
from hms_gateway.runtime.call_keys import CALL_KEY_CHARACTERS_MAX
from hms_gateway.runtime.tracebacks import forget_frames

_JSON: Final = b"application/json"
_METHODS: Final = b"GET, HEAD, POST, DELETE, OPTIONS"
_LIKE_STATUS: Final = {
    400: "BadRequestException",
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    429: "ServiceUnavailableException",
    503: "ServiceUnavailableException",
}

# Answers that depend on one row, and on a file that is never changed.
_LOADS: Final = frozenset({"loadTable", "loadView"})
_CHANGING: Final = frozenset({"POST", "DELETE"})
_KEPT: Final = msgspec.msgpack.Decoder(tuple[int, bytes | None, bytes, tuple[tuple[bytes, bytes], ...]])

_log = structlog.get_logger("hms_gateway.endpoint")


class IcebergDoor:
    """Brings requests to the catalog, and sends its answers."""

    def __init__(self, path: str, processor: RestProcessor, asgi_endpoint: AsgiEndpoint) -> None:
        self._path = path.encode()
        self._processor = processor
        self._asgi_endpoint = asgi_endpoint
        self._endpoint = asgi_endpoint.endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._asgi_endpoint.serve(scope, receive, send, Dialect.HIVE_4, self._answer)

    async def _answer(self, exchange: Exchange, channel: Channel, held: ExitStack) -> Response:
        return await self._guarded(exchange, self._answered(exchange, channel, held), channel)

    async def _guarded(
        self, exchange: Exchange, answered: Coroutine[Any, Any, Response], channel: Channel | None
    ) -> Response:
        """The answer, whatever comes of it; without a channel that of a load."""
        try:
            return await answered
        except ClientGone:
            raise
        except asyncio.CancelledError:
            text = "The gateway stops before the request has ended; it may still take effect"
            exchange.outcome = "stopping"
            kind = "CommitStateUnknownException" if _may_change(exchange, channel) else "ServiceUnavailableException"
            return _response(exchange, failure(IcebergError(kind, text)))
        except Exception as error:
            if channel is not None and not channel.body_is_read:
                is_too_large = isinstance(error, Refused) and error.status == 413
                await channel.read_beginning(is_too_large=is_too_large)
            begun = error if isinstance(error, Refused) and error.status == 503 else None
            if begun is not None and begun.headers != NOT_TRIED and _may_change(exchange, channel):
                # Java's client sends again what is answered with 503 and a time to wait.
                exchange.outcome = begun.reason
                forget_frames(error)
                return _response(exchange, failure(IcebergError("CommitStateUnknownException", begun.text)))
            return self._failed(exchange, error)

    async def _answered(self, exchange: Exchange, channel: Channel, held: ExitStack) -> Response:
        scope, endpoint = channel.scope, self._endpoint
        self._asgi_endpoint.check_head(exchange, scope)
        if scope["method"] == "OPTIONS":
            return self._asgi_endpoint.other_method(exchange, channel, _METHODS)
        path = scope["raw_path"].partition(b"?")[0]
        request = self._routed(exchange, scope["method"], path, scope["query_string"])
        exchange.method, exchange.objects = f"iceberg.{request.operation.id}", request.objects
        if request.operation is TOKEN:
            await channel.read_beginning(is_too_large=False)
            exchange.outcome = "refused"
            return _response(exchange, await asyncio.to_thread(self._processor.refuse_token))
        await endpoint.identify(exchange)
        assert exchange.identity is not None
        if endpoint.rates is not None:
            endpoint.rates.check(exchange.identity, exchange.method)
        if scope["method"] == "POST":
            request = request._replace(body=await self._asgi_endpoint.body(exchange, channel, held))
        channel.body_is_read = True
        call = exchange.call(endpoint.holder(exchange))
        if call.key is not None and not 0 < len(call.key) <= CALL_KEY_CHARACTERS_MAX:
            text = f"Idempotency-Key must have 1 to {CALL_KEY_CHARACTERS_MAX} characters"
            raise IcebergError("BadRequestException", text)
        exchange.is_read = True
        key = self._key(exchange, request, path, scope["query_string"])
        known = None if key is None else endpoint.look_up(key)
        again = partial(self._called, exchange, request, call, key)
        return await (again() if known is None else settled(endpoint.found(exchange, known, _kept, again)))

    def load(self, exchange: Exchange, path: bytes, query: bytes) -> HttpAnswer | None:
        """Answer the load of a table that the cache keeps; None for a request that has to be read first."""
        endpoint = self._endpoint
        exchange.identity = endpoint.authenticator.remembered(exchange.head)
        if exchange.identity is None:
            return None
        try:
            request = self._routed(exchange, "GET", path, query)
        except IcebergError:
            return None
        key = self._key(exchange, request, path, query)
        known = None if key is None else endpoint.look_up(key)
        if known is None:
            return None
        exchange.method, exchange.objects = f"iceberg.{request.operation.id}", request.objects
        exchange.is_read = True
        try:
            if endpoint.rates is not None:
                endpoint.rates.check(exchange.identity, exchange.method)
        except Refused as refused:
            return self._failed(exchange, refused)
        return endpoint.found(exchange, known, _kept, partial(self._loaded, exchange, request, key))

    def _loaded(self, exchange: Exchange, request: Request, key: ReplyKey | None) -> HttpAnswer:
        call = exchange.call(self._endpoint.holder(exchange))
        return self._guarded(exchange, self._called(exchange, request, call, key), None)

    def _routed(self, exchange: Exchange, method: str, path: bytes, query: bytes) -> Request:
        held = exchange.head.headers.get(HELD_HEADER)
        return routed(method, path[len(self._path) :], query, None if held is None else held.decode("latin-1"))

    def _key(self, exchange: Exchange, request: Request, path: bytes, query: bytes) -> ReplyKey | None:
        """The key of an answer that the cache may keep."""
        if request.operation.id not in _LOADS or exchange.says_more:
            return None
        coding = b"gzip" if accepts_gzip(exchange.head.headers) else b""
        asked = b"\n".join((path, query, exchange.head.headers.get(HELD_HEADER, b""), coding))
        return self._endpoint.key(exchange, request.operation.id, READ, asked)

    async def _called(self, exchange: Exchange, request: Request, call: Call, key: ReplyKey | None) -> Response:
        """Have the catalog answer."""
        endpoint, cache = self._endpoint, self._endpoint.cache
        endpoint.metrics.cache_misses += key is not None
        is_packed = accepts_gzip(exchange.head.headers)
        ticket = cache.ticket()
        started = endpoint.calls.run(
            lambda again: self._processor.process(request, again), call, compressed if is_packed else iter
        )
        try:
            completed = await started.completed
        except Waiting as waiting:
            completed = await endpoint.calls.wait(started, waiting, exchange.until_gone)
        finally:
            if request.operation.method in _CHANGING:
                cache.note_answered(exchange.method)
        exchange.spans = started.spans
        reply = completed.reply
        exchange.outcome = reply.outcome
        if completed.stream is not None:
            assert isinstance(reply, LongReply)
            headers = (*_header_list(reply.headers), *(GZIPPED if is_packed else ()))
            return Response(200, _JSON, completed.stream, headers)
        answered = read_reply(reply)
        body = answered.body
        if body is not None and len(body) >= COMPRESSED_IN_THREAD_BYTES and is_packed:
            response = await compressed_response(_JSON, body, _header_list(answered.headers))
        else:
            response = _response(exchange, answered)
        if key is not None and reply.outcome == "ok":
            cache.remember(key, reply.arguments, msgspec.msgpack.encode(response), ticket)
        return response

    def _failed(self, exchange: Exchange, error: Exception) -> Response:
        headers: HeaderList = ()
        if isinstance(error, IcebergError):
            answer = failure(error)
        elif isinstance(error, Refused):
            kind = _LIKE_STATUS.get(error.status, "BadRequestException")
            answer, headers = failure(IcebergError(kind, error.text), error.status), error.headers
            exchange.outcome = error.reason
            if error.limit:
                self._endpoint.failures.note(exchange, error.limit)
        elif isinstance(error, Unavailable):
            text = f"The metastore is not available: {error}"
            answer, headers = failure(IcebergError("ServiceUnavailableException", text)), ((b"retry-after", b"1"),)
            exchange.outcome = "unavailable"
        elif isinstance(error, LimitExceeded):
            answer = failure(IcebergError("BadRequestException", error.message), 413)
            exchange.outcome = "too_large"
            self._endpoint.failures.note(exchange, error.limit)
        elif isinstance(error, KeyReused):
            answer = failure(IcebergError("UnprocessableEntityException", error.message))
            exchange.outcome = "key_reused"
        else:
            request = exchange.request_id.decode()
            _log.error("request failed", method=exchange.method, request=request, exc_info=error)
            text = f"Internal error in request {request}; the log of the gateway says why"
            answer = failure(IcebergError("InternalServerError", text))
            exchange.outcome = "internal_error"
        if exchange.outcome == "ok":
            exchange.outcome = error.kind if isinstance(error, IcebergError) else "refused"
        forget_frames(error)
        return _response(exchange, answer, headers)


def _may_change(exchange: Exchange, channel: Channel | None) -> bool:
    """True if the request was begun, and may still take effect."""
    return channel is not None and exchange.is_read and channel.scope["method"] in _CHANGING


def _kept(payload: bytes) -> Response:
    return Response(*_KEPT.decode(payload))


def _header_list(headers: Mapping[str, str]) -> HeaderList:
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


def _response(exchange: Exchange, answer: Answer, headers: HeaderList = ()) -> Response:
    headers = (*headers, *_header_list(answer.headers))
    if answer.body is None:
        return Response(answer.status, None, b"", headers)
    body = answer.body
    if len(body) >= COMPRESSED_FROM_BYTES and accepts_gzip(exchange.head.headers):
        body, headers = compress(body), (*headers, *GZIPPED)
    return Response(answer.status, _JSON, body, headers)
