"""CREATE, DROP and TRUNCATE of databases, tables, views and functions."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

import hms_gateway.rpc.structs as structs
from hms_gateway.cli.hiveql.queries import read_view_query
from hms_gateway.cli.hiveql.shell_state import (
    VIEWS,
    CommandRefused,
    PartitionSpec,
    QualifiedName,
    ShellState,
    all_columns,
    partition_names,
    statement,
)
from hms_gateway.metastore.vocabulary.hiveql_tokens import counted_from
from hms_gateway.rpc.structs.catalogs import shown_key

_COPIED_NEVER: Final = ("transient_lastDdlTime", "EXTERNAL", "numFiles", "totalSize", "numRows", "rawDataSize",
                        "COLUMN_STATS_ACCURATE", "last_modified_by", "last_modified_time", "numPartitions")  # fmt: skip


@statement
def create_database(state: ShellState, database: structs.Database, if_not_exists: bool = False) -> None:
    owned = replace(database, ownerName=state.user, ownerType=structs.PrincipalType.USER)
    with _made(if_not_exists):
        state.call("create_database", owned)


@statement
def create_table(state: ShellState, table: structs.Table, if_not_exists: bool = False) -> None:
    with _made(if_not_exists):
        state.call("create_table", replace(table, owner=state.user))


@statement
def create_table_like(
    state: ShellState,
    name: QualifiedName,
    like: QualifiedName,
    if_not_exists: bool = False,
    is_external: bool = False,
    location: str | None = None,
    parameters: Mapping[str, str] = MappingProxyType({}),
) -> None:
    source = state.table(like)
    if source.viewOriginalText:
        raise CommandRefused(f"{like} is a view; CREATE TABLE … LIKE needs a table")
    assert source.sd is not None
    kept = {key: value for key, value in (source.parameters or {}).items() if key not in _COPIED_NEVER}
    external = {"EXTERNAL": "TRUE"} if is_external else {}
    table = structs.Table(
        tableName=name.table_name,
        dbName=name.db_name,
        owner=state.user,
        sd=replace(source.sd, location=location),
        partitionKeys=source.partitionKeys,
        parameters={**kept, **parameters, **external},
        tableType="EXTERNAL_TABLE" if is_external else "MANAGED_TABLE",
    )
    with _made(if_not_exists):
        state.call("create_table", table)


@statement
def create_view(
    state: ShellState,
    name: QualifiedName,
    query: str,
    query_begin: int = 0,
    columns: Sequence[tuple[str, str | None]] = (),
    parameters: Mapping[str, str] = MappingProxyType({}),
    if_not_exists: bool = False,
    or_replace: bool = False,
) -> None:
    """`columns` are name and comment, empty to take those of the query, which begins at `query_begin` of the text."""
    table = _view(state, name, query, query_begin, columns, parameters)
    try:
        state.call("create_table", table)
    except structs.AlreadyExistsException:
        if or_replace:
            _replace_view(state, name, table)
        elif not if_not_exists:
            raise


@statement
def alter_view_query(state: ShellState, name: QualifiedName, query: str, query_begin: int = 0) -> None:
    _replace_view(state, name, _view(state, name, query, query_begin))


@statement
def create_function(state: ShellState, function: structs.Function, if_not_exists: bool = False) -> None:
    with _made(if_not_exists):
        state.call("create_function", replace(function, ownerName=state.user, ownerType=structs.PrincipalType.USER))


@statement
def drop_function(state: ShellState, database: str, name: str, if_exists: bool = False) -> None:
    with _dropped(f"function {shown_key(database)}.{name}", if_exists):
        state.call("drop_function", database, name)


@statement
def drop_database(state: ShellState, database: str, if_exists: bool = False, is_cascading: bool = False) -> None:
    try:
        with _dropped(f"database {shown_key(database)}", if_exists):
            state.call("drop_database", database, True, is_cascading)
    except structs.InvalidOperationException as error:
        raise CommandRefused(f"{error.message}; CASCADE drops what is in it, too") from error
    if state.database == database:
        state.database = "default"


@statement
def drop_table(
    state: ShellState, name: QualifiedName, if_exists: bool = False, is_view: bool = False, is_purging: bool = False
) -> None:
    try:
        kind = state.table(name).tableType
    except CommandRefused:
        if if_exists:
            return
        raise
    if (kind in VIEWS) != is_view:
        raise CommandRefused(f"{name} is a {'table; DROP TABLE' if is_view else 'view; DROP VIEW'} drops it")
    context = structs.EnvironmentContext(properties={"ifPurge": "TRUE"} if is_purging else {})
    with _dropped(f"table {name}", if_exists):
        state.call("drop_table_with_environment_context", *name, True, context)


@statement
def truncate(state: ShellState, name: QualifiedName, spec: PartitionSpec = ()) -> None:
    names = partition_names(state, name, spec) if spec else None
    if names == []:
        raise CommandRefused(f"table {name} does not have such a partition")
    state.call("truncate_table", *name, names)


@contextlib.contextmanager
def _made(if_not_exists: bool) -> Iterator[None]:
    try:
        yield
    except structs.AlreadyExistsException as error:
        if not if_not_exists:
            raise CommandRefused(f"{error.message}; IF NOT EXISTS leaves it as it is") from error


@contextlib.contextmanager
def _dropped(what: str, if_exists: bool) -> Iterator[None]:
    try:
        yield
    except structs.NoSuchObjectException as error:
        if not if_exists:
            raise CommandRefused(f"{what} does not exist") from error


def _view(
    state: ShellState,
    name: QualifiedName,
    query: str,
    query_begin: int,
    named: Sequence[tuple[str, str | None]] = (),
    parameters: Mapping[str, str] = MappingProxyType({}),
) -> structs.Table:
    """Raises CommandError and CommandRefused."""

    def columns_of(table: QualifiedName) -> Mapping[str, str]:
        return {column.name or "": column.type or "" for column in all_columns(state.table(table))}

    with counted_from(query_begin):
        columns, expanded = read_view_query(query, state.database, columns_of)
    if named:
        if len(named) != len(columns):
            raise CommandRefused(f"the view names {len(named)} columns; its query has {len(columns)}")
        pairs = list(zip(named, columns, strict=True))
        selected = ", ".join(f"`{name.table_name}`.`{old.name}` AS `{new}`" for (new, _), old in pairs)
        expanded = f"SELECT {selected} FROM ({expanded}) `{name.table_name}`"
        columns = [replace(old, name=new, comment=comment) for (new, comment), old in pairs]
    return structs.Table(
        tableName=name.table_name,
        dbName=name.db_name,
        owner=state.user,
        sd=structs.StorageDescriptor(
            cols=list(columns), serdeInfo=structs.SerDeInfo(parameters={}), parameters={}, numBuckets=-1
        ),
        partitionKeys=[],
        parameters=dict(parameters),
        viewOriginalText=query,
        viewExpandedText=expanded,
        tableType="VIRTUAL_VIEW",
    )


def _replace_view(state: ShellState, name: QualifiedName, view: structs.Table) -> None:
    existing = state.table(name)
    if existing.tableType != "VIRTUAL_VIEW":
        raise CommandRefused(f"{name} is a table; CREATE OR REPLACE VIEW replaces views only")
    parameters = {**(existing.parameters or {}), **(view.parameters or {})}
    kept = replace(view, createTime=existing.createTime, parameters=parameters)
    state.call("alter_table_with_environment_context", *name, kept, structs.EnvironmentContext())
