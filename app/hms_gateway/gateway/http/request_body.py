"""Reading a request's body within its bounds: size, time, memory, and what compression may hide."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

from hms_gateway.gateway.admission.identity import ClientGone, ProxyTrust, Refused, RequestHead
from hms_gateway.gateway.admission.memory import BodyShare
from hms_gateway.runtime.limits import Limits

ASGIMessage = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[ASGIMessage]]
Send = Callable[[ASGIMessage], Awaitable[None]]

# Why a request is refused whose client need not be waited for.
SLOW_BODY = "slow_body"
# Of a body that is refused so much is kept to find method and seqid.
KEPT_BYTES_MAX = 64 * 1024
# On the event loop only this much is read from a compressed body, and only this much is made of it.
INFLATED_AT_ONCE_BYTES, INFLATED_AT_ONCE_TO_BYTES = 8 * 1024, 64 * 1024
# A thread makes so much at a time; then it is counted.
INFLATED_PIECE_BYTES = 1024 * 1024
# Up to this size the ratio does not matter.
ANY_RATIO_BYTES = 8 * 1024 * 1024
FORM_ENCODED_BRACKET = b"%5B"
FORM_CONTENT_TYPE = b"application/x-www-form-urlencoded"


class BodyReader:
    """Reads bodies; what they take of the memory is counted in the share that is handed in."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # One thread inflates a piece for each body in turn; its first job starts it.
        self._inflating = ThreadPoolExecutor(1, "inflate")

    async def read(self, headers: dict[bytes, bytes], receive: Receive, share: BodyShare) -> bytes:
        """The body as it was sent. Raises Refused (413, 408, 503) and ClientGone."""
        self._check_announced(headers)
        # One buffer that grows, where pieces and the whole would be there twice.
        buffer = BytesIO()
        try:
            async with asyncio.timeout(self._limits.body_read_seconds_max):
                await self._read_pieces(receive, buffer, share)
        except TimeoutError:
            limit, seconds = "body_read_seconds_max", self._limits.body_read_seconds_max
            text = f"The request body took longer than {seconds:g} s ({limit})"
            raise Refused(408, text, reason=SLOW_BODY, limit=limit, beginning=self._beginning(buffer)) from None
        except Refused as refused:
            refused.beginning = self._beginning(buffer)
            raise
        share.has_arrived()
        return buffer.getvalue()

    def _check_announced(self, headers: dict[bytes, bytes]) -> None:
        length = headers.get(b"content-length")
        # The HTTP parser has checked that it is a number.
        if length is not None and int(length) > self._limits.body_bytes_max:
            raise self._too_large()

    async def _read_pieces(self, receive: Receive, buffer: BytesIO, share: BodyShare) -> None:
        size = 0
        while True:
            message = await next_message(receive)
            piece = message["body"]
            size += len(piece)
            buffer.write(piece)
            if size > self._limits.body_bytes_max:
                raise self._too_large()
            share.grow(len(piece), is_upload=True)
            if not message.get("more_body"):
                return

    def _beginning(self, buffer: BytesIO) -> bytes:
        """The kept beginning of a refused body; the rest is freed, since the refusal's traceback keeps the buffer."""
        beginning = bytes(buffer.getbuffer()[:KEPT_BYTES_MAX])
        buffer.close()
        return beginning

    def _too_large(self) -> Refused:
        text = f"The request body is larger than {self._limits.body_bytes_max} bytes (body_bytes_max)"
        return Refused(413, text, reason="body_too_large", limit="body_bytes_max")

    async def decoded(self, body: bytes, encoding: bytes, share: BodyShare) -> bytes:
        """Undo what Content-Encoding names. Raises Refused (400, 413, 415, 503)."""
        encoding = encoding.strip().lower()
        if encoding in (b"", b"identity"):
            return body
        if encoding not in (b"gzip", b"x-gzip", b"deflate"):
            name = encoding.decode("latin-1")
            raise Refused(415, f"Content-Encoding {name} is not understood; gzip is", reason="content_encoding")
        try:
            return await self._inflated(body, share)
        except DamagedBody as error:
            raise Refused(400, str(error), reason="bad_compression") from None

    async def _inflated(self, body: bytes, share: BodyShare) -> bytes:
        """Decompress; no more than one piece is made that is not counted."""
        inflation = Inflation(body)
        buffer = BytesIO()
        if len(body) <= INFLATED_AT_ONCE_BYTES:
            self._keep(buffer.write(inflation.piece(INFLATED_AT_ONCE_TO_BYTES)), buffer, share, len(body))
        loop = asyncio.get_running_loop()
        while not inflation.is_complete:
            added = await loop.run_in_executor(self._inflating, _add_piece, inflation, buffer)
            try:
                self._keep(added, buffer, share, len(body))
            except Refused:
                buffer.close()
                raise
        return buffer.getvalue()

    def _keep(self, added: int, buffer: BytesIO, share: BodyShare, compressed_bytes: int) -> None:
        """Count what was added to the buffer. Raises Refused."""
        size = buffer.tell()
        if size > self._limits.body_bytes_max:
            raise self._too_large()
        if size > ANY_RATIO_BYTES and size > compressed_bytes * self._limits.inflation_ratio_max:
            ratio = self._limits.inflation_ratio_max
            text = f"The body is more than {ratio} times as large as its compressed form (inflation_ratio_max)"
            raise Refused(413, text, reason="body_too_large", limit="inflation_ratio_max")
        share.grow(added)


def unescaped(body: bytes, head: RequestHead) -> bytes:
    """Undo what form encoding did to a body. Raises Refused (400).

    Knox re-encodes what curl sends without a content type (clients §9), as name of an empty form field. From others it
    is refused: a form is what any web page can send without asking.
    """
    if body[:3].upper() != FORM_ENCODED_BRACKET or not _is_form(head):
        return body
    if head.trust is not ProxyTrust.TRUSTED:
        text = "The body is form-encoded, which only trusted_proxy.addresses may send; send the message as it is"
        raise Refused(400, text, reason="form_encoded")
    if b"&" in body:
        # It was cut there into fields, and what stood between them cannot be told any more.
        text = f"The body has an & and came as {FORM_CONTENT_TYPE.decode()}; send Content-Type: application/x-thrift"
        raise Refused(400, text, reason="form_encoded")
    return unquote_to_bytes(body.replace(b"+", b" ").rstrip(b"=\r\n"))


def _is_form(head: RequestHead) -> bool:
    return head.headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == FORM_CONTENT_TYPE


GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
# What is handed to zlib at once: it copies what it has not used after each piece.
FED_BYTES = 64 * 1024
# bgzip begins a member every 64 KiB.
MEMBERS_MAX = 10_000


class DamagedBody(Exception):
    """The body is not what its Content-Encoding says; the text says why."""


class Inflation:
    """The members of a gzip body, or a zlib body. `piece` is called until `is_complete`, in any thread."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._fed = 0
        self._rest = b""
        self._inflater = zlib.decompressobj(GZIP_OR_ZLIB)
        self._members = 1
        self.is_complete = False

    def piece(self, bytes_max: int) -> bytes:
        """`bytes_max` more bytes, fewer only at the end, however small the members are. Raises DamagedBody."""
        pieces = []
        missing = bytes_max
        while missing and not self.is_complete:
            piece = self._step(missing)
            missing -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def _step(self, bytes_max: int) -> bytes:
        self._feed()
        try:
            piece = self._inflater.decompress(self._rest, bytes_max)
        except zlib.error as error:
            raise DamagedBody(f"The compressed body is damaged: {error}") from error
        if self._inflater.eof:
            self._rest = self._inflater.unused_data
            self._next_member()
        else:
            self._rest = self._inflater.unconsumed_tail
            if not piece and not self._rest and self._fed == len(self._body):
                raise DamagedBody("The compressed body is cut off")
        return piece

    def _feed(self) -> None:
        if not self._rest and self._fed < len(self._body):
            self._rest = bytes(self._body[self._fed : self._fed + FED_BYTES])
            self._fed += len(self._rest)

    def _next_member(self) -> None:
        self.is_complete = not self._rest and self._fed == len(self._body)
        if self.is_complete:
            return
        self._members += 1
        if self._members > MEMBERS_MAX:
            raise DamagedBody(f"The compressed body has more than {MEMBERS_MAX} members")
        self._inflater = zlib.decompressobj(GZIP_OR_ZLIB)


def _add_piece(inflation: Inflation, buffer: BytesIO) -> int:
    return buffer.write(inflation.piece(INFLATED_PIECE_BYTES))


async def next_message(receive: Receive) -> ASGIMessage:
    """A message with a piece of the body. Raises ClientGone."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message
