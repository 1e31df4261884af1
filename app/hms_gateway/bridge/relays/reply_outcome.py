"""What a reply says, read from its first bytes: for the log, and to distinguish a reply from a proxy's page."""

from functools import cache

from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import MessageType

_STRUCT = 12


def reply_outcome(method: str, beginning: bytes, *, is_compact: bool) -> str:
    """`ok`, the class of the declared exception, or `exception` for an application exception.

    `beginning` is a reply in strict binary or compact, or enough of it. Raises ValueError when it is neither.
    """
    if beginning[:1] != b"\x82" if is_compact else beginning[:2] != b"\x80\x01":
        raise ValueError("not a Thrift message")
    try:
        kind, position = _compact_head(beginning) if is_compact else _binary_head(beginning)
        if kind == MessageType.EXCEPTION:
            return "exception"
        if kind != MessageType.REPLY:
            raise ValueError("no reply")
        return _outcome(method, *_first_field(beginning, position, is_compact=is_compact))
    except IndexError:
        raise ValueError("a reply of too few bytes") from None


def payload_begin(reply: bytes, *, is_compact: bool) -> int:
    """Where the struct begins in a reply, in strict binary or compact."""
    return (_compact_head(reply) if is_compact else _binary_head(reply))[1]


def _outcome(method: str, type_code: int, number: int) -> str:
    """The result struct has the value in field 0, a declared exception in another."""
    return _declared(method).get(number, "ok") if type_code == _STRUCT and number else "ok"


@cache
def _declared(method: str) -> dict[int, str]:
    known = METHODS.get(method)
    throws = () if known is None else known.definition.throws
    return {field.id: field.type.name for field in throws if isinstance(field.type, StructType)}


def _binary_head(reply: bytes) -> tuple[int, int]:
    """Message type, and where the struct begins."""
    return reply[3], 8 + int.from_bytes(reply[4:8], "big") + 4


def _compact_head(reply: bytes) -> tuple[int, int]:
    position = 2
    while reply[position] >= 0x80:  # the seqid
        position += 1
    position += 1
    length = reply[position]
    if length >= 0x80:
        length = (length & 0x7F) | reply[position + 1] << 7
        position += 1
    return reply[1] >> 5, position + 1 + length


def _first_field(reply: bytes, position: int, *, is_compact: bool) -> tuple[int, int]:
    """Type code and number; for compact, structs have the same code as in binary."""
    if is_compact:
        return reply[position] & 0x0F, reply[position] >> 4
    if reply[position] == 0:
        return 0, 0
    return reply[position], reply[position + 1] << 8 | reply[position + 2]
