"""Parquet's schema as Hive's columns: their types, and how the bounds of each are read."""

import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Final, TypeAlias

import msgspec

from hms_gateway.pipeline.footers.figures import Value
from hms_gateway.pipeline.footers.parquet_structs import LogicalType, NotAFooter, SchemaElement

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
