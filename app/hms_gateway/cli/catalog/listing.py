"""`hms-gateway ls` and `hms-gateway describe`."""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import as_json
from hms_gateway.cli.calls.targets import Target
from hms_gateway.cli.catalog.names import CatalogName, parse_name
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.idl import StructType
from hms_gateway.metastore.vocabulary.partition_names import name_to_spec
from hms_gateway.sql.running.running import run_statement
from hms_gateway.sql.running.shell_state import Cell, Refused, Rows, ShellState, time_text
from hms_gateway.sql.statements import (
    Describe,
    DescribeDatabase,
    KeyValue,
    PartitionSpec,
    ShowDatabases,
    ShowPartitions,
    ShowTables,
    Statement,
    TableName,
)

# What a text says of the shell, for those who are not in it.
_COMMANDS: Final = (
    (re.compile(r"SHOW DATABASES lists"), "hms-gateway ls lists"),
    (re.compile(r"SHOW (?:TABLES IN|PARTITIONS) (\S+) lists"), r"hms-gateway ls \1 lists"),
)
_TABLES_A_CALL: Final = 200
_COLUMNS: Final = ("name", "type", "owner", "created", "columns", "partition_keys", "location")


def run_list(target: Target, name: str | None, *, is_long: bool, limit: int | None, form: str) -> None:
    """Databases, tables of one, or partitions of a table."""
    with connected(target) as client:
        state = ShellState(client, target.user, "")
        rows = _listed(state, None if name is None else parse_name(name, is_partition_too=True), limit)
        if is_long and name is not None and "." not in name:
            tables = [str(row[0]) for row in rows.rows][:limit]
            rows = Rows(_COLUMNS, _details(client, parse_name(name).db_name, tables))
        if form == "names":
            for row in rows.rows:
                sys.stdout.write(f"{row[0]}\n")
        else:
            write_rows(sys.stdout, form, rows.columns, rows.rows)


def _listed(state: ShellState, name: CatalogName | None, limit: int | None) -> Rows:
    if name is None:
        found = _rows(ShowDatabases(), state)
    elif name.table_name is None:
        found = _rows(ShowTables(name.db_name), state)
    else:
        table = TableName(name.db_name, name.table_name)
        found = _rows(ShowPartitions(table, _spec(name), limit=limit), state)
    return found._replace(rows=list(found.rows)[:limit])


def _details(client: MetastoreClient, database: str, names: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    for begin in range(0, len(names), _TABLES_A_CALL):
        for table in client.call("get_table_objects_by_name", database, list(names[begin : begin + _TABLES_A_CALL])):
            keys = ",".join(key.name or "" for key in table.partitionKeys or ())
            columns = len((table.sd and table.sd.cols) or ())
            location = table.sd and table.sd.location
            yield (
                table.tableName, table.tableType, table.owner, time_text(table.createTime), columns, keys, location
            )  # fmt: skip


def run_describe(target: Target, text: str, *, form: str) -> None:
    """What DESCRIBE FORMATTED shows; as JSON, the struct."""
    name = parse_name(text, is_partition_too=True)
    with connected(target) as client:
        if form == "json":
            kind, value = _struct(client, name)
            sys.stdout.write(as_json(kind, value) + "\n")
            return
        found = _rows(_statement(name), ShellState(client, target.user, ""))
        write_rows(sys.stdout, form, found.columns, found.rows)


def _statement(name: CatalogName) -> Statement:
    if name.table_name is None:
        return DescribeDatabase(name.db_name, True)
    return Describe(TableName(name.db_name, name.table_name), _spec(name), is_detailed=True)


def _spec(name: CatalogName) -> PartitionSpec:
    return tuple(KeyValue(key, value) for key, value in name_to_spec(name.partition_name or "").items())


def _struct(client: MetastoreClient, name: CatalogName) -> tuple[Any, Any]:
    if name.table_name is None:
        return StructType("Database"), client.call("get_database", name.db_name)
    if name.partition_name is None:
        return StructType("Table"), client.call("get_table", name.db_name, name.table_name)
    found = client.call("get_partition_by_name", name.db_name, name.table_name, name.partition_name)
    return StructType("Partition"), found


def answer_of(statement: Statement, state: ShellState) -> Rows | None:
    """Run a statement and return its rows. Ends the command when it is refused."""
    try:
        return run_statement(statement, state)
    except Refused as error:
        text = str(error)
        for statement_words, command in _COMMANDS:
            text = statement_words.sub(command, text)
        fail(text, exit_code=EXIT_REFUSED)


def _rows(statement: Statement, state: ShellState) -> Rows:
    found = answer_of(statement, state)
    assert found is not None
    return found
