"""A Thrift message as it came over TCP, read no further than the bridge must."""

from typing import NamedTuple

import msgspec

from hms_gateway.bridge.thrift.struct_scanner import BinaryScanner, CompactScanner, StructScanner
from hms_gateway.rpc.wire import MessageType, ProtocolError
from hms_gateway.runtime.limits import Limits

METHOD_NAME_BYTES_MAX = 1024
_VARINT_BYTES_MAX = 10


class Head(NamedTuple):
    """The message's header and how long it is; `protocol` is the name of its codec."""

    protocol: str
    name: str
    type: MessageType
    seqid: int
    size: int

    def scanner(self, position: int, limits: Limits) -> StructScanner:
        """What finds the end of the struct that begins at `position`."""
        scanner = CompactScanner if self.protocol == "compact" else BinaryScanner
        return scanner(position, limits)


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


def read_head(buffer: bytearray | bytes) -> Head | None:
    """The header at the beginning of `buffer`; None when it has not all arrived. Raises ProtocolError."""
    if not buffer:
        return None
    first = buffer[0]
    if first == 0x82:
        return _compact_head(buffer)
    if first == 0x80:
        return _strict_head(buffer)
    return _old_head(buffer)


def _strict_head(buffer: bytearray | bytes) -> Head | None:
    if len(buffer) >= 2 and buffer[1] != 1:
        raise ProtocolError(f"binary version {bytes(buffer[:2]).hex()} is not known, only 8001")
    if len(buffer) < 8:
        return None
    length = _name_length(int.from_bytes(buffer[4:8], "big"))
    end = 8 + length + 4
    if len(buffer) < end:
        return None
    name, seqid = _text(buffer[8 : 8 + length]), int.from_bytes(buffer[8 + length : end], "big", signed=True)
    return Head("binary", name, _type(buffer[3] & 0x07, name, seqid), seqid, end)


def _old_head(buffer: bytearray | bytes) -> Head | None:
    """The header of the first Thrift versions: length, name, type, seqid."""
    if len(buffer) < 4:
        return None
    length = _name_length(int.from_bytes(buffer[:4], "big"))
    end = 4 + length + 5
    if len(buffer) < end:
        return None
    name, seqid = _text(buffer[4 : 4 + length]), int.from_bytes(buffer[end - 4 : end], "big", signed=True)
    return Head("binary", name, _type(buffer[4 + length], name, seqid), seqid, end)


def _compact_head(buffer: bytearray | bytes) -> Head | None:
    if len(buffer) < 2:
        return None
    if buffer[1] & 0x1F != 1:
        raise ProtocolError(f"compact version {buffer[1] & 0x1F} is not known, only 1")
    seqid_read = _varint(buffer, 2)
    if seqid_read is None:
        return None
    seqid, position = seqid_read
    length_read = _varint(buffer, position)
    if length_read is None:
        return None
    length, position = length_read
    end = position + _name_length(length)
    if len(buffer) < end:
        return None
    name = _text(buffer[position:end])
    seqid = (seqid & 0xFFFFFFFF) - ((seqid & 0x80000000) << 1)
    return Head("compact", name, _type(buffer[1] >> 5, name, seqid), seqid, end)


def _varint(buffer: bytearray | bytes, position: int) -> tuple[int, int] | None:
    value = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        if position >= len(buffer):
            return None
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ProtocolError("the message is broken: a number has too many bytes")


def _name_length(length: int) -> int:
    if not 0 < length <= METHOD_NAME_BYTES_MAX:
        raise ProtocolError(f"the message is broken: a method name of {length} bytes")
    return length


def _text(name: bytes | bytearray) -> str:
    return name.decode("utf-8", "replace")


def _type(number: int, name: str, seqid: int) -> MessageType:
    if number not in (MessageType.CALL, MessageType.ONEWAY):
        raise ProtocolError(f"expected a call, got message type {number}", name=name, seqid=seqid)
    return MessageType(number)
