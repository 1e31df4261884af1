"""The tail of an ORC file: its protobuf messages (orc_proto.proto), compressed blocks, types and statistics."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from math import isnan
from typing import Any, Final, TypeAlias

import msgspec

from hms_gateway.pipeline.footers.footer import Column, Footer, FooterFigures, NotInHive, check_field, longest_known

# The protobuf messages of an ORC file's tail (orc_proto.proto): fields by number, and the blocks around them.


# Whole numbers, bytes (texts, messages, packed numbers) and 8 bytes of doubles: in the order of the file.
Fields: TypeAlias = dict[int, list[int | bytes]]

NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD = range(6)
_NAMES: Final = {LZO: "LZO", 6: "Brotli"}
# The head of an LZ4 frame: its mark, blocks of up to 4 MiB without checksums, and a checksum of that.
_LZ4_FRAME: Final = bytes.fromhex("04224d18607073")


class NotAMessage(ValueError):
    """The bytes are not what the format says."""


def message(data: bytes) -> Fields:
    """Raises NotAMessage."""
    fields: Fields = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                if kind != 2:
                    raise NotAMessage(f"field {number} has the unknown kind {kind}")
                length, at = _varint(data, at)
            if at + length > len(data):
                raise NotAMessage(f"field {number} ends beyond its message")
            value, at = data[at : at + length], at + length
        if number == 0:
            raise NotAMessage("a field has the number 0")
        fields.setdefault(number, []).append(value)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotAMessage("a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def number(fields: Fields, field: int) -> int | None:
    """The last one counts, as protobuf says."""
    found = fields.get(field, (None,))[-1]
    return found if isinstance(found, int) else None


def int32(fields: Fields, field: int) -> int | None:
    """A number of the type int32, which has 64 bits where it is below zero."""
    found = number(fields, field)
    return found - (1 << 64) if found is not None and found >> 63 else found


def signed(fields: Fields, field: int) -> int | None:
    """A number of the types sint32 and sint64 (zigzag)."""
    found = number(fields, field)
    return None if found is None else (found >> 1) ^ -(found & 1)


def binary(fields: Fields, field: int) -> bytes | None:
    found = fields.get(field, (None,))[-1]
    return found if isinstance(found, bytes) else None


def text(fields: Fields, field: int) -> str | None:
    """Raises NotAMessage."""
    found = binary(fields, field)
    try:
        return None if found is None else found.decode()
    except UnicodeDecodeError as error:
        raise NotAMessage(f"field {field} is not UTF-8") from error


def double(fields: Fields, field: int) -> float | None:
    found = binary(fields, field)
    return float(struct.unpack("<d", found)[0]) if found is not None and len(found) == 8 else None


def numbers(fields: Fields, field: int) -> list[int]:
    """A repeated number, packed or not. Raises NotAMessage."""
    found = []
    for value in fields.get(field, ()):
        if isinstance(value, int):
            found.append(value)
        else:
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                found.append(one)
    return found


def unpacked(data: bytes, compression: int, bytes_max: int) -> bytes:
    """The content of the compressed blocks of a section. Raises NotAMessage."""
    if compression == NONE:
        return data
    if compression not in (ZLIB, SNAPPY, LZ4, ZSTD):
        raise NotAMessage(f"its compression {_NAMES.get(compression, compression)} is not known here")
    parts = []
    left = bytes_max
    for block, is_original in _blocks(data):
        part = block if is_original else _decompressed(block, compression, left)
        left -= len(part)
        if left < 0:
            raise NotAMessage(f"it has more than {bytes_max} bytes when it is unpacked")
        parts.append(part)
    return b"".join(parts)


def _blocks(data: bytes) -> Iterator[tuple[bytes, bool]]:
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        length = header >> 1
        at += 3
        if at + length > len(data):
            raise NotAMessage("a block ends beyond its section")
        yield data[at : at + length], bool(header & 1)
        at += length


def _decompressed(block: bytes, compression: int, bytes_max: int) -> bytes:
    try:
        if compression == ZLIB:
            return zlib.decompressobj(-15).decompress(block, bytes_max + 1)
        return _by_arrow(block, compression, bytes_max)
    except (zlib.error, OSError) as error:
        raise NotAMessage(f"a block cannot be unpacked: {error}") from error


def _by_arrow(block: bytes, compression: int, bytes_max: int) -> bytes:
    import pyarrow

    if compression == SNAPPY:
        length, _ = _varint(block, 0)
        if length > bytes_max:
            raise NotAMessage(f"it has more than {bytes_max} bytes when it is unpacked")
        return bytes(pyarrow.Codec("snappy").decompress(block, decompressed_size=length, asbytes=True))
    name = "zstd"
    if compression == LZ4:
        # A bare block, whose length Arrow wants to know and ORC does not keep, as the only one of a frame.
        name, block = "lz4", _LZ4_FRAME + len(block).to_bytes(4, "little") + block + bytes(4)
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(block), name) as stream:
        return bytes(stream.read(bytes_max + 1))


# The tail as a footer.


FORMAT = "orc"
FOOTER_BYTES_MAX: Final = 256 * 1024 * 1024
NESTING_MAX: Final = 64

_SIMPLE: Final = {
    0: "boolean",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "bigint",
    5: "float",
    6: "double",
    7: "string",
    8: "binary",
    9: "timestamp",
    15: "date",
    18: "timestamp",
}
_LIST, _MAP, _STRUCT, _UNION, _DECIMAL, _VARCHAR, _CHAR = 10, 11, 12, 13, 14, 16, 17
_NANOSECONDS_A_MILLISECOND: Final = 1_000_000


class _Type(msgspec.Struct, frozen=True):
    kind: int
    children: Sequence[int]
    names: Sequence[str]
    length: int
    precision: int
    scale: int


def footer_length(postscript: bytes) -> int:
    """Bytes of the footer, which ends where the postscript begins. Raises NotAMessage."""
    length = number(message(postscript), 1)
    if length is None:
        raise NotAMessage("its postscript names no footer")
    return length


def orc_footer(data: bytes, postscript: bytes) -> Footer:
    """`data` is the footer as it is in the file. Raises NotAMessage."""
    compression = number(message(postscript), 2) or 0
    footer = message(unpacked(data, compression, FOOTER_BYTES_MAX))
    types = [_type_of(message(one)) for one in footer.get(4, ()) if isinstance(one, bytes)]
    if not types or types[0].kind != _STRUCT or len(types[0].children) != len(types[0].names):
        raise NotAMessage("its schema is not a struct")
    rows = number(footer, 6) or 0
    statistics = [one for one in footer.get(7, ()) if isinstance(one, bytes)]
    columns: list[Column] = []
    figures: dict[str, FooterFigures] = {}
    unread: list[tuple[str, str]] = []
    for name, place in zip(types[0].names, types[0].children, strict=True):
        try:
            column = Column(name.lower(), _hive_type(types, place, NESTING_MAX))
            if column.name in figures:
                raise NotInHive("has the name of another column, but for upper and lower case")
        except NotInHive as reason:
            unread.append((name, str(reason)))
            continue
        columns.append(column)
        said = message(statistics[place]) if place < len(statistics) else None
        figures[column.name] = FooterFigures(rows, None) if said is None else _figures(types[place], said, rows)
    return Footer(FORMAT, rows, tuple(columns), figures, tuple(unread))


def _type_of(fields: Fields) -> _Type:
    try:
        names = [one.decode() for one in fields.get(3, ()) if isinstance(one, bytes)]
    except UnicodeDecodeError as error:
        raise NotAMessage("a column's name is not UTF-8") from error
    kind = number(fields, 1)
    return _Type(
        # The first kind is 0, which some writers leave out.
        kind or 0,
        numbers(fields, 2),
        names,
        number(fields, 4) or 0,
        number(fields, 5) or 0,
        number(fields, 6) or 0,
    )


def _hive_type(types: Sequence[_Type], place: int, depth: int) -> str:
    """Raises NotInHive, NotAMessage."""
    if place >= len(types) or depth == 0:
        raise NotAMessage("its schema names a type that is not there")
    found = types[place]
    if found.kind in _SIMPLE:
        return _SIMPLE[found.kind]
    if found.kind == _DECIMAL:
        # Old files do not say which.
        return f"decimal({found.precision or 38},{found.scale if found.precision else 18})"
    if found.kind in (_VARCHAR, _CHAR):
        return f"{'varchar' if found.kind == _VARCHAR else 'char'}({found.length})"
    children = [_hive_type(types, child, depth - 1) for child in found.children]
    if found.kind == _STRUCT and children and len(children) == len(found.names):
        for name in found.names:
            check_field(name)
        return f"struct<{','.join(f'{name.lower()}:{of}' for name, of in zip(found.names, children, strict=True))}>"
    wanted = {_LIST: ("array", 1), _MAP: ("map", 2), _UNION: ("uniontype", len(children) or 1)}.get(found.kind)
    if wanted is None or wanted[1] != len(children):
        raise NotInHive(f"has a type of the kind {found.kind} that Hive does not have")
    return f"{wanted[0]}<{','.join(children)}>"


def _figures(of: _Type, said: Fields, rows: int) -> FooterFigures:
    values = number(said, 1)
    if values is None or not 0 <= values <= rows:
        return FooterFigures(rows, None)
    if of.kind in (_LIST, _MAP, _STRUCT, _UNION):
        return FooterFigures(rows, rows - values)
    if values == 0:
        return FooterFigures.of_nulls(rows)
    low, high, is_exact = _bounds(of.kind, said)
    if low is not None and (high is None or low > high):
        low = high = None
    is_one = low is not None and is_exact and low == high and not isinstance(low, float)
    byte_count, trues = _byte_count(said), _trues(of.kind, said)
    return FooterFigures(
        rows=rows,
        nulls=rows - values,
        low=low,
        high=high,
        has_bounds=low is not None,
        is_exact=low is not None and is_exact,
        byte_count=byte_count,
        longest=longest_known(low, high, byte_count, values),
        longest_is_exact=is_one,
        trues=trues,
        distinct=1 if is_one or trues in (0, values) else 2 if trues is not None else None,
    )


def _bounds(kind: int, said: Fields) -> tuple[Any, Any, bool]:
    """Low, high, and whether they are values themselves; None for what is not there."""
    if (inner := _inner(said, 2)) is not None:
        return _both(signed(inner, 1), signed(inner, 2))
    if (inner := _inner(said, 3)) is not None:
        return _doubles(double(inner, 1), double(inner, 2))
    if (inner := _inner(said, 4)) is not None:
        return _strings(inner)
    if (inner := _inner(said, 6)) is not None:
        return _both(_decimal(text(inner, 1)), _decimal(text(inner, 2)))
    if (inner := _inner(said, 7)) is not None:
        return _both(signed(inner, 1), signed(inner, 2))
    if (inner := _inner(said, 9)) is not None:
        low, high, _ = _both(_instant(inner, 3, 5, 0), _instant(inner, 4, 6, _NANOSECONDS_A_MILLISECOND - 1))
        return low, high, low is not None and 6 in inner
    if kind == 0 and (trues := _trues(kind, said)) is not None:
        values = number(said, 1) or 0
        return int(trues == values), int(trues > 0), True
    return None, None, False


def _inner(said: Fields, field: int) -> Fields | None:
    found = binary(said, field)
    return None if found is None else message(found)


def _both(low: Any, high: Any) -> tuple[Any, Any, bool]:
    return (None, None, False) if low is None or high is None else (low, high, True)


def _doubles(low: float | None, high: float | None) -> tuple[Any, Any, bool]:
    if low is None or high is None or isnan(low) or isnan(high):
        return None, None, False
    return low + 0.0, high + 0.0, True


def _strings(inner: Fields) -> tuple[Any, Any, bool]:
    """Long ones are shortened; then they are in other fields."""
    low, high = binary(inner, 1), binary(inner, 2)
    if low is not None and high is not None:
        return low, high, True
    low = binary(inner, 4) if low is None else low
    high = binary(inner, 5) if high is None else high
    return (None, None, False) if low is None or high is None else (low, high, False)


def _decimal(said: str | None) -> Decimal | None:
    try:
        return None if said is None else Decimal(said)
    except InvalidOperation as error:
        raise NotAMessage(f"a bound is not a decimal: {said!r}") from error


def _instant(inner: Fields, field: int, nanoseconds_field: int, otherwise: int) -> int | None:
    """Milliseconds, and what is below them, which is kept with one added; older writers left it out.

    A largest value without it is only a bound. Statistics in the writer's time zone are of no use elsewhere.
    """
    milliseconds = signed(inner, field)
    if milliseconds is None:
        return None
    kept = int32(inner, nanoseconds_field)
    return milliseconds * _NANOSECONDS_A_MILLISECOND + (otherwise if kept is None else kept - 1)


def _byte_count(said: Fields) -> int | None:
    if (inner := _inner(said, 4)) is not None:
        return signed(inner, 3)
    inner = _inner(said, 8)
    return None if inner is None else signed(inner, 1)


def _trues(kind: int, said: Fields) -> int | None:
    inner = _inner(said, 5) if kind == 0 else None
    counts = [] if inner is None else numbers(inner, 1)
    return counts[0] if counts else None
