"""Objects of a metastore as rows of a DataFrame: their columns, and rows as Arrow batches."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME, make_name, name_to_values
from hms_gateway.metastore.vocabulary.texts import bound_text
from hms_gateway.pipeline.catalog import cut
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.rpc.structs import ENUMS, ColumnStatisticsObj, FieldSchema, Partition, StorageDescriptor, Table

# Columns of the DataFrames, and rows of them as Arrow batches.


BATCH_ROWS: Final = 1_000

TEXT, LONG, INT, FLAG = StringType(), LongType(), IntegerType(), BooleanType()
TEXTS, NUMBER, TIME = ArrayType(StringType()), DoubleType(), TimestampType()
PARAMETERS = MapType(StringType(), StringType())
FIELDS = ArrayType(StructType([StructField(name, TEXT) for name in ("name", "type", "comment")]))

# Keys of other types are texts: what Hive makes of `1.50` or a timestamp is not for us to say.
KEY_TYPES: Final[Mapping[str, DataType]] = {
    "tinyint": ByteType(),
    "smallint": ShortType(),
    "int": INT,
    "bigint": LONG,
    "date": DateType(),
}
_BITS: Final[Mapping[Any, int]] = {ByteType: 7, ShortType: 15, IntegerType: 31, LongType: 63}
# Values of a key that are remembered: most repeat.
_VALUES_REMEMBERED: Final = 4_096
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Column(NamedTuple):
    """A column of an object: its type, and how it is gotten out of what the metastore said."""

    type: DataType
    get: Callable[[Any], Any]


def key_type(hive_type: str) -> DataType:
    """The type in Spark of a partition key."""
    return KEY_TYPES.get(hive_type.lower(), TEXT)


def key_struct(keys: Sequence[FieldSchema]) -> StructType:
    """The type of the column `key`."""
    return StructType([StructField(key.name or "", key_type(key.type or "")) for key in keys])


def key_value(type: DataType, text: str) -> Any:
    """A partition value as its key's type; None for the default partition and for what is not a value of the type."""
    if text in ("", DEFAULT_PARTITION_NAME):
        return None
    if isinstance(type, StringType):
        return text
    if isinstance(type, DateType):
        return _date(text)
    if not _INTEGER.fullmatch(text):
        return None
    number, bits = int(text), _BITS[type.__class__]
    return number if -(1 << bits) <= number < 1 << bits else None


def key_reader(type: DataType) -> Callable[[str], Any]:
    """`key_value` of a type."""
    return lru_cache(_VALUES_REMEMBERED)(partial(key_value, type))


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def schema_of(columns: Mapping[str, Column], wanted: str | None, object_name: str) -> StructType:
    """All columns, or those of the option `columns`. Raises OptionError."""
    names = [name.strip() for name in wanted.split(",")] if wanted else list(columns)
    check_names(names, columns, object_name)
    return StructType([StructField(name, columns[name].type) for name in names])


def check_schema(schema: StructType, columns: Mapping[str, Column], object_name: str) -> None:
    """Raises OptionError for a schema given by the user that asks for what is not there."""
    check_names([field.name for field in schema], columns, object_name)
    for field in schema:
        if field.dataType.simpleString() != columns[field.name].type.simpleString():
            raise OptionError(
                f"column {field.name} of object {object_name} is asked for as {field.dataType.simpleString()};"
                f" read it as {columns[field.name].type.simpleString()} and cast it"
            )


def check_names(names: Sequence[str], columns: Mapping[str, Column], object_name: str) -> None:
    """Raises OptionError for a name that is not a column."""
    for name in names:
        if name not in columns:
            raise OptionError(
                f"column {name} is not one of object {object_name}; its columns are {', '.join(columns)}"
                + ("" if "key" in columns or object_name != "partitions" else ", and key with the option table")
            )


def batches(found: Iterable[Any], schema: StructType, columns: Mapping[str, Column]) -> Iterator[pyarrow.RecordBatch]:
    """Objects of the metastore in Arrow batches of the schema that Spark expects."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    gets = [columns[field.name].get for field in schema]
    for rows in cut(found, BATCH_ROWS):
        arrays = [_array([get(row) for row in rows], field.type) for get, field in zip(gets, arrow, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=arrow)


def _array(values: list[Any], type: Any) -> pyarrow.Array:
    """Structs come as tuples, maps as dictionaries; built column by column, which takes a third of the time."""
    if pyarrow.types.is_struct(type):
        columns = zip(*values, strict=True)
        parts = [pyarrow.array(column, type=field.type) for column, field in zip(columns, type, strict=True)]
        return pyarrow.StructArray.from_arrays(parts, fields=list(type))
    if not pyarrow.types.is_map(type):
        return pyarrow.array(values, type=type)
    maps = [value or {} for value in values]
    offsets = pyarrow.array([0, *accumulate(map(len, maps))], pyarrow.int32())
    keys = pyarrow.array(list(chain.from_iterable(maps)), type.key_type)
    items = pyarrow.array([item for each in maps for item in each.values()], type.item_type)
    unset = pyarrow.array([value is None for value in values])
    return pyarrow.MapArray.from_arrays(offsets, keys, items, type=type, mask=unset)


def microseconds(seconds: int | None) -> int | None:
    """A time of the metastore as Arrow has it; 0 means that there is none."""
    return seconds * 1_000_000 if seconds else None


def from_milliseconds(milliseconds: int | None) -> int | None:
    return milliseconds * 1_000 if milliseconds else None


# Objects of a metastore and their columns.


_NO_STORAGE: Final = StorageDescriptor()


class ColumnRow(NamedTuple):
    table: Table
    field: FieldSchema
    position: int
    is_partition_key: bool


class PartitionRow:
    """A partition of a table: its name, where that is enough, or what the metastore keeps of it."""

    __slots__ = ("_key_names", "_name", "database", "partition", "table")

    def __init__(
        self,
        database: str,
        table: str,
        *,
        name: str = "",
        partition: Partition | None = None,
        key_names: Sequence[str] = (),
    ) -> None:
        """Takes `name`, or `partition` and the names of the table's keys."""
        self.database = database
        self.table = table
        self.partition = partition
        self._name = name
        self._key_names = key_names

    @property
    def name(self) -> str:
        if self.partition is None:
            return self._name
        return make_name(self._key_names, self.partition.values or ())

    @property
    def values(self) -> list[str]:
        """An empty value is that of the default partition, which only the name says."""
        found = None if self.partition is None else self.partition.values
        return found if found and all(found) else name_to_values(self.name)


class StatisticsRow(NamedTuple):
    """`partition` is None for those of the table."""

    database: str
    table: str
    partition: str | None
    statistics: ColumnStatisticsObj


def _storage(row: Any) -> StorageDescriptor:
    return row.sd or _NO_STORAGE


def _enum(name: str, value: int | None) -> str | None:
    """The name of an IDL enumeration's value; a number that it does not have as text."""
    if value is None:
        return None
    names = {int(member): member.name for member in ENUMS[name]}
    return names.get(value, str(value))


def _fields(fields: list[FieldSchema] | None) -> list[dict[str, Any]]:
    return [{"name": field.name, "type": field.type, "comment": field.comment} for field in fields or ()]


def _of_partition(get: Any) -> Any:
    return lambda row: get(row.partition)


def _statistic(row: StatisticsRow) -> Any:
    data = row.statistics.statsData
    if data is None:
        return None
    names = type(data).definition.fields
    return next((value for field in names if (value := getattr(data, field.name)) is not None), None)


def _field(name: str) -> Any:
    return lambda row: getattr(_statistic(row), name, None)


def _bound(name: str) -> Any:
    return lambda row: bound_text(getattr(_statistic(row), name, None))


_STORAGE: Final = {
    "location": Column(TEXT, lambda row: _storage(row).location),
    "input_format": Column(TEXT, lambda row: _storage(row).inputFormat),
    "output_format": Column(TEXT, lambda row: _storage(row).outputFormat),
    "serde": Column(TEXT, lambda row: row.sd and row.sd.serdeInfo and row.sd.serdeInfo.serializationLib),
    "parameters": Column(PARAMETERS, lambda row: row.parameters),
    "create_time": Column(TIME, lambda row: microseconds(row.createTime)),
    "last_access_time": Column(TIME, lambda row: microseconds(row.lastAccessTime)),
}

COLUMNS: Final[Mapping[str, Mapping[str, Column]]] = {
    "databases": {
        "database": Column(TEXT, lambda row: row.name),
        "description": Column(TEXT, lambda row: row.description),
        "location": Column(TEXT, lambda row: row.locationUri),
        "parameters": Column(PARAMETERS, lambda row: row.parameters),
        "owner": Column(TEXT, lambda row: row.ownerName),
        "owner_type": Column(TEXT, lambda row: _enum("PrincipalType", row.ownerType)),
        "create_time": Column(TIME, lambda row: microseconds(row.createTime)),
    },
    "tables": {
        "database": Column(TEXT, lambda row: row.dbName),
        "table": Column(TEXT, lambda row: row.tableName),
        "type": Column(TEXT, lambda row: row.tableType),
        "owner": Column(TEXT, lambda row: row.owner),
        **_STORAGE,
        "columns": Column(FIELDS, lambda row: _fields(_storage(row).cols)),
        "partition_keys": Column(FIELDS, lambda row: _fields(row.partitionKeys)),
        "view_text": Column(TEXT, lambda row: row.viewOriginalText),
    },
    "columns": {
        "database": Column(TEXT, lambda row: row.table.dbName),
        "table": Column(TEXT, lambda row: row.table.tableName),
        "column": Column(TEXT, lambda row: row.field.name),
        "type": Column(TEXT, lambda row: row.field.type),
        "comment": Column(TEXT, lambda row: row.field.comment),
        "position": Column(INT, lambda row: row.position),
        "is_partition_key": Column(FLAG, lambda row: row.is_partition_key),
    },
    "partitions": {
        "database": Column(TEXT, lambda row: row.database),
        "table": Column(TEXT, lambda row: row.table),
        "name": Column(TEXT, lambda row: row.name),
        "values": Column(TEXTS, lambda row: row.values),
        **{name: Column(column.type, _of_partition(column.get)) for name, column in _STORAGE.items()},
    },
    "statistics": {
        "database": Column(TEXT, lambda row: row.database),
        "table": Column(TEXT, lambda row: row.table),
        "partition": Column(TEXT, lambda row: row.partition),
        "column": Column(TEXT, lambda row: row.statistics.colName),
        "type": Column(TEXT, lambda row: row.statistics.colType),
        "nulls": Column(LONG, _field("numNulls")),
        "distinct_values": Column(LONG, _field("numDVs")),
        "low": Column(TEXT, _bound("lowValue")),
        "high": Column(TEXT, _bound("highValue")),
        "average_length": Column(NUMBER, _field("avgColLen")),
        "longest": Column(LONG, _field("maxColLen")),
        "trues": Column(LONG, _field("numTrues")),
        "falses": Column(LONG, _field("numFalses")),
    },
    "functions": {
        "database": Column(TEXT, lambda row: row.dbName),
        "function": Column(TEXT, lambda row: row.functionName),
        "class": Column(TEXT, lambda row: row.className),
        "owner": Column(TEXT, lambda row: row.ownerName),
        "owner_type": Column(TEXT, lambda row: _enum("PrincipalType", row.ownerType)),
        "create_time": Column(TIME, lambda row: microseconds(row.createTime)),
        "resources": Column(ArrayType(TEXT), lambda row: [resource.uri for resource in row.resourceUris or ()]),
    },
    "privileges": {
        "object_type": Column(TEXT, lambda row: _enum("HiveObjectType", row.hiveObject.objectType)),
        "database": Column(TEXT, lambda row: row.hiveObject.dbName),
        "table": Column(TEXT, lambda row: row.hiveObject.objectName),
        "partition_values": Column(TEXTS, lambda row: row.hiveObject.partValues),
        "column": Column(TEXT, lambda row: row.hiveObject.columnName),
        "principal": Column(TEXT, lambda row: row.principalName),
        "principal_type": Column(TEXT, lambda row: _enum("PrincipalType", row.principalType)),
        "privilege": Column(TEXT, lambda row: row.grantInfo.privilege),
        "grant_option": Column(FLAG, lambda row: row.grantInfo.grantOption),
        "grantor": Column(TEXT, lambda row: row.grantInfo.grantor),
        "grant_time": Column(TIME, lambda row: microseconds(row.grantInfo.createTime)),
    },
    "locks": {
        "lock_id": Column(LONG, lambda row: row.lockid),
        "database": Column(TEXT, lambda row: row.dbname),
        "table": Column(TEXT, lambda row: row.tablename),
        "partition": Column(TEXT, lambda row: row.partname),
        "state": Column(TEXT, lambda row: _enum("LockState", row.state)),
        "type": Column(TEXT, lambda row: _enum("LockType", row.type)),
        "txn_id": Column(LONG, lambda row: row.txnid),
        "acquired_time": Column(TIME, lambda row: from_milliseconds(row.acquiredat)),
        "heartbeat_time": Column(TIME, lambda row: from_milliseconds(row.lastheartbeat)),
        "user": Column(TEXT, lambda row: row.user),
        "host": Column(TEXT, lambda row: row.hostname),
        "agent": Column(TEXT, lambda row: row.agentInfo),
        "blocked_by": Column(LONG, lambda row: row.blockedByExtId),
    },
    "transactions": {
        "txn_id": Column(LONG, lambda row: row.id),
        "state": Column(TEXT, lambda row: _enum("TxnState", row.state)),
        "user": Column(TEXT, lambda row: row.user),
        "host": Column(TEXT, lambda row: row.hostname),
        "agent": Column(TEXT, lambda row: row.agentInfo),
        "start_time": Column(TIME, lambda row: from_milliseconds(row.startedTime)),
        "heartbeat_time": Column(TIME, lambda row: from_milliseconds(row.lastHeartbeatTime)),
    },
    "events": {
        "id": Column(LONG, lambda row: row.eventId),
        "time": Column(TIME, lambda row: microseconds(row.eventTime)),
        "type": Column(TEXT, lambda row: row.eventType),
        "database": Column(TEXT, lambda row: row.dbName),
        "table": Column(TEXT, lambda row: row.tableName),
        "message": Column(TEXT, lambda row: row.message),
    },
}

OBJECTS: Final = tuple(COLUMNS)
# Columns of partitions that follow from their names: no call for the partitions themselves.
NAME_COLUMNS: Final = frozenset(("database", "table", "name", "values", "key"))


# Of the objects in a reply, which fields a column of partitions needs; the values are always read.
_PARTITION_FIELDS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "location": (("Partition", "sd"), ("StorageDescriptor", "location")),
    "input_format": (("Partition", "sd"), ("StorageDescriptor", "inputFormat")),
    "output_format": (("Partition", "sd"), ("StorageDescriptor", "outputFormat")),
    "serde": (("Partition", "sd"), ("StorageDescriptor", "serdeInfo"), ("SerDeInfo", "serializationLib")),
    "parameters": (("Partition", "parameters"),),
    "create_time": (("Partition", "createTime"),),
    "last_access_time": (("Partition", "lastAccessTime"),),
}


def partition_fields(columns: Iterable[str]) -> tuple[tuple[str, frozenset[str]], ...]:
    """Fields of a partition that have to be read out of a reply for these columns."""
    kept: dict[str, set[str]] = {"Partition": {"values"}, "StorageDescriptor": set(), "SerDeInfo": set()}
    for column in columns:
        for struct, field in _PARTITION_FIELDS.get(column, ()):
            kept[struct].add(field)
    return tuple((struct, frozenset(fields)) for struct, fields in kept.items())


def columns_of(object_name: str, keys: StructType | None = None) -> Mapping[str, Column]:
    """The columns of an object, with `key` where it is the partitions of one table. Raises OptionError."""
    if object_name not in COLUMNS:
        known = ", ".join(OBJECTS)
        raise OptionError(f"option object is {object_name!r}; it is one of {known}")
    if keys is None:
        return COLUMNS[object_name]
    return {**COLUMNS[object_name], "key": Column(keys, _key_getter(keys))}


def _key_getter(keys: StructType) -> Any:
    readers = [key_reader(field.dataType) for field in keys]

    def get(row: PartitionRow) -> tuple[Any, ...]:
        return tuple([read(value) for read, value in zip(readers, row.values, strict=True)])

    return get
