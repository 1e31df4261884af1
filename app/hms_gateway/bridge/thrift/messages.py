"""Thrift messages as they come over TCP, read no further than the bridge must; its errors and its own replies.

Hive's client repeats a call when a MetaException's text matches `_REPEATED`, and on most types of application
exceptions (clients §4.3). Replies of the bridge about failed calls have words and shapes that make no client repeat it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from hms_gateway.bridge.thrift.struct_scanner import BinaryScanner, CompactScanner, MoreNeeded, StructScanner, varint
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import METHODS, MetaException
from hms_gateway.rpc.wire import ApplicationErrorType, Codec, Codecs, MessageType, ProtocolError, TApplicationException
from hms_gateway.runtime.limits import Limits

METHOD_NAME_BYTES_MAX = 1024


class Head(NamedTuple):
    """The message's header and how long it is; `protocol` is the name of its codec."""

    protocol: str
    name: str
    type: MessageType
    seqid: int
    size: int

    def scanner(self, limits: Limits) -> StructScanner:
        """A scanner for the end of the struct behind the header."""
        scanner = CompactScanner if self.protocol == "compact" else BinaryScanner
        return scanner(self.size, limits)


class ThriftMessage(msgspec.Struct, frozen=True):
    """One whole message. `body` is unchanged but has no frame's length; its struct begins at `payload_begin`."""

    protocol: str
    name: str
    type: MessageType
    seqid: int
    body: bytes
    payload_begin: int = 0

    @property
    def is_oneway(self) -> bool:
        return self.type is MessageType.ONEWAY


CALLS: Final = (MessageType.CALL, MessageType.ONEWAY)


def read_head(buffer: bytearray | bytes, types: Sequence[MessageType] = CALLS) -> Head | None:
    """The header at the beginning of `buffer`; None when it has not all arrived. Raises ProtocolError.

    A message has to be of one of `types`.
    """
    if not buffer:
        return None
    read = {0x82: _compact_head, 0x80: _strict_head}.get(buffer[0], _old_head)
    found = read(buffer)
    if found is None:
        return None
    protocol, name, number, seqid, size = found
    if number not in types:
        raise ProtocolError(f"expected a call, got message type {number}", name=name, seqid=seqid)
    return Head(protocol, name, MessageType(number), seqid, size)


_Head = tuple[str, str, int, int, int]


def _strict_head(buffer: bytearray | bytes) -> _Head | None:
    if len(buffer) >= 2 and buffer[1] != 1:
        raise ProtocolError(f"binary version {bytes(buffer[:2]).hex()} is not known, only 8001")
    if len(buffer) < 8:
        return None
    length = _name_length(int.from_bytes(buffer[4:8], "big"))
    end = 8 + length + 4
    if len(buffer) < end:
        return None
    name, seqid = _text(buffer[8 : 8 + length]), int.from_bytes(buffer[8 + length : end], "big", signed=True)
    return "binary", name, buffer[3] & 0x07, seqid, end


def _old_head(buffer: bytearray | bytes) -> _Head | None:
    """The header of the first Thrift versions: length, name, type, seqid."""
    if len(buffer) < 4:
        return None
    length = _name_length(int.from_bytes(buffer[:4], "big"))
    end = 4 + length + 5
    if len(buffer) < end:
        return None
    name, seqid = _text(buffer[4 : 4 + length]), int.from_bytes(buffer[end - 4 : end], "big", signed=True)
    return "binary", name, buffer[4 + length], seqid, end


def _compact_head(buffer: bytearray | bytes) -> _Head | None:
    if len(buffer) < 2:
        return None
    if buffer[1] & 0x1F != 1:
        raise ProtocolError(f"compact version {buffer[1] & 0x1F} is not known, only 1")
    try:
        seqid, position = varint(buffer, 2)
        length, position = varint(buffer, position)
    except MoreNeeded:
        return None
    end = position + _name_length(length)
    if len(buffer) < end:
        return None
    name = _text(buffer[position:end])
    seqid = (seqid & 0xFFFFFFFF) - ((seqid & 0x80000000) << 1)
    return "compact", name, buffer[1] >> 5, seqid, end


def _name_length(length: int) -> int:
    if not 0 < length <= METHOD_NAME_BYTES_MAX:
        raise ProtocolError(f"the message is broken: a method name of {length} bytes")
    return length


def _text(name: bytes | bytearray) -> str:
    return name.decode("utf-8", "replace")


class BridgeError(Exception):
    """Base; the text is for the log and, where there is one, for the answer."""


class Unspeakable(BridgeError):
    """The peer does not speak Thrift in a way we understand: send `last_words` as they are and close.

    `reason` is its word in log and metrics.
    """

    def __init__(self, text: str, last_words: bytes = b"", reason: str = "not_thrift") -> None:
        super().__init__(text)
        self.last_words = last_words
        self.reason = reason


class NotTried(BridgeError):
    """Nothing of the call reached the metastore, so the connection is closed and the client may repeat it."""


class CallFailed(BridgeError):
    """The call may have happened, or trying again cannot help: answered with an exception that no client repeats.

    `outcome` is its word in log and metrics.
    """

    def __init__(self, text: str, outcome: str) -> None:
        super().__init__(text)
        self.outcome = outcome


class ReplyBroken(BridgeError):
    """The far side stopped in the middle of a reply whose beginning the client already has."""


_REPEATED = re.compile(r"(JDO\w*|TProtocol|TTransport)Exception")
# Among the few types on which no generation of Hive's client repeats the call, the one closest to the truth.
NOT_REPEATED_TYPE = ApplicationErrorType.INVALID_PROTOCOL


def failure_reply(codecs: Codecs, message: ThriftMessage, text: str) -> bytes:
    """`text` as the method's MetaException where the IDL declares one, else as an application exception."""
    text = _REPEATED.sub(r"\1Error", text)
    codec = codec_of(codecs, message.protocol)
    slot = _meta_exception_slot(message.name)
    if slot is None:
        return application_exception(codec, message.name, message.seqid, text, NOT_REPEATED_TYPE)
    result = METHODS[message.name].result(**{slot: MetaException(text)})
    return enclosed(codec, message.name, MessageType.REPLY, message.seqid, codec.encode(result))


def application_exception(codec: Codec, name: str, seqid: int, text: str, type: ApplicationErrorType) -> bytes:
    """An EXCEPTION message."""
    return enclosed(codec, name, MessageType.EXCEPTION, seqid, codec.encode(TApplicationException(text, int(type))))


def enclosed(codec: Codec, name: str, type: MessageType, seqid: int, payload: bytes | Iterator[bytes]) -> bytes:
    """A message around an encoded struct."""
    before, after = codec.envelope(name, type, seqid)
    return b"".join((before, *((payload,) if isinstance(payload, bytes) else payload), after))


def codec_of(codecs: Codecs, protocol: str) -> Codec:
    """The codec a message came in."""
    return codecs.compact if protocol == "compact" else codecs.binary


def _meta_exception_slot(name: str) -> str | None:
    method = METHODS.get(name)
    for field in () if method is None else method.definition.throws:
        if field.type == StructType("MetaException"):
            return field.name
    return None
