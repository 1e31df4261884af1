"""The structs of a Parquet footer (parquet.thrift) as far as they are read here, by Apache thrift's compact protocol.

The decoder skips other fields. pyarrow reads the schema; of row groups it shows neither how many bytes the texts of a
column have, nor whether bounds are exact, nor their order: lengths and distinct values are made of these.
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


def _i64(number: int) -> Any:
    return _field(number, TType.I64)


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
    num_rows: int | None = _i64(3)
    row_groups: list[RowGroup] | None = _list(4, RowGroup)
    column_orders: list[ColumnOrder] | None = _list(7, ColumnOrder)


_SCHEMA: Final = 2
_FILE: Final[Any] = FileMetaData.thrift_spec  # type: ignore[attr-defined]


class _Protocol(TCompactProtocolAccelerated):  # type: ignore[misc]
    """Lets the library's Python code, where there is no compiled one, read classes without methods for it."""

    def readContainerStruct(self, spec: Any) -> Any:
        kind, fields = spec
        value = kind()
        self.readStruct(value, fields)
        return value


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


def schema_end(data: bytes) -> int:
    """The place in a FileMetaData where its schema ends, the second field. Raises NotAFooter."""
    transport = TMemoryBuffer(data)
    protocol = _Protocol(transport, string_length_limit=len(data), container_length_limit=len(data))
    try:
        protocol.readStructBegin()
        number, kind = 0, TType.VOID
        while number != _SCHEMA and kind != TType.STOP:
            _, kind, number = protocol.readFieldBegin()
            protocol.skip(kind)
            protocol.readFieldEnd()
        return int(transport.cstringio_buf.tell())
    except _UNREADABLE as error:
        raise NotAFooter(str(error)) from error
