"""The footer of a Parquet file as columns of Hive: their types, and figures of their values."""

import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from math import isnan
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow
import pyarrow.parquet
from pyarrow import types

from hms_gateway.pipeline.footers.footer import (
    DECIMAL_DIGITS_MAX,
    Column,
    Footer,
    FooterFigures,
    NotInHive,
    Value,
    check_field,
    joined,
    longest_known,
)
from hms_gateway.pipeline.footers.parquet_structs import (
    ColumnMetaData,
    FileMetaData,
    NotAFooter,
    RowGroup,
    Statistics,
    decode,
    schema_end,
)

# Arrow's schema of a file as Hive's columns: their types, and how the bounds of each are read.


ReadBound: TypeAlias = Callable[[bytes], Value]

_NANOSECONDS: Final = {"s": 10**9, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MAGIC: Final = b"PAR1"
_INT96: Final = "INT96"
_BYTES: Final = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_TEXTS: Final = ("STRING", "ENUM", "JSON")
# By Arrow's name, of types that are more than the physical one says.
_OF_ARROW: Final = {
    "int8": "tinyint",
    "int16": "smallint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "date32[day]": "date",
    "halffloat": "float",
}
_PHYSICAL: Final = {
    "BOOLEAN": "boolean",
    "INT32": "int",
    "INT64": "bigint",
    _INT96: "timestamp",
    "FLOAT": "float",
    "DOUBLE": "double",
}


class Leaf(msgspec.Struct, frozen=True):
    """A primitive column of the file that is one of Hive too.

    read            a bound's bytes as a value; None where bounds have no order (INT96)
    is_signed       whether the old statistics, which compare signed bytes or numbers, have this type's order
    is_shortened    whether writers may shorten bounds without saying so
    """

    kind: str
    read: ReadBound | None
    is_required: bool
    is_signed: bool
    is_shortened: bool
    width: int | None = None


class SchemaColumn(msgspec.Struct, frozen=True):
    """A column at the top. `leaf` is None for nested ones; its chunks are those from `first` on."""

    name: str
    type: str
    leaf: Leaf | None
    first: int
    count: int


class Schema(msgspec.Struct, frozen=True):
    """`unread` are columns that Spark does not read, with the reason; `columns` lacks those that Hive does not have."""

    columns: tuple[SchemaColumn, ...]
    unread: tuple[tuple[str, str], ...]
    leaf_count: int


def schema_of(data: bytes) -> Schema:
    """The schema in a FileMetaData. Raises NotAFooter."""
    footer = b"".join((_MAGIC, data, len(data).to_bytes(4, "little"), _MAGIC))
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(footer))
        leaves, fields = [file.schema.column(number) for number in range(len(file.schema))], list(file.schema_arrow)
    except (pyarrow.ArrowException, OSError) as error:
        raise NotAFooter(str(error)) from error
    columns: list[SchemaColumn] = []
    unread: list[tuple[str, str]] = []
    names: set[str] = set()
    first = 0
    for field in fields:
        name, count = field.name.lower(), _leaf_count(field.type)
        own, first = leaves[first : first + count], first + count
        try:
            if name in names:
                raise NotInHive("has the name of another column, but for upper and lower case")
            closed: list[str] = []
            kind = _hive_type(field.type, iter(own), closed)
            leaf = None if _nested(field.type) else _leaf(kind, _value_type(field.type), own[0])
            columns.append(SchemaColumn(name, kind, leaf, first - count, count))
            names.add(name)
            unread += [(field.name, reason) for reason in closed[:1]]
        except NotInHive as problem:
            unread.append((field.name, str(problem)))
    return Schema(tuple(columns), tuple(unread), len(leaves))


def _value_type(kind: Any) -> Any:
    """The type of the values of a dictionary, or of an extension of Arrow."""
    return kind.value_type if types.is_dictionary(kind) else getattr(kind, "storage_type", kind)


def _nested(kind: Any) -> list[Any]:
    """The types in a nested one; none of others."""
    kind = _value_type(kind)
    if types.is_struct(kind):
        return [field.type for field in kind]
    if types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.value_type] if types.is_nested(kind) else []


def _leaf_count(kind: Any) -> int:
    return sum(map(_leaf_count, _nested(kind))) if types.is_nested(_value_type(kind)) else 1


def _hive_type(kind: Any, leaves: Iterator[Any], closed: list[str]) -> str:
    """Adds to `closed` the reasons for which Spark reads no value of a column of Hive. Raises NotInHive."""
    kind = _value_type(kind)
    if types.is_struct(kind):
        return _struct_type(kind, leaves, closed)
    if types.is_nested(kind):
        inner = ",".join([_hive_type(each, leaves, closed) for each in _nested(kind)])
        return f"map<{inner}>" if types.is_map(kind) else f"array<{inner}>"
    leaf = next(leaves)
    if types.is_decimal(kind):
        if kind.precision > DECIMAL_DIGITS_MAX:
            text = f"is a decimal({kind.precision},{kind.scale}); Hive's have up to {DECIMAL_DIGITS_MAX} digits"
            raise NotInHive(text)
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        if kind.unit == "ns" and leaf.physical_type != _INT96:
            closed.append("is a timestamp of nanoseconds; write microseconds")
        return "timestamp"
    if types.is_float16(kind):
        closed.append("is a float of 16 bits; write 32")
    if leaf.logical_type.type in _TEXTS:
        return "string"
    return _OF_ARROW.get(str(kind)) or _PHYSICAL.get(leaf.physical_type, "binary")


def _struct_type(kind: Any, leaves: Iterator[Any], closed: list[str]) -> str:
    names = [field.name.lower() for field in kind]
    if not names:
        raise NotInHive("is a struct without fields")
    if len(set(names)) < len(names):
        closed.append("has fields whose names differ in upper and lower case only")
    for field in kind:
        check_field(field.name)
    return f"struct<{','.join([f'{field.name.lower()}:{_hive_type(field.type, leaves, closed)}' for field in kind])}>"


def _leaf(kind: str, of: Any, column: Any) -> Leaf:
    is_bytes = column.physical_type in _BYTES
    is_shortened = is_bytes and kind in ("string", "binary")
    return Leaf(
        kind=kind,
        read=_reader(of, column.physical_type),
        is_required=column.max_definition_level == 0,
        is_signed=not is_bytes and not types.is_unsigned_integer(of),
        is_shortened=is_shortened,
        width=column.length if is_shortened and column.physical_type == _BYTES[1] else None,
    )


def _reader(of: Any, physical: str) -> ReadBound | None:
    if physical == _INT96:
        return None
    if types.is_decimal(of):
        return partial(_read_decimal, "big" if physical in _BYTES else "little", of.scale)
    if types.is_float16(of) or physical in ("FLOAT", "DOUBLE"):
        form = {"FLOAT": "<f", "DOUBLE": "<d"}.get(physical, "<e")
        return lambda data: float(struct.unpack(form, data)[0])
    if physical == "BOOLEAN":
        return lambda data: int(data != b"\0")
    if physical in _BYTES:
        return bytes
    if types.is_unsigned_integer(of):
        change: Callable[[int], Value] = Decimal if of.bit_width == 64 else int
        return lambda data: change(int.from_bytes(data, "little"))
    factor = _NANOSECONDS[of.unit] if types.is_timestamp(of) else 1
    return lambda data: int.from_bytes(data, "little", signed=True) * factor


def _read_decimal(order: Any, scale: int, data: bytes) -> Decimal:
    """Exactly, whatever the context's precision is."""
    number = int.from_bytes(data, order, signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


# Figures out of row groups.


FORMAT = "parquet"


class _LastSchema:
    """Files of a table mostly begin with the schema of the one before, which is made once."""

    def __init__(self) -> None:
        self._last: tuple[bytes, Schema] | None = None

    def of(self, data: bytes) -> Schema:
        """Raises NotAFooter."""
        last = self._last
        if last is None or not data.startswith(last[0]):
            schema = schema_of(data)
            last = self._last = data[: schema_end(data)], schema
        return last[1]


_LAST: Final = _LastSchema()


def parquet_footer(data: bytes) -> Footer:
    """`data` is a FileMetaData. Raises NotAFooter."""
    found = decode(data)
    schema = _LAST.of(data)
    groups = found.row_groups or []
    for group in groups:
        if len(group.columns or ()) != schema.leaf_count:
            raise NotAFooter(f"a row group has {len(group.columns or ())} columns, its schema {schema.leaf_count}")
    rows = sum(group.num_rows or 0 for group in groups)
    if rows != (found.num_rows or 0) or any((group.num_rows or 0) < 0 for group in groups):
        raise NotAFooter(f"it counts {found.num_rows} rows, its row groups {rows}")
    return Footer(
        format=FORMAT,
        rows=rows,
        columns=tuple(Column(column.name, column.type) for column in schema.columns),
        figures=_figures(schema, found, groups),
        unread=schema.unread,
    )


def _figures(schema: Schema, found: FileMetaData, groups: Sequence[RowGroup]) -> dict[str, FooterFigures]:
    orders = found.column_orders or ()
    figures = {}
    for column in schema.columns:
        has_order = column.first < len(orders) and orders[column.first].TYPE_ORDER is not None
        figures[column.name] = joined(_of_group(column, group, has_order) for group in groups)
    return figures


def _of_group(column: SchemaColumn, group: RowGroup, has_order: bool) -> FooterFigures:
    rows = group.num_rows or 0
    chunks = (group.columns or ())[column.first : column.first + column.count]
    described = [chunk.meta_data for chunk in chunks if chunk.meta_data is not None]
    stored = sum(each.total_uncompressed_size or 0 for each in described)
    if column.leaf is None or not described:
        # Of nested columns the file knows single fields only; of encrypted ones nothing.
        return FooterFigures(rows, None, stored=stored)
    return _of_chunk(column.leaf, described[0], rows, has_order)


def _of_chunk(leaf: Leaf, chunk: ColumnMetaData, rows: int, has_order: bool) -> FooterFigures:
    statistics = chunk.statistics or Statistics()
    nulls = 0 if leaf.is_required else statistics.null_count
    if nulls is not None and not 0 <= nulls <= rows:
        nulls = None
    values = None if nulls is None else rows - nulls
    if rows == 0:
        values = nulls = 0
    stored = chunk.total_uncompressed_size
    if values == 0:
        return FooterFigures.of_nulls(rows, stored=stored)
    low, high = _bounds(leaf, statistics, has_order)
    has_bounds = low is not None
    is_exact = has_bounds and _is_exact(leaf, statistics)
    is_one = is_exact and low == high and not isinstance(low, float)
    byte_count = _byte_count(leaf, chunk, values)
    longest = longest_known(low, high, byte_count, values)
    if is_one and isinstance(low, bytes) and values is not None:
        byte_count = values * len(low)
    return FooterFigures(
        rows=rows,
        nulls=nulls,
        low=low,
        high=high,
        has_bounds=has_bounds,
        is_exact=is_exact,
        byte_count=byte_count,
        longest=leaf.width or longest,
        longest_is_exact=is_one or leaf.width is not None,
        trues=values * int(low == 1) if is_one and leaf.kind == "boolean" and values is not None else None,
        distinct=1 if is_one else None,
        stored=stored,
    )


def _bounds(leaf: Leaf, statistics: Statistics, has_order: bool) -> tuple[Value, Value] | tuple[None, None]:
    """None where they are missing, have another order than the type's, or are none of its values."""
    if leaf.read is None:
        return None, None
    low, high = (statistics.min_value, statistics.max_value) if has_order else (None, None)
    if low is None and high is None and leaf.is_signed:
        low, high = statistics.min, statistics.max
    if low is None or high is None:
        return None, None
    try:
        smallest, largest = leaf.read(low), leaf.read(high)
    except (ValueError, struct.error) as error:
        raise NotAFooter(f"a bound cannot be read: {error}") from error
    if isinstance(smallest, float) and isinstance(largest, float):
        if isnan(smallest) or isnan(largest):
            return None, None
        # Of the two zeros either may be written for the other.
        smallest, largest = smallest + 0.0, largest + 0.0
    return (smallest, largest) if smallest <= largest else (None, None)  # type: ignore[operator]


def _is_exact(leaf: Leaf, statistics: Statistics) -> bool:
    """Strings and binaries may be shortened: only a writer that says that they are not is believed."""
    flags = (statistics.is_min_value_exact, statistics.is_max_value_exact)
    return flags == (True, True) if leaf.is_shortened else False not in flags


def _byte_count(leaf: Leaf, chunk: ColumnMetaData, values: int | None) -> int | None:
    if leaf.width is not None:
        return None if values is None else values * leaf.width
    return chunk.size_statistics.unencoded_byte_array_data_bytes if chunk.size_statistics else None
