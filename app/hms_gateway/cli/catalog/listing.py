"""Work of `hms-gateway ls` and `hms-gateway describe`: statements of HiveQL, run for a command."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import as_json
from hms_gateway.cli.calls.statements import answer, rows_of
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.exports import CatalogName, parse_name
from hms_gateway.cli.hiveql.shell_state import (
    Cell,
    KeyValue,
    PartitionSpec,
    QualifiedName,
    ResultRows,
    Statement,
    keys_of,
)
from hms_gateway.cli.hiveql.showing import (
    describe,
    describe_database,
    show_databases,
    show_partitions,
    show_tables,
)
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.metastore.vocabulary.partition_names import make_name, name_to_spec
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import Database, Partition, Table

_OBJECTS_A_CALL: Final = 200
_OF_DATABASES: Final = ("name", "owner", "created", "location", "comment")
_OF_TABLES: Final = ("name", "type", "owner", "created", "columns", "partition_keys", "location")
_OF_PARTITIONS: Final = ("name", "created", "rows", "bytes", "location")


def run_list(target: CallTarget, name: str | None, *, is_long: bool, limit: int | None, form: str | None) -> None:
    """Print databases, tables of one, or partitions of a table."""
    with connected(target) as client:
        place = None if name is None else parse_name(name, is_partition_too=True)
        rows = rows_of(_names(place, limit), client, target)
        rows = rows._replace(rows=list(rows.rows)[:limit])
        if is_long:
            rows = _details(client, place, [str(row[0]) for row in rows.rows])
        if form is None and not is_long:
            for row in rows.rows:
                sys.stdout.write(f"{row[0]}\n")
        else:
            write_rows(sys.stdout, rows_form(form), rows.columns, rows.rows)


def _names(name: CatalogName | None, limit: int | None) -> Statement:
    if name is None:
        return show_databases()
    if name.table_name is None:
        return show_tables(name.db_name)
    return show_partitions(QualifiedName(name.db_name, name.table_name), _spec(name), limit=limit)


def _details(client: MetastoreClient, place: CatalogName | None, names: Sequence[str]) -> ResultRows:
    if place is None:
        return ResultRows(_OF_DATABASES, (_of_database(client.call("get_database", name)) for name in names))
    if place.table_name is None:
        return ResultRows(
            _OF_TABLES, map(_of_table, _in_parts(client, "get_table_objects_by_name", names, place.db_name))
        )
    table = client.call("get_table", place.db_name, place.table_name)
    of_table = (place.db_name, place.table_name)
    found = _in_parts(client, "get_partitions_by_names", names, *of_table)
    return ResultRows(_OF_PARTITIONS, (_of_partition(keys_of(table), partition) for partition in found))


def _in_parts(client: MetastoreClient, method: str, names: Sequence[str], *place: str) -> Iterator[Any]:
    for begin in range(0, len(names), _OBJECTS_A_CALL):
        yield from client.call(method, *place, list(names[begin : begin + _OBJECTS_A_CALL]))


def _of_database(found: Database) -> tuple[Cell, ...]:
    return found.name, found.ownerName, time_text(found.createTime), found.locationUri, found.description


def _of_table(found: Table) -> tuple[Cell, ...]:
    columns = len((found.sd and found.sd.cols) or ())
    created, keys = time_text(found.createTime), ",".join(keys_of(found))
    return found.tableName, found.tableType, found.owner, created, columns, keys, _location(found)


def _of_partition(keys: Sequence[str], found: Partition) -> tuple[Cell, ...]:
    counts = [(found.parameters or {}).get(name) for name in ("numRows", "totalSize")]
    return make_name(keys, found.values or ()), time_text(found.createTime), *counts, _location(found)


def _location(found: Table | Partition) -> str | None:
    return found.sd.location if found.sd else None


def run_describe(target: CallTarget, name: str, *, form: str | None) -> None:
    """Print the rows of DESCRIBE FORMATTED; as JSON, the struct."""
    place = parse_name(name, is_partition_too=True)
    if form != "json":
        answer(target, _statement(place), form)
        return
    with connected(target) as client:
        kind, value = _struct(client, place)
        sys.stdout.write(as_json(kind, value) + "\n")


def _statement(name: CatalogName) -> Statement:
    if name.table_name is None:
        return describe_database(name.db_name, True)
    return describe(QualifiedName(name.db_name, name.table_name), _spec(name), is_detailed=True)


def _spec(name: CatalogName) -> PartitionSpec:
    return tuple(KeyValue(key, value) for key, value in name_to_spec(name.partition_name or "").items())


def _struct(client: MetastoreClient, name: CatalogName) -> tuple[Any, Any]:
    if name.table_name is None:
        return StructType("Database"), client.call("get_database", name.db_name)
    if name.partition_name is None:
        return StructType("Table"), client.call("get_table", name.db_name, name.table_name)
    found = client.call("get_partition_by_name", name.db_name, name.table_name, name.partition_name)
    return StructType("Partition"), found
