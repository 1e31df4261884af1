"""Databases: create, read, alter and drop, with their directories (semantics §2.3)."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from hms_gateway.catalog.arguments import database_name, in_catalog, is_newer, with_fields
from hms_gateway.catalog.directories.warehouse import Warehouse
from hms_gateway.catalog.functions import FunctionRows
from hms_gateway.catalog.indexes import IndexRows, dropped_table
from hms_gateway.catalog.tables.catalogs import check_apart, homes_in, location_in_catalog
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import database_not_found, required, unstorable_as_meta
from hms_gateway.metastore.ports.store import (
    DatabaseId,
    DuplicateKey,
    Snapshot,
    Store,
    StoredDatabase,
    StoredTable,
    Transaction,
)
from hms_gateway.metastore.vocabulary.locations import is_under
from hms_gateway.metastore.vocabulary.names import (
    DEFAULT_DATABASE,
    InvalidName,
    check_database_name,
    is_default_database,
    normalize,
)
from hms_gateway.metastore.vocabulary.parameters import without_nulls
from hms_gateway.metastore.vocabulary.patterns import parse_database_pattern
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.metastore.vocabulary.table_types import drop_deletes_data
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    AlterDatabaseRequest,
    AsyncOperationResp,
    CreateDatabaseRequest,
    Database,
    DropDatabaseRequest,
    GetDatabaseObjectsRequest,
    GetDatabaseObjectsResponse,
    GetDatabaseRequest,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, catalog_of, catalog_prefix, plain_name, prefix_of
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import creation_seconds, is_recorded
from hms_gateway.storage.files.directories import Directories


class _Doomed(msgspec.Struct, frozen=True):
    """What the directories of a dropped database held, and what lies elsewhere.

    owned   locations of data that goes with the database
    kept    locations of external data, of catalogs, of other databases and of the warehouse, which stay
    """

    location: str
    owned: tuple[str, ...]
    kept: tuple[str, ...]


class Databases:
    """Methods on databases."""

    def __init__(
        self, store: Store, files: Directories, clock: Clock, settings: MetastoreSettings, events: EventMaker
    ) -> None:
        self._store = store
        self._warehouse: Final = Warehouse(settings, files)
        self._events = events
        self._clock = clock

    def create_database(self, call: Call, database: Database) -> None:
        given = required(database, "database")
        given = with_fields(given, name=_new_key(given.catalogName, given.name))
        self._create(given, allows_hyphen=is_newer(call, database.name))

    def create_database_req(self, call: Call, createDatabaseRequest: CreateDatabaseRequest) -> None:
        request = required(createDatabaseRequest, "createDatabaseRequest")
        self._create(
            Database(
                name=_new_key(request.catalogName, request.databaseName),
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
        database = self._get(database_name(name))
        return _in_default_catalog(database) if is_newer(call, name) else with_fields(database, createTime=None)

    def get_database_req(self, call: Call, request: GetDatabaseRequest) -> Database:
        request = required(request, "request")
        return _in_default_catalog(self._get(in_catalog(request.catalogName, request.name)))

    def drop_database(self, call: Call, name: str, deleteData: bool, cascade: bool) -> None:
        self._drop(database_name(name), bool(deleteData), bool(cascade))

    def drop_database_req(self, call: Call, req: DropDatabaseRequest) -> AsyncOperationResp:
        """Dropped at once, also when the caller would wait; `softDelete` and `deleteManagedDir` belong to ACID."""
        request = required(req, "req")
        name = in_catalog(request.catalogName, request.name)
        try:
            self._drop(name, bool(request.deleteData), bool(request.cascade))
        except NoSuchObjectException:
            if not request.ignoreUnknownDb:
                raise
        return AsyncOperationResp(id=request.id or "", finished=True)

    def get_databases(self, call: Call, pattern: str) -> list[str]:
        """Sorted; all of them without a pattern (semantics §1.5)."""
        return self._names(database_name(pattern))

    def get_databases_req(self, call: Call, request: GetDatabaseObjectsRequest) -> GetDatabaseObjectsResponse:
        """The databases whose names match, as one consistent state."""
        request = required(request, "request")
        pattern = in_catalog(request.catalogName, request.pattern)
        prefix, parsed = parse_database_pattern(pattern)

        def work(snapshot: Snapshot) -> list[Database]:
            names = snapshot.database_names(parsed, prefix)
            return [_in_default_catalog(one.database) for one in map(snapshot.database, names) if one is not None]

        return GetDatabaseObjectsResponse([] if "\0" in (pattern or "") else self._store.read(work))

    def get_all_databases(self, call: Call) -> list[str]:
        return self._names(None)

    def alter_database(self, call: Call, dbname: str, db: Database) -> None:
        self._alter(database_name(dbname), db, changes_place=is_newer(call, dbname))

    def alter_database_req(self, call: Call, alterDbReq: AlterDatabaseRequest) -> None:
        request = required(alterDbReq, "alterDbReq")
        self._alter(database_name(request.oldDbName), request.newDb, changes_place=True)

    def _create(self, given: Database, *, allows_hyphen: bool) -> None:
        """With `allows_hyphen` its name may have some, as from Hive 4 on.

        Raises AlreadyExistsException, InvalidObjectException, MetaException.
        """
        name = required(given.name, "database name")
        if self._find(normalize(name)) is not None:
            raise AlreadyExistsException(f"Database {plain_name(name)} already exists")
        prefix = prefix_of(name)
        try:
            check_database_name(name[len(prefix) :], allows_hyphen=allows_hyphen)
        except InvalidName as error:
            raise InvalidObjectException(str(error)) from error
        around = self._store.read(lambda snapshot: location_in_catalog(snapshot, catalog_of(name))) if prefix else None
        location = self._warehouse.new_database_location(name[len(prefix) :], given.locationUri, around)
        # Some clients send the default place.
        is_default_place = location == self._warehouse.new_database_location(name[len(prefix) :], None, around)
        self._warehouse.check_place(location)
        stored = _stored(given, normalize(name), location, creation_seconds(given.createTime, self._clock.seconds()))
        if given.managedLocationUri:
            managed = self._warehouse.normalized(given.managedLocationUri)
            self._warehouse.check_place(managed)
            stored = msgspec.structs.replace(stored, managedLocationUri=managed)
        self._insert(stored, name, is_default_place=is_default_place)

    def _get(self, name: str | None) -> Database:
        """Raises NoSuchObjectException with the name as its text, MetaException."""
        found = self._find(normalize(required(name, "database name")))
        if found is None:
            raise database_not_found(name)
        return found.database

    def _names(self, pattern: str | None) -> list[str]:
        """The keys, sorted, of one catalog."""
        prefix, parsed = parse_database_pattern(pattern)
        if "\0" in (pattern or ""):
            return []
        return self._store.read(lambda snapshot: snapshot.database_names(parsed, prefix))

    def _alter(self, name: str | None, database: Database | None, *, changes_place: bool) -> None:
        """Replace parameters and owner; with `changes_place` description and location too, where they are not empty.

        2.3 changes the first only, 3.1 both (semantics §2.3). An owner that is not sent is gone afterwards; directories
        stay where they are. A recorded call replaces everything. Raises NoSuchObjectException, MetaException.
        """
        name, given = required(name, "database name"), required(database, "database")
        changes: dict[str, Any] = {
            "parameters": without_nulls(given.parameters),
            "ownerName": given.ownerName,
        }
        records = is_recorded()
        if records:
            changes_place = True
            changes["description"] = given.description
            if given.createTime is not None:
                changes["createTime"] = given.createTime
        if given.ownerType is not None:
            changes["ownerType"] = given.ownerType
        if changes_place and given.description:
            changes["description"] = given.description
        if changes_place and given.locationUri:
            changes["locationUri"] = location = self._warehouse.normalized(given.locationUri)
            if records:
                self._warehouse.check_place(location)

        change_database(
            self._store, self._warehouse, self._events, name, lambda before: msgspec.structs.replace(before, **changes)
        )

    def _drop(self, name: str | None, delete_data: bool, cascade: bool) -> None:
        """Raises MetaException for the default database, NoSuchObjectException, InvalidOperationException.

        With `delete_data` the directory goes after the commit, but never data the catalog calls external or that
        belongs to another database (semantics §13, trap 5).
        """
        given = required(name, "database name")
        if is_default_database(given):
            raise MetaException("Can not drop default database")
        doomed = self._store.write(lambda tx: self._remove(tx, given, cascade=cascade, delete_data=delete_data))
        if doomed is not None:
            self._delete_directories(doomed)

    def _find(self, key: str) -> StoredDatabase | None:
        return self._store.read(lambda snapshot: snapshot.database(key), asks_once=True)

    def _insert(self, database: Database, spelled: str, *, is_default_place: bool) -> None:
        name, location = database.name or "", database.locationUri or ""

        def is_used() -> bool:
            winner = self._find(name)
            return winner is not None and winner.database.locationUri == location

        def work(tx: Transaction) -> None:
            if tx.database(name) is not None:
                raise DuplicateKey(name)
            if prefix_of(name):
                # It may have been dropped meanwhile.
                location_in_catalog(tx, catalog_of(name))
            if is_default_place:
                check_apart(tx, location, catalog_of(name))
            tx.insert_database(database)
            tx.append_event(self._events.create_database(database))

        complaint = f"Unable to create database path {location}, failed to create database {spelled}"
        with self._warehouse.directory_made(location, is_used, complaint):
            try:
                with unstorable_as_meta():
                    self._store.write(work)
            except DuplicateKey as error:
                raise AlreadyExistsException(f"Database {plain_name(spelled)} already exists") from error

    def _remove(self, tx: Transaction, name: str, *, cascade: bool, delete_data: bool) -> _Doomed | None:
        found = tx.database(normalize(name))
        if found is None:
            raise database_not_found(name)
        stored_name = found.database.name or ""
        if not cascade:
            shown = plain_name(stored_name)
            if tx.table_names(stored_name, limit=1):
                raise InvalidOperationException(f"Database {shown} is not empty. One or more tables exist.")
            if FunctionRows(tx).names(stored_name):
                raise InvalidOperationException(f"Database {shown} is not empty. One or more functions exist.")
        elsewhere = list(_index_tables_elsewhere(tx, found.database_id))
        tables = [*tx.tables(stored_name), *elsewhere]
        doomed = self._doomed(tx, found.database, tables) if delete_data else None
        # Consumers of the log that follow single tables need their events too (semantics §2.20).
        for function in FunctionRows(tx).objects(stored_name):
            tx.append_event(self._events.drop_function(function))
        for table in tables:
            tx.append_event(self._events.drop_table(table.table))
        for table in elsewhere:
            tx.delete_table(table.table_id)
        tx.delete_database(found.database_id)
        tx.append_event(self._events.drop_database(stored_name))
        return doomed

    def _doomed(self, tx: Transaction, database: Database, tables: Iterable[StoredTable]) -> _Doomed:
        location = self._warehouse.path_of(database)
        owned: list[str] = []
        kept = [self._warehouse.root]
        for table in tables:
            (owned if drop_deletes_data(table.table.parameters or {}) else kept).extend(_locations(tx, table))
        kept.extend(homes_in(tx, [location, *owned], besides=database.name or ""))
        return _Doomed(location, tuple(owned), tuple(kept))

    def _delete_directories(self, doomed: _Doomed) -> None:
        if not any(is_under(doomed.location, kept) for kept in doomed.kept):
            self._warehouse.delete(doomed.location)
            leftover = [location for location in doomed.owned if not is_under(doomed.location, location)]
        else:
            leftover = list(doomed.owned)
        for location in leftover:
            if not any(is_under(location, kept) for kept in doomed.kept):
                self._warehouse.delete(location)
        self._warehouse.discard(doomed.location)


def change_database(
    store: Store, warehouse: Warehouse, events: EventMaker, name: str, change: Callable[[Database], Database]
) -> None:
    """Replace a database by what `change` makes of it, read and changed in one unit of work.

    Its directories stay where they are. Raises NoSuchObjectException, MetaException, and what `change` raises.
    """
    records = is_recorded()

    def work(tx: Transaction) -> None:
        found = tx.database(normalize(name))
        if found is None:
            raise database_not_found(name)
        before, after = found.database, change(found.database)
        if after.locationUri != before.locationUri and not records:
            warehouse.check_place(after.locationUri or "")
        tx.update_database(found.database_id, after)
        tx.append_event(events.alter_database(before, after))

    with unstorable_as_meta():
        store.write(work)


def create_default_database(
    store: Store, files: Directories, clock: Clock, settings: MetastoreSettings, events: EventMaker
) -> None:
    """Make sure that the default database exists (semantics §1.3); for the start of a server."""
    databases = Databases(store, files, clock, settings, events)
    if databases._find(DEFAULT_DATABASE) is None:
        database = Database(
            name=DEFAULT_DATABASE,
            description="Default Hive database",
            locationUri=Warehouse(settings, files).root,
            parameters={},
            ownerName="public",
            ownerType=PrincipalType.ROLE,
        )
        # Another server may start at the same time.
        with suppress(AlreadyExistsException):
            databases._insert(database, DEFAULT_DATABASE, is_default_place=False)


def _new_key(catalog: str | None, name: str | None) -> str | None:
    """The key of a new database: its catalog is in its field only. Raises InvalidObjectException."""
    key = in_catalog(catalog, name)
    if prefix_of(key) != catalog_prefix(catalog):
        raise InvalidObjectException(f"{name} is not a valid database name")
    return key


def _index_tables_elsewhere(tx: Transaction, database_id: DatabaseId) -> Iterable[StoredTable]:
    """What indexes of the database keep in tables of other databases; it could not be dropped without them."""
    for stored in IndexRows(tx).of_database(database_id):
        table = dropped_table(tx, stored.index)
        if table is not None and table.database_id != database_id:
            yield table


def _locations(tx: Transaction, table: StoredTable) -> list[str]:
    own = table.table.sd.location if table.table.sd else None
    elsewhere = tx.outside_locations(table) if table.partition_count else []
    return [*([own] if own else []), *elsewhere]


def _stored(database: Database, name: str, location: str, now_seconds: int) -> Database:
    """The row of a new database (semantics §2.3): privileges are not part of it, nor is the catalog."""
    return msgspec.structs.replace(
        database,
        name=name,
        locationUri=location,
        parameters=without_nulls(database.parameters),
        ownerType=PrincipalType.USER if database.ownerType is None else database.ownerType,
        createTime=now_seconds,
        privileges=None,
        catalogName=None,
    )


def _in_default_catalog(database: Database) -> Database:
    return with_fields(database, catalogName=DEFAULT_CATALOG)
