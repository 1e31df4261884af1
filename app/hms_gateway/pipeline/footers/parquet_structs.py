"""The structs of a Parquet footer (parquet.thrift) as far as they are read here, by Apache thrift's compact protocol.

What a struct does not name is skipped by the decoder.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

Spec: TypeAlias = tuple[Any, ...]

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


def _spec(**fields: tuple[int, int, Any]) -> Spec:
    """Of fields by name: id, type, and what the type is made of."""
    by_id = {number: (number, kind, name, argument, None) for name, (number, kind, argument) in fields.items()}
    return tuple(by_id.get(number) for number in range(max(by_id) + 1))


def _bool(number: int) -> tuple[int, int, Any]:
    return number, TType.BOOL, None


def _i32(number: int) -> tuple[int, int, Any]:
    return number, TType.I32, None


def _i64(number: int) -> tuple[int, int, Any]:
    return number, TType.I64, None


def _text(number: int) -> tuple[int, int, Any]:
    return number, TType.STRING, "UTF8"


def _bytes(number: int) -> tuple[int, int, Any]:
    return number, TType.STRING, "BINARY"


def _struct(number: int, kind: Any) -> tuple[int, int, Any]:
    return number, TType.STRUCT, [kind, kind.thrift_spec]


def _list(number: int, kind: Any) -> tuple[int, int, Any]:
    return number, TType.LIST, (TType.STRUCT, [kind, kind.thrift_spec], False)


@dataclass(slots=True)
class Empty:
    """A member of a union that says all by being there."""

    thrift_spec: ClassVar[Spec] = ()


@dataclass(slots=True)
class DecimalType:
    scale: int | None = None
    precision: int | None = None
    thrift_spec: ClassVar[Spec] = _spec(scale=_i32(1), precision=_i32(2))


@dataclass(slots=True)
class TimeUnit:
    MILLIS: Empty | None = None
    MICROS: Empty | None = None
    NANOS: Empty | None = None
    thrift_spec: ClassVar[Spec] = _spec(MILLIS=_struct(1, Empty), MICROS=_struct(2, Empty), NANOS=_struct(3, Empty))


@dataclass(slots=True)
class TimeType:
    """Of a time and of a timestamp."""

    isAdjustedToUTC: bool | None = None
    unit: TimeUnit | None = None
    thrift_spec: ClassVar[Spec] = _spec(isAdjustedToUTC=_bool(1), unit=_struct(2, TimeUnit))


@dataclass(slots=True)
class IntType:
    bitWidth: int | None = None
    isSigned: bool | None = None
    thrift_spec: ClassVar[Spec] = _spec(bitWidth=(1, TType.BYTE, None), isSigned=_bool(2))


@dataclass(slots=True)
class LogicalType:
    STRING: Empty | None = None
    MAP: Empty | None = None
    LIST: Empty | None = None
    ENUM: Empty | None = None
    DECIMAL: DecimalType | None = None
    DATE: Empty | None = None
    TIME: TimeType | None = None
    TIMESTAMP: TimeType | None = None
    INTEGER: IntType | None = None
    UNKNOWN: Empty | None = None
    JSON: Empty | None = None
    FLOAT16: Empty | None = None
    thrift_spec: ClassVar[Spec] = _spec(
        STRING=_struct(1, Empty),
        MAP=_struct(2, Empty),
        LIST=_struct(3, Empty),
        ENUM=_struct(4, Empty),
        DECIMAL=_struct(5, DecimalType),
        DATE=_struct(6, Empty),
        TIME=_struct(7, TimeType),
        TIMESTAMP=_struct(8, TimeType),
        INTEGER=_struct(10, IntType),
        UNKNOWN=_struct(11, Empty),
        JSON=_struct(12, Empty),
        FLOAT16=_struct(15, Empty),
    )


@dataclass(slots=True)
class SchemaElement:
    type: int | None = None
    type_length: int | None = None
    repetition_type: int | None = None
    name: str = ""
    num_children: int | None = None
    converted_type: int | None = None
    scale: int | None = None
    precision: int | None = None
    logicalType: LogicalType | None = None
    thrift_spec: ClassVar[Spec] = _spec(
        type=_i32(1),
        type_length=_i32(2),
        repetition_type=_i32(3),
        name=_text(4),
        num_children=_i32(5),
        converted_type=_i32(6),
        scale=_i32(7),
        precision=_i32(8),
        logicalType=_struct(10, LogicalType),
    )


@dataclass(slots=True)
class Statistics:
    """`max` and `min` are the old ones, whose order is not that of every type."""

    max: bytes | None = None
    min: bytes | None = None
    null_count: int | None = None
    distinct_count: int | None = None
    max_value: bytes | None = None
    min_value: bytes | None = None
    is_max_value_exact: bool | None = None
    is_min_value_exact: bool | None = None
    thrift_spec: ClassVar[Spec] = _spec(
        max=_bytes(1),
        min=_bytes(2),
        null_count=_i64(3),
        distinct_count=_i64(4),
        max_value=_bytes(5),
        min_value=_bytes(6),
        is_max_value_exact=_bool(7),
        is_min_value_exact=_bool(8),
    )


@dataclass(slots=True)
class SizeStatistics:
    unencoded_byte_array_data_bytes: int | None = None
    thrift_spec: ClassVar[Spec] = _spec(unencoded_byte_array_data_bytes=_i64(1))


@dataclass(slots=True)
class ColumnMetaData:
    num_values: int | None = None
    total_uncompressed_size: int | None = None
    statistics: Statistics | None = None
    size_statistics: SizeStatistics | None = None
    thrift_spec: ClassVar[Spec] = _spec(
        num_values=_i64(5),
        total_uncompressed_size=_i64(6),
        statistics=_struct(12, Statistics),
        size_statistics=_struct(16, SizeStatistics),
    )


@dataclass(slots=True)
class ColumnChunk:
    meta_data: ColumnMetaData | None = None
    thrift_spec: ClassVar[Spec] = _spec(meta_data=_struct(3, ColumnMetaData))


@dataclass(slots=True)
class RowGroup:
    columns: list[ColumnChunk] | None = None
    num_rows: int | None = None
    thrift_spec: ClassVar[Spec] = _spec(columns=_list(1, ColumnChunk), num_rows=_i64(3))


@dataclass(slots=True)
class ColumnOrder:
    TYPE_ORDER: Empty | None = None
    thrift_spec: ClassVar[Spec] = _spec(TYPE_ORDER=_struct(1, Empty))


@dataclass(slots=True)
class FileMetaData:
    schema: list[SchemaElement] | None = None
    num_rows: int | None = None
    row_groups: list[RowGroup] | None = None
    created_by: str | None = None
    column_orders: list[ColumnOrder] | None = None
    thrift_spec: ClassVar[Spec] = _spec(
        schema=_list(2, SchemaElement),
        num_rows=_i64(3),
        row_groups=_list(4, RowGroup),
        created_by=_text(6),
        column_orders=_list(7, ColumnOrder),
    )


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
            protocol.readStruct(found, FileMetaData.thrift_spec)
        else:
            protocol._fast_decode(found, protocol, [FileMetaData, FileMetaData.thrift_spec])
    except _UNREADABLE as error:
        raise NotAFooter(str(error)) from error
    return found
