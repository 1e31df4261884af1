"""The codecs of one server, and finding the one a body is written in (design D3, clients §0 rule 1)."""

from collections.abc import Iterator
from typing import Protocol, TypeVar

import msgspec

from hms_gateway.rpc.wire.binary import make_binary, make_compact
from hms_gateway.rpc.wire.message import Message, MessageType, NotThrift
from hms_gateway.rpc.wire.tjson_codec import TJsonCodec
from hms_gateway.runtime.limits import Limits

T = TypeVar("T")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_OLD_NAME_BYTES_MAX = 1024


class Codec(Protocol):
    """Turns bytes into messages and structs and back. Codecs keep no state: one serves all threads."""

    @property
    def name(self) -> str:
        """`tjson`, `binary` or `compact`."""

    @property
    def content_type(self) -> str:
        """The media type of what it writes."""

    def read_message(self, body: bytes) -> Message:
        """The message in `body`, its struct still encoded. Raises ProtocolError with name and seqid if readable."""

    def decode(self, struct_class: type[T], payload: bytes) -> T:
        """An encoded struct as an object. Raises ProtocolError, LimitExceeded."""

    def decoded_bytes(self, struct_class: type[T], payload: bytes, bytes_max: int) -> int:
        """About the memory that `decode` takes for structs and lists, before it takes any.

        More than `bytes_max` where there is more, without looking at the rest. Raises ProtocolError.
        """

    def encode(self, value: object) -> bytes | Iterator[bytes]:
        """A struct, declared exception or `Encoded` as bytes; an iterator of chunks if it holds an EncodedList.

        An iterator has to be used up or closed, from a thread that may wait. Raises TypeError, ValueError or
        OverflowError for values that are not of the IDL's types; the EncodedLists are then closed.
        """

    def envelope(self, name: str, type: MessageType, seqid: int) -> tuple[bytes, bytes]:
        """The bytes before and after the struct in a message."""


class Codecs(msgspec.Struct, frozen=True):
    """One codec of each kind, with the same limits."""

    tjson: Codec
    binary: Codec
    compact: Codec

    def __iter__(self) -> Iterator[Codec]:
        return iter((self.tjson, self.binary, self.compact))

    def sniff(self, body: bytes) -> Codec:
        """The codec of a body, by its first bytes; raises NotThrift, which says what the body looks like instead."""
        first = body[:2]
        if first[:1] == b"[":
            return self.tjson
        if first == b"\x80\x01":
            return self.binary
        if first[:1] == b"\x82":
            return self.compact
        if _is_framed(body):
            raise NotThrift("framed Thrift is not spoken here: send the message without the four bytes of its length")
        if _is_old_binary(body):
            return self.binary
        if body.removeprefix(_BYTE_ORDER_MARK)[:1024].lstrip(_SPACE).startswith(b"["):
            return self.tjson
        raise NotThrift(_description(body))


def make_codecs(limits: Limits) -> Codecs:
    """The codecs of a server with these limits."""
    return Codecs(TJsonCodec(limits), make_binary(limits), make_compact(limits))


def _is_framed(body: bytes) -> bool:
    """A length, then a message: the length is the rest's, or the rest has not all arrived."""
    begins = body[4:6] == b"\x80\x01" or body[4:5] in (b"\x82", b"[")
    return begins and int.from_bytes(body[:4], "big") >= len(body) - 4


def _is_old_binary(body: bytes) -> bool:
    """A message of the first Thrift versions: length of the name, name, type, seqid."""
    length = int.from_bytes(body[:4], "big")
    return 0 < length <= _OLD_NAME_BYTES_MAX and len(body) >= 4 + length + 5 and body[4 + length] in (1, 2, 3, 4)


def _description(body: bytes) -> str:
    if not body.strip(_SPACE):
        return "the body is empty"
    if body.startswith((b"GET ", b"POST ", b"HTTP/")):
        return "this is HTTP, not a Thrift message"
    if body[:1] == b"\x16":
        return "this is TLS, not a Thrift message"
    if body.lstrip(_SPACE)[:1] == b"{":
        return "this is a JSON object; a TJSON message is an array"
    return f"this is not a Thrift message: it begins with {body[:8]!r}"
