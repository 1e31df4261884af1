"""Methods on tables but for changes of one (semantics §2.6)."""

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
    with_plain_name,
)
from hms_gateway.catalog.constraints import plain
from hms_gateway.catalog.indexes import IndexRows, remove_index
from hms_gateway.catalog.materialized_views import complete_view, with_id
from hms_gateway.catalog.statistics.aggregation import table_for
from hms_gateway.catalog.statistics.column_statistics import StatisticsRules, with_table_statistics
from hms_gateway.catalog.tables.service import TableService
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.filters.grammar import FilterError
from hms_gateway.metastore.filters.table_filter import parse_table_filter
from hms_gateway.metastore.ports.store import CatalogWork, LeftDirectory, Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_database_pattern, parse_pattern
from hms_gateway.metastore.vocabulary.table_types import (
    TableType,
    TableTypeError,
    is_insert_only,
    parse_table_type,
)
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.structs import (
    AsyncOperationResp,
    ClientCapabilities,
    ClientCapability,
    CreateTableRequest,
    DropTableRequest,
    EnvironmentContext,
    ExtendedTableInfo,
    GetTableRequest,
    GetTableResult,
    GetTablesExtRequest,
    GetTablesExtRequestFields,
    GetTablesRequest,
    GetTablesResult,
    InvalidOperationException,
    MetaException,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
    Table,
    TableMeta,
    UnknownDBException,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG
from hms_gateway.runtime.limits import Limits

T = TypeVar("T")

# What a table allows a client to do with it, as 4.x counts it: reading and writing.
_ACCESS_READ_WRITE: Final = 8

_NO_INSERT_ONLY: Final = (
    "Your client does not appear to support insert-only tables. To skip capability checks, please set"
    " metastore.client.capability.check to false. This setting can be set globally, or on the client for the current"
    " metastore session. Note that this may lead to incorrect results, data loss, undefined behavior, etc. if your"
    " client is actually incompatible. You can also specify custom client capabilities via get_table_req API."
)


class Tables:
    def __init__(
        self,
        store: Store,
        tables: TableService,
        statistics: StatisticsRules,
        events: EventMaker,
        limits: Limits,
    ) -> None:
        """`statistics` come in with a new table."""
        self._store = store
        self._tables = tables
        self._statistics = statistics
        self._events = events
        self._limits = limits

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
        return _in_default_catalog(self._tables.preview(with_plain_name(required(request, "request").table)))

    def drop_table(self, call: Call, dbname: str, name: str, deleteData: bool) -> None:
        self._drop(table_named(dbname, name), deleteData)

    def drop_table_with_environment_context(
        self, call: Call, dbname: str, name: str, deleteData: bool, environment_context: EnvironmentContext
    ) -> None:
        self._drop(table_named(dbname, name), deleteData)

    def drop_table_req(self, call: Call, dropTableReq: DropTableRequest) -> AsyncOperationResp:
        """Dropped at once, also when the caller would wait."""
        request = required(dropTableReq, "dropTableReq")
        name = table_in(request.catalogName, request.dbName, request.tableName)
        self._drop(name, request.deleteData)
        return AsyncOperationResp(id=request.id or "", finished=True)

    def get_tables(self, call: Call, db_name: str, pattern: str) -> list[str]:
        """Sorted; an unknown database has none."""
        return self._names(database_name(db_name), pattern)

    def get_tables_by_type(self, call: Call, db_name: str, pattern: str, tableType: str) -> list[str]:
        """Answer as `get_tables`. Raises MetaException for a type Hive does not know, and for none (semantics §1.7)."""
        try:
            return self._names(database_name(db_name), pattern, parse_table_type(tableType).value)
        except TableTypeError as error:
            raise MetaException(str(error)) from error

    def get_table_meta(self, call: Call, db_patterns: str, tbl_patterns: str, tbl_types: list[str]) -> list[TableMeta]:
        """Names, types and comments; no pattern and no types mean all (semantics §1.5, §1.7)."""
        db_pattern = database_name(db_patterns)
        if any("\0" in text for text in (db_pattern or "", tbl_patterns or "", *(tbl_types or ()))):
            return []
        prefix, databases = parse_database_pattern(db_pattern)
        tables = _pattern(tbl_patterns)
        metas = self._store.read(lambda snapshot: snapshot.table_metas(databases, tables, tbl_types or None, prefix))
        if not is_newer(call, db_patterns):
            return metas
        return [with_fields(meta, catName=DEFAULT_CATALOG) for meta in metas]

    def get_all_tables(self, call: Call, db_name: str) -> list[str]:
        return self._names(database_name(db_name))

    def get_tables_ext(self, call: Call, req: GetTablesExtRequest) -> list[ExtendedTableInfo]:
        """Names with what 4.x asks about access, ordered by name (semantics §10.3)."""
        request = required(req, "req")
        key = normalize(required(in_catalog(request.catalog, request.database), "database"))
        pattern = required(request.tableNamePattern, "tableNamePattern")
        parsed, fields, limit = parse_pattern(pattern), request.requestedFields or 0, request.limit
        with_access = bool(fields & GetTablesExtRequestFields.ACCESS_TYPE)
        with_capabilities = bool(fields & GetTablesExtRequestFields.PROCESSOR_CAPABILITIES)

        def work(snapshot: Snapshot) -> list[ExtendedTableInfo]:
            names = snapshot.table_names(key, parsed, limit=None if limit is None or limit < 0 else limit)
            tables = {found.table.tableName: found.table for found in snapshot.tables(key, names)} if names else {}
            return [
                ExtendedTableInfo(
                    name,
                    _ACCESS_READ_WRITE if with_access else None,
                    tables[name].requiredReadCapabilities if with_capabilities else None,
                    tables[name].requiredWriteCapabilities if with_capabilities else None,
                )
                for name in names
            ]

        return [] if "\0" in key or "\0" in pattern else self._store.read(work)

    def get_table(self, call: Call, dbname: str, tbl_name: str) -> Table | Uncacheable[Table]:
        """Raises NoSuchObjectException `db.t table not found`, MetaException."""
        table = self._get(table_named(dbname, tbl_name), newer=is_newer(call, dbname))
        return _checked(call, table, [table])

    def get_table_req(self, call: Call, req: GetTableRequest) -> GetTableResult | Uncacheable[GetTableResult]:
        request = required(req, "req")
        name = table_shown(call, request.dbName, request.tblName, request.catName)
        table = self._get(name, newer=name.shown_catalog is not None)
        if request.getColumnStats:
            table = with_table_statistics(self._store, name, table, request.engine, request.validWriteIdList)
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
            names = self._names(db_name, request.tablesPattern)
        newer = is_newer(call, request.dbName) or request.catName is not None
        tables = self._objects(db_name, names, newer=newer)
        return _checked(call, GetTablesResult(tables), tables, request.capabilities)

    def get_table_names_by_filter(self, call: Call, dbname: str, filter: str, max_tables: int) -> list[str]:
        """Raises UnknownDBException, InvalidOperationException, MetaException (semantics §2.6)."""
        db_name = database_name(dbname)
        if not db_name:
            raise UnknownDBException("DB name is null or empty")
        if filter is None:
            raise InvalidOperationException(f"{db_name} cannot apply null filter")
        try:
            parsed = parse_table_filter(filter, self._limits)
        except FilterError as error:
            raise MetaException(str(error)) from error
        key = normalize(db_name)
        if "\0" in key or "\0" in filter:
            return []
        limit = None if max_tables < 0 else max_tables
        return self._store.read(lambda snapshot: snapshot.table_names(key, filter=parsed, limit=limit))

    def _create(
        self,
        call: Call,
        table: Table | None,
        environment: EnvironmentContext | None = None,
        constraints: Sequence[Struct] = (),
    ) -> None:
        new = with_plain_name(table)
        by_newer = table is not None and (is_newer(call, table.dbName) or table.catName is not None)
        on_insert = None if new is None or new.colStats is None else self._statistics.of_new_table(new)
        self._tables.create(new, environment, on_insert, constraints=constraints, allows_hyphen=by_newer)

    def _drop(self, name: TableName, delete_data: bool | None) -> None:
        """Raises NoSuchObjectException, MetaException.

        Data goes after the commit, when asked for and when the table owns it (semantics §2.6). Without a
        trash, purging makes no difference.
        """

        def work(tx: Transaction) -> list[LeftDirectory]:
            found = name.load(tx)
            table = found.table
            if table.tableType == TableType.INDEX_TABLE:
                raise MetaException(
                    f"java.lang.RuntimeException: The table {table.tableName} is an index table."
                    " Please do drop index instead."
                )
            of_indexes = [
                directory
                for index in (IndexRows(tx).of_table(found.table_id) if found.has_indexes else ())
                for directory in remove_index(tx, index, self._tables, self._events, delete_data=True)
            ]
            return [*of_indexes, *self._tables.remove(tx, found, delete_data=bool(delete_data))]

        self._tables.delete_directories(self._store.write(CatalogWork(work, name.foreseen)))

    def _get(self, name: TableName, *, newer: bool) -> Table:
        """Newer callers see the catalog, the id and the sources of a view; those before 4 do not know ids."""
        found = self._store.read(name.load, asks_once=True)
        return _in_default_catalog(complete_view(self._store, with_id(found))) if newer else found.table

    def _names(self, db_name: str | None, pattern: str | None = None, table_type: str | None = None) -> list[str]:
        """Sorted; those matching the pattern and of the type, where given. An unknown database has none."""
        key = normalize(required(db_name, "database name"))
        if "\0" in key or "\0" in (pattern or ""):
            return []
        parsed = _pattern(pattern)
        return self._store.read(lambda snapshot: snapshot.table_names(key, parsed, table_type))

    def _objects(self, db_name: str | None, names: Sequence[str] | None, *, newer: bool) -> list[Table]:
        """The tables of these names, each once; unknown ones are left out. Of no names there are none, in any database.

        Raises UnknownDBException for a database that is missing or not named, InvalidOperationException without names.
        """
        if not db_name:
            raise UnknownDBException("DB name is null or empty")
        if names is None:
            raise InvalidOperationException(f"{db_name} cannot find null tables")
        if not names:
            return []
        wanted = list(map(normalize, dict.fromkeys(names)))

        def work(snapshot: Snapshot) -> list[StoredTable]:
            key = normalize(db_name)
            if snapshot.database(key) is None:
                raise UnknownDBException(f"Could not find database {db_name}")
            return snapshot.tables(key, wanted)

        found = self._store.read(work)
        if not newer:
            return [one.table for one in found]
        return [_in_default_catalog(complete_view(self._store, with_id(one))) for one in found]


def _pattern(text: str | None) -> Pattern | None:
    return None if text is None else parse_pattern(text)


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


def _in_default_catalog(table: Table) -> Table:
    return with_fields(table, catName=DEFAULT_CATALOG)


def _joined(*constraints: Any) -> list[Struct]:
    """Lists of constraints as one."""
    return [column for each in constraints for column in plain(each or ())]
