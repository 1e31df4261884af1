"""The footer of a Parquet file as columns of Hive: their types, and figures of their values."""

import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from math import isnan
from typing import Final, TypeAlias

import msgspec

from hms_gateway.pipeline.footers.footer import Column, Footer, FooterFigures, Value, joined
from hms_gateway.pipeline.footers.parquet_structs import (
    ColumnMetaData,
    FileMetaData,
    LogicalType,
    NotAFooter,
    RowGroup,
    SchemaElement,
    Statistics,
    decode,
)

# Parquet's schema as Hive's columns: their types, and how the bounds of each are read.


ReadBound: TypeAlias = Callable[[bytes], Value]

NESTING_MAX: Final = 64
DECIMAL_DIGITS_MAX: Final = 38
_NANOSECONDS: Final = {"MILLIS": 1_000_000, "MICROS": 1_000, "NANOS": 1}
_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = range(8)
_REQUIRED, _OPTIONAL, _REPEATED = range(3)
# ConvertedType, the older way to say what LogicalType says.
_UTF8, _MAP, _MAP_KEY_VALUE, _LIST, _ENUM, _DECIMAL, _DATE, _TIME_MILLIS, _TIME_MICROS = range(9)
_TIMESTAMP_MILLIS, _TIMESTAMP_MICROS = 9, 10
_UINT_8, _INT_8, _JSON = 11, 15, 19
_HAS_MARKS: Final = re.compile(r"[<>(),:`]").search
_SIGNED: Final = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
_UNSIGNED: Final = {8: "smallint", 16: "int", 32: "bigint", 64: "decimal(20,0)"}


class NotInHive(ValueError):
    """A column has a type that Hive does not have; the text says which."""


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


class _Node(msgspec.Struct, frozen=True):
    element: SchemaElement
    children: tuple["_Node", ...]
    first: int
    count: int

    @property
    def is_repeated(self) -> bool:
        return self.element.repetition_type == _REPEATED


def schema_of(elements: Sequence[SchemaElement]) -> Schema:
    """Raises NotAFooter for elements that are not a tree."""
    root, used = _tree(elements, 0, 0, NESTING_MAX)
    if used != len(elements):
        raise NotAFooter(f"its schema has {len(elements)} elements, and only {used} belong to its root")
    columns: list[SchemaColumn] = []
    unread: list[tuple[str, str]] = []
    names: set[str] = set()
    for node in root.children:
        name = node.element.name.lower()
        try:
            if name in names:
                raise NotInHive("has the name of another column, but for upper and lower case")
            columns.append(_column(name, node))
            names.add(name)
            if reason := _closed_to_spark(node):
                unread.append((node.element.name, reason))
        except NotInHive as problem:
            unread.append((node.element.name, str(problem)))
    return Schema(tuple(columns), tuple(unread), root.count)


def _closed_to_spark(node: _Node) -> str:
    """Reason for which Spark reads no value of a column of Hive; empty for most."""
    names = [child.element.name.lower() for child in node.children]
    if len(set(names)) < len(names):
        return "has fields whose names differ in upper and lower case only"
    logical = node.element.logicalType or LogicalType()
    unit = logical.TIMESTAMP.unit if logical.TIMESTAMP else None
    if unit is not None and unit.NANOS is not None:
        return "is a timestamp of nanoseconds; write microseconds"
    if logical.FLOAT16 is not None:
        return "is a float of 16 bits; write 32"
    return next(filter(None, map(_closed_to_spark, node.children)), "")


def _tree(elements: Sequence[SchemaElement], at: int, leaf: int, depth: int) -> tuple[_Node, int]:
    """The node that begins at an element, and where the next begins."""
    if at >= len(elements):
        raise NotAFooter("its schema ends within a group")
    if depth == 0:
        raise NotAFooter(f"its schema is nested more than {NESTING_MAX} deep")
    element = elements[at]
    if element.type is not None:
        return _Node(element, (), leaf, 1), at + 1
    children = []
    following, first = at + 1, leaf
    for _ in range(element.num_children or 0):
        child, following = _tree(elements, following, leaf, depth - 1)
        children.append(child)
        leaf += child.count
    return _Node(element, tuple(children), first, leaf - first), following


def _column(name: str, node: _Node) -> SchemaColumn:
    if node.children or node.element.type is None or node.is_repeated:
        return SchemaColumn(name, _type(node), None, node.first, node.count)
    kind, read = _primitive(node.element)
    physical = node.element.type
    leaf = Leaf(
        kind=kind,
        read=read,
        is_required=node.element.repetition_type == _REQUIRED,
        is_signed=physical not in (_BYTE_ARRAY, _FIXED) and not _is_unsigned(node.element),
        is_shortened=physical in (_BYTE_ARRAY, _FIXED) and kind in ("string", "binary"),
        width=node.element.type_length if physical == _FIXED and kind in ("string", "binary") else None,
    )
    return SchemaColumn(name, kind, leaf, node.first, node.count)


def _type(node: _Node) -> str:
    """Raises NotInHive."""
    single = _unrepeated_type(node)
    return f"array<{single}>" if node.is_repeated else single


def _unrepeated_type(node: _Node) -> str:
    element = node.element
    if element.type is not None:
        return _primitive(element)[0]
    logical = element.logicalType
    if element.converted_type == _LIST or (logical and logical.LIST):
        return f"array<{_element_type(node)}>"
    if element.converted_type in (_MAP, _MAP_KEY_VALUE) or (logical and logical.MAP):
        return _map_type(node)
    return _struct_type(node)


def _element_type(node: _Node) -> str:
    """Parquet's rules for lists, those for older writers too."""
    if len(node.children) != 1 or not node.children[0].is_repeated:
        raise NotInHive("is a list without elements")
    repeated = node.children[0]
    is_element = (
        repeated.element.type is not None
        or len(repeated.children) != 1
        or repeated.element.name in ("array", f"{node.element.name}_tuple")
    )
    return _unrepeated_type(repeated) if is_element else _type(repeated.children[0])


def _map_type(node: _Node) -> str:
    if len(node.children) != 1 or len(node.children[0].children) != 2:
        raise NotInHive("is a map without keys or values")
    key, value = node.children[0].children
    return f"map<{_type(key)},{_type(value)}>"


def _struct_type(node: _Node) -> str:
    if not node.children:
        raise NotInHive("is a struct without fields")
    for child in node.children:
        if not child.element.name or _HAS_MARKS(child.element.name):
            raise NotInHive(f"has a field with the name {child.element.name!r}, which Hive's types cannot have")
    return f"struct<{','.join(f'{child.element.name.lower()}:{_type(child)}' for child in node.children)}>"


def _primitive(element: SchemaElement) -> tuple[str, ReadBound | None]:
    """Hive's type, and how bounds are read. Raises NotInHive."""
    logical = element.logicalType or LogicalType()
    if logical.DECIMAL or element.converted_type == _DECIMAL:
        return _decimal(element, logical)
    match element.type:
        case 0:
            return "boolean", lambda data: int(data != b"\0")
        case 1:
            return _int32(element, logical)
        case 2:
            return _int64(element, logical)
        case 3:
            return "timestamp", None
        case 4:
            return "float", lambda data: float(struct.unpack("<f", data)[0])
        case 5:
            return "double", lambda data: float(struct.unpack("<d", data)[0])
        case 6 | 7:
            return _bytes(element, logical)
    raise NotInHive(f"has the unknown physical type {element.type}")


def _decimal(element: SchemaElement, logical: LogicalType) -> tuple[str, ReadBound]:
    precision = (logical.DECIMAL.precision if logical.DECIMAL else None) or element.precision or 0
    scale = (logical.DECIMAL.scale if logical.DECIMAL else None) or element.scale or 0
    if not 0 < precision <= DECIMAL_DIGITS_MAX or not 0 <= scale <= precision:
        raise NotInHive(f"is a decimal({precision},{scale}); Hive's have up to {DECIMAL_DIGITS_MAX} digits")
    order = "little" if element.type in (_INT32, _INT64) else "big"
    return f"decimal({precision},{scale})", partial(_read_decimal, order, scale)


def _read_decimal(order: str, scale: int, data: bytes) -> Decimal:
    number = int.from_bytes(data, "little" if order == "little" else "big", signed=True)
    return unscaled(number, scale)


def unscaled(number: int, scale: int) -> Decimal:
    """The decimal of an unscaled number, exactly, whatever the context's precision is."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _int32(element: SchemaElement, logical: LogicalType) -> tuple[str, ReadBound]:
    if logical.DATE or element.converted_type == _DATE:
        return "date", _signed
    if logical.TIME or element.converted_type == _TIME_MILLIS:
        return "int", _signed
    return _integer(element, logical, 32)


def _int64(element: SchemaElement, logical: LogicalType) -> tuple[str, ReadBound]:
    if logical.TIMESTAMP:
        unit = logical.TIMESTAMP.unit
        factor = next((each for name, each in _NANOSECONDS.items() if unit and getattr(unit, name)), 1_000)
        return "timestamp", lambda data: _signed(data) * factor
    if element.converted_type in (_TIMESTAMP_MILLIS, _TIMESTAMP_MICROS):
        factor = 1_000_000 if element.converted_type == _TIMESTAMP_MILLIS else 1_000
        return "timestamp", lambda data: _signed(data) * factor
    if logical.TIME or element.converted_type == _TIME_MICROS:
        return "bigint", _signed
    return _integer(element, logical, 64)


def _integer(element: SchemaElement, logical: LogicalType, bits: int) -> tuple[str, ReadBound]:
    if logical.INTEGER:
        bits = logical.INTEGER.bitWidth or bits
    elif element.converted_type is not None and _UINT_8 <= element.converted_type < _UINT_8 + 8:
        bits = 8 << (element.converted_type - _UINT_8) % 4
    if not _is_unsigned(element):
        return _SIGNED.get(bits, "bigint"), _signed
    if bits == 64:
        return _UNSIGNED[64], lambda data: Decimal(int.from_bytes(data, "little"))
    return _UNSIGNED.get(bits, "bigint"), lambda data: int.from_bytes(data, "little")


def _is_unsigned(element: SchemaElement) -> bool:
    if element.logicalType and element.logicalType.INTEGER:
        return element.logicalType.INTEGER.isSigned is False
    return element.converted_type is not None and _UINT_8 <= element.converted_type < _INT_8


def _bytes(element: SchemaElement, logical: LogicalType) -> tuple[str, ReadBound]:
    if logical.FLOAT16:
        return "float", lambda data: float(struct.unpack("<e", data)[0])
    is_text = logical.STRING or logical.ENUM or logical.JSON or element.converted_type in (_UTF8, _ENUM, _JSON)
    return ("string" if is_text else "binary"), bytes


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


# Figures out of row groups.


FORMAT = "parquet"


class _LastSchema:
    """Files of a table mostly have the schema of the one before, which is made once."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[SchemaElement], Schema] | None = None

    def of(self, elements: Sequence[SchemaElement]) -> Schema:
        """Raises NotAFooter."""
        last = self._last
        if last is None or last[0] != elements:
            last = self._last = elements, schema_of(elements)
        return last[1]


_LAST: Final = _LastSchema()


def parquet_footer(data: bytes) -> Footer:
    """`data` is a FileMetaData. Raises NotAFooter."""
    found = decode(data)
    if not found.schema:
        raise NotAFooter("it has no schema")
    schema = _LAST.of(found.schema)
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
        parts = [_of_group(column, group, has_order) for group in groups]
        figures[column.name] = joined(parts) if parts else _nothing()
    return figures


def _nothing() -> FooterFigures:
    return FooterFigures(0, 0, None, None, True, True, 0, 0, True, 0, 0, 0)


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
        return FooterFigures(rows, nulls, None, None, True, True, 0, 0, True, 0, 0, stored)
    low, high = _bounds(leaf, statistics, has_order)
    has_bounds = low is not None
    is_exact = has_bounds and _is_exact(leaf, statistics)
    is_one = is_exact and low == high and not isinstance(low, float)
    byte_count = _byte_count(leaf, chunk, values)
    longest = _longest(low, high, byte_count, values)
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


def _longest(low: Value | None, high: Value | None, byte_count: int | None, values: int | None) -> int | None:
    """A length that some value has at least; a shortened bound is not longer than the value it was made from."""
    known = [len(bound) for bound in (low, high) if isinstance(bound, bytes)]
    if byte_count is not None and values:
        known.append(-(-byte_count // values))
    return max(known, default=None)
