"""What the catalog owns outside the roots, where earlier versions managed every directory, and what to set for it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from hms_gateway.metastore.ports.places import DatabasePlace, TablePlace
from hms_gateway.metastore.ports.store import FileSystem, FileSystemError, Reach, Store
from hms_gateway.metastore.vocabulary.locations import is_under, parse_location

PAGE_ROWS: Final = 1_000
_EXAMPLES_MAX: Final = 5
_ROOTS_MAX: Final = 20


class CountedPlaces(msgspec.Struct):
    """How many there are, and the names of the first."""

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

    def __init__(self, files: FileSystem, may_be_root: Callable[[str], bool]) -> None:
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
            self.databases.add(place.name)
        for location in outside:
            self.roots.add(location)

    def add_table(self, place: TablePlace) -> None:
        if place.owns_data and place.location is not None and self.is_outside(place.location):
            self.tables.add(str(place))
            self.roots.add(place.location)

    def add_partitions(self, table: str, location: str, count: int = 1) -> None:
        """Of a table that owns its data."""
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
    store: Store, files: FileSystem, beginnings: Sequence[str], may_be_root: Callable[[str], bool]
) -> OutsidePlaces:
    """What the catalog owns outside. `beginnings` are those of locations in the roots, which the database skips.

    Costs two queries that look at each table and each descriptor of partitions once. Raises StoreUnavailable.
    """
    found = OutsidePlaces(files, may_be_root)
    for database in database_places(store):
        found.add_database(database)
    for table in _tables_elsewhere(store, beginnings):
        found.add_table(table)
    for below in store.read(lambda snapshot: snapshot.places.owned_partitions_elsewhere(beginnings)):
        found.add_partitions(below.table, below.location, below.count)
    return found


def _tables_elsewhere(store: Store, beginnings: Sequence[str]) -> Iterator[TablePlace]:
    def read(after: int) -> list[TablePlace]:
        return store.read(lambda snapshot: snapshot.places.owned_tables_elsewhere(beginnings, after, PAGE_ROWS))

    after = 0
    while page := read(after):
        yield from page
        after = page[-1].table_id


def database_places(store: Store) -> Iterator[DatabasePlace]:
    """All databases, a page at a time."""

    def read(after: str) -> list[DatabasePlace]:
        return store.read(lambda snapshot: snapshot.places.databases(after, PAGE_ROWS))

    after = ""
    while page := read(after):
        yield from page
        after = page[-1].name
