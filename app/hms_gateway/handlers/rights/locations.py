"""Which locations a call may name: those of the object by its name, the one that it has, and what rules give."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from hms_gateway.catalog.access.grant_rows import Grantee, GrantObject, GrantRows
from hms_gateway.catalog.directories.places import PlaceRows
from hms_gateway.catalog.rights.decisions import USER, Permissions
from hms_gateway.catalog.rights.keeper import RightsRows, TableOwner
from hms_gateway.catalog.rights.policy import (
    ALL,
    DATABASE_END,
    Action,
    Securable,
    first_below,
    is_of_table,
    others_within,
    overlap,
    read_place,
    rest_below,
)
from hms_gateway.catalog.tables.catalogs import location_in_catalog
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.locations import (
    Location,
    database_path,
    default_database_location,
    default_table_location,
    is_default_table_location,
    join,
    spellings,
)
from hms_gateway.metastore.vocabulary.names import DEFAULT_DATABASE
from hms_gateway.metastore.vocabulary.partition_names import PartitionCountMismatch, make_name
from hms_gateway.metastore.vocabulary.table_types import is_external, is_view
from hms_gateway.rpc.structs import (
    HiveObjectType,
    MetaException,
    Partition,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    Table,
)
from hms_gateway.rpc.structs.catalogs import catalog_of, plain_name, prefix_of

_DELETING: Final = (Action.DROP, Action.DELETE, ALL)
# A drop of a partition that says it is archived deletes this directory.
_ORIGINAL_LOCATION: Final = "original_location"
# What is read with care behind the directory of a table; usual names of partitions have none of it.
_TO_BE_READ: Final = re.compile(r"%|::|\.\.|\0")


class _Claim(NamedTuple):
    """A location that was free for a table, by its names before and after the call.

    first   the directory directly below the database's that the location is at or below
    given   the location as the caller named it, for the refusal
    """

    names: AbstractSet[Securable]
    first: Location
    location: Location
    given: str


class LocationCheck:
    """Takes what has locations in a call, one after the other. All methods raise MetaException for what is refused.

    `warehouse` is where databases lie that do not say where.
    """

    def __init__(self, store: Store, warehouse: str, permissions: Permissions) -> None:
        self._store = store
        self._warehouse = warehouse
        self._permissions = permissions
        self._owners: dict[Securable, _PartitionOwner] = {}
        # Locations of partitions elsewhere, with the values of each: they may be where the partition is already.
        self._elsewhere: dict[Securable, list[tuple[list[str] | None, str]]] = {}
        self._claims: list[_Claim] = []

    def check_database(self, name: str, struct: Any) -> None:
        own = read_place(self._default_location(name)), self._database(name)
        # The second one of a database that is there already does not change.
        second = None if name in self._permissions.policy.places else struct.managedLocationUri
        for given in (struct.locationUri, second):
            if not given:
                continue
            location = read_place(given)
            if location is None or not (
                any(_are_same(one, location) for one in own) or self._permissions.may_use(location)
            ):
                raise self._refused(given)

    def _default_location(self, name: str) -> str:
        around = self._warehouse
        if prefix_of(name):
            around = self._store.read(lambda snapshot: location_in_catalog(snapshot, catalog_of(name)))
        return default_database_location(around, plain_name(name))

    def check_table(self, thing: Securable, renamed: Securable, table: Table) -> None:
        """`renamed` is the name that the call gives the table, mostly the same."""
        given = table.sd.location if table.sd is not None else None
        if given:
            self._check_named(thing, renamed, table.sd, given)
        if is_view(table.tableType) or (given and thing == renamed):
            return
        # A new table that names no location goes to the default place, and so does a directory that a rename moves.
        database = self._database(renamed.database)
        default = None if database is None else read_place(default_table_location(str(database), renamed.table))
        if default is not None:
            found = self._stored(thing)
            if not given if found is None else thing != renamed and self._is_at_default_place(thing, found):
                claim = _Claim({thing, renamed}, default, default, str(default))
                if self._store.read(lambda snapshot: self._is_taken(snapshot, claim)):
                    raise self._refused(claim.given)
                self._claims.append(claim)

    def _check_named(self, thing: Securable, renamed: Securable, descriptor: Any, given: str) -> None:
        location = read_place(given)
        found = self._stored(thing) if self._permissions.decide(Action.ALTER, thing).allowed else None
        if found is not None and given == _location(found):
            return
        # Partitions stay where they are, so a table that has some would leave them at a place that is not its own.
        if location is not None and (found is None or not found.partition_count):
            database = next((place for one in {thing, renamed} if (place := self._home(one, location))), None)
            if database is not None:
                if not self._permissions.may_use(location):
                    first = first_below(database, location) or location
                    self._claims.append(_Claim({thing, renamed}, first, location, given))
                # In one spelling, by which it is found when others look for what lies there.
                descriptor.location = str(Location(database.scheme, database.authority, location.path))
                return
        if location is None or not self._permissions.may_use(location):
            raise self._refused(given)

    def check_partitions(self, thing: Securable, struct: Any, old_values: list[str] | None) -> None:
        owner = self._owners.get(thing)
        for values, given in _of_partitions(struct):
            if owner is None:
                owner = self._owners[thing] = self._owner(thing)
            if owner.is_usual(given):
                continue
            location = read_place(given)
            if location is None or not (owner.holds(location) or self._permissions.may_use(location)):
                self._elsewhere.setdefault(thing, []).append((old_values or values, given))

    def finish(self) -> None:
        """Compares what is elsewhere with where it is already."""
        for thing, asked in self._elsewhere.items():
            stored = self._owners[thing].stored
            named = {} if stored is None else self._partition_places(stored, [values for values, _ in asked])
            for values, given in asked:
                if stored is None or values is None or named.get(_partition_name(stored, values)) != given:
                    raise self._refused(given)

    def _home(self, thing: Securable, location: Location) -> Location | None:
        """The place of the database, if a location is the table's own: by its name, and without those of others."""
        database = self._database(thing.database)
        first = None if database is None else first_below(database, location)
        if database is None or first is None:
            return None
        directory = first.path.rpartition("/")[2]
        is_of_database = directory.endswith(DATABASE_END) and _are_same(read_place(self._warehouse), database)
        if is_of_database or not is_of_table(directory, thing.table):
            return None
        others = others_within(database, self._databases_but(thing.database))
        if any(overlap(other, location) for other in others):
            return None
        claim = _Claim({thing}, first, location, "")
        return None if self._store.read(lambda snapshot: self._is_taken(snapshot, claim)) else database

    def check_again(self, transaction: Transaction) -> None:
        """Compare what was found free with what others have stored since, in the unit of work that takes it."""
        for claim in self._claims:
            if self._is_taken(transaction, claim):
                raise self._refused(claim.given)

    def _is_taken(self, snapshot: Snapshot, claim: "_Claim") -> bool:
        """True if a table that others may drop lies at, above or below the location.

        They could delete what is to lie there, and the owner of the new table what lies there, whichever came first.
        """
        rows, databases = RightsRows(snapshot), {thing.database for thing in claim.names}
        placed = [one for directory in spellings(claim.first) for one in rows.tables_placed(directory)]
        return any(
            Securable(one.database, one.table) not in claim.names
            and (place := read_place(text)) is not None
            and overlap(place, claim.location)
            and not (one.database in databases and self._is_the_callers(snapshot, one))
            for one, text in placed
        )

    def _is_the_callers(self, snapshot: Snapshot, table: TableOwner) -> bool:
        """True if the table is the caller's own, and no one else has been granted to drop it or to delete from it."""
        user = Grantee(self._permissions.user, USER)
        if Grantee(table.owner or "", table.owner_type) != user:
            return False
        found = snapshot.table(table.database, table.table) if table.has_grants else None
        if found is None:
            return True
        on = GrantObject(HiveObjectType.TABLE, table_id=found.table_id)
        grants = [one.grant for one in GrantRows(snapshot).on(on)]
        return all(one.principal == user or one.privilege.lower() not in _DELETING for one in grants)

    def _is_at_default_place(self, thing: Securable, found: StoredTable) -> bool:
        """True if a rename of the table moves its directory."""
        database = self._database(thing.database)
        return (
            database is not None
            and not is_external(found.table.parameters or {})
            and is_default_table_location(_location(found) or "", str(database), thing.table)
        )

    def _database(self, name: str) -> Location | None:
        """Where the tables of a database go; None for one that is not there."""
        places = self._permissions.policy.places
        if name not in places:
            return None
        return read_place(database_path(self._warehouse, name, None)) if name == DEFAULT_DATABASE else places[name]

    def _databases_but(self, name: str) -> Iterator[Location]:
        for other, place in self._permissions.policy.places.items():
            if place is not None and other not in (name, DEFAULT_DATABASE):
                yield place

    def _owner(self, thing: Securable) -> "_PartitionOwner":
        stored = self._stored(thing)
        place = None if stored is None else read_place(_location(stored))
        others = [] if place is None else others_within(place, self._databases_but(thing.database))
        return _PartitionOwner(stored, place, others)

    def _stored(self, thing: Securable) -> StoredTable | None:
        if "\0" in thing.database or "\0" in thing.table:
            return None
        return self._store.read(lambda snapshot: snapshot.table(thing.database, thing.table))

    def _partition_places(self, stored: StoredTable, asked: list[list[str] | None]) -> dict[str, str | None]:
        names = [name for values in asked if values is not None and (name := _partition_name(stored, values))]
        found = self._store.read(lambda snapshot: PlaceRows(snapshot).partitions_named(stored.table_id, names))
        return {one.name: one.location for one in found}

    def _refused(self, location: str) -> MetaException:
        return MetaException(f"Permission denied: user {self._permissions.user} may not use location {location}")


class _PartitionOwner:
    """A table with the place that its partitions may use: all at or below its own, but for databases there."""

    def __init__(self, stored: StoredTable | None, place: Location | None, others: list[Location]) -> None:
        self.stored = stored
        self._place = place
        self._others = others
        self._beginning = None if place is None or others else f"{str(place).rstrip('/')}/"

    def is_usual(self, text: str) -> bool:
        beginning = self._beginning
        return beginning is not None and text.startswith(beginning) and not _TO_BE_READ.search(text, len(beginning) - 1)

    def holds(self, location: Location) -> bool:
        place = self._place
        if place is None or rest_below(place, location) is None:
            return False
        return not any(overlap(other, location) for other in self._others)


def _of_partitions(struct: Any) -> Iterator[tuple[list[str] | None, str]]:
    """Locations with the values of the partition that each is of, if it is of one."""
    if isinstance(struct, Partition):
        if struct.sd is not None and struct.sd.location:
            yield struct.values, struct.sd.location
        yield from _originals(struct)
    elif isinstance(struct, PartitionSpec):
        if struct.rootPath:
            yield None, struct.rootPath
    elif isinstance(struct, PartitionSpecWithSharedSD):
        shared = struct.sd.location if struct.sd is not None else None
        for bare in struct.partitions or ():
            if bare is not None:
                if shared:
                    path = (bare.relativePath or "").lstrip("/")
                    yield bare.values, join(shared, path) if path else shared
                yield from _originals(bare)


def _originals(partition: Any) -> Iterator[tuple[None, str]]:
    original = (partition.parameters or {}).get(_ORIGINAL_LOCATION)
    if original:
        yield None, original


def _are_same(one: Location | None, other: Location) -> bool:
    return one is not None and rest_below(one, other) == ""


def _partition_name(stored: StoredTable, values: list[str]) -> str:
    try:
        return make_name(stored.key_names, values)
    except PartitionCountMismatch:
        return ""


def _location(stored: StoredTable) -> str | None:
    return stored.table.sd.location if stored.table.sd is not None else None
