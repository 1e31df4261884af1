"""What can be read: the objects of a metastore and their columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql.types import ArrayType, StructType

from hms_gateway.metastore.vocabulary.partition_names import make_name, name_to_values
from hms_gateway.metastore.vocabulary.texts import bound_text
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.source.columns import (
    FIELDS,
    FLAG,
    INT,
    LONG,
    NUMBER,
    PARAMETERS,
    TEXT,
    TEXTS,
    TIME,
    Column,
    from_milliseconds,
    key_reader,
    microseconds,
)
from hms_gateway.rpc.structs import ENUMS, ColumnStatisticsObj, FieldSchema, Partition, StorageDescriptor, Table

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
        """With `name`, or with `partition` and the names of the table's keys."""
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
    """What of a partition has to be read out of a reply for these columns."""
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
