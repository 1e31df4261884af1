"""Work of `hms-gateway ls` and `hms-gateway describe`: statements of HiveQL, run for a command."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import as_json
from hms_gateway.cli.calls.statements import answer, print_rows, session
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.exports import CatalogName, placed_name
from hms_gateway.cli.hiveql import showing
from hms_gateway.cli.hiveql.shell_state import (
    KeyValue,
    PartitionSpec,
    QualifiedName,
    ResultRows,
    ShellCaller,
    Statement,
    keys_of,
    table_of,
)
from hms_gateway.metastore.vocabulary.partition_names import make_name, name_to_spec
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.idl import StructType

_OBJECTS_A_CALL: Final = 200


def run_list(target: CallTarget, name: str | None, *, is_long: bool, limit: int | None, form: str | None) -> None:
    """Print databases, tables of one, or partitions of a table."""
    target, named = placed_name(target, name, is_partition_too=True)
    place = named if named.db_name else None
    with session(target) as state:
        found = _names(place, limit).run(state)
        assert found is not None
        names = [str(row[0]) for row in itertools.islice(found.rows, limit)]
        if is_long:
            print_rows(_details(state.caller, place, names), form)
        elif form is not None:
            print_rows(found._replace(rows=zip(names)), form)
        else:
            for each in names:
                print(each)


def _names(name: CatalogName | None, limit: int | None) -> Statement:
    if name is None:
        return showing.show_databases()
    if name.table_name is None:
        return showing.show_tables(name.db_name)
    return showing.show_partitions(QualifiedName(name.db_name, name.table_name), _spec(name), limit=limit)


def _details(client: ShellCaller, place: CatalogName | None, names: Sequence[str]) -> ResultRows:
    if place is None:
        return table_of(
            (client.call("get_database", name) for name in names),
            name="name",
            owner="ownerName",
            created=_created,
            location="locationUri",
            comment="description",
        )
    if place.table_name is None:
        return table_of(
            _in_parts(client, "get_table_objects_by_name", names, place.db_name),
            name="tableName",
            type="tableType",
            owner="owner",
            created=_created,
            columns=lambda table: len((table.sd and table.sd.cols) or ()),
            partition_keys=lambda table: ",".join(keys_of(table)),
            location=_location,
        )
    keys = keys_of(client.call("get_table", place.db_name, place.table_name))
    return table_of(
        _in_parts(client, "get_partitions_by_names", names, place.db_name, place.table_name),
        name=lambda partition: make_name(keys, partition.values or ()),
        created=_created,
        rows=lambda partition: (partition.parameters or {}).get("numRows"),
        bytes=lambda partition: (partition.parameters or {}).get("totalSize"),
        location=_location,
    )


def _in_parts(client: ShellCaller, method: str, names: Sequence[str], *place: str) -> Iterator[Any]:
    for begin in range(0, len(names), _OBJECTS_A_CALL):
        yield from client.call(method, *place, list(names[begin : begin + _OBJECTS_A_CALL]))


def _created(found: Any) -> str | None:
    return time_text(found.createTime)


def _location(found: Any) -> str | None:
    return found.sd.location if found.sd else None


def run_describe(target: CallTarget, name: str, *, form: str | None) -> None:
    """Print the rows of DESCRIBE FORMATTED; as JSON, the struct."""
    target, place = placed_name(target, name, is_partition_too=True)
    if form != "json":
        answer(target, _description(place), form)
        return
    with connected(target) as client:
        print(as_json(*_struct(client, place)))


def _description(name: CatalogName) -> Statement:
    if name.table_name is None:
        return showing.describe_database(name.db_name, True)
    return showing.describe(QualifiedName(name.db_name, name.table_name), _spec(name), is_detailed=True)


def _spec(name: CatalogName) -> PartitionSpec:
    return tuple(KeyValue(key, value) for key, value in name_to_spec(name.partition_name or "").items())


def _struct(client: ShellCaller, name: CatalogName) -> tuple[Any, Any]:
    if name.table_name is None:
        return StructType("Database"), client.call("get_database", name.db_name)
    if name.partition_name is None:
        return StructType("Table"), client.call("get_table", name.db_name, name.table_name)
    found = client.call("get_partition_by_name", name.db_name, name.table_name, name.partition_name)
    return StructType("Partition"), found
