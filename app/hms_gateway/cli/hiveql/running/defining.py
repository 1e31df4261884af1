"""CREATE, DROP and TRUNCATE of databases, tables, views and functions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.queries import ViewQuery, read_view_query
from hms_gateway.cli.hiveql.running.shell_state import CommandRefused, ShellState, partition_names
from hms_gateway.cli.hiveql.statements import QualifiedName, Statement
from hms_gateway.metastore.vocabulary.hiveql_tokens import counted_from
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    EnvironmentContext,
    InvalidOperationException,
    NoSuchObjectException,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

_COPIED_NEVER: Final = ("transient_lastDdlTime", "EXTERNAL", "numFiles", "totalSize", "numRows", "rawDataSize",
                        "COLUMN_STATS_ACCURATE", "last_modified_by", "last_modified_time", "numPartitions")  # fmt: skip


def _create_database(statement: say.CreateDatabase, state: ShellState) -> None:
    owned = replace(statement.database, ownerName=state.user, ownerType=PrincipalType.USER)
    _made(lambda: state.call("create_database", owned), statement.if_not_exists)


def _create_table(statement: say.CreateTable, state: ShellState) -> None:
    table = replace(statement.table, owner=state.user)
    _made(lambda: state.call("create_table", table), statement.if_not_exists)


def _made(create: Callable[[], None], if_not_exists: bool) -> None:
    try:
        create()
    except AlreadyExistsException as error:
        if not if_not_exists:
            raise CommandRefused(f"{error.message}; IF NOT EXISTS leaves it as it is") from error


def _create_like(statement: say.CreateTableLike, state: ShellState) -> None:
    source = state.table(statement.like)
    if source.viewOriginalText:
        raise CommandRefused(f"{statement.like} is a view; CREATE TABLE … LIKE needs a table")
    assert source.sd is not None
    kept = {name: value for name, value in (source.parameters or {}).items() if name not in _COPIED_NEVER}
    external = {"EXTERNAL": "TRUE"} if statement.is_external else {}
    table = Table(
        tableName=statement.table.table_name,
        dbName=statement.table.db_name,
        owner=state.user,
        sd=replace(source.sd, location=statement.location),
        partitionKeys=source.partitionKeys,
        parameters={**kept, **statement.parameters, **external},
        tableType="EXTERNAL_TABLE" if statement.is_external else "MANAGED_TABLE",
    )
    _made(lambda: state.call("create_table", table), statement.if_not_exists)


def _create_view(statement: say.CreateView, state: ShellState) -> None:
    table = _view(statement, view_query(state, statement), state)
    try:
        state.call("create_table", table)
    except AlreadyExistsException:
        if statement.or_replace:
            _replace_view(state, statement.name, table)
        elif not statement.if_not_exists:
            raise


def view_query(state: ShellState, statement: say.CreateView | say.AlterViewQuery) -> ViewQuery:
    """Raises CommandError and Refused."""

    def columns_of(name: QualifiedName) -> Mapping[str, str]:
        table = state.table(name)
        return {
            column.name or "": column.type or ""
            for column in [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]
        }

    with counted_from(statement.query_begin):
        return read_view_query(statement.query, state.database, columns_of)


def _view(statement: say.CreateView, query: ViewQuery, state: ShellState) -> Table:
    columns, expanded = list(query.columns), query.expanded
    if statement.columns:
        if len(statement.columns) != len(columns):
            raise CommandRefused(f"the view names {len(statement.columns)} columns; its query has {len(columns)}")
        pairs = list(zip(statement.columns, columns, strict=True))
        selected = ", ".join(f"`{statement.name.table_name}`.`{old.name}` AS `{new}`" for (new, _), old in pairs)
        expanded = f"SELECT {selected} FROM ({expanded}) `{statement.name.table_name}`"
        columns = [replace(old, name=new, comment=comment) for (new, comment), old in pairs]
    return Table(
        tableName=statement.name.table_name,
        dbName=statement.name.db_name,
        owner=state.user,
        sd=StorageDescriptor(cols=columns, serdeInfo=SerDeInfo(parameters={}), parameters={}, numBuckets=-1),
        partitionKeys=[],
        parameters=dict(statement.parameters),
        viewOriginalText=statement.query,
        viewExpandedText=expanded,
        tableType="VIRTUAL_VIEW",
    )


def _replace_view(state: ShellState, name: QualifiedName, view: Table) -> None:
    existing = state.table(name)
    if existing.tableType != "VIRTUAL_VIEW":
        raise CommandRefused(f"{name} is a table; CREATE OR REPLACE VIEW replaces views only")
    kept = replace(
        view, createTime=existing.createTime, parameters={**(existing.parameters or {}), **(view.parameters or {})}
    )
    state.call("alter_table_with_environment_context", name.db_name, name.table_name, kept, EnvironmentContext())


def _alter_view_query(statement: say.AlterViewQuery, state: ShellState) -> None:
    _replace_view(
        state,
        statement.name,
        _view(say.CreateView(statement.name, statement.query), view_query(state, statement), state),
    )


def _create_function(statement: say.CreateFunction, state: ShellState) -> None:
    function = replace(statement.function, ownerName=state.user, ownerType=PrincipalType.USER)
    _made(lambda: state.call("create_function", function), statement.if_not_exists)


def _dropped(drop: Callable[[], None], what: str, if_exists: bool) -> None:
    try:
        drop()
    except NoSuchObjectException as error:
        if not if_exists:
            raise CommandRefused(f"{what} does not exist") from error


def _drop_function(statement: say.DropFunction, state: ShellState) -> None:
    what = f"function {statement.database}.{statement.name}"
    _dropped(lambda: state.call("drop_function", statement.database, statement.name), what, statement.if_exists)


def _drop_database(statement: say.DropDatabase, state: ShellState) -> None:
    drop = lambda: state.call("drop_database", statement.database, True, statement.is_cascading)  # noqa: E731
    try:
        _dropped(drop, f"database {statement.database}", statement.if_exists)
    except InvalidOperationException as error:
        raise CommandRefused(f"{error.message}; CASCADE drops what is in it, too") from error
    if state.database == statement.database:
        state.database = "default"


def _drop_table(statement: say.DropTable, state: ShellState) -> None:
    try:
        kind = state.table(statement.table).tableType
    except CommandRefused:
        if statement.if_exists:
            return
        raise
    is_view = kind in ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")
    if is_view != statement.is_view:
        raise CommandRefused(f"{statement.table} is a {'view; DROP VIEW' if is_view else 'table; DROP TABLE'} drops it")
    context = EnvironmentContext(properties={"ifPurge": "TRUE"} if statement.is_purging else {})
    name = statement.table
    _dropped(
        lambda: state.call("drop_table_with_environment_context", name.db_name, name.table_name, True, context),
        f"table {name}",
        statement.if_exists,
    )


def _truncate(statement: say.Truncate, state: ShellState) -> None:
    names = partition_names(state, statement.table, statement.spec) if statement.spec else None
    if names == []:
        raise CommandRefused(f"table {statement.table} does not have such a partition")
    state.call("truncate_table", statement.table.db_name, statement.table.table_name, names)


RUNNERS: Final[Mapping[type[Statement], Callable[[Any, ShellState], None]]] = MappingProxyType(
    {
        say.CreateDatabase: _create_database,
        say.CreateTable: _create_table,
        say.CreateTableLike: _create_like,
        say.CreateView: _create_view,
        say.AlterViewQuery: _alter_view_query,
        say.CreateFunction: _create_function,
        say.DropFunction: _drop_function,
        say.DropDatabase: _drop_database,
        say.DropTable: _drop_table,
        say.Truncate: _truncate,
    }
)
