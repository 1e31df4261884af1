"""The Thrift endpoint for any ASGI server: bodies that come in pieces, replies in chunks, web pages, other methods.

A plain ASGI callable, because routing and request objects would halve the calls per second.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, TypeAlias

from hms_gateway.gateway.admission.identity import (
    CLIENT_CERTIFICATE,
    ClientGone,
    HeaderList,
    Identity,
    Refused,
    RequestHead,
)
from hms_gateway.gateway.admission.memory import BodyShare, BodyShares
from hms_gateway.gateway.admission.request_rules import ALLOWED_METHODS, ORIGIN, CrossOrigin, check_headers
from hms_gateway.gateway.calls.streaming import ReplyStream, StreamFailed
from hms_gateway.gateway.http.endpoint import Endpoint
from hms_gateway.gateway.http.exchange import (
    HELD_HEADER,
    TEXT,
    TIMING_HEADER,
    Answer,
    Exchange,
    Response,
    server_timing,
    settled,
)
from hms_gateway.gateway.http.request_body import KEPT_BYTES_MAX, BodyReader, Receive, Scope, Send, next_message
from hms_gateway.rpc.call import Dialect
from hms_gateway.runtime.call_record import TraceSpans
from hms_gateway.runtime.settings import Settings

# In the scope, our HTTP protocol class leaves a function that cuts the connection off.
ABORT = "hms_gateway.abort"
# Of a request on a connection that counts as no user's yet: see `Exchange.claim`.
CLAIM = "hms_gateway.claim"

# How much of a refused body is read, so that a client that reads the answer only after it has sent everything sees it.
DRAINED_BYTES_MAX = 8 * 1024 * 1024
DRAIN_SECONDS_MAX = 2.0
DRAINED_AT_ONCE_BYTES = 1024 * 1024
DRAIN_PAUSE_SECONDS = 0.1


class AsgiEndpoint:
    """Brings requests to `endpoint` and sends its responses."""

    def __init__(self, endpoint: Endpoint, settings: Settings) -> None:
        self.endpoint = endpoint
        self._body_reader = BodyReader(settings.limits)
        self.bodies = BodyShares(settings.limits)
        self._cross_origin = CrossOrigin(settings.cors_origins)
        self._write_stall_seconds_max = settings.write_stall_seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send, dialect: Dialect) -> None:
        """Answer one request. `dialect` belongs to the path it came by (design D2)."""
        await self.serve(scope, receive, send, dialect, self._answer)

    async def serve(self, scope: Scope, receive: Receive, send: Send, dialect: Dialect, answer: "Answers") -> None:
        """Answer one request by `answer`, and record it."""
        try:
            exchange = self._exchange(scope, dialect)
        except Exception as error:
            await self.fail(error, scope, receive, send)
            return
        exchange.held = exchange.head.headers.get(HELD_HEADER)
        if exchange.head.headers.get(TIMING_HEADER) == b"1":
            exchange.notes = TraceSpans()
        channel = self._channel(exchange, scope, receive, send)
        # The body counts as long as the request is answered.
        with ExitStack() as held:
            settling = answer(exchange, channel, held)
            await self.endpoint.conclude(exchange, settling, channel.respond, channel.respond_plainly)

    async def fail(self, error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and record, a request that failed outside of the endpoint's path."""
        exchange = Exchange(RequestHead(dict(scope["headers"]), scope["headers"], b"", ""), Dialect.HIVE_4)
        channel = self._channel(exchange, scope, receive, send)

        async def answer() -> Response:
            exchange.beginning = await channel.read_beginning(is_too_large=False)
            raise error

        await self.endpoint.conclude(exchange, answer(), channel.respond_plainly, channel.respond_plainly)

    async def identify(self, scope: Scope) -> Identity:
        """Who asks for a page beside the endpoint. Raises Refused."""
        exchange = self._exchange(scope, Dialect.HIVE_4)
        self.check_head(exchange, scope)
        await self.endpoint.identify(exchange)
        assert exchange.identity is not None
        return exchange.identity

    async def conclude(self, exchange: Exchange, answer: Answer, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer to a request whose body was read before."""
        channel = self._channel(exchange, scope, receive, send)
        channel.body_is_read = True
        await self.endpoint.conclude(exchange, answer, channel.respond, channel.respond_plainly)

    def _exchange(self, scope: Scope, dialect: Dialect) -> Exchange:
        client = scope.get("client")
        peer = client[0] if client else ""
        headers, certificate = scope["headers"], scope.get(CLIENT_CERTIFICATE)
        head = self.endpoint.proxies.head(dict(headers), headers, scope["query_string"], peer, certificate)
        exchange = Exchange(head, dialect)
        exchange.claim = scope.get(CLAIM)
        return exchange

    def _channel(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> "Channel":
        # Not a method of the channel, which has the exchange: a circle would wait for the garbage collector.
        exchange.until_gone = partial(_until_gone, receive)
        return Channel(exchange, scope, receive, send, self._cross_origin, self._write_stall_seconds_max)

    async def _answer(self, exchange: Exchange, channel: "Channel", held: ExitStack) -> Response:
        try:
            self.check_head(exchange, channel.scope)
            if channel.scope["method"] != "POST":
                return self.other_method(exchange, channel)
            await self.endpoint.identify(exchange)
            return await settled(self.endpoint.answer(exchange, await self.body(exchange, channel, held)))
        except ClientGone:
            raise
        except Exception as error:
            if not (channel.body_is_read or (isinstance(error, Refused) and error.beginning is not None)):
                is_too_large = isinstance(error, Refused) and error.status == 413
                exchange.beginning = await channel.read_beginning(is_too_large=is_too_large)
            raise

    def check_head(self, exchange: Exchange, scope: Scope) -> None:
        """Raises Refused for a request that is not decoded at all, right password or not."""
        try:
            check_headers(exchange.head, scope["http_version"])
            self._cross_origin.check(exchange.head, scope["scheme"])
        except Refused as refused:
            self.endpoint.metrics.refusals[refused.reason] += 1
            raise

    async def body(self, exchange: Exchange, channel: "Channel", held: ExitStack) -> bytes:
        """The body in no content encoding."""
        headers = exchange.head.headers
        share = held.enter_context(BodyShare(self.bodies, self.endpoint.holder(exchange)))
        body = await self._body_reader.read(headers, channel.receive, share)
        channel.body_is_read = True
        exchange.bytes_in = len(body)
        encoding = headers.get(b"content-encoding")
        if encoding is not None:
            body = await self._body_reader.decoded(body, encoding, share)
        exchange.beginning = body[:KEPT_BYTES_MAX]
        return body

    def other_method(self, exchange: Exchange, channel: "Channel", allowed: bytes = ALLOWED_METHODS) -> Response:
        # Whatever body there is, the HTTP server reads past it.
        channel.body_is_read = True
        if channel.scope["method"] == "OPTIONS":
            exchange.outcome = "preflight"
            headers = self._cross_origin.preflight_headers(channel.origin, allowed)
            channel.origin = None
            return Response(204, None, headers=(*headers, (b"allow", allowed)))
        exchange.outcome = "method_not_allowed"
        return Response(405, TEXT, b"Send Thrift messages with POST\n", ((b"allow", allowed),))


class Channel:
    """What an ASGI server gives of one request and takes of its response. `origin` is the page that gets to read it."""

    def __init__(
        self,
        exchange: Exchange,
        scope: Scope,
        receive: Receive,
        send: Send,
        cross_origin: CrossOrigin,
        write_stall_seconds_max: float,
    ) -> None:
        self._exchange = exchange
        self._send = send
        self._cross_origin = cross_origin
        self._write_stall_seconds_max = write_stall_seconds_max
        self.scope = scope
        self.receive = receive
        self.origin = exchange.head.headers.get(ORIGIN)
        self._wants_timing = exchange.head.headers.get(TIMING_HEADER) == b"1"
        self.body_is_read = False

    async def respond(self, response: Response) -> None:
        """Raises ClientGone and StreamFailed; both have cut the connection off."""
        if isinstance(response.body, ReplyStream):
            await self._respond_stream(response, response.body)
        elif not self.body_is_read:
            await self._respond_and_close(response, response.body)
        else:
            await self._start(response, len(response.body))
            await self._send({"type": "http.response.body", "body": response.body})

    async def respond_plainly(self, response: Response) -> None:
        """Send it with as little as can be, and close. The server cuts off a response that has begun."""
        assert isinstance(response.body, bytes)
        self._exchange.status = response.status
        fields = [(b"x-request-id", self._exchange.request_id), (b"content-type", response.content_type or TEXT)]
        fields += [(b"content-length", b"%d" % len(response.body)), (b"connection", b"close")]
        await self._send({"type": "http.response.start", "status": response.status, "headers": fields})
        await self._send({"type": "http.response.body", "body": response.body})

    async def read_beginning(self, *, is_too_large: bool) -> bytes:
        """The first part of a body that is not wanted; reads on to its end unless it is known to be too large."""
        exchange = self._exchange
        if self.body_is_read or exchange.head.headers.get(b"expect"):
            return b""
        kept = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                while not self.body_is_read and len(kept) < KEPT_BYTES_MAX:
                    piece = await self._piece()
                    kept += piece
                    exchange.bytes_in += len(piece)
                    if is_too_large:
                        break
        return kept

    async def _piece(self) -> bytes:
        """The next piece of a body that is not read yet. Raises ClientGone."""
        message = await next_message(self.receive)
        self.body_is_read = not message.get("more_body")
        piece: bytes = message["body"]
        return piece

    async def _respond_and_close(self, response: Response, body: bytes) -> None:
        """Send a whole response, take in what the client is still sending, within bounds, and close.

        Closing at once would make the kernel reset the connection, and a busy client lose the answer.
        """
        await self._start(response, len(body), (b"connection", b"close"))
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        # One that was too slow with its body need not be waited for.
        if response.status != 408:
            await self._drain()
        await self._send({"type": "http.response.body", "body": b""})

    async def _respond_stream(self, response: Response, stream: ReplyStream) -> None:
        """Send the chunks as they come."""
        watch = asyncio.create_task(_until_gone(self.receive))
        try:
            await self._start(response, None)
            async for chunk in stream.chunks():
                await self._send_chunk(chunk)
                if watch.done():
                    raise ClientGone
            await self._send({"type": "http.response.body", "body": b""})
        except BaseException:
            # Without the last chunk of the chunked encoding the client knows that the reply is not whole.
            stream.cancel()
            abort = self.scope.get(ABORT)
            if abort is not None:
                abort()
            raise
        finally:
            watch.cancel()

    async def _start(self, response: Response, length: int | None, *more: tuple[bytes, bytes]) -> None:
        """A response without content type (204) has no body and no length."""
        exchange = self._exchange
        exchange.status = response.status
        fields: list[tuple[bytes, bytes]] = [(b"x-request-id", exchange.request_id)]
        if response.content_type is not None:
            fields.append((b"content-type", response.content_type))
            if length is not None:
                fields.append((b"content-length", b"%d" % length))
                exchange.bytes_out += length
        fields.extend((*response.headers, *more, *self._other_headers()))
        await self._send({"type": "http.response.start", "status": response.status, "headers": fields})

    def _other_headers(self) -> HeaderList:
        """Those that no step of the answer knows of."""
        identity = self._exchange.identity
        headers: HeaderList = () if identity is None else identity.headers
        if self._wants_timing and self._exchange.is_read:
            headers = (*headers, (b"server-timing", server_timing(self._exchange)))
        return headers if self.origin is None else (*headers, *self._cross_origin.reply_headers(self.origin))

    async def _send_chunk(self, chunk: bytes) -> None:
        self._exchange.bytes_out += len(chunk)
        try:
            async with asyncio.timeout(self._write_stall_seconds_max):
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TimeoutError:
            text = "the client took nothing of its reply for too long"
            raise StreamFailed(text, limit="write_stall_seconds_max") from None

    async def _drain(self) -> None:
        drained = 0
        with suppress(TimeoutError, ClientGone):
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                while not self.body_is_read and drained < DRAINED_BYTES_MAX:
                    drained += len(await self._piece())
                    if self._exchange.status == 503 and drained > DRAINED_AT_ONCE_BYTES:
                        # A client that is refused again and again would keep the event loop busy for nothing.
                        await asyncio.sleep(DRAIN_PAUSE_SECONDS)


Answers: TypeAlias = Callable[[Exchange, Channel, ExitStack], Coroutine[Any, Any, Response]]
"""Answers a request; what is entered into the stack is left when the response was sent."""


async def _until_gone(receive: Receive) -> None:
    """Returns when the client has closed the connection; for a request whose body is read."""
    while (await receive())["type"] != "http.disconnect":
        pass
