"""CREATE, DROP and TRUNCATE of databases, tables, views and functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from hms_gateway.cli.hiveql.queries import ViewQuery, read_view_query
from hms_gateway.cli.hiveql.shell_state import (
    CommandRefused,
    PartitionSpec,
    QualifiedName,
    ShellState,
    Statement,
    partition_names,
)
from hms_gateway.metastore.vocabulary.hiveql_tokens import counted_from
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    EnvironmentContext,
    Function,
    InvalidOperationException,
    NoSuchObjectException,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.structs.catalogs import shown_key

_COPIED_NEVER: Final = ("transient_lastDdlTime", "EXTERNAL", "numFiles", "totalSize", "numRows", "rawDataSize",
                        "COLUMN_STATS_ACCURATE", "last_modified_by", "last_modified_time", "numPartitions")  # fmt: skip


class CreateDatabase(Statement, frozen=True):
    database: Database
    if_not_exists: bool = False

    def run(self, state: ShellState) -> None:
        owned = replace(self.database, ownerName=state.user, ownerType=PrincipalType.USER)
        _made(lambda: state.call("create_database", owned), self.if_not_exists)


class CreateTable(Statement, frozen=True):
    table: Table
    if_not_exists: bool = False

    def run(self, state: ShellState) -> None:
        table = replace(self.table, owner=state.user)
        _made(lambda: state.call("create_table", table), self.if_not_exists)


class CreateTableLike(Statement, frozen=True):
    table: QualifiedName
    like: QualifiedName
    if_not_exists: bool = False
    is_external: bool = False
    location: str | None = None
    parameters: Mapping[str, str] = {}

    def run(self, state: ShellState) -> None:
        source = state.table(self.like)
        if source.viewOriginalText:
            raise CommandRefused(f"{self.like} is a view; CREATE TABLE … LIKE needs a table")
        assert source.sd is not None
        kept = {name: value for name, value in (source.parameters or {}).items() if name not in _COPIED_NEVER}
        external = {"EXTERNAL": "TRUE"} if self.is_external else {}
        table = Table(
            tableName=self.table.table_name,
            dbName=self.table.db_name,
            owner=state.user,
            sd=replace(source.sd, location=self.location),
            partitionKeys=source.partitionKeys,
            parameters={**kept, **self.parameters, **external},
            tableType="EXTERNAL_TABLE" if self.is_external else "MANAGED_TABLE",
        )
        _made(lambda: state.call("create_table", table), self.if_not_exists)


class CreateView(Statement, frozen=True):
    """`columns` are name and comment, empty to take those of the query, which begins at `query_begin` of the text."""

    name: QualifiedName
    query: str
    query_begin: int = 0
    columns: Sequence[tuple[str, str | None]] = ()
    parameters: Mapping[str, str] = {}
    if_not_exists: bool = False
    or_replace: bool = False

    def run(self, state: ShellState) -> None:
        table = _view(self, view_query(state, self), state)
        try:
            state.call("create_table", table)
        except AlreadyExistsException:
            if self.or_replace:
                _replace_view(state, self.name, table)
            elif not self.if_not_exists:
                raise


class AlterViewQuery(Statement, frozen=True):
    name: QualifiedName
    query: str
    query_begin: int = 0

    def run(self, state: ShellState) -> None:
        _replace_view(
            state,
            self.name,
            _view(CreateView(self.name, self.query), view_query(state, self), state),
        )


class CreateFunction(Statement, frozen=True):
    function: Function
    if_not_exists: bool = False

    def run(self, state: ShellState) -> None:
        function = replace(self.function, ownerName=state.user, ownerType=PrincipalType.USER)
        _made(lambda: state.call("create_function", function), self.if_not_exists)


class DropFunction(Statement, frozen=True):
    database: str
    name: str
    if_exists: bool = False

    def run(self, state: ShellState) -> None:
        what = f"function {shown_key(self.database)}.{self.name}"
        _dropped(lambda: state.call("drop_function", self.database, self.name), what, self.if_exists)


class DropDatabase(Statement, frozen=True):
    database: str
    if_exists: bool = False
    is_cascading: bool = False

    def run(self, state: ShellState) -> None:
        drop = lambda: state.call("drop_database", self.database, True, self.is_cascading)  # noqa: E731
        try:
            _dropped(drop, f"database {shown_key(self.database)}", self.if_exists)
        except InvalidOperationException as error:
            raise CommandRefused(f"{error.message}; CASCADE drops what is in it, too") from error
        if state.database == self.database:
            state.database = "default"


class DropTable(Statement, frozen=True):
    table: QualifiedName
    if_exists: bool = False
    is_view: bool = False
    is_purging: bool = False

    def run(self, state: ShellState) -> None:
        try:
            kind = state.table(self.table).tableType
        except CommandRefused:
            if self.if_exists:
                return
            raise
        is_view = kind in ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")
        if is_view != self.is_view:
            raise CommandRefused(f"{self.table} is a {'view; DROP VIEW' if is_view else 'table; DROP TABLE'} drops it")
        context = EnvironmentContext(properties={"ifPurge": "TRUE"} if self.is_purging else {})
        name = self.table
        _dropped(
            lambda: state.call("drop_table_with_environment_context", name.db_name, name.table_name, True, context),
            f"table {name}",
            self.if_exists,
        )


class Truncate(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec = ()

    def run(self, state: ShellState) -> None:
        names = partition_names(state, self.table, self.spec) if self.spec else None
        if names == []:
            raise CommandRefused(f"table {self.table} does not have such a partition")
        state.call("truncate_table", self.table.db_name, self.table.table_name, names)


def _made(create: Callable[[], None], if_not_exists: bool) -> None:
    try:
        create()
    except AlreadyExistsException as error:
        if not if_not_exists:
            raise CommandRefused(f"{error.message}; IF NOT EXISTS leaves it as it is") from error


def view_query(state: ShellState, statement: CreateView | AlterViewQuery) -> ViewQuery:
    """Raises CommandError and Refused."""

    def columns_of(name: QualifiedName) -> Mapping[str, str]:
        table = state.table(name)
        return {
            column.name or "": column.type or ""
            for column in [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]
        }

    with counted_from(statement.query_begin):
        return read_view_query(statement.query, state.database, columns_of)


def _view(statement: CreateView, query: ViewQuery, state: ShellState) -> Table:
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


def _dropped(drop: Callable[[], None], what: str, if_exists: bool) -> None:
    try:
        drop()
    except NoSuchObjectException as error:
        if not if_exists:
            raise CommandRefused(f"{what} does not exist") from error
