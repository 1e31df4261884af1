"""Messages between codecs and callers: head, chunks of bytes, size when decoded, and errors of reading."""

import threading
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

from thrift.Thrift import TType

from hms_gateway.rpc.idl import BaseType, Field, StructDef, StructKind
from hms_gateway.rpc.structs import STRUCTS, EncodedList, ThriftException
from hms_gateway.rpc.structs.base import specs_of_structs_alone

# A Thrift message, its arguments still encoded.


class MessageType(IntEnum):
    """What a message is, by its number on the wire (protocol §3.1.5)."""

    CALL = 1
    REPLY = 2
    EXCEPTION = 3
    ONEWAY = 4


class Message(NamedTuple):
    """One message. `payload` is the arguments or result struct in the encoding the message came in."""

    name: str
    type: MessageType
    seqid: int
    payload: bytes


# Errors that a peer gets when a message cannot be read or answered.


class ApplicationErrorType(IntEnum):
    """The `type` of a TApplicationException, numbered as in Apache Thrift."""

    UNKNOWN = 0
    UNKNOWN_METHOD = 1
    INVALID_MESSAGE_TYPE = 2
    WRONG_METHOD_NAME = 3
    BAD_SEQUENCE_ID = 4
    MISSING_RESULT = 5
    INTERNAL_ERROR = 6
    PROTOCOL_ERROR = 7
    INVALID_TRANSFORM = 8
    INVALID_PROTOCOL = 9
    UNSUPPORTED_CLIENT_TYPE = 10


class TApplicationException(ThriftException):
    """The payload of an EXCEPTION message; `Codec.encode` and `decode` take it like any struct."""

    definition = StructDef(
        "TApplicationException",
        StructKind.EXCEPTION,
        (Field(1, "message", BaseType.STRING), Field(2, "type", BaseType.I32)),
    )
    thrift_spec = (None, (1, TType.STRING, "message", "UTF8", None), (2, TType.I32, "type", None, None))
    type: int | None

    def __init__(self, message: str | None = None, type: int | None = None, **fields: Any) -> None:
        super().__init__(message, type=type, **fields)


class ApplicationError(Exception):
    """A call that fails outside its method's declared exceptions: answered with an EXCEPTION message.

    `limit` is the field of `Limits` that the message went over, if that is why.
    """

    limit: str = ""

    def __init__(self, message: str, type: ApplicationErrorType = ApplicationErrorType.INTERNAL_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.type = type

    def payload(self) -> TApplicationException:
        """Payload of the EXCEPTION message."""
        return TApplicationException(self.message, int(self.type))


class ProtocolError(ApplicationError):
    """Bytes that are not a message, or not arguments of this method. The text names the field and the reason.

    `name` and `seqid` are the message's as far as they could be read, so that the answer can carry them.
    """

    def __init__(
        self,
        message: str,
        type: ApplicationErrorType = ApplicationErrorType.PROTOCOL_ERROR,
        *,
        name: str | None = None,
        seqid: int | None = None,
    ) -> None:
        super().__init__(message, type)
        self.name = name
        self.seqid = seqid


class LimitExceeded(ProtocolError):
    """A message larger or deeper than we take (design D15)."""

    def __init__(self, limit: str, maximum: int, where: str = "") -> None:
        super().__init__(f"{where}{': ' if where else ''}over the limit {limit} = {maximum}")
        self.limit = limit


class NotThrift(ProtocolError):
    """A body that is in none of the protocols we speak."""


# The iterator `encode` gives when a reply is streamed.


class Chunks(Iterator[bytes]):
    """Chunks of a reply; closes the lists they come from at the end, after a failure, and on `close()`.

    A generator alone would not do: closing one that was never started runs none of its code.
    """

    def __init__(self, chunks: Iterator[bytes], streams: Sequence[EncodedList]) -> None:
        self._chunks = chunks
        self._streams = streams

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give up reading. Harmless when called again."""
        close_all(self._streams)


def close_all(streams: Sequence[EncodedList]) -> None:
    for stream in streams:
        stream.close()


# How much memory a binary or compact message takes once it is decoded, found out before it is.
#
# An empty struct is a byte in the message and 140 bytes of memory. So structs are counted: the message is decoded once
# with a description in which every struct is the same object, which the C code makes of nothing. Lists inside lists are
# estimated by the bytes that begin them.


# A struct with a few dozen fields, and a list of a few texts with its place in another list.
STRUCT_BYTES = 200
LIST_BYTES = 72
# In a compact message short lists of texts, and texts as fields, begin with such a byte.
_NO_COMPACT_LISTS = bytes(range(0x08, 0x100, 0x10))
_BINARY_LIST = b"\x0b\x00\x00\x00"

_counting = threading.Lock()


class TooManyStructs(Exception):
    """There are more of them than were allowed."""


class _Counted:
    """Takes the place of every struct. It has one instance; making another counts one more."""

    made = 0
    most = 0
    only: "_Counted"

    def __new__(cls, **fields: object) -> "_Counted":
        _Counted.made += 1
        if _Counted.made > _Counted.most:
            raise TooManyStructs
        return _Counted.only


_Counted.only = object.__new__(_Counted)


def structs_in(read: Callable[[Any, Any], object], struct_class: Any, most: int) -> int:
    """The structs inside of one, itself not counted. `read(class, spec)` decodes. Raises TooManyStructs."""
    with _counting:
        _Counted.made, _Counted.most = 0, most + 1
        read(_Counted, _counting_spec(struct_class))
        return _Counted.made - 1


def binary_lists(payload: bytes) -> int:
    """No fewer lists of texts than are in a binary message inside of others."""
    return payload.count(_BINARY_LIST)


def compact_lists(payload: bytes) -> int:
    """No fewer short lists of texts than are in a compact message; texts that are fields are among them."""
    return len(payload) - len(payload.translate(None, _NO_COMPACT_LISTS))


@cache
def _counting_specs() -> Callable[[Any], Any]:
    return specs_of_structs_alone(STRUCTS, _Counted)


@cache
def _counting_spec(struct_class: Any) -> Any:
    return _counting_specs()(struct_class.definition)
