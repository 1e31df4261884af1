"""Which directories nothing in the catalog knows: candidates are compared with all that has a location."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

import msgspec

from hms_gateway.catalog.directories.outside_places import PAGE_ROWS, database_places
from hms_gateway.metastore.ports.places import DirectoryTrees, PartitionPlace, PlaceReads, TablePlace
from hms_gateway.metastore.ports.store import FileSystemError, PendingMove, Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.ids import PartitionId, TableId

T = TypeVar("T")


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

    def __init__(self, store: Store, files: DirectoryTrees) -> None:
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
        for database in database_places(self._store):
            yield from (_Known(location, holds_others=True) for location in database.locations)
        for table in table_places(self._store):
            yield from _of_table(table)
        for partition in partition_places(self._store):
            yield from _of_partition(partition)
        yield from _of_moves(self._store.read(lambda snapshot: snapshot.pending_moves()))


def table_places(store: Store) -> Iterator[TablePlace]:
    """All tables, a page at a time."""
    return _pages(lambda after: store.read(lambda snapshot: snapshot.places.tables(after, PAGE_ROWS)), _table_id)


def partition_places(store: Store) -> Iterator[PartitionPlace]:
    """All partitions, a page at a time."""
    return _pages(
        lambda after: store.read(lambda snapshot: snapshot.places.partitions(after, PAGE_ROWS)), _partition_id
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
    places = tx.places
    yield from _of_databases(places)
    tables = _pages(lambda after: places.tables(after, PAGE_ROWS), _table_id, table_id)
    partitions = _pages(lambda after: places.partitions(after, PAGE_ROWS), _partition_id, partition_id)
    for table in tables:
        yield from _of_table(table)
    for partition in chain(partitions, _with_names_of(places, candidates)):
        yield from _of_partition(partition)


def _of_databases(places: PlaceReads) -> Iterator[_Known]:
    after = ""
    while page := places.databases(after, PAGE_ROWS):
        yield from (_Known(location, holds_others=True) for one in page for location in one.locations)
        after = page[-1].name


def _with_names_of(places: PlaceReads, candidates: Iterable[Candidate]) -> Iterator[PartitionPlace]:
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


def _of_table(table: TablePlace) -> Iterator[_Known]:
    if table.location:
        yield _Known(table.location, table_id=table.table_id)


def _of_partition(partition: PartitionPlace) -> Iterator[_Known]:
    if partition.location:
        yield _Known(partition.location, partition_id=partition.partition_id)


def _table_id(table: TablePlace) -> int:
    return table.table_id


def _partition_id(partition: PartitionPlace) -> int:
    return partition.partition_id


def _pages(read: Callable[[int], list[T]], key: Callable[[T], int], after: int = 0) -> Iterator[T]:
    while page := read(after):
        yield from page
        after = key(page[-1])
