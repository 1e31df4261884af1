"""Finds where a Thrift struct ends without knowing the IDL, in bytes that arrive piece by piece.

An unframed message does not carry its length. A scanner keeps its place between pieces, so no byte that belongs to a
finished value is looked at twice, however large the message is. Structs that have arrived whole are skipped by Apache
`thrift`'s C decoder, asked to read a struct of no known fields; only the structs that are still open are walked through
here. Without the C decoder everything is walked through.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any, ClassVar, NoReturn

from thrift.protocol.TProtocol import TProtocolException

from hms_gateway.rpc.wire import LimitExceeded, ProtocolError
from hms_gateway.runtime.limits import Limits

try:
    from thrift.protocol.fastbinary import decode_binary, decode_compact
except ImportError:  # the extension was not compiled
    decode_binary = decode_compact = None

_Decode = Callable[[Any, Any, Any], Any]
_BROKEN = (TProtocolException, TypeError, ValueError, OverflowError)

# A struct among the open values; the others are lists, sets and maps.
_STRUCT = None
_VARINT_BYTES_MAX = 10


class MoreNeeded(Exception):
    """The bytes end inside what is being read."""


class _Container:
    """A list, set or map that has been entered. The types of an even and an odd number of values that remain."""

    __slots__ = ("remaining", "types")

    def __init__(self, remaining: int, types: tuple[int, int]) -> None:
        self.remaining = remaining
        self.types = types


class _Nothing:
    """A struct of which no field is known."""


class _Source:
    """Protocol and transport, as far as the C decoder needs them."""

    string_length_limit = None
    container_length_limit = None

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self.cstringio_buf = BytesIO(data)

    @property
    def trans(self) -> "_Source":
        """Itself; as an attribute it would keep the bytes of each message until the next collection of garbage."""
        return self

    def cstringio_refill(self, _read: bytes, _wanted: int) -> NoReturn:
        raise EOFError


class StructScanner:
    """Scans one struct that begins at `position` of a buffer that only grows.

    `position` moves on; it may be beyond the end of the buffer when a long string is known to follow. Subclasses know
    one protocol each.
    """

    struct_code: int
    string_code: int
    sizes: ClassVar[dict[int, int]]  # of values of fixed size inside containers
    decode: _Decode | None

    def __init__(self, position: int, limits: Limits) -> None:
        self.position = position
        self._begin = position
        self._limits = limits
        self._open: list[_Container | None] | None = None
        self._source: _Source | None = None
        self._source_begin = 0

    def scan(self, buffer: bytearray) -> bool:
        """Scan on; True when the struct has ended, at `position`. Raises ProtocolError, LimitExceeded."""
        self._source = None
        try:
            if self._open is None:
                self._enter(buffer)
            while self._open:
                self._step(buffer, self._open)
        except MoreNeeded:
            return False
        finally:
            self._source = None
            self._check_size()
        return True

    def _enter(self, buffer: bytearray) -> None:
        if self.position >= len(buffer):
            raise MoreNeeded
        self._open = []
        self._open_struct(buffer, self.position)

    def _step(self, buffer: bytearray, still_open: list[_Container | None]) -> None:
        """One value, or the end of one. Nothing is changed before all that is needed has been read."""
        innermost = still_open[-1]
        if innermost is _STRUCT:
            code, position = self._field(buffer, self.position)
            if not code:
                still_open.pop()
                self.position = position
                return
        elif innermost.remaining:
            code, position = innermost.types[innermost.remaining & 1], self.position
        else:
            still_open.pop()
            return
        self._value(buffer, code, position, is_field=innermost is _STRUCT)
        if innermost is not _STRUCT:
            innermost.remaining -= 1

    def _value(self, buffer: bytearray, code: int, position: int, *, is_field: bool) -> None:
        if code == self.string_code:
            length, position = self._length(buffer, position)
            if length > self._limits.string_bytes_max:
                raise LimitExceeded("string_bytes_max", self._limits.string_bytes_max)
            self.position = position + length
        elif code == self.struct_code:
            self._open_struct(buffer, position)
        elif code in self.sizes:
            self.position = position + (self._field_size(code) if is_field else self.sizes[code])
        else:
            self._other_value(buffer, code, position)

    def _open_struct(self, buffer: bytearray, position: int) -> None:
        """Past a struct if all of it is there, else into it."""
        end = self._whole_struct(buffer, position)
        if end is None:
            self._push(_STRUCT)
            self.position = position
        else:
            self.position = end

    def _open_container(self, count: int, types: tuple[int, int], values_each: int, position: int) -> None:
        if not 0 <= count <= self._limits.container_elements_max:
            raise LimitExceeded("container_elements_max", self._limits.container_elements_max)
        even, odd = (self.sizes.get(code) for code in types)
        if even is not None and odd is not None:
            self.position = position + count * (even + odd if values_each == 2 else even)
            return
        self._push(_Container(count * values_each, types))
        self.position = position

    def _push(self, entered: _Container | None) -> None:
        assert self._open is not None
        if len(self._open) >= self._limits.nesting_depth_max:
            raise LimitExceeded("nesting_depth_max", self._limits.nesting_depth_max)
        self._open.append(entered)

    def _whole_struct(self, buffer: bytearray, position: int) -> int | None:
        """The end of the struct at `position`; None when it has not all arrived."""
        if self.decode is None or position >= len(buffer):
            return None
        if self._source is None:
            with memoryview(buffer) as view, view[position:] as rest:
                self._source = _Source(rest)
            self._source_begin = position
        self._source.cstringio_buf.seek(position - self._source_begin)
        try:
            self.decode(_Nothing(), self._source, [_Nothing, ()])
        except EOFError:
            return None
        except _BROKEN as error:
            raise self._broken(error) from error
        return self._source_begin + self._source.cstringio_buf.tell()

    def _broken(self, error: Exception) -> ProtocolError:
        if "recursion depth" in str(error):
            return LimitExceeded("nesting_depth_max", self._limits.nesting_depth_max)
        return ProtocolError(f"the message is broken: {error}")

    def _check_size(self) -> None:
        if self.position - self._begin > self._limits.body_bytes_max:
            raise LimitExceeded("body_bytes_max", self._limits.body_bytes_max)

    def _field(self, buffer: bytearray, position: int) -> tuple[int, int]:
        """Type code of the field at `position`, 0 at the end of the struct, and where its value begins."""
        raise NotImplementedError

    def _field_size(self, code: int) -> int:
        """Bytes of a field of fixed size."""
        return self.sizes[code]

    def _length(self, buffer: bytearray, position: int) -> tuple[int, int]:
        """Length of the string at `position`, and where its bytes begin."""
        raise NotImplementedError

    def _other_value(self, buffer: bytearray, code: int, position: int) -> None:
        """Values that are neither structs nor strings nor of fixed size."""
        raise NotImplementedError


class BinaryScanner(StructScanner):
    """TBinaryProtocol."""

    struct_code = 12
    string_code = 11
    sizes: ClassVar = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8, 16: 16}
    decode = decode_binary

    def _field(self, buffer: bytearray, position: int) -> tuple[int, int]:
        code = _byte(buffer, position)
        return code, position + (3 if code else 1)

    def _length(self, buffer: bytearray, position: int) -> tuple[int, int]:
        length = int.from_bytes(_slice(buffer, position, 4), "big", signed=True)
        if length < 0:
            raise ProtocolError("the message is broken: a string has a negative length")
        return length, position + 4

    def _other_value(self, buffer: bytearray, code: int, position: int) -> None:
        if code in (14, 15):
            head = _slice(buffer, position, 5)
            types, each = (head[0], head[0]), 1
        elif code == 13:
            head = _slice(buffer, position, 6)
            types, each = (head[0], head[1]), 2
        else:
            raise ProtocolError(f"the message is broken: {code} is not a type")
        count = int.from_bytes(head[each:], "big", signed=True)
        self._open_container(count, types, each, position + each + 4)


class CompactScanner(StructScanner):
    """TCompactProtocol."""

    struct_code = 12
    string_code = 8
    sizes: ClassVar = {1: 1, 2: 1, 3: 1, 7: 8, 13: 16}
    decode = decode_compact

    def _field(self, buffer: bytearray, position: int) -> tuple[int, int]:
        head = _byte(buffer, position)
        position += 1
        if head & 0x0F and not head >> 4:
            _, position = varint(buffer, position)
        return head & 0x0F, position

    def _field_size(self, code: int) -> int:
        # A boolean field has its value in its type.
        return 0 if code in (1, 2) else self.sizes[code]

    def _length(self, buffer: bytearray, position: int) -> tuple[int, int]:
        return varint(buffer, position)

    def _other_value(self, buffer: bytearray, code: int, position: int) -> None:
        if code in (4, 5, 6):
            _, self.position = varint(buffer, position)
        elif code in (9, 10):
            head = _byte(buffer, position)
            count, position = (head >> 4, position + 1) if head < 0xF0 else varint(buffer, position + 1)
            self._open_container(count, (head & 0x0F, head & 0x0F), 1, position)
        elif code == 11:
            count, position = varint(buffer, position)
            types = _byte(buffer, position) if count else 0
            self._open_container(count, (types >> 4, types & 0x0F), 2, position + bool(count))
        else:
            raise ProtocolError(f"the message is broken: {code} is not a type")


def _byte(buffer: bytearray | bytes, position: int) -> int:
    if position >= len(buffer):
        raise MoreNeeded
    return buffer[position]


def _slice(buffer: bytearray, position: int, size: int) -> bytearray:
    if position + size > len(buffer):
        raise MoreNeeded
    return buffer[position : position + size]


def varint(buffer: bytearray | bytes, position: int) -> tuple[int, int]:
    """An unsigned variable-length number, and where it ends."""
    value = shift = 0
    for _ in range(_VARINT_BYTES_MAX):
        byte = _byte(buffer, position)
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ProtocolError("the message is broken: a number has too many bytes")
