"""Making and removing tables, with their directories, for methods on tables and on indexes (semantics §2.6)."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from hms_gateway.catalog.access.grant_rows import GrantRows, creation_grants
from hms_gateway.catalog.constraints import ConstraintRules, with_table
from hms_gateway.catalog.directories.known_places import KnownPlaces
from hms_gateway.catalog.directories.warehouse import DirectoryMoves, Warehouse
from hms_gateway.catalog.materialized_views import (
    check_creation_metadata,
    note_sources,
    stored_creation_metadata,
)
from hms_gateway.catalog.tables.catalogs import check_apart, homes_in
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import database_not_found, required, unstorable_as_meta
from hms_gateway.metastore.checks.table_shape import (
    check_serde,
    check_shape,
    check_skewed_columns,
    stored_table,
    transactional_parameters,
    with_location,
    with_parameters,
)
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    DuplicateKey,
    LeftDirectory,
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
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.metastore.vocabulary.table_types import (
    created_parameters,
    drop_deletes_data,
    is_external,
    is_view,
)
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    EnvironmentContext,
    InvalidObjectException,
    Struct,
    Table,
)
from hms_gateway.rpc.structs.catalogs import catalog_of
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import creation_seconds, is_recorded
from hms_gateway.storage.files.directories import Directories

_LOG: Final = logging.getLogger(__name__)


class TableService:
    """Names are as callers spell them, without catalog."""

    def __init__(
        self, store: Store, files: Directories, clock: Clock, settings: MetastoreSettings, events: EventMaker
    ) -> None:
        self._store = store
        self._clock = clock
        self._warehouse: Final = Warehouse(settings, files)
        self._moves: Final = DirectoryMoves(store, files)
        self._known: Final = KnownPlaces(store, files)
        self._events = events
        self._constraints = ConstraintRules(events, clock)

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
        # Some clients send the default place.
        if location == self._warehouse.default_table_location(database.database, new.tableName or ""):
            self._store.read(lambda snapshot: check_apart(snapshot, location, catalog_of(new.dbName)))
        if is_view(new.tableType) or not location or not self._warehouse.manages(location):
            self._insert(new, given, complete)
            return
        name = (new.dbName or "", new.tableName or "")

        def is_used() -> bool:
            winner = self._store.read(lambda snapshot: snapshot.table(*name))
            return winner is not None and winner.table.sd is not None and winner.table.sd.location == location

        with self._warehouse.directory_made(location, is_used) as made:
            if not keeps_statistics:
                new = self._with_statistics(new, location, environment, directory_existed=not made)
            self._insert(new, given, complete)

    def preview(self, table: Table | None) -> Table:
        """What create_table would store, without doing it. Raises as `create`."""
        given = required(table, "table")
        new, _ = self._taken_mark(self._checked(given, allows_hyphen=True))
        return self._located(new, given, self._store.read(lambda snapshot: _check_name_free(snapshot, new, given)))

    def remove(self, tx: Transaction, found: StoredTable, *, delete_data: bool) -> list[LeftDirectory]:
        """Take a table, which may be an index table, out of the catalog; the directories to delete after the commit."""
        table = found.table
        locations: list[str] = []
        if delete_data and drop_deletes_data(table.parameters or {}) and table.sd and table.sd.location:
            locations = [table.sd.location, *(tx.outside_locations(found) if found.partition_count else [])]
        # A rename may have moved the directory and not stored it yet; without its pending move it cannot any more.
        moved = self._moves.cancel(tx, found.table_id)
        tx.delete_table(found.table_id)
        tx.append_event(self._events.drop_table(table))
        return [*moved, *map(LeftDirectory, locations)] if locations else []

    def delete_directories(self, directories: Sequence[LeftDirectory]) -> None:
        """Delete what `remove` has left. A directory stays if it cannot be deleted, or holds a database or catalog."""
        if not directories:
            return
        try:
            homes = self._store.read(lambda snapshot: homes_in(snapshot, [one.location for one in directories]))
        except StoreError as error:
            _LOG.warning("Kept %s, and other directories of a dropped table: %s", directories[0].location, error)
            return
        for one in directories:
            try:
                if any(is_under(one.location, home) for home in homes):
                    _LOG.warning("Kept %s: a database or catalog lies in it", one.location)
                elif one.may_be_used and not self._known.is_unused(one.location):
                    _LOG.warning("Kept %s: another object of the catalog uses it", one.location)
                else:
                    self._warehouse.delete(one.location)
            except StoreError as error:
                _LOG.warning("Kept %s: it may be used: %s", one.location, error)

    def _checked(self, given: Table, *, allows_hyphen: bool) -> Table:
        check_shape(given, allows_hyphen=allows_hyphen, refusal=InvalidObjectException, checks_keys=True)
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
        if is_view(table.tableType) or table.partitionKeys:
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
        counts = create_counts_files(
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
        location = table.sd.location if table.sd else None

        def work(tx: Transaction) -> None:
            database = _check_name_free(tx, table, given)
            if location and not is_view(table.tableType):
                self._moves.check_at_rest(tx, location)
            table_id = tx.insert_table(database.database_id, table)
            tx.append_event(self._events.create_table(table))
            complete(tx, table_id)

        try:
            with unstorable_as_meta():
                self._store.write(CatalogWork(work, [(table.dbName or "", table.tableName or "")], new_tables=1))
        except DuplicateKey as error:
            raise _taken(given) from error


def _check_name_free(snapshot: Snapshot, table: Table, given: Table) -> StoredDatabase:
    """The database of a new table. Raises InvalidObjectException without it, AlreadyExistsException when taken."""
    db_name, tbl_name = table.dbName or "", table.tableName or ""
    snapshot.foresee([(db_name, tbl_name)])
    database = snapshot.database(db_name)
    if database is None:
        raise InvalidObjectException(database_not_found(given.dbName).message)
    if snapshot.table(db_name, tbl_name) is not None:
        raise _taken(given)
    return database


def _taken(given: Table) -> AlreadyExistsException:
    return AlreadyExistsException(f"Table {given.tableName} already exists")
