"""Reading a request's body within its bounds: size, time, and what compression may hide."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from app.gateway.direct import take_body
from app.gateway.identity import HeaderList, Refused
from app.limits import Limits

ASGIMessage = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[ASGIMessage]]
Send = Callable[[ASGIMessage], Awaitable[None]]

# The bridge lets its clients repeat a change only when it is told that nothing has happened (clients §13).
NOT_TRIED: HeaderList = ((b"retry-after", b"1"), (b"x-call-outcome", b"not-tried"))
# Why a request is refused whose client need not be waited for.
SLOW_BODY = "slow_body"
# Of a body that is refused so much is kept to find method and seqid.
KEPT_BYTES_MAX = 64 * 1024
# Bodies that are being received may fill so many times body_bytes_max together.
BODIES_AT_ONCE = 4
INFLATE_IN_THREAD_BYTES = 64 * 1024
FORM_ENCODED_BRACKET = b"%5B"
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class ClientGone(Exception):
    """The connection was closed before the request was complete, or while the reply was sent."""


class BodyReader:
    """Reads bodies; remembers how much is being received over all connections."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._receiving = 0

    def arrived(self, scope: Scope) -> bytes | None:
        """The body if all of it is here already; None if it has to be read. Raises Refused (413)."""
        body = take_body(scope)
        if body is not None and len(body) > self._limits.body_bytes_max:
            raise self._too_large(beginning=body[:KEPT_BYTES_MAX])
        return body

    async def read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """The body as it was sent. Raises Refused (413, 408, 503) and ClientGone."""
        self._check_announced(headers)
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_read_seconds_max):
                return await self._read_pieces(receive, pieces)
        except TimeoutError:
            text = f"The request body took longer than {self._limits.body_read_seconds_max:g} s (body_read_seconds_max)"
            raise Refused(408, text, reason=SLOW_BODY, beginning=_beginning(pieces)) from None
        except Refused as refused:
            refused.beginning = _beginning(pieces)
            raise

    def _check_announced(self, headers: dict[bytes, bytes]) -> None:
        length = headers.get(b"content-length")
        # The HTTP parser has checked that it is a number.
        if length is not None and int(length) > self._limits.body_bytes_max:
            raise self._too_large()

    async def _read_pieces(self, receive: Receive, pieces: list[bytes]) -> bytes:
        size = 0
        try:
            while True:
                message = await _next(receive)
                piece = message["body"]
                pieces.append(piece)
                size += len(piece)
                self._receiving += len(piece)
                if size > self._limits.body_bytes_max:
                    raise self._too_large()
                if self._receiving > BODIES_AT_ONCE * self._limits.body_bytes_max:
                    raise overloaded("Too many large requests at the same time")
                if not message.get("more_body"):
                    return b"".join(pieces)
        finally:
            self._receiving -= size

    def _too_large(self, beginning: bytes | None = None) -> Refused:
        text = f"The request body is larger than {self._limits.body_bytes_max} bytes (body_bytes_max)"
        return Refused(413, text, reason="body_too_large", beginning=beginning)

    async def plain(self, body: bytes, headers: dict[bytes, bytes]) -> bytes:
        """Undo what Content-Encoding names and what form encoding did. Raises Refused (400, 413, 415)."""
        encoding = headers.get(b"content-encoding")
        if encoding is not None:
            body = await self._decoded(body, encoding.strip().lower())
        if body[:3].upper() == FORM_ENCODED_BRACKET:
            # Knox re-encodes what curl sends without a content type (clients §9), as name of an empty form field.
            body = unquote_to_bytes(body.replace(b"+", b" ").rstrip(b"=\r\n"))
        return body

    async def _decoded(self, body: bytes, encoding: bytes) -> bytes:
        if encoding in (b"", b"identity"):
            return body
        if encoding not in (b"gzip", b"x-gzip", b"deflate"):
            name = encoding.decode("latin-1")
            raise Refused(415, f"Content-Encoding {name} is not understood; gzip is", reason="content_encoding")
        if len(body) <= INFLATE_IN_THREAD_BYTES:
            return self._inflated(body)
        return await asyncio.get_running_loop().run_in_executor(None, self._inflated, body)

    def _inflated(self, body: bytes) -> bytes:
        """Decompress all members of a gzip body, never more than is allowed."""
        pieces: list[bytes] = []
        left = self._limits.body_bytes_max
        while body:
            inflater = zlib.decompressobj(GZIP_OR_ZLIB)
            try:
                piece = inflater.decompress(body, left + 1)
            except zlib.error as error:
                raise Refused(400, f"The compressed body is damaged: {error}", reason="bad_compression") from error
            left -= len(piece)
            if left < 0:
                raise self._too_large()
            if not inflater.eof:
                raise Refused(400, "The compressed body is cut off", reason="bad_compression")
            pieces.append(piece)
            body = inflater.unused_data
        return b"".join(pieces)


def overloaded(text: str) -> Refused:
    """The answer when something of the server's is used up: the client may try again soon."""
    return Refused(503, text, headers=NOT_TRIED, reason="overload")


def _beginning(pieces: list[bytes]) -> bytes:
    return b"".join(pieces)[:KEPT_BYTES_MAX]


async def _next(receive: Receive) -> ASGIMessage:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message
