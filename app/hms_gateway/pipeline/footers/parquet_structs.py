"""The structs of a Parquet footer (parquet.thrift) as far as they are read here, by Apache thrift's compact protocol.

The decoder skips other fields. pyarrow reads a footer in half of the time, but shows neither how many bytes the texts
of a column have, nor whether bounds are exact, nor their order: lengths and distinct values are made of these.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, dataclass_transform

from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

# All that the library raises on bytes that are not the wanted struct.
_UNREADABLE: Final = (
    TProtocolException,
    TTransportException,
    EOFError,
    TypeError,
    OverflowError,
    ValueError,
    AssertionError,
    KeyError,
    IndexError,
)


class NotAFooter(ValueError):
    """The bytes are not a FileMetaData."""


def _field(number: int, kind: int, argument: Any = None, default: Any = None) -> Any:
    """A field by its id, its type, and the argument of the type."""
    return field(default=default, metadata={"spec": (number, kind, argument)})


def _bool(number: int) -> Any:
    return _field(number, TType.BOOL)


def _i32(number: int) -> Any:
    return _field(number, TType.I32)


def _i64(number: int) -> Any:
    return _field(number, TType.I64)


def _text(number: int) -> Any:
    return _field(number, TType.STRING, "UTF8", "")


def _bytes(number: int) -> Any:
    return _field(number, TType.STRING, "BINARY")


def _struct(number: int, kind: Any) -> Any:
    return _field(number, TType.STRUCT, [kind, kind.thrift_spec])


def _list(number: int, kind: Any) -> Any:
    return _field(number, TType.LIST, (TType.STRUCT, [kind, kind.thrift_spec], False))


@dataclass_transform()
def _struct_of_thrift(kind: type[Any]) -> Any:
    """A dataclass with the description of its fields that Thrift's library reads."""
    made = dataclass(slots=True)(kind)
    by_id = {}
    for one in fields(made):
        number, form, argument = one.metadata["spec"]
        by_id[number] = (number, form, one.name, argument, None)
    made.thrift_spec = tuple(by_id.get(number) for number in range(max(by_id, default=-1) + 1))
    return made


@_struct_of_thrift
class Empty:
    """A member of a union that says all by being there."""


@_struct_of_thrift
class DecimalType:
    scale: int | None = _i32(1)
    precision: int | None = _i32(2)


@_struct_of_thrift
class TimeUnit:
    MILLIS: Empty | None = _struct(1, Empty)
    MICROS: Empty | None = _struct(2, Empty)
    NANOS: Empty | None = _struct(3, Empty)


@_struct_of_thrift
class TimeType:
    """Type of times and timestamps."""

    isAdjustedToUTC: bool | None = _bool(1)
    unit: TimeUnit | None = _struct(2, TimeUnit)


@_struct_of_thrift
class IntType:
    bitWidth: int | None = _field(1, TType.BYTE)
    isSigned: bool | None = _bool(2)


@_struct_of_thrift
class LogicalType:
    STRING: Empty | None = _struct(1, Empty)
    MAP: Empty | None = _struct(2, Empty)
    LIST: Empty | None = _struct(3, Empty)
    ENUM: Empty | None = _struct(4, Empty)
    DECIMAL: DecimalType | None = _struct(5, DecimalType)
    DATE: Empty | None = _struct(6, Empty)
    TIME: TimeType | None = _struct(7, TimeType)
    TIMESTAMP: TimeType | None = _struct(8, TimeType)
    INTEGER: IntType | None = _struct(10, IntType)
    UNKNOWN: Empty | None = _struct(11, Empty)
    JSON: Empty | None = _struct(12, Empty)
    FLOAT16: Empty | None = _struct(15, Empty)


@_struct_of_thrift
class SchemaElement:
    type: int | None = _i32(1)
    type_length: int | None = _i32(2)
    repetition_type: int | None = _i32(3)
    name: str = _text(4)
    num_children: int | None = _i32(5)
    converted_type: int | None = _i32(6)
    scale: int | None = _i32(7)
    precision: int | None = _i32(8)
    logicalType: LogicalType | None = _struct(10, LogicalType)


@_struct_of_thrift
class Statistics:
    """`max` and `min` are the old ones, whose order is not that of every type."""

    max: bytes | None = _bytes(1)
    min: bytes | None = _bytes(2)
    null_count: int | None = _i64(3)
    distinct_count: int | None = _i64(4)
    max_value: bytes | None = _bytes(5)
    min_value: bytes | None = _bytes(6)
    is_max_value_exact: bool | None = _bool(7)
    is_min_value_exact: bool | None = _bool(8)


@_struct_of_thrift
class SizeStatistics:
    unencoded_byte_array_data_bytes: int | None = _i64(1)


@_struct_of_thrift
class ColumnMetaData:
    num_values: int | None = _i64(5)
    total_uncompressed_size: int | None = _i64(6)
    statistics: Statistics | None = _struct(12, Statistics)
    size_statistics: SizeStatistics | None = _struct(16, SizeStatistics)


@_struct_of_thrift
class ColumnChunk:
    meta_data: ColumnMetaData | None = _struct(3, ColumnMetaData)


@_struct_of_thrift
class RowGroup:
    columns: list[ColumnChunk] | None = _list(1, ColumnChunk)
    num_rows: int | None = _i64(3)


@_struct_of_thrift
class ColumnOrder:
    TYPE_ORDER: Empty | None = _struct(1, Empty)


@_struct_of_thrift
class FileMetaData:
    schema: list[SchemaElement] | None = _list(2, SchemaElement)
    num_rows: int | None = _i64(3)
    row_groups: list[RowGroup] | None = _list(4, RowGroup)
    column_orders: list[ColumnOrder] | None = _list(7, ColumnOrder)


_FILE: Final[Any] = FileMetaData.thrift_spec  # type: ignore[attr-defined]


class _Protocol(TCompactProtocolAccelerated):  # type: ignore[misc]
    """Lets the library's Python code, where there is no compiled one, read classes without methods for it."""

    def readContainerStruct(self, spec: Any) -> Any:
        kind, fields = spec
        value = kind()
        self.readStruct(value, fields)
        return value

    def readString(self) -> str:
        return str(self.readBinary(), errors="replace")


def decode(data: bytes) -> FileMetaData:
    """Raises NotAFooter."""
    found = FileMetaData()
    protocol = _Protocol(TMemoryBuffer(data), string_length_limit=len(data), container_length_limit=len(data))
    try:
        if protocol._fast_decode is None:
            protocol.readStruct(found, _FILE)
        else:
            protocol._fast_decode(found, protocol, [FileMetaData, _FILE])
    except _UNREADABLE as error:
        raise NotAFooter(str(error)) from error
    return found
