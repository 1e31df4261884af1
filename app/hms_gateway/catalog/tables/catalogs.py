"""Catalogs, the name spaces above databases: rows, rules and methods (semantics §1.4, §10.3).

The default catalog, `hive`, has no row: it is always there, in the warehouse, and stays as it is. Another one has a row
and, beside it, databases by their keys (`rpc.structs.catalogs`).
"""

from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Any, Final

import msgspec
from sqlalchemy import delete, func, insert, literal, or_, select, union_all, update

from hms_gateway.catalog.directories.warehouse import Warehouse
from hms_gateway.catalog.functions import FunctionRows
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import Event, Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.locations import is_under, parse_location
from hms_gateway.metastore.vocabulary.names import DEFAULT_DATABASE, InvalidName, check_catalog_name, normalize
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    AlterCatalogRequest,
    Catalog,
    CreateCatalogRequest,
    Database,
    DropCatalogRequest,
    GetCatalogRequest,
    GetCatalogResponse,
    GetCatalogsResponse,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, catalog_prefix, shown_key
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.schema.catalog import CATALOGS, DATABASES, TABLES
from hms_gateway.storage.sql.repository import AggregateRows, check_name, check_text, is_storable

CREATE_CATALOG: Final = "CREATE_CATALOG"
ALTER_CATALOG: Final = "ALTER_CATALOG"
DROP_CATALOG: Final = "DROP_CATALOG"


class CatalogRows(AggregateRows):
    """Every catalog but the default one. Names are normalised by the caller."""

    def find(self, name: str) -> Catalog | None:
        if not is_storable(name):
            return None
        row = self._connection.execute(select(CATALOGS).where(CATALOGS.c.name == name)).first()
        return None if row is None else Catalog(row.name, row.description, row.location, row.create_time)

    def names(self) -> list[str]:
        """Sorted in byte order."""
        return list(self._connection.execute(select(CATALOGS.c.name).order_by(CATALOGS.c.name)).scalars())

    def insert(self, catalog: Catalog) -> None:
        check_name("catalog", catalog.name or "", self._dialect)
        self._connection.execute(insert(CATALOGS).values(_row(catalog)))

    def update(self, catalog: Catalog) -> None:
        self._connection.execute(update(CATALOGS).where(CATALOGS.c.name == catalog.name).values(_row(catalog)))

    def delete(self, name: str) -> None:
        self._connection.execute(delete(CATALOGS).where(CATALOGS.c.name == name))


def _row(catalog: Catalog) -> dict[str, object]:
    for text in (catalog.description, catalog.locationUri):
        check_text(f"a text of catalog {catalog.name}:", text)
    return {
        "name": catalog.name,
        "description": catalog.description,
        "location": catalog.locationUri,
        "create_time": catalog.createTime,
    }


class Catalogs:
    """Methods on catalogs."""

    def __init__(
        self, store: Store, files: Directories, clock: Clock, settings: MetastoreSettings, events: EventMaker
    ) -> None:
        self._store = store
        self._clock = clock
        self._events = events
        self._warehouse: Final = Warehouse(settings, files)
        self._default: Final = Catalog(DEFAULT_CATALOG, "Default catalog for Hive", settings.warehouse_location)

    def create_catalog(self, call: Call, catalog: CreateCatalogRequest) -> None:
        """Make a catalog with its database `default`, which lies in the catalog's location.

        Raises AlreadyExistsException, InvalidObjectException, MetaException.
        """
        given = required(required(catalog, "catalog").catalog, "catalog")
        name = required(given.name, "catalog name")
        key = normalize(name)
        if key == DEFAULT_CATALOG:
            raise AlreadyExistsException(f"Catalog {name} already exists")
        try:
            check_catalog_name(name)
        except InvalidName as error:
            raise InvalidObjectException(str(error)) from error
        if not given.locationUri:
            raise InvalidObjectException("You must specify a path for the catalog")
        location = self._warehouse.normalized(given.locationUri)
        self._warehouse.check_place(location)
        new = Catalog(key, given.description, location, self._clock.seconds())

        def work(tx: Transaction) -> None:
            if CatalogRows(tx).find(key) is not None:
                raise AlreadyExistsException(f"Catalog {name} already exists")
            CatalogRows(tx).insert(new)
            database = Database(
                name=f"{catalog_prefix(key)}{DEFAULT_DATABASE}",
                description=f"Default database for catalog {name}",
                locationUri=location,
                parameters={},
                ownerType=PrincipalType.USER,
                createTime=new.createTime,
            )
            tx.insert_database(database)
            tx.append_event(self._events.create_database(database))
            tx.append_event(self._event(CREATE_CATALOG, key, {"catalog": key}))

        def find(snapshot: Snapshot) -> Catalog | None:
            return CatalogRows(snapshot).find(key)

        def is_used() -> bool:
            winner = self._store.read(find)
            return winner is not None and winner.locationUri == location

        complaint = f"Unable to create catalog path {location}, failed to create catalog {name}"
        if self._store.read(find) is not None:
            raise AlreadyExistsException(f"Catalog {name} already exists")
        self._store.read(lambda snapshot: self._check_alone(snapshot, location, key))
        with self._warehouse.directory_made(location, is_used, complaint), unstorable_as_meta():
            self._store.write(work)

    def alter_catalog(self, call: Call, rqst: AlterCatalogRequest) -> None:
        """Change description and location, as far as they are given; databases that are there stay where they are.

        Raises NoSuchObjectException, InvalidOperationException for another name and for the default catalog,
        MetaException.
        """
        request = required(rqst, "rqst")
        name, new = required(request.name, "catalog name"), required(request.newCat, "newCat")
        key = normalize(name)
        location = self._warehouse.normalized(new.locationUri) if new.locationUri else None
        if location and key != DEFAULT_CATALOG:
            self._store.read(lambda snapshot: self._check_new_place(snapshot, name, location))

        def work(tx: Transaction) -> None:
            before = self._found(tx, name)
            if key == DEFAULT_CATALOG:
                self._check_unchanged(new)
                return
            if required(new.name, "catalog name") != name:
                raise InvalidOperationException("You cannot change a catalog's name")
            after = msgspec.structs.replace(
                before,
                description=before.description if new.description is None else new.description,
                locationUri=location or before.locationUri,
            )
            if after.locationUri != before.locationUri:
                self._warehouse.check_place(after.locationUri or "")
            CatalogRows(tx).update(after)
            states = {
                "catObjBeforeJson": self._events.object_json(before),
                "catObjAfterJson": self._events.object_json(after),
            }
            tx.append_event(self._event(ALTER_CATALOG, key, states))

        with unstorable_as_meta():
            self._store.write(work)

    def get_catalog(self, call: Call, catName: GetCatalogRequest) -> GetCatalogResponse:
        name = required(required(catName, "catName").name, "catalog name")
        return GetCatalogResponse(self._store.read(lambda snapshot: self._found(snapshot, name)))

    def get_catalogs(self, call: Call) -> GetCatalogsResponse:
        """Every name, sorted."""
        names = self._store.read(lambda snapshot: CatalogRows(snapshot).names())
        return GetCatalogsResponse(sorted([DEFAULT_CATALOG, *names]))

    def drop_catalog(self, call: Call, catName: DropCatalogRequest) -> None:
        """Drop a catalog with its database `default`, both without objects. Their directory goes if it is empty.

        Raises MetaException for the default catalog, NoSuchObjectException, InvalidOperationException.
        """
        name = required(required(catName, "catName").name, "catalog name")
        key = normalize(name)
        if key == DEFAULT_CATALOG:
            raise MetaException(f"Can not drop {DEFAULT_CATALOG} catalog")
        prefix = catalog_prefix(key)

        def work(tx: Transaction) -> set[str]:
            catalog = self._found(tx, name)
            locations = {catalog.locationUri or ""}
            default = f"{prefix}{DEFAULT_DATABASE}"
            for database in tx.database_names(prefix=prefix):
                if database != default:
                    raise InvalidOperationException(
                        f"There are non-default databases in the catalog {name} so it cannot be dropped."
                    )
                if tx.table_names(database, limit=1) or FunctionRows(tx).names(database):
                    raise InvalidOperationException(
                        f"There are still objects in the default database for catalog {name}"
                    )
                found = tx.database(database)
                assert found is not None
                locations.add(found.database.locationUri or "")
                tx.delete_database(found.database_id)
                tx.append_event(self._events.drop_database(database))
            CatalogRows(tx).delete(key)
            tx.append_event(self._event(DROP_CATALOG, key, {"catalog": key}))
            return locations

        for location in filter(None, self._store.write(work)):
            self._warehouse.discard(location)

    def _check_new_place(self, snapshot: Snapshot, name: str, location: str) -> None:
        self._found(snapshot, name)
        self._check_alone(snapshot, location, normalize(name))

    def _found(self, snapshot: Snapshot, name: str) -> Catalog:
        """Raises NoSuchObjectException."""
        key = normalize(name)
        found = self._default if key == DEFAULT_CATALOG else CatalogRows(snapshot).find(key)
        if found is None:
            raise NoSuchObjectException(f"No catalog {name}")
        return found

    def _check_alone(self, snapshot: Snapshot, location: str, catalog: str) -> None:
        """Check that nothing of another catalog lies at, in or around a catalog's new location.

        The warehouse alone may lie around it. Raises MetaException.
        """
        before = CatalogRows(snapshot).find(catalog)
        if before is not None and before.locationUri == location:
            return
        check_apart(snapshot, location, catalog)
        own, path = catalog_prefix(catalog), parse_location(location).path.rstrip("/")
        around = [path[:at] for at, character in enumerate(path) if at and character == "/"]
        databases = select(DATABASES.c.name, literal(""), DATABASES.c.location)
        tables = select(DATABASES.c.name, TABLES.c.name, TABLES.c.location).join(
            TABLES, TABLES.c.database_id == DATABASES.c.database_id
        )
        for statement, place in ((databases, DATABASES.c.location), (tables, TABLES.c.location)):
            near = (place.contains(path, autoescape=True), *(place.endswith(one, autoescape=True) for one in around))
            others = statement.where(func.substr(DATABASES.c.name, 1, len(own)) != own, or_(*near))
            for database, table, found in snapshot.connection.execute(others):
                is_around = is_under(found, location) and not is_under(found, self._warehouse.root)
                if is_around or is_under(location, found):
                    shown = shown_key(database)
                    thing = f"table {shown}.{table}" if table else f"database {shown}"
                    raise _overlap(location, thing, found)

    def _check_unchanged(self, new: Catalog) -> None:
        """Naming the default catalog as it is changes nothing and is fine."""
        before = (DEFAULT_CATALOG, self._default.description, self._default.locationUri)
        after = (
            normalize(required(new.name, "catalog name")),
            before[1] if new.description is None else new.description,
            before[2] if new.locationUri is None else new.locationUri,
        )
        if after != before:
            raise InvalidOperationException(f"Catalog {DEFAULT_CATALOG} cannot be changed")

    def _event(self, event_type: str, catalog: str, fields: Mapping[str, Any]) -> Event:
        """Filed under the beginning of the keys of the catalog's databases."""
        stamped = {**fields, "timestamp": self._events.timestamp()}
        return self._events.event(event_type, catalog_prefix(catalog), None, stamped)


def location_in_catalog(snapshot: Snapshot, catalog: str) -> str:
    """The directory in which new databases of a catalog go. Raises InvalidObjectException where there is none."""
    found = CatalogRows(snapshot).find(catalog)
    if found is None:
        raise InvalidObjectException(f"No such catalog {catalog}")
    return found.locationUri or ""


def check_apart(snapshot: Snapshot, location: str, catalog: str) -> None:
    """Check that a place for something of a catalog is not at, in or around that of another one but `hive`.

    Else a drop, or an engine that writes anew what it takes for a table, deletes what is not its own. Raises
    MetaException.
    """
    for name, place in snapshot.connection.execute(select(CATALOGS.c.name, CATALOGS.c.location)):
        if name != catalog and (is_under(place, location) or is_under(location, place)):
            raise _overlap(location, f"catalog {name}", place)


def _overlap(location: str, thing: str, place: str) -> MetaException:
    return MetaException(f"{location} overlaps with the location of {thing}, {place}; name another location")


def homes_in(snapshot: Snapshot, directories: Sequence[str], besides: str = "") -> list[str]:
    """The locations of catalogs and of databases, besides one, that lie at or in any of the directories.

    Such a directory is not deleted with a table or database, whatever was stored first.
    """
    paths = [parse_location(one).path.rstrip("/") for one in directories]
    common = commonprefix(paths)  # noqa: RUF071 -- any text will do that all paths have
    homes = union_all(
        select(CATALOGS.c.location).where(CATALOGS.c.location.contains(common, autoescape=True)),
        select(DATABASES.c.location).where(
            DATABASES.c.location.contains(common, autoescape=True), DATABASES.c.name != besides
        ),
    )
    found = snapshot.connection.execute(homes).scalars()
    return [home for home in found if any(is_under(directory, home) for directory in directories)]
