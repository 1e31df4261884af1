"""Reads what a task was given: calls of bounded size, so that a task holds one reply at a time."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import InputPartition

from hms_gateway.pipeline.connection import Client, named_tables
from hms_gateway.pipeline.errors import EventsExpired
from hms_gateway.pipeline.source.columns import BATCH_ROWS
from hms_gateway.pipeline.source.conditions import Condition
from hms_gateway.pipeline.source.objects import NAME_COLUMNS, ColumnRow, PartitionRow, StatisticsRow, partition_fields
from hms_gateway.pipeline.source.planning import Events, PlannedNames, PlannedTables, cut, partition_names
from hms_gateway.rpc.structs import (
    FieldSchema,
    GetPartitionsByNamesRequest,
    HiveObjectRef,
    HiveObjectType,
    NotificationEvent,
    NotificationEventRequest,
    Partition,
    PartitionsStatsRequest,
    ShowLocksRequest,
    Table,
    TableStatsRequest,
)
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType
from hms_gateway.rpc.wire.tjson_shapes import Fields

_TABLES_A_CALL: Final = 100
_STATISTICS_A_CALL: Final = 200


def rows(client: Client, object_name: str, part: InputPartition, wanted: Iterable[str] | None) -> Iterator[Any]:
    """What `part` of an object holds; `wanted` are the columns that are read, without them objects are whole.

    Raises what the client raises.
    """
    columns = None if wanted is None else frozenset(wanted)
    if isinstance(part, Events):
        return events(client, part.after, part.last)
    if isinstance(part, PlannedNames):
        return _of_names(client, part, columns)
    if isinstance(part, PlannedTables):
        return _of_tables(client, object_name, part, columns)
    return iter(_WHOLE[object_name](client))


def _of_tables(client: Client, object_name: str, part: PlannedTables, wanted: frozenset[str] | None) -> Iterator[Any]:
    if object_name == "databases":
        for name in part.names:
            yield client.call("get_database", name)
        return
    for names in cut(part.names, _TABLES_A_CALL):
        for table in named_tables(client, part.database, names):
            if object_name == "tables":
                yield table
            elif object_name == "columns":
                yield from _columns(table)
            elif object_name == "partitions":
                yield from _partitions(client, table, wanted)
            else:
                yield from _statistics(client, table)


def _columns(table: Table) -> Iterator[ColumnRow]:
    fields = table.sd.cols if table.sd and table.sd.cols else []
    keys = table.partitionKeys or []
    for position, field in enumerate([*fields, *keys]):
        yield ColumnRow(table, field, position, position >= len(fields))


def _partitions(client: Client, table: Table, wanted: frozenset[str] | None) -> Iterator[PartitionRow]:
    if not table.partitionKeys:
        return iter(())
    names = partition_names(client, table, ())
    return _named(client, table.dbName or "", table.tableName or "", table.partitionKeys, names, wanted)


def _of_names(client: Client, part: PlannedNames, wanted: frozenset[str] | None) -> Iterator[PartitionRow]:
    keys = [] if _is_in_names(wanted) else client.call("get_table", part.database, part.table).partitionKeys
    return _named(client, part.database, part.table, keys, part.names(), wanted)


def _is_in_names(wanted: frozenset[str] | None) -> bool:
    """Whether the names of partitions say all that is wanted."""
    return wanted is not None and wanted <= NAME_COLUMNS


def _named(
    client: Client,
    database: str,
    table: str,
    keys: Sequence[FieldSchema],
    names: Sequence[str],
    wanted: frozenset[str] | None,
) -> Iterator[PartitionRow]:
    """One that was dropped meanwhile is left out, unless its name is all that is wanted."""
    if _is_in_names(wanted):
        yield from (PartitionRow(database, table, name=name) for name in names)
        return
    key_names = [key.name or "" for key in keys]
    fields = None if wanted is None else partition_fields(wanted)
    skips_columns = fields is not None
    for part in cut(names, BATCH_ROWS):
        found = _without_columns(client, database, table, part, fields) if skips_columns else None
        if found is None:
            skips_columns = False
            found = client.call("get_partitions_by_names", database, table, list(part), fields=fields)
        for partition in found:
            yield PartitionRow(database, table, partition=partition, key_names=key_names)


def _without_columns(
    client: Client, database: str, table: str, names: Sequence[str], fields: Fields | None
) -> list[Partition] | None:
    """Partitions without their columns, which are most of a reply; None where the metastore is too old for it."""
    request = GetPartitionsByNamesRequest(
        db_name=database, tbl_name=table, names=list(names), skipColumnSchemaForPartition=True
    )
    try:
        found: list[Partition] = client.call("get_partitions_by_names_req", request, fields=fields).partitions
    except ApplicationError as refused:
        if refused.type is not ApplicationErrorType.UNKNOWN_METHOD:
            raise
        return None
    return found


def _statistics(client: Client, table: Table) -> Iterator[StatisticsRow]:
    database, name = table.dbName or "", table.tableName or ""
    columns = [field.name or "" for field in (table.sd.cols if table.sd else None) or ()]
    if not columns:
        return
    request = TableStatsRequest(dbName=database, tblName=name, colNames=columns)
    for one in client.call("get_table_statistics_req", request).tableStats:
        yield StatisticsRow(database, name, None, one)
    if not table.partitionKeys:
        return
    no_conditions: tuple[Condition, ...] = ()
    for part in cut(partition_names(client, table, no_conditions), _STATISTICS_A_CALL):
        of_part = PartitionsStatsRequest(dbName=database, tblName=name, colNames=columns, partNames=list(part))
        found = client.call("get_partitions_statistics_req", of_part).partStats
        yield from (StatisticsRow(database, name, partition, one) for partition in found for one in found[partition])


def events(client: Client, after: int, last: int) -> Iterator[NotificationEvent]:
    """The events behind `after` up to `last`, each of them. Raises EventsExpired."""
    while after < last:
        request = NotificationEventRequest(lastEvent=after, maxEvents=min(BATCH_ROWS, last - after))
        found = client.call("get_next_notification", request).events
        for event in found:
            if event.eventId != after + 1:
                raise EventsExpired(_expired(after + 1, event.eventId - 1))
            after = event.eventId
            yield event
        if not found:
            raise EventsExpired(_expired(after + 1, last))


def _expired(first: int, last: int) -> str:
    return (
        f"events {first} to {last} are no longer in the metastore's notification log; begin a new query with a new"
        " checkpoint and startingEvent=earliest, and read the objects themselves once"
    )


def _privileges(client: Client) -> Iterator[Any]:
    kinds = (
        HiveObjectType.GLOBAL,
        HiveObjectType.DATABASE,
        HiveObjectType.TABLE,
        HiveObjectType.PARTITION,
        HiveObjectType.COLUMN,
    )
    for kind in kinds:
        yield from client.call("list_privileges", None, None, HiveObjectRef(objectType=kind))


_WHOLE: Final[dict[str, Any]] = {
    "functions": lambda client: client.call("get_all_functions").functions or (),
    "privileges": _privileges,
    "locks": lambda client: client.call("show_locks", ShowLocksRequest()).locks or (),
    "transactions": lambda client: client.call("get_open_txns_info").open_txns,
}
