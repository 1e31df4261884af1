"""One HTTP request and its response: what was read and sent, and the few ways to answer."""

import asyncio
import time

from hms_gateway.gateway.cors import CrossOrigin
from hms_gateway.gateway.direct import write_whole
from hms_gateway.gateway.identity import HeaderList, Identity
from hms_gateway.gateway.proxies import PROXY_CERTIFICATE, Proxies
from hms_gateway.gateway.refusals import ClientGone
from hms_gateway.gateway.request_body import KEPT_BYTES_MAX, Receive, Scope, Send
from hms_gateway.gateway.request_id import request_id_of
from hms_gateway.gateway.streaming import ReplyStream, StreamFailed

TEXT = b"text/plain; charset=utf-8"
# In the scope, our HTTP protocol class leaves a function that cuts the connection off.
ABORT = "hms_gateway.abort"

# How much of a refused body is read, so that a client that reads the answer only after it has sent everything sees it.
DRAINED_BYTES_MAX = 8 * 1024 * 1024
DRAIN_SECONDS_MAX = 2.0
DRAINED_AT_ONCE_BYTES = 1024 * 1024
DRAIN_PAUSE_SECONDS = 0.1


class Exchange:
    """State of one request. Not a place for decisions: those are in `endpoint`."""

    __slots__ = (
        "_cross_origin",
        "_receive",
        "_send",
        "_write_stall_seconds_max",
        "body_is_read",
        "bytes_in",
        "bytes_out",
        "cached",
        "head",
        "headers",
        "identity",
        "method",
        "outcome",
        "request_id",
        "scope",
        "started",
        "status",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        proxies: Proxies,
        cross_origin: CrossOrigin,
        write_stall_seconds_max: float,
    ) -> None:
        self.started = time.perf_counter()
        self.scope = scope
        self._receive = receive
        self._send = send
        self._cross_origin = cross_origin
        self._write_stall_seconds_max = write_stall_seconds_max
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        client = scope.get("client")
        self.head = proxies.head(
            self.headers,
            scope["headers"],
            scope["query_string"],
            client[0] if client else "",
            PROXY_CERTIFICATE in scope,
        )
        self.request_id = request_id_of(self.headers)
        self.identity: Identity | None = None
        self.method = ""
        self.outcome = "ok"
        self.cached = False
        self.status = 0
        self.body_is_read = False
        self.bytes_in = 0
        self.bytes_out = 0

    async def respond(self, status: int, content_type: bytes | None, body: bytes, headers: HeaderList = ()) -> None:
        """Send a whole response with its length."""
        if self._write_directly(status, content_type, body, headers):
            return
        await self._start(status, content_type, len(body), headers)
        await self._send({"type": "http.response.body", "body": body})

    def _write_directly(self, status: int, content_type: bytes | None, body: bytes, headers: HeaderList) -> bool:
        if headers or content_type is None or b"origin" in self.headers or self.scope["method"] == "HEAD":
            return False
        if self.identity is not None and self.identity.headers:
            return False
        if not write_whole(self.scope, status, self.request_id, content_type, body):
            return False
        self.status = status
        self.bytes_out += len(body)
        return True

    async def respond_empty(self, status: int, headers: HeaderList) -> None:
        """Send a response that by its status has no body and no length (204)."""
        await self._start(status, None, None, headers)
        await self._send({"type": "http.response.body", "body": b""})

    async def respond_and_close(
        self, status: int, content_type: bytes, body: bytes, headers: HeaderList = (), *, drains: bool = True
    ) -> None:
        """Send a whole response, take in what the client is still sending if it `drains`, within bounds, and close.

        Closing at once would make the kernel reset the connection, and a busy client lose the answer.
        """
        await self._start(status, content_type, len(body), (*headers, (b"connection", b"close")))
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        if drains:
            await self._drain()
        await self._send({"type": "http.response.body", "body": b""})

    async def respond_stream(self, content_type: bytes, stream: ReplyStream, headers: HeaderList = ()) -> None:
        """Send the chunks as they come. Raises ClientGone and StreamFailed; both have cut the connection off."""
        watch = asyncio.create_task(self.until_gone())
        try:
            await self._start(200, content_type, None, headers)
            async for chunk in stream.chunks():
                await self._send_chunk(chunk)
                if watch.done():
                    raise ClientGone
            await self._send({"type": "http.response.body", "body": b""})
        except BaseException:
            # Without the last chunk of the chunked encoding the client knows that the reply is not whole.
            stream.cancel()
            self._abort()
            raise
        finally:
            watch.cancel()

    async def read_beginning(self, *, is_too_large: bool) -> bytes:
        """The first part of a body that is not wanted; reads on to its end unless it is known to be too large."""
        if self.body_is_read or self.headers.get(b"expect"):
            return b""
        kept: list[bytes] = []
        kept_bytes = 0
        try:
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                while kept_bytes < KEPT_BYTES_MAX:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    kept.append(message["body"])
                    kept_bytes += len(message["body"])
                    self.bytes_in += len(message["body"])
                    if not message.get("more_body"):
                        self.body_is_read = True
                    if self.body_is_read or is_too_large:
                        break
        except TimeoutError:
            pass
        return b"".join(kept)

    async def _start(self, status: int, content_type: bytes | None, length: int | None, headers: HeaderList) -> None:
        self.status = status
        fields = [(b"x-request-id", self.request_id)]
        if content_type is not None:
            fields.append((b"content-type", content_type))
        if length is not None:
            fields.append((b"content-length", b"%d" % length))
            self.bytes_out += length
        if headers:
            fields.extend(headers)
        if self.identity is not None and self.identity.headers:
            fields.extend(self.identity.headers)
        origin = self.headers.get(b"origin")
        if origin is not None:
            fields.extend(self._cross_origin.reply_headers(origin))
        await self._send({"type": "http.response.start", "status": status, "headers": fields})

    async def _send_chunk(self, chunk: bytes) -> None:
        self.bytes_out += len(chunk)
        try:
            async with asyncio.timeout(self._write_stall_seconds_max):
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TimeoutError:
            text = "the client took nothing of its reply for too long"
            raise StreamFailed(text, limit="write_stall_seconds_max") from None

    async def _drain(self) -> None:
        drained = 0
        try:
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                while not self.body_is_read and drained < DRAINED_BYTES_MAX:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        return
                    drained += len(message["body"])
                    self.body_is_read = not message.get("more_body")
                    if self.status == 503 and drained > DRAINED_AT_ONCE_BYTES:
                        # A client that is refused again and again would keep the event loop busy for nothing.
                        await asyncio.sleep(DRAIN_PAUSE_SECONDS)
        except TimeoutError:
            return

    async def until_gone(self) -> None:
        """Returns when the client has closed the connection; for a request whose body is read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _abort(self) -> None:
        abort = self.scope.get(ABORT)
        if abort is not None:
            abort()
