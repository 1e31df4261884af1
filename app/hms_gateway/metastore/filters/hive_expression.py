"""Reads the expressions that Hive's compiler selects partitions by: Java objects, written by Kryo (semantics §4.5).

An object is its class, a mark (0 null, 1 new, n + 2 the object n of those before) and its fields in the order of their
names, without lengths. So only what is wholly known here can be read: the classes that Hive 2.3 puts into comparisons
of columns with constants, and what they carry along. Everything else is left to the caller, who can answer safely.

A class is written as 0 null, 1 and a number for the names so far (the name itself the first time), or n + 2 for the
class n of a fixed list. Integers have 7 bits a byte, signed ones zigzag. A text is ASCII with the last byte marked, or
its length in UTF-16 units and the units in UTF-8 each.
"""

import struct
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

DEPTH_MAX: Final = 50

# A reference to an earlier object means all of it, so that few bytes can be a very large expression.
NODES_MAX: Final = 20_000
# The same of texts: of as many characters, each counted as often as it is referred to.
CHARACTERS_MAX: Final = 1024 * 1024
# Hive's own: written out, a number of a million places would be as long as that.
_SCALE_MAX: Final = 38

ConstantValue: TypeAlias = bool | int | float | Decimal | str | date | None


class ColumnReference(msgspec.Struct, frozen=True):
    name: str
    type_name: str


class Constant(msgspec.Struct, frozen=True):
    type_name: str
    value: ConstantValue


class Function(msgspec.Struct, frozen=True):
    """`name` is that of the Java class without its package, such as GenericUDFOPEqual."""

    name: str
    children: "tuple[Expression, ...]"


Expression: TypeAlias = ColumnReference | Constant | Function


def read_expression(data: bytes) -> Expression | None:
    """The expression, None for bytes that are none or hold what is not known here."""
    for text_fields in _TEXT_FIELDS:
        try:
            reader = _Reader(data, text_fields)
            root = reader.root()
            if reader.is_at_end:
                return _Expressions().of(root)
        except (_Unreadable, IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError):
            continue
    return None


class _Unreadable(Exception):
    pass


class _Object(NamedTuple):
    class_name: str
    fields: dict[str, Any]


_PLAN: Final = "org.apache.hadoop.hive.ql.plan."
_GENERIC: Final = "org.apache.hadoop.hive.ql.udf.generic."
_TYPES: Final = "org.apache.hadoop.hive.serde2.typeinfo."
_INSPECTORS: Final = "org.apache.hadoop.hive.serde2.objectinspector."
_VALUES: Final = "org.apache.hadoop.hive.common.type."
_WRITABLES: Final = "org.apache.hadoop.io."
_HIVE_WRITABLES: Final = "org.apache.hadoop.hive.serde2.io."

_ROOT: Final = f"{_PLAN}ExprNodeGenericFuncDesc"
_LIST: Final = "java.util.ArrayList"
_INSPECTOR_ARRAY: Final = f"[L{_INSPECTORS}ObjectInspector;"
_TEXT: Final = f"{_WRITABLES}Text"
_DATE: Final = "java.sql.Date"
_STRING: Final = "String"
# Kryo's own, then those Hive adds. None are left out: their values cannot be read here.
_REGISTERED: Final = ("int", _STRING, "float", "boolean", "byte", None, "short", "long", "double", None, _DATE)
_PRIMITIVES: Final = frozenset({"int", "float", "boolean", "byte", "short", "long", "double"})

# How a field is written: `object` with its class, the others without.
_COMPARE: Final = {
    "compareOI": "object", "compareType": "enum", "opDisplayName": "text", "opName": "text", "result": "object"
}  # fmt: skip
_TYPED: Final = {"typeInfo": "object"}
_TYPED_VALUE: Final = {"typeInfo": "object", "value": "object"}
_DECIMAL: Final = {
    "fast0": "long", "fast1": "long", "fast2": "long", "fastIntegerDigitCount": "int", "fastScale": "int",
    "fastSerializationScale": "int", "fastSignum": "int",
}  # fmt: skip
_FIELDS: Final[dict[str, dict[str, str]]] = {
    _ROOT: {"chidren": "object", "genericUDF": "object", "isSortedExpr": "boolean", "typeInfo": "object"},
    f"{_PLAN}ExprNodeColumnDesc": {
        "column": "text", "isPartitionColOrVirtualCol": "boolean", "isSkewedCol": "boolean", "tabAlias": "text",
        "typeInfo": "object",
    },
    f"{_PLAN}ExprNodeConstantDesc": _TYPED_VALUE,
    f"{_TYPES}PrimitiveTypeInfo": {"typeName": "text"},
    f"{_TYPES}VarcharTypeInfo": {"length": "int", "typeName": "text"},
    f"{_TYPES}CharTypeInfo": {"length": "int", "typeName": "text"},
    f"{_TYPES}DecimalTypeInfo": {"precision": "int", "scale": "int", "typeName": "text"},
    **{
        f"{_GENERIC}GenericUDFOP{name}": _COMPARE
        for name in ("Equal", "NotEqual", "LessThan", "EqualOrLessThan", "GreaterThan", "EqualOrGreaterThan")
    },
    **{f"{_GENERIC}GenericUDFOP{name}": {"result": "object"} for name in ("And", "Or", "Not", "Null", "NotNull")},
    f"{_GENERIC}GenericUDFIn": {"bw": "object", "isInSetConstant": "boolean"},
    f"{_GENERIC}GenericUDFBetween": {"argumentOIs": "object", "egt": "object", "elt": "object", "result": "object"},
    f"{_GENERIC}GenericUDFBridge": {"isOperator": "boolean", "udfClassName": "text", "udfName": "text"},
    f"{_VALUES}HiveDecimal": _DECIMAL,
    f"{_VALUES}HiveVarchar": {"value": "text"},
    f"{_VALUES}HiveChar": {"value": "text"},
    **{
        f"{_INSPECTORS}primitive.Writable{constant}{name}ObjectInspector": fields
        for name in ("Boolean", "Byte", "Short", "Int", "Long", "Float", "Double", "String", "Date", "Timestamp")
        for constant, fields in (("", _TYPED), ("Constant", _TYPED_VALUE))
    },
    **{
        f"{_INSPECTORS}primitive.Writable{name}ObjectInspector": _TYPED
        for name in ("HiveDecimal", "HiveVarchar", "HiveChar")
    },
    f"{_WRITABLES}BooleanWritable": {"value": "boolean"},
    f"{_WRITABLES}IntWritable": {"value": "int"},
    f"{_WRITABLES}LongWritable": {"value": "long"},
    f"{_HIVE_WRITABLES}ByteWritable": {"value": "byte"},
    f"{_HIVE_WRITABLES}ShortWritable": {"value": "short"},
    f"{_HIVE_WRITABLES}DoubleWritable": {"value": "double"},
    f"{_HIVE_WRITABLES}DateWritable": {"daysSinceEpoch": "int"},
}  # fmt: skip
# Newer versions of Hadoop have one field more.
_TEXT_FIELDS: Final = ({"bytes": "bytes", "length": "int"}, {"bytes": "bytes", "length": "int", "textLength": "int"})


class _Reader:
    """Raises _Unreadable, and what indexing raises."""

    def __init__(self, data: bytes, text_fields: dict[str, str]) -> None:
        self._data = data
        self._fields = {**_FIELDS, _TEXT: text_fields}
        self._at = 0
        self._depth = 0
        self._class_names: list[str] = []
        self._objects: list[Any] = []

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def root(self) -> Any:
        return self._content(_ROOT)

    def _object(self) -> Any:
        class_name = self._class_name()
        return None if class_name is None else self._content(class_name)

    def _class_name(self) -> str | None:
        number = self._varint()
        if number == 0:
            return None
        if number > 1:
            registered = _REGISTERED[number - 2]
            if registered is None:
                raise _Unreadable
            return registered
        index = self._varint()
        if index == len(self._class_names):
            self._class_names.append(self._text() or "")
        return self._class_names[index]

    def _content(self, class_name: str) -> Any:
        if class_name in _PRIMITIVES:
            return self._primitive(class_name)
        mark = self._varint()
        if mark == 0:
            return None
        if mark > 1:
            return self._objects[mark - 2]
        index = len(self._objects)
        self._objects.append(None)
        self._depth += 1
        # Three levels for each function inside a function.
        if self._depth > 3 * DEPTH_MAX:
            raise _Unreadable
        found = self._objects[index] = self._new(class_name)
        self._depth -= 1
        return found

    def _new(self, class_name: str) -> Any:
        if class_name == _STRING:
            return self._text()
        if class_name == "enum":
            return self._varint()
        if class_name == "bytes":
            return self._taken(self._varint() - 1)
        if class_name == _DATE:
            return _day(int.from_bytes(self._taken(8), "big", signed=True))
        if class_name == _LIST:
            return [self._object() for _ in range(self._count(self._varint()))]
        if class_name == _INSPECTOR_ARRAY:
            return [self._object() for _ in range(self._count(self._varint() - 1))]
        fields = {name: self._field(kind) for name, kind in self._fields[class_name].items()}
        return _Object(class_name, fields)

    def _field(self, kind: str) -> Any:
        if kind == "object":
            return self._object()
        return self._content(_STRING if kind == "text" else kind)

    def _primitive(self, kind: str) -> Any:
        match kind:
            case "int" | "long":
                number = self._varint()
                return (number >> 1) ^ -(number & 1)
            case "boolean":
                return self._taken(1) != b"\0"
            case "byte":
                return int.from_bytes(self._taken(1), "big", signed=True)
            case "short":
                return int.from_bytes(self._taken(2), "big", signed=True)
            case "double":
                return _double(self._taken(8))
            case _:
                raise _Unreadable

    def _varint(self) -> int:
        """Up to nine bytes, of which the last holds eight bits."""
        value = 0
        for shift in range(0, 56, 7):
            byte = self._taken(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        return value | self._taken(1)[0] << 56

    def _text(self) -> str | None:
        start = self._at
        if self._data[start] < 0x80:
            while self._data[self._at] < 0x80:
                self._at += 1
            self._at += 1
            ascii_bytes = self._data[start : self._at]
            return (ascii_bytes[:-1] + bytes([ascii_bytes[-1] & 0x7F])).decode("ascii")
        length = self._text_length()
        if length == 0:
            return None
        return b"".join(self._unit().to_bytes(2, "big") for _ in range(self._count(length - 1))).decode("utf-16-be")

    def _text_length(self) -> int:
        first = self._taken(1)[0]
        if not first & 0x40:
            return first & 0x3F
        return first & 0x3F | self._varint() << 6

    def _unit(self) -> int:
        first = self._taken(1)[0]
        if first < 0x80:
            return first
        if first < 0xE0:
            return (first & 0x1F) << 6 | self._taken(1)[0] & 0x3F
        second, third = self._taken(2)
        return (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F

    def _count(self, count: int) -> int:
        """Every element takes at least a byte."""
        if not 0 <= count <= len(self._data) - self._at:
            raise _Unreadable
        return count

    def _taken(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if count < 0 or len(taken) < count:
            raise _Unreadable
        self._at += count
        return taken


def _double(data: bytes) -> float:
    value: float = struct.unpack(">d", data)[0]
    return value


_DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1)


def _day(milliseconds: int) -> date:
    """The day that began at that moment where the client is: it writes midnight of its own time zone.

    Midnight is at most 10 hours after that of UTC, or less than 13 before it; between is both Hawaii and Kiribati.
    """
    days, second = divmod(milliseconds // 1000, _DAY_SECONDS)
    if 10 * 3600 <= second <= 11 * 3600:
        raise _Unreadable
    return _EPOCH + timedelta(days=days + (second > 11 * 3600))


class _Expressions:
    """Makes expressions out of objects."""

    def __init__(self) -> None:
        self._nodes = 0
        self._characters = 0

    def of(self, found: Any) -> Expression:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise _Unreadable
        fields = found.fields
        match found.class_name.removeprefix(_PLAN):
            case "ExprNodeColumnDesc":
                return ColumnReference(self._counted(fields["column"]), self._counted(_type_name(fields)))
            case "ExprNodeConstantDesc":
                return Constant(self._counted(_type_name(fields)), self._counted(_constant(fields["value"])))
            case "ExprNodeGenericFuncDesc":
                name = self._counted(_function_name(fields["genericUDF"]))
                return Function(name, tuple(map(self.of, fields["chidren"])))
            case _:
                raise _Unreadable

    def _counted(self, value: T) -> T:
        if isinstance(value, str):
            self._characters += len(value)
            if self._characters > CHARACTERS_MAX:
                raise _Unreadable
        return value


def _type_name(fields: dict[str, Any]) -> str:
    name: str = fields["typeInfo"].fields["typeName"]
    return name


def _function_name(function: _Object) -> str:
    called = function.fields.get("udfClassName") or function.class_name
    return str(called).rpartition(".")[2]


def _constant(value: Any) -> ConstantValue:
    if not isinstance(value, _Object):
        plain: ConstantValue = value
        return plain
    if value.class_name == f"{_VALUES}HiveDecimal":
        return _decimal(**value.fields)
    if value.class_name in (f"{_VALUES}HiveVarchar", f"{_VALUES}HiveChar"):
        text: str = value.fields["value"]
        return text
    raise _Unreadable


def _decimal(fast0: int, fast1: int, fast2: int, fastScale: int, fastSignum: int, **_: int) -> Decimal:
    """Sixteen digits in each of the first two numbers, the lowest first."""
    if not 0 <= fastScale <= _SCALE_MAX:
        raise _Unreadable
    return Decimal(f"{fastSignum * (fast2 * 10**32 + fast1 * 10**16 + fast0)}E-{fastScale}")
