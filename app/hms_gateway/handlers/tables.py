"""Methods on databases."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from hms_gateway.catalog.arguments import (
    database_name,
    in_catalog,
    is_newer,
    table_in,
    table_named,
    table_shown,
    with_fields,
)
from hms_gateway.catalog.constraints import plain
from hms_gateway.catalog.materialized_views import complete_view
from hms_gateway.catalog.statistics.aggregation import table_for
from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsService
from hms_gateway.catalog.tables.alter import AlterTableService
from hms_gateway.catalog.tables.databases import DatabaseService
from hms_gateway.catalog.tables.service import TableService
from hms_gateway.catalog.tables.truncate import TruncateService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Store
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG
from hms_gateway.metastore.vocabulary.table_types import is_insert_only
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.structs import (
    AlterDatabaseRequest,
    AlterTableRequest,
    AlterTableResponse,
    AsyncOperationResp,
    ClientCapabilities,
    ClientCapability,
    CreateDatabaseRequest,
    CreateTableRequest,
    Database,
    DropDatabaseRequest,
    DropTableRequest,
    EnvironmentContext,
    ExtendedTableInfo,
    GetDatabaseObjectsRequest,
    GetDatabaseObjectsResponse,
    GetDatabaseRequest,
    GetTableRequest,
    GetTableResult,
    GetTablesExtRequest,
    GetTablesRequest,
    GetTablesResult,
    MetaException,
    NoSuchObjectException,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
    Table,
    TableMeta,
    TruncateTableRequest,
    TruncateTableResponse,
)


class Databases:
    def __init__(self, databases: DatabaseService) -> None:
        self._databases = databases

    def create_database(self, call: Call, database: Database) -> None:
        newer = is_newer(call, None if database is None else database.name)
        self._databases.create(_plain_database(database), allows_hyphen=newer)

    def create_database_req(self, call: Call, createDatabaseRequest: CreateDatabaseRequest) -> None:
        request = required(createDatabaseRequest, "createDatabaseRequest")
        self._databases.create(
            Database(
                name=in_catalog(request.catalogName, request.databaseName),
                description=request.description,
                locationUri=request.locationUri,
                parameters=request.parameters,
                ownerName=request.ownerName,
                ownerType=request.ownerType,
                managedLocationUri=request.managedLocationUri,
                type=request.type,
                connector_name=request.dataConnectorName,
                remote_dbname=request.remote_dbname,
            ),
            allows_hyphen=True,
        )

    def get_database(self, call: Call, name: str) -> Database:
        """2.3 has no time of creation, so its callers are not sent one."""
        database = self._databases.get(database_name(name))
        return _with_catalog(database) if is_newer(call, name) else with_fields(database, createTime=None)

    def get_database_req(self, call: Call, request: GetDatabaseRequest) -> Database:
        request = required(request, "request")
        return _with_catalog(self._databases.get(in_catalog(request.catalogName, request.name)))

    def drop_database(self, call: Call, name: str, deleteData: bool, cascade: bool) -> None:
        self._databases.drop(database_name(name), bool(deleteData), bool(cascade))

    def drop_database_req(self, call: Call, req: DropDatabaseRequest) -> AsyncOperationResp:
        """Dropped at once, also when the caller would wait; `softDelete` and `deleteManagedDir` belong to ACID."""
        request = required(req, "req")
        name = in_catalog(request.catalogName, request.name)
        try:
            self._databases.drop(name, bool(request.deleteData), bool(request.cascade))
        except NoSuchObjectException:
            if not request.ignoreUnknownDb:
                raise
        return AsyncOperationResp(id=request.id or "", finished=True)

    def get_databases(self, call: Call, pattern: str) -> list[str]:
        return self._databases.names(database_name(pattern))

    def get_databases_req(self, call: Call, request: GetDatabaseObjectsRequest) -> GetDatabaseObjectsResponse:
        request = required(request, "request")
        pattern = None if request.pattern is None else in_catalog(request.catalogName, request.pattern)
        return GetDatabaseObjectsResponse([_with_catalog(found) for found in self._databases.objects(pattern)])

    def get_all_databases(self, call: Call) -> list[str]:
        return self._databases.names()

    def alter_database(self, call: Call, dbname: str, db: Database) -> None:
        self._databases.alter(database_name(dbname), db, changes_place=is_newer(call, dbname))

    def alter_database_req(self, call: Call, alterDbReq: AlterDatabaseRequest) -> None:
        request = required(alterDbReq, "alterDbReq")
        self._databases.alter(database_name(request.oldDbName), request.newDb, changes_place=True)


def _plain_database(database: Database | None) -> Database | None:
    """A new database under the name it has within the one catalog."""
    if database is None or database.name is None:
        return database
    return with_fields(database, name=in_catalog(database.catalogName, database.name))


def _with_catalog(database: Database) -> Database:
    return with_fields(database, catalogName=DEFAULT_CATALOG)


# Methods on tables.


T = TypeVar("T")

_NO_INSERT_ONLY: Final = (
    "Your client does not appear to support insert-only tables. To skip capability checks, please set"
    " metastore.client.capability.check to false. This setting can be set globally, or on the client for the current"
    " metastore session. Note that this may lead to incorrect results, data loss, undefined behavior, etc. if your"
    " client is actually incompatible. You can also specify custom client capabilities via get_table_req API."
)


class Tables:
    def __init__(
        self,
        tables: TableService,
        alterations: AlterTableService,
        truncations: TruncateService,
        statistics: ColumnStatisticsService,
        store: Store,
    ) -> None:
        """`statistics` come in with a new table, and go out with one where a call asks for them."""
        self._statistics = statistics
        self._store = store
        self._tables = tables
        self._alterations = alterations
        self._truncations = truncations

    def create_table(self, call: Call, tbl: Table) -> None:
        self._create(call, tbl)

    def create_table_with_environment_context(
        self, call: Call, tbl: Table, environment_context: EnvironmentContext
    ) -> None:
        self._create(call, tbl, environment_context)

    def create_table_with_constraints(
        self,
        call: Call,
        tbl: Table,
        primaryKeys: list[SQLPrimaryKey],
        foreignKeys: list[SQLForeignKey],
        uniqueConstraints: list[SQLUniqueConstraint],
        notNullConstraints: list[SQLNotNullConstraint],
        defaultConstraints: list[SQLDefaultConstraint],
        checkConstraints: list[SQLCheckConstraint],
    ) -> None:
        constraints = _joined(
            primaryKeys, foreignKeys, uniqueConstraints, notNullConstraints, defaultConstraints, checkConstraints
        )
        self._create(call, tbl, constraints=constraints)

    def create_table_req(self, call: Call, request: CreateTableRequest) -> None:
        request = required(request, "request")
        constraints = _joined(
            request.primaryKeys,
            request.foreignKeys,
            request.uniqueConstraints,
            request.notNullConstraints,
            request.defaultConstraints,
            request.checkConstraints,
        )
        self._create(call, request.table, request.envContext, constraints)

    def translate_table_dryrun(self, call: Call, request: CreateTableRequest) -> Table:
        return _table_with_catalog(self._tables.preview(_plain_table(required(request, "request").table)))

    def drop_table(self, call: Call, dbname: str, name: str, deleteData: bool) -> None:
        self._tables.drop(table_named(dbname, name), bool(deleteData))

    def drop_table_with_environment_context(
        self, call: Call, dbname: str, name: str, deleteData: bool, environment_context: EnvironmentContext
    ) -> None:
        self._tables.drop(table_named(dbname, name), bool(deleteData))

    def drop_table_req(self, call: Call, dropTableReq: DropTableRequest) -> AsyncOperationResp:
        """Dropped at once, also when the caller would wait."""
        request = required(dropTableReq, "dropTableReq")
        name = table_in(request.catalogName, request.dbName, request.tableName)
        self._tables.drop(name, bool(request.deleteData))
        return AsyncOperationResp(id=request.id or "", finished=True)

    def truncate_table(self, call: Call, dbName: str, tableName: str, partNames: list[str]) -> None:
        self._truncations.truncate(table_named(dbName, tableName), partNames)

    def truncate_table_req(self, call: Call, req: TruncateTableRequest) -> TruncateTableResponse:
        request = required(req, "req")
        name = table_named(request.dbName, request.tableName)
        self._truncations.truncate(name, request.partNames, request.environmentContext, request.writeId)
        return TruncateTableResponse()

    def get_tables(self, call: Call, db_name: str, pattern: str) -> list[str]:
        return self._tables.names(database_name(db_name), pattern)

    def get_tables_by_type(self, call: Call, db_name: str, pattern: str, tableType: str) -> list[str]:
        return self._tables.names_of_type(database_name(db_name), pattern, tableType)

    def get_table_meta(self, call: Call, db_patterns: str, tbl_patterns: str, tbl_types: list[str]) -> list[TableMeta]:
        metas = self._tables.metas(database_name(db_patterns), tbl_patterns, tbl_types)
        if not is_newer(call, db_patterns):
            return metas
        return [with_fields(meta, catName=DEFAULT_CATALOG) for meta in metas]

    def get_all_tables(self, call: Call, db_name: str) -> list[str]:
        return self._tables.names(database_name(db_name))

    def get_tables_ext(self, call: Call, req: GetTablesExtRequest) -> list[ExtendedTableInfo]:
        request = required(req, "req")
        return self._tables.extended(
            required(in_catalog(request.catalog, request.database), "database"),
            required(request.tableNamePattern, "tableNamePattern"),
            request.requestedFields or 0,
            request.limit,
        )

    def get_table(self, call: Call, dbname: str, tbl_name: str) -> Table | Uncacheable[Table]:
        name = table_named(dbname, tbl_name)
        table = self._shown(name) if is_newer(call, dbname) else self._tables.get(name)
        return _checked(call, table, [table])

    def get_table_req(self, call: Call, req: GetTableRequest) -> GetTableResult | Uncacheable[GetTableResult]:
        request = required(req, "req")
        name = table_shown(call, request.dbName, request.tblName, request.catName)
        table = self._shown(name) if name.shown_catalog else self._tables.get(name)
        if request.getColumnStats:
            table = self._statistics.with_table_statistics(name, table, request.engine, request.validWriteIdList)
        table = table_for(table, request.validWriteIdList)
        return _checked(call, GetTableResult(table), [table], request.capabilities)

    def get_table_objects_by_name(
        self, call: Call, dbname: str, tbl_names: list[str]
    ) -> list[Table] | Uncacheable[list[Table]]:
        tables = self._objects(database_name(dbname), tbl_names, newer=is_newer(call, dbname))
        return _checked(call, tables, tables)

    def get_table_objects_by_name_req(
        self, call: Call, req: GetTablesRequest
    ) -> GetTablesResult | Uncacheable[GetTablesResult]:
        """4.x may send a pattern instead of names; the projection it may send as well is only a permission."""
        request = required(req, "req")
        db_name, names = in_catalog(request.catName, request.dbName), request.tblNames
        if names is None and request.tablesPattern is not None:
            names = self._tables.names(db_name, request.tablesPattern)
        newer = is_newer(call, request.dbName) or request.catName is not None
        tables = self._objects(db_name, names, newer=newer)
        return _checked(call, GetTablesResult(tables), tables, request.capabilities)

    def get_table_names_by_filter(self, call: Call, dbname: str, filter: str, max_tables: int) -> list[str]:
        return self._tables.names_by_filter(database_name(dbname), filter, max_tables)

    def alter_table(self, call: Call, dbname: str, tbl_name: str, new_tbl: Table) -> None:
        name = table_named(dbname, tbl_name)
        self._alterations.alter(name, _plain_table(new_tbl), by_newer=is_newer(call, dbname))

    def alter_table_with_environment_context(
        self, call: Call, dbname: str, tbl_name: str, new_tbl: Table, environment_context: EnvironmentContext
    ) -> None:
        name = table_named(dbname, tbl_name)
        newer = is_newer(call, dbname)
        self._alterations.alter(name, _plain_table(new_tbl), environment_context, by_newer=newer)

    def alter_table_with_cascade(self, call: Call, dbname: str, tbl_name: str, new_tbl: Table, cascade: bool) -> None:
        name = table_named(dbname, tbl_name)
        newer = is_newer(call, dbname)
        self._alterations.alter(name, _plain_table(new_tbl), cascade=bool(cascade), by_newer=newer)

    def alter_table_req(self, call: Call, req: AlterTableRequest) -> AlterTableResponse:
        request = required(req, "req")
        table = _plain_table(request.table)
        if table is not None and request.writeId is not None and request.writeId > 0:
            table = with_fields(table, writeId=request.writeId)
        self._alterations.alter(
            table_in(request.catName, request.dbName, request.tableName),
            table,
            request.environmentContext,
            valid_write_ids=request.validWriteIdList,
            expected_key=request.expectedParameterKey,
            expected_value=request.expectedParameterValue,
            by_newer=True,
        )
        return AlterTableResponse()

    def _create(
        self,
        call: Call,
        table: Table | None,
        environment: EnvironmentContext | None = None,
        constraints: Sequence[Struct] = (),
    ) -> None:
        new = _plain_table(table)
        by_newer = table is not None and (is_newer(call, table.dbName) or table.catName is not None)
        on_insert = None if new is None or new.colStats is None else self._statistics.of_new_table(new)
        self._tables.create(new, environment, on_insert, constraints=constraints, allows_hyphen=by_newer)

    def _shown(self, name: TableName) -> Table:
        """A table as newer callers see it."""
        return _table_with_catalog(complete_view(self._store, self._tables.get(name, tells_id=True)))

    def _objects(self, db_name: str | None, names: Sequence[str] | None, *, newer: bool) -> list[Table]:
        if not newer:
            return self._tables.objects(db_name, names)
        tables = self._tables.objects(db_name, names, tells_ids=True)
        return [_table_with_catalog(complete_view(self._store, table)) for table in tables]


def _checked(
    call: Call, answer: T, tables: Sequence[Table], capabilities: ClientCapabilities | None = None
) -> T | Uncacheable[T]:
    """The answer, of which these are the tables. Raises MetaException for one that the caller cannot read.

    What depends on more than arguments is not kept: views with their sources, and what a header lets the caller have.
    """
    allows_by_header = False
    if any(is_insert_only(table.parameters or {}) for table in tables):
        sent = (None if capabilities is None else capabilities.values) or ()
        if ClientCapability.INSERT_ONLY_TABLES not in sent:
            named = (call.capabilities or "").split(",")
            allows_by_header = ClientCapability.INSERT_ONLY_TABLES.name in map(str.strip, named)
            if not allows_by_header:
                raise MetaException(_NO_INSERT_ONLY)
    return Uncacheable(answer) if allows_by_header or any(map(_has_others_inside, tables)) else answer


def _has_others_inside(table: Table) -> bool:
    """Whether it is a view with the tables it was built from, which change without it."""
    return table.creationMetadata is not None and bool(table.creationMetadata.sourceTables)


def _plain_table(table: Table | None) -> Table | None:
    """A table sent by a client, its database under the name it has within the one catalog."""
    if table is None or table.dbName is None:
        return table
    return with_fields(table, dbName=in_catalog(table.catName, table.dbName))


def _table_with_catalog(table: Table) -> Table:
    return with_fields(table, catName=DEFAULT_CATALOG)


def _joined(*constraints: Any) -> list[Struct]:
    """Lists of constraints as one."""
    return [column for each in constraints for column in plain(each) or ()]
