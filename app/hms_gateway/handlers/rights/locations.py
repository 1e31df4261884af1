"""Which locations a call may name: those of the object by its name, the one that it has, and what rules give."""

import re
from collections.abc import Iterator
from typing import Any, Final

from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable
from hms_gateway.metastore.rights.decisions import Sight
from hms_gateway.metastore.rights.places import (
    DATABASE_END,
    first_below,
    is_of_table,
    others_within,
    overlap,
    read_place,
    rest_below,
)
from hms_gateway.metastore.rights.policy import Action, Thing
from hms_gateway.metastore.vocabulary.locations import (
    Location,
    database_path,
    default_database_location,
    default_table_location,
    join,
)
from hms_gateway.metastore.vocabulary.names import DEFAULT_DATABASE
from hms_gateway.metastore.vocabulary.partition_names import PartitionCountMismatch, make_name
from hms_gateway.structs import (
    MetaException,
    Partition,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    Table,
)

# A drop of a partition that says it is archived deletes this directory.
_ORIGINAL_LOCATION: Final = "original_location"
# What is read with care behind the directory of a table; usual names of partitions have none of it.
_TO_BE_READ: Final = re.compile(r"%|::|\.\.|\0")


class LocationCheck:
    """Safe to call from several threads."""

    def __init__(self, store: Store, warehouse: str) -> None:
        """`warehouse` is where databases lie that do not say where."""
        self._store = store
        self._warehouse = warehouse

    def of_call(self, sight: Sight) -> "LocationsOfCall":
        return LocationsOfCall(self._store, self._warehouse, sight)


class LocationsOfCall:
    """Takes what has locations in a call, one after the other. All methods raise MetaException for what is refused."""

    def __init__(self, store: Store, warehouse: str, sight: Sight) -> None:
        self._store = store
        self._warehouse = warehouse
        self._sight = sight
        self._owners: dict[Thing, _PartitionOwner] = {}
        # Locations of partitions elsewhere, with the values of each: they may be where the partition is already.
        self._elsewhere: dict[Thing, list[tuple[list[str] | None, str]]] = {}

    def check_database(self, name: str, struct: Any) -> None:
        own = read_place(default_database_location(self._warehouse, name)), self._database(name)
        # The second one of a database that is there already does not change.
        second = None if name in self._sight.policy.places else struct.managedLocationUri
        for given in (struct.locationUri, second):
            if not given:
                continue
            location = read_place(given)
            if location is None or not (any(_are_same(one, location) for one in own) or self._sight.may_use(location)):
                raise self._refused(given)

    def check_table(self, thing: Thing, renamed: Thing, table: Table) -> None:
        """`renamed` is the name that the call gives the table, mostly the same."""
        given = table.sd.location if table.sd is not None else None
        if not given:
            return
        location = read_place(given)
        if location is not None and (
            any(self._is_own(one, location) for one in {thing, renamed}) or self._sight.may_use(location)
        ):
            return
        found = self._store.read(lambda snapshot: _table(snapshot, thing))
        if found is None or given != _location(found) or not self._sight.decide(Action.ALTER, thing).allowed:
            raise self._refused(given)

    def check_partitions(self, thing: Thing, struct: Any, old_values: list[str] | None) -> None:
        owner = self._owners.get(thing)
        for values, given in _of_partitions(struct):
            if owner is None:
                owner = self._owners[thing] = self._owner(thing)
            if owner.is_usual(given):
                continue
            location = read_place(given)
            if location is None or not (owner.holds(location) or self._sight.may_use(location)):
                self._elsewhere.setdefault(thing, []).append((old_values or values, given))

    def finish(self) -> None:
        """Compares what is elsewhere with where it is already."""
        for thing, asked in self._elsewhere.items():
            stored = self._owners[thing].stored
            named = {} if stored is None else self._partition_places(stored, [values for values, _ in asked])
            for values, given in asked:
                if stored is None or values is None or named.get(_partition_name(stored, values)) != given:
                    raise self._refused(given)

    def _is_own(self, thing: Thing, location: Location) -> bool:
        """Whether it is the place of a table: by its name, and without others whom the caller may not delete there."""
        database = self._database(thing.database)
        first = None if database is None else first_below(database, location)
        if database is None or first is None:
            return False
        directory = first.path.rpartition("/")[2]
        is_of_database = directory.endswith(DATABASE_END) and _are_same(read_place(self._warehouse), database)
        if is_of_database or not is_of_table(directory, thing.table):
            return False
        others = others_within(database, self._databases_but(thing.database))
        if any(overlap(other, location) for other in others):
            return False
        if _are_same(read_place(default_table_location(str(database), thing.table)), location):
            return True
        tables = self._store.read(lambda snapshot: snapshot.rights.tables_placed(thing.database, first.path))
        return not any(
            name != thing.table
            and (place := read_place(text)) is not None
            and rest_below(database, place)
            and overlap(place, location)
            and not self._may_delete(Thing(thing.database, name))
            for name, text in tables
        )

    def _may_delete(self, thing: Thing) -> bool:
        return any(self._sight.decide(action, thing).allowed for action in (Action.DROP, Action.DELETE))

    def _database(self, name: str) -> Location | None:
        """Where the tables of a database go; None for one that is not there."""
        places = self._sight.policy.places
        if name not in places:
            return None
        return read_place(database_path(self._warehouse, name, None)) if name == DEFAULT_DATABASE else places[name]

    def _databases_but(self, name: str) -> Iterator[Location]:
        for other, place in self._sight.policy.places.items():
            if place is not None and other not in (name, DEFAULT_DATABASE):
                yield place

    def _owner(self, thing: Thing) -> "_PartitionOwner":
        stored = self._store.read(lambda snapshot: _table(snapshot, thing))
        place = None if stored is None else read_place(_location(stored))
        others = [] if place is None else others_within(place, self._databases_but(thing.database))
        return _PartitionOwner(stored, place, others)

    def _partition_places(self, stored: StoredTable, asked: list[list[str] | None]) -> dict[str, str | None]:
        names = [name for values in asked if values is not None and (name := _partition_name(stored, values))]
        found = self._store.read(lambda snapshot: snapshot.places.partitions_named(stored.table_id, names))
        return {one.name: one.location for one in found}

    def _refused(self, location: str) -> MetaException:
        return MetaException(f"Permission denied: user {self._sight.user} may not use location {location}")


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


def _table(snapshot: Snapshot, thing: Thing) -> StoredTable | None:
    return None if "\0" in thing.database or "\0" in thing.table else snapshot.table(thing.database, thing.table)


def _location(stored: StoredTable) -> str | None:
    return stored.table.sd.location if stored.table.sd is not None else None
