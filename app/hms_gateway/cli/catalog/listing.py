"""Work of `hms-gateway ls` and `hms-gateway describe`: statements of HiveQL, run for a command."""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import as_json
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.exports import CatalogName, placed_name
from hms_gateway.cli.hiveql.shell_state import (
    Cell,
    CommandRefused,
    KeyValue,
    PartitionSpec,
    QualifiedName,
    ResultRows,
    ShellState,
    Statement,
    keys_of,
)
from hms_gateway.cli.hiveql.showing import Describe, DescribeDatabase, ShowDatabases, ShowPartitions, ShowTables
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.metastore.vocabulary.partition_names import make_name, name_to_spec
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import Database, Partition, Table

# Words of the shell, and of the command line.
_COMMANDS: Final = (
    (re.compile(r"SHOW DATABASES lists"), "hms-gateway ls lists"),
    (re.compile(r"SHOW (?:TABLES IN|PARTITIONS) (\S+) lists"), r"hms-gateway ls \1 lists"),
)
_OBJECTS_A_CALL: Final = 200
_OF_DATABASES: Final = ("name", "owner", "created", "location", "comment")
_OF_TABLES: Final = ("name", "type", "owner", "created", "columns", "partition_keys", "location")
_OF_PARTITIONS: Final = ("name", "created", "rows", "bytes", "location")


def run_list(target: CallTarget, name: str | None, *, is_long: bool, limit: int | None, form: str | None) -> None:
    """Print databases, tables of one, or partitions of a table."""
    target, named = placed_name(target, name, is_partition_too=True)
    place = named if named.db_name else None
    with connected(target) as client:
        state = ShellState(client, target.user, "")
        rows = _listed(state, place, limit)
        if is_long:
            rows = _details(client, place, [str(row[0]) for row in rows.rows])
        if form is None and not is_long:
            for row in rows.rows:
                sys.stdout.write(f"{row[0]}\n")
        else:
            write_rows(sys.stdout, rows_form(form), rows.columns, rows.rows)


def _listed(state: ShellState, name: CatalogName | None, limit: int | None) -> ResultRows:
    if name is None:
        found = _rows(ShowDatabases(), state)
    elif name.table_name is None:
        found = _rows(ShowTables(name.db_name), state)
    else:
        table = QualifiedName(name.db_name, name.table_name)
        found = _rows(ShowPartitions(table, _spec(name), limit=limit), state)
    return found._replace(rows=list(found.rows)[:limit])


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
    target, place = placed_name(target, name, is_partition_too=True)
    with connected(target) as client:
        if form == "json":
            kind, value = _struct(client, place)
            sys.stdout.write(as_json(kind, value) + "\n")
            return
        found = _rows(_statement(place), ShellState(client, target.user, ""))
        write_rows(sys.stdout, rows_form(form), found.columns, found.rows)


def _statement(name: CatalogName) -> Statement:
    if name.table_name is None:
        return DescribeDatabase(name.db_name, True)
    return Describe(QualifiedName(name.db_name, name.table_name), _spec(name), is_detailed=True)


def _spec(name: CatalogName) -> PartitionSpec:
    return tuple(KeyValue(key, value) for key, value in name_to_spec(name.partition_name or "").items())


def _struct(client: MetastoreClient, name: CatalogName) -> tuple[Any, Any]:
    if name.table_name is None:
        return StructType("Database"), client.call("get_database", name.db_name)
    if name.partition_name is None:
        return StructType("Table"), client.call("get_table", name.db_name, name.table_name)
    found = client.call("get_partition_by_name", name.db_name, name.table_name, name.partition_name)
    return StructType("Partition"), found


def answer_of(statement: Statement, state: ShellState) -> ResultRows | None:
    """Run a statement and return its rows. Ends the command when it is refused."""
    try:
        return statement.run(state)
    except CommandRefused as error:
        text = str(error)
        for statement_words, command in _COMMANDS:
            text = statement_words.sub(command, text)
        fail(text, exit_code=EXIT_REFUSED)


def _rows(statement: Statement, state: ShellState) -> ResultRows:
    found = answer_of(statement, state)
    assert found is not None
    return found
