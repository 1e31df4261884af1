"""Tables: create, read and drop, with their directories (semantics §2.6). Changing one is `alter_table`."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from hms_gateway.catalog.access.grant_rows import GrantRows, creation_grants
from hms_gateway.catalog.constraints import ConstraintRules, with_table
from hms_gateway.catalog.directories.warehouse import Warehouse
from hms_gateway.catalog.indexes import IndexRows, remove_index
from hms_gateway.catalog.materialized_views import (
    check_creation_metadata,
    note_sources,
    stored_creation_metadata,
    with_id,
)
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import database_not_found, required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.checks.table_shape import (
    check_serde,
    check_shape,
    check_skewed_columns,
    stored_table,
    transactional_parameters,
    with_location,
    with_parameters,
)
from hms_gateway.metastore.filters.grammar import FilterError
from hms_gateway.metastore.filters.table_filter import parse_table_filter
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    DuplicateKey,
    FileSystem,
    OutcomeUnknown,
    Snapshot,
    Store,
    StoredDatabase,
    StoredTable,
    StoreError,
    TableId,
    Transaction,
)
from hms_gateway.metastore.vocabulary.locations import is_under
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.parameters import create_counts_files, take_do_not_update, with_fast_statistics
from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_pattern
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.metastore.vocabulary.table_types import (
    TableType,
    TableTypeError,
    created_parameters,
    drop_deletes_data,
    is_external,
    is_view,
    parse_table_type,
)
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    EnvironmentContext,
    ExtendedTableInfo,
    GetTablesExtRequestFields,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    Struct,
    Table,
    TableMeta,
    UnknownDBException,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import DEFAULT_LIMITS, Limits
from hms_gateway.runtime.presented import creation_seconds, is_recorded

# What a table allows a client to do with it, as 4.x counts it: reading and writing.
_ACCESS_READ_WRITE: Final = 8


class TableService:
    """What the metastore does with tables. Names are as callers spell them, without catalog."""

    def __init__(
        self,
        store: Store,
        files: FileSystem,
        clock: Clock,
        settings: MetastoreSettings,
        to_tjson: Callable[[Struct], bytes],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._limits = limits
        self._warehouse: Final = Warehouse(settings, files)
        self._events = EventMaker(settings, clock, to_tjson)
        self._constraints = ConstraintRules(self._events, clock)

    def create(
        self,
        table: Table | None,
        environment: EnvironmentContext | None = None,
        on_insert: Callable[[Transaction], None] | None = None,
        *,
        constraints: Sequence[Struct] = (),
        allows_hyphen: bool = False,
    ) -> None:
        """Make a table with the privileges it comes with, and with its constraints.

        `on_insert` runs in the same unit of work, once the table is there; what it raises prevents the table as well. A
        constraint that names no table is on this one. With `allows_hyphen` its name may have some, as from Hive 4 on.
        Raises AlreadyExistsException, InvalidObjectException, MetaException (semantics §2.6, §3.3).
        """
        given = required(table, "table")
        new, keeps_statistics = self._taken_mark(self._checked(given, allows_hyphen=allows_hyphen))

        def complete(tx: Transaction, table_id: TableId) -> None:
            self._constraints.add(tx, with_table(constraints, new))
            if given.privileges is not None:
                GrantRows(tx).insert(list(creation_grants(given.privileges, table_id, self._clock.seconds())))
            if given.creationMetadata is not None:
                note_sources(tx, table_id, given.creationMetadata)
            if on_insert is not None:
                on_insert(tx)

        database = self._store.read(lambda snapshot: _check_name_free(snapshot, new, given), asks_once=True)
        new = self._located(new, given, database)
        location = new.sd.location if new.sd else None
        if is_view(new.tableType) or not location or not self._warehouse.manages(location):
            self._insert(new, given, complete)
            return
        made = self._warehouse.make_directory(location)
        try:
            if not keeps_statistics:
                new = self._with_statistics(new, location, environment, directory_existed=not made)
            self._insert(new, given, complete)
        except OutcomeUnknown:
            raise
        except BaseException:
            self._take_back(new, location, made)
            raise
        if not made:
            # A call whose own creation failed may have removed the directory found here.
            self._warehouse.make_directory(location)

    def preview(self, table: Table | None) -> Table:
        """What create_table would store, without doing it. Raises as `create`."""
        given = required(table, "table")
        new, _ = self._taken_mark(self._checked(given, allows_hyphen=True))
        return self._located(new, given, self._store.read(lambda snapshot: _check_name_free(snapshot, new, given)))

    def get(self, name: TableName, *, tells_id: bool = False) -> Table:
        """Its id is left out unless asked for: callers before 4 do not know it.

        Raises NoSuchObjectException `db.t table not found`, MetaException.
        """
        found = self._store.read(name.load, asks_once=True)
        return msgspec.structs.replace(found.table, id=found.table_id) if tells_id else found.table

    def drop(self, name: TableName, delete_data: bool) -> None:
        """Raises NoSuchObjectException, MetaException.

        Data goes after the commit, when asked for and when the table owns it (semantics §2.6). Without a
        trash, purging makes no difference.
        """
        work = CatalogWork(lambda tx: self._drop(tx, name, delete_data=delete_data), name.foreseen)
        self.delete_directories(self._store.write(work))

    def remove(self, tx: Transaction, found: StoredTable, *, delete_data: bool) -> list[str]:
        """Take a table, which may be an index table, out of the catalog; the directories to delete after the commit."""
        table = found.table
        locations: list[str] = []
        if delete_data and drop_deletes_data(table.parameters or {}) and table.sd and table.sd.location:
            locations = [table.sd.location, *(tx.outside_locations(found) if found.partition_count else [])]
            database = tx.database(table.dbName or "")
            assert database is not None
            home = self._warehouse.path_of(database.database)
            locations = [location for location in locations if not is_under(location, home)]
        # A rename may have moved the directory and not stored it yet; without its pending move it cannot any more.
        for move in tx.pending_moves():
            if move.table_id == found.table_id:
                tx.delete_pending_move(move.move_id)
                if locations:
                    locations.insert(0, move.target)
        tx.delete_table(found.table_id)
        tx.append_event(self._events.drop_table(table))
        return locations

    def delete_directories(self, locations: Sequence[str]) -> None:
        """What `remove` has left behind. A directory that cannot be deleted stays."""
        for location in locations:
            self._warehouse.delete(location)

    def names(self, db_name: str | None, pattern: str | None = None, table_type: str | None = None) -> list[str]:
        """Sorted; those matching the pattern and of the type, where given. An unknown database has none."""
        key = normalize(required(db_name, "database name"))
        if "\0" in key or "\0" in (pattern or ""):
            return []
        parsed = None if pattern is None else parse_pattern(pattern)
        return self._store.read(lambda snapshot: snapshot.table_names(key, parsed, table_type))

    def names_of_type(self, db_name: str | None, pattern: str | None, table_type: str | None) -> list[str]:
        """As `names`. Raises MetaException for a type Hive does not know, and for none (semantics §1.7)."""
        try:
            return self.names(db_name, pattern, parse_table_type(table_type).value)
        except TableTypeError as error:
            raise MetaException(str(error)) from error

    def names_by_filter(self, db_name: str | None, filter: str | None, max_tables: int) -> list[str]:
        """Raises UnknownDBException, InvalidOperationException, MetaException (semantics §2.6)."""
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

    def metas(
        self, db_pattern: str | None, tbl_pattern: str | None, table_types: Sequence[str] | None
    ) -> list[TableMeta]:
        """Names, types and comments; no pattern and no types mean all (semantics §1.5, §1.7)."""
        if any("\0" in text for text in (db_pattern or "", tbl_pattern or "", *(table_types or ()))):
            return []
        databases, tables = _pattern(db_pattern), _pattern(tbl_pattern)
        return self._store.read(lambda snapshot: snapshot.table_metas(databases, tables, table_types or None))

    def objects(self, db_name: str | None, tbl_names: Sequence[str] | None, *, tells_ids: bool = False) -> list[Table]:
        """The tables of these names, each once; unknown ones are left out. Of no names there are none, in any database.

        Raises UnknownDBException for a database that is missing or not named, InvalidOperationException without names.
        """
        if not db_name:
            raise UnknownDBException("DB name is null or empty")
        if tbl_names is None:
            raise InvalidOperationException(f"{db_name} cannot find null tables")
        if not tbl_names:
            return []
        wanted = [name for name in map(normalize, dict.fromkeys(tbl_names)) if "\0" not in name]

        def work(snapshot: Snapshot) -> list[Table]:
            key = normalize(db_name)
            if "\0" in key or snapshot.database(key) is None:
                raise UnknownDBException(f"Could not find database {db_name}")
            tables = snapshot.tables(key, wanted) if wanted else []
            return [with_id(found) if tells_ids else found.table for found in tables]

        return self._store.read(work)

    def extended(self, db_name: str, pattern: str, requested_fields: int, limit: int | None) -> list[ExtendedTableInfo]:
        """Names with what 4.x asks about access, ordered by name (semantics §10.3)."""
        key, parsed = normalize(db_name), parse_pattern(pattern)
        with_access = bool(requested_fields & GetTablesExtRequestFields.ACCESS_TYPE)
        with_capabilities = bool(requested_fields & GetTablesExtRequestFields.PROCESSOR_CAPABILITIES)

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

    def _checked(self, given: Table, *, allows_hyphen: bool) -> Table:
        check_shape(
            given,
            allows_slash=self._settings.allows_slash_in_table_names,
            allows_hyphen=allows_hyphen,
            refusal=InvalidObjectException,
            checks_keys=True,
        )
        check_skewed_columns(given, InvalidObjectException)
        now = self._clock.seconds()
        new = stored_table(given, normalize(required(given.dbName, "database name")), now)
        new = msgspec.structs.replace(new, createTime=creation_seconds(given.createTime, now))
        if given.creationMetadata is not None:
            check_creation_metadata(given.creationMetadata)
            stored = stored_creation_metadata(given.creationMetadata, new, self._clock.milliseconds())
            new = msgspec.structs.replace(new, creationMetadata=stored)
        if is_recorded():
            return new
        return with_parameters(new, transactional_parameters(created_parameters, new))

    def _taken_mark(self, table: Table) -> tuple[Table, bool]:
        """Without the mark DO_NOT_UPDATE_STATS where files of such a table are counted, and whether it was set."""
        if is_view(table.tableType) or table.partitionKeys or not self._settings.gathers_statistics:
            return table, False
        parameters, keeps_statistics = take_do_not_update(table.parameters or {})
        return with_parameters(table, parameters), keeps_statistics

    def _located(self, new: Table, given: Table, database: StoredDatabase) -> Table:
        check_serde(given.sd)
        location = new.sd.location if new.sd else None
        if is_view(new.tableType):
            return with_location(new, self._warehouse.normalized(location) if location else None)
        place = self._warehouse.new_table_location(database.database, new.tableName or "", location)
        self._warehouse.check_place(place, is_owned=not is_external(new.parameters or {}))
        return with_location(new, place)

    def _with_statistics(
        self, table: Table, location: str, environment: EnvironmentContext | None, *, directory_existed: bool
    ) -> Table:
        parameters = table.parameters or {}
        counts = self._settings.gathers_statistics and create_counts_files(
            table.tableType,
            parameters,
            is_partitioned=bool(table.partitionKeys),
            directory_existed=directory_existed,
        )
        if not counts:
            return table
        file_count, total_bytes = self._warehouse.statistics(location)
        properties = environment.properties if environment else None
        return with_parameters(table, with_fast_statistics(parameters, file_count, total_bytes, properties))

    def _insert(self, table: Table, given: Table, complete: Callable[[Transaction, TableId], None]) -> None:
        def work(tx: Transaction) -> None:
            database = _check_name_free(tx, table, given)
            table_id = tx.insert_table(database.database_id, table)
            tx.append_event(self._events.create_table(table))
            complete(tx, table_id)

        try:
            with unstorable_as_meta():
                self._store.write(CatalogWork(work, [(table.dbName or "", table.tableName or "")], new_tables=1))
        except DuplicateKey as error:
            raise _taken(given) from error

    def _take_back(self, table: Table, location: str, made: bool) -> None:
        """Remove a directory made for a table that could not be stored, unless the one who could lives in it."""
        if not made:
            return
        try:
            winner = self._store.read(lambda snapshot: snapshot.table(table.dbName or "", table.tableName or ""))
        except StoreError:
            return  # Better an empty directory too many than one that is missing.
        if winner is None or not winner.table.sd or winner.table.sd.location != location:
            self._warehouse.discard(location)

    def _drop(self, tx: Transaction, name: TableName, *, delete_data: bool) -> list[str]:
        found = name.load(tx)
        table = found.table
        if table.tableType == TableType.INDEX_TABLE:
            raise MetaException(
                f"java.lang.RuntimeException: The table {table.tableName} is an index table."
                " Please do drop index instead."
            )
        locations = [
            location
            for index in (IndexRows(tx).of_table(found.table_id) if found.has_indexes else ())
            for location in remove_index(tx, index, self, self._events, delete_data=True)
        ]
        return [*locations, *self.remove(tx, found, delete_data=delete_data)]


def _pattern(text: str | None) -> Pattern | None:
    return None if text is None else parse_pattern(text)


def _check_name_free(snapshot: Snapshot, table: Table, given: Table) -> StoredDatabase:
    """The database of a new table. Raises InvalidObjectException without it, AlreadyExistsException when taken."""
    db_name, tbl_name = table.dbName or "", table.tableName or ""
    snapshot.foresee([(db_name, tbl_name)])
    database = None if "\0" in db_name else snapshot.database(db_name)
    if database is None:
        raise InvalidObjectException(database_not_found(given.dbName).message)
    if snapshot.table(db_name, tbl_name) is not None:
        raise _taken(given)
    return database


def _taken(given: Table) -> AlreadyExistsException:
    return AlreadyExistsException(f"Table {given.tableName} already exists")
