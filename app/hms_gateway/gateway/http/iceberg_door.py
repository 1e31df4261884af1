"""Iceberg's REST catalog at its own path: the same logins, bounds and records as at the Thrift endpoint."""

import asyncio
from contextlib import ExitStack
from typing import Final

import structlog

from hms_gateway.gateway.admission.identity import ClientGone, HeaderList, Refused
from hms_gateway.gateway.calls.streaming import COMPRESSED_FROM_BYTES, compress
from hms_gateway.gateway.http.asgi_endpoint import AsgiEndpoint, Channel
from hms_gateway.gateway.http.endpoint import COMPRESSED_IN_THREAD_BYTES, GZIPPED, accepts_gzip, compressed_response
from hms_gateway.gateway.http.exchange import HELD_HEADER, Exchange, Response
from hms_gateway.gateway.http.request_body import Receive, Scope, Send
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.processor import RestProcessor, read_reply
from hms_gateway.iceberg.routes import TOKEN, Answer, failure, routed
from hms_gateway.rpc.call import Dialect, Unavailable, Waiting
from hms_gateway.rpc.repeatable import KeyReused
from hms_gateway.rpc.wire import LimitExceeded
from hms_gateway.runtime.call_keys import CALL_KEY_CHARACTERS_MAX

_JSON: Final = b"application/json"
_METHODS: Final = b"GET, HEAD, POST, DELETE, OPTIONS"
_LIKE_STATUS: Final = {
    400: "BadRequestException",
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    429: "ServiceUnavailableException",
    503: "ServiceUnavailableException",
}

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
        try:
            return await self._answered(exchange, channel, held)
        except ClientGone:
            raise
        except asyncio.CancelledError:
            text = "The gateway stops before the request has ended; it may still take effect"
            exchange.outcome = "stopping"
            kind = "CommitStateUnknownException" if _may_change(exchange, channel) else "ServiceUnavailableException"
            return _response(exchange, failure(IcebergError(kind, text)))
        except Exception as error:
            if not channel.body_is_read:
                is_too_large = isinstance(error, Refused) and error.status == 413
                await channel.read_beginning(is_too_large=is_too_large)
            if isinstance(error, Refused) and error.reason == "call_too_slow" and _may_change(exchange, channel):
                # Java's client sends again what is answered with 503 and a time to wait.
                exchange.outcome = error.reason
                return _response(exchange, failure(IcebergError("CommitStateUnknownException", error.text)))
            return self._failed(exchange, error)

    async def _answered(self, exchange: Exchange, channel: Channel, held: ExitStack) -> Response:
        scope, endpoint = channel.scope, self._endpoint
        self._asgi_endpoint.check_head(exchange, scope)
        if scope["method"] == "OPTIONS":
            return self._asgi_endpoint.other_method(exchange, channel, _METHODS)
        sent_tag = exchange.head.headers.get(HELD_HEADER)
        path = scope["raw_path"].partition(b"?")[0][len(self._path) :]
        tag = None if sent_tag is None else sent_tag.decode("latin-1")
        request = routed(scope["method"], path, scope["query_string"], tag)
        exchange.method = f"iceberg.{request.operation.id}"
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
        started = endpoint.calls.run(lambda again: self._processor.process(request, again), call)
        try:
            completed = await started.completed
        except Waiting as waiting:
            completed = await endpoint.calls.wait(started, waiting, exchange.until_gone)
        exchange.spans = started.spans
        reply = completed.reply
        exchange.outcome, exchange.objects = reply.outcome, reply.objects
        answered = read_reply(reply)
        body = answered.body
        if body is not None and len(body) >= COMPRESSED_IN_THREAD_BYTES and accepts_gzip(exchange.head.headers):
            return await compressed_response(_JSON, body, _headers(answered))
        return _response(exchange, answered)

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
        return _response(exchange, answer, headers)


def _may_change(exchange: Exchange, channel: Channel) -> bool:
    """True if the request was begun, and may still take effect."""
    return exchange.is_read and channel.scope["method"] in ("POST", "DELETE")


def _headers(answer: Answer) -> HeaderList:
    return tuple((name.encode(), value.encode()) for name, value in answer.headers.items())


def _response(exchange: Exchange, answer: Answer, headers: HeaderList = ()) -> Response:
    headers = (*headers, *_headers(answer))
    if answer.body is None:
        return Response(answer.status, None, b"", headers)
    body = answer.body
    if len(body) >= COMPRESSED_FROM_BYTES and accepts_gzip(exchange.head.headers):
        body, headers = compress(body), (*headers, *GZIPPED)
    return Response(answer.status, _JSON, body, headers)
