"""Locations of the catalog: the directories that it knows, among candidates, and what it owns outside the roots.

Earlier versions managed directories outside the roots too; settings for these are named.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final, TypeVar

import msgspec

from hms_gateway.catalog.directories.places import DatabasePlace, PartitionPlace, PlaceRows, TablePlace
from hms_gateway.metastore.ports.store import FileSystemError, PendingMove, Reach, Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.locations import is_under, parse_location
from hms_gateway.metastore.vocabulary.names import PartitionId, TableId
from hms_gateway.rpc.structs.catalogs import shown_key
from hms_gateway.storage.files.directories import Directories

T = TypeVar("T")
K = TypeVar("K")


class Candidate(msgspec.Struct, frozen=True):
    """A directory that may have no row. `location` has no links in it; `owner` is the table of a partition's one."""

    kind: str
    location: str
    owner: TablePlace | None = None


class _Known(msgspec.Struct, frozen=True):
    """A location. Below a database or a root there may be what is not known, below a table what would be its own."""

    location: str
    holds_others: bool = False
    table_id: TableId | None = None
    partition_id: PartitionId | None = None


class KnownPlaces:
    """Passes over the catalog, in pages with a snapshot each: a long one would keep the database from tidying up.

    What is renamed meanwhile cannot slip through: a table's move is announced before the directory moves, and the
    announcements are read before the tables as well as after them.
    """

    def __init__(self, store: Store, files: Directories) -> None:
        self._store = store
        self._files = files
        self._last_table_id = self._last_partition_id = 0

    def unknown(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Those that nothing lies at, in or around. Raises StoreUnavailable."""
        self._last_table_id = self._last_partition_id = 0
        return self._passed(candidates, self._noted())

    def unknown_again(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The same later, for some of those that `unknown` gave. The others are still to be asked for what is new."""
        return self._passed(candidates, self._all())

    def still_unknown(self, candidates: Iterable[Candidate], tx: Transaction) -> list[Candidate]:
        """Those that nothing new since `unknown` concerns. Quick, since it is for a unit of work."""
        remaining = _Remaining(candidates)
        self._strike(remaining, _new(tx, self._last_table_id, self._last_partition_id, remaining.candidates))
        return remaining.candidates

    def is_unused(self, location: str) -> bool:
        """True if no database, table or partition lies at, in or around a directory. Raises StoreUnavailable.

        Databases and partitioned tables may lie around it: their own data is not directly there. Moves do not count.
        """
        remaining = _Remaining([Candidate("directory", self._files.real_location(location))])
        self._strike(remaining, self._stored(lambda table: bool(table.partition_keys)))
        return bool(remaining)

    def _passed(self, candidates: Iterable[Candidate], known: Iterable["_Known"]) -> list[Candidate]:
        remaining = _Remaining(candidates)
        if remaining:
            self._strike(remaining, known)
        return remaining.candidates

    def _strike(self, remaining: "_Remaining", known: Iterable[_Known]) -> None:
        for one in known:
            try:
                remaining.strike(self._files.real_location(one.location), one)
            except FileSystemError:
                continue  # a location that no file system takes holds nothing

    def _noted(self) -> Iterator[_Known]:
        """All, and the ids behind which there is what comes later."""
        for one in self._all():
            self._last_table_id = max(self._last_table_id, one.table_id or 0)
            self._last_partition_id = max(self._last_partition_id, one.partition_id or 0)
            yield one

    def _all(self) -> Iterator[_Known]:
        yield from (_Known(root, holds_others=True) for root in self._files.roots())
        yield from _of_moves(self._store.read(lambda snapshot: snapshot.pending_moves()))
        yield from self._stored(lambda table: False)
        yield from _of_moves(self._store.read(lambda snapshot: snapshot.pending_moves()))

    def _stored(self, holds_others: Callable[[TablePlace], bool]) -> Iterator[_Known]:
        for database in database_places(self._store):
            yield from (_Known(location, holds_others=True) for location in database.locations)
        for table in table_places(self._store):
            yield from _of_table(table, holds_others=holds_others(table))
        for partition in partition_places(self._store):
            yield from _of_partition(partition)


def database_places(store: Store) -> Iterator[DatabasePlace]:
    """All databases, a page at a time."""
    return _pages(_name, lambda after: store.read(lambda snapshot: PlaceRows(snapshot).databases(after, PAGE_ROWS)), "")


def table_places(store: Store) -> Iterator[TablePlace]:
    """All tables, a page at a time."""
    return _pages(_table_id, lambda after: store.read(lambda snapshot: PlaceRows(snapshot).tables(after, PAGE_ROWS)), 0)


def partition_places(store: Store) -> Iterator[PartitionPlace]:
    """All partitions, a page at a time."""
    return _pages(
        _partition_id, lambda after: store.read(lambda snapshot: PlaceRows(snapshot).partitions(after, PAGE_ROWS)), 0
    )


class _Remaining:
    """Candidates that are not known yet, found by their own locations and by those of the directories around them."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._by_location = {one.location: one for one in candidates}
        self._below: dict[str, list[Candidate]] = {}
        for one in self._by_location.values():
            for above in _around(one.location):
                self._below.setdefault(above, []).append(one)

    def __bool__(self) -> bool:
        return bool(self._by_location)

    @property
    def candidates(self) -> list[Candidate]:
        return list(self._by_location.values())

    def strike(self, location: str, known: _Known) -> None:
        """Take away what lies at or around the location, and what lies in it unless that is as it should be."""
        for at_or_around in (location, *_around(location)):
            self._by_location.pop(at_or_around, None)
        if known.holds_others:
            return
        for one in self._below.get(location, ()):
            if known.table_id is None or one.owner is None or one.owner.table_id != known.table_id:
                self._by_location.pop(one.location, None)


def _around(location: str) -> Iterator[str]:
    """The directories a location lies in, the nearest first."""
    while True:
        location, slash, _ = location.rpartition("/")
        if location.endswith(":"):
            yield f"{location}/"
        if not slash or location.endswith(("/", ":")):
            return
        yield location


def _new(tx: Snapshot, table_id: int, partition_id: int, candidates: Iterable[Candidate]) -> Iterator[_Known]:
    """What has come since those ids, or has what would be the candidate's name: ids of what was deleted come again."""
    yield from _of_moves(tx.pending_moves())
    places = PlaceRows(tx)
    for database in _pages(_name, lambda after: places.databases(after, PAGE_ROWS), ""):
        yield from (_Known(location, holds_others=True) for location in database.locations)
    partitions = _pages(_partition_id, lambda after: places.partitions(after, PAGE_ROWS), partition_id)
    for table in _pages(_table_id, lambda after: places.tables(after, PAGE_ROWS), table_id):
        yield from _of_table(table)
    for partition in chain(partitions, _with_names_of(places, candidates)):
        yield from _of_partition(partition)


def _with_names_of(places: PlaceRows, candidates: Iterable[Candidate]) -> Iterator[PartitionPlace]:
    names: dict[TableId, list[str]] = {}
    for one in candidates:
        if one.owner is not None:
            parts = one.location.split("/")[-len(one.owner.partition_keys) :]
            names.setdefault(one.owner.table_id, []).append("/".join(parts))
    for table_id, of_table in names.items():
        yield from places.partitions_named(table_id, of_table)


def _of_moves(moves: Iterable[PendingMove]) -> Iterator[_Known]:
    for move in moves:
        yield from (_Known(move.source), _Known(move.target))


def _of_table(table: TablePlace, *, holds_others: bool = False) -> Iterator[_Known]:
    if table.location:
        yield _Known(table.location, holds_others, table_id=table.table_id)


def _of_partition(partition: PartitionPlace) -> Iterator[_Known]:
    if partition.location:
        yield _Known(partition.location, partition_id=partition.partition_id)


_name: Final = attrgetter("name")
_table_id: Final = attrgetter("table_id")
_partition_id: Final = attrgetter("partition_id")


def _pages(key: Callable[[T], K], read: Callable[[K], list[T]], after: K) -> Iterator[T]:
    while page := read(after):
        yield from page
        after = key(page[-1])


PAGE_ROWS: Final = 1_000
_EXAMPLES_MAX: Final = 5
_ROOTS_MAX: Final = 20


class CountedPlaces(msgspec.Struct):
    """Number of places, and the names of the first."""

    count: int = 0
    examples: list[str] = msgspec.field(default_factory=list)
    has_more: bool = False

    def add(self, name: str, count: int = 1) -> None:
        self.count += count
        if name in self.examples:
            return
        if len(self.examples) < _EXAMPLES_MAX:
            self.examples.append(name)
        else:
            self.has_more = True

    def __str__(self) -> str:
        more = ", ..." if self.has_more else ""
        return f"{self.count:,} ({', '.join(self.examples)}{more})"


class RootsToName:
    """The fewest locations that hold all others, none higher than needed.

    The parent of a directory is named, since its neighbours tend to lie there too; of the top of a disk, and of what
    may not be a root, the directory itself. Where these are many, what holds them.
    """

    def __init__(self, may_be_root: Callable[[str], bool]) -> None:
        self._may_be_root = may_be_root
        self._roots: list[str] = []
        self.are_all = True

    def add(self, location: str) -> None:
        if any(is_under(root, location) for root in self._roots):
            return
        root = self._above(location, 2) or location
        if root != location or self._may_be_root(location):
            self._insert(root)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._roots))

    def _insert(self, new: str) -> None:
        self._roots = _highest([*self._roots, new])
        for depth in (2, 1):
            if len(self._roots) > _ROOTS_MAX:
                self._roots = _highest([self._above(root, depth) or root for root in self._roots])
        if len(self._roots) > _ROOTS_MAX:
            self.are_all = False
            self._roots.pop()

    def _above(self, location: str, depth: int) -> str | None:
        """The directory a location lies in, where it is so deep and may be a root."""
        place = parse_location(location)
        folder = place.path.rstrip("/").rpartition("/")[0]
        above = location[: len(location) - len(place.path)] + folder
        return above if folder.count("/") >= depth and self._may_be_root(above) else None


def _highest(roots: Sequence[str]) -> list[str]:
    """Without those that lie below others."""
    unique = list(dict.fromkeys(roots))
    return [one for one in unique if not any(other != one and is_under(other, one) for other in unique)]


class OutsidePlaces:
    """Collects what lies outside; memory holds only a few names and roots of it."""

    def __init__(self, files: Directories, may_be_root: Callable[[str], bool]) -> None:
        self._files = files
        self.databases: Final = CountedPlaces()
        self.tables: Final = CountedPlaces()
        self.partitions: Final = CountedPlaces()
        self.roots: Final = RootsToName(may_be_root)

    def __bool__(self) -> bool:
        return bool(self.databases.count or self.tables.count or self.partitions.count)

    def add_database(self, place: DatabasePlace) -> None:
        outside = [location for location in place.locations if self.is_outside(location)]
        if outside:
            self.databases.add(shown_key(place.name))
        for location in outside:
            self.roots.add(location)

    def add_table(self, place: TablePlace) -> None:
        if place.owns_data and place.location is not None and self.is_outside(place.location):
            self.tables.add(str(place))
            self.roots.add(place.location)

    def add_partitions(self, table: str, location: str, count: int = 1) -> None:
        """Count partitions of a table that owns its data."""
        if self.is_outside(location):
            self.partitions.add(table, count)
            self.roots.add(location)

    def is_outside(self, location: str) -> bool:
        try:
            return self._files.reach(location) is Reach.OUTSIDE
        except FileSystemError:
            return False

    def __str__(self) -> str:
        counted = {"databases": self.databases, "tables": self.tables, "partitions": self.partitions}
        named = ", ".join(f"{kind} {found}" for kind, found in counted.items() if found.count)
        roots = ", ".join(f'"{root}"' for root in self.roots)
        more = "" if self.roots.are_all else ", and more"
        advice = f"; to manage them again set file_roots = [{roots}]{more}" if roots else ""
        kept = "they stay as they are, and their files too"
        return f"outside the directories this server manages lie {named}; {kept}{advice}"


def find_outside(
    store: Store, files: Directories, beginnings: Sequence[str], may_be_root: Callable[[str], bool]
) -> OutsidePlaces:
    """Find what the catalog owns outside. `beginnings` are those of locations in the roots, which the database skips.

    Costs two queries that look at each table and each descriptor of partitions once. Raises StoreUnavailable.
    """
    found = OutsidePlaces(files, may_be_root)
    for database in database_places(store):
        found.add_database(database)

    def read(after: int) -> list[TablePlace]:
        return store.read(lambda snapshot: PlaceRows(snapshot).owned_tables_elsewhere(beginnings, after, PAGE_ROWS))

    for table in _pages(_table_id, read, 0):
        found.add_table(table)
    for below in store.read(lambda snapshot: PlaceRows(snapshot).owned_partitions_elsewhere(beginnings)):
        found.add_partitions(below.table, below.location, below.count)
    return found
