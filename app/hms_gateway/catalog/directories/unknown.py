"""Directories that look like what the gateway makes for a database, table or partition, and have no row.

A gateway that is killed between making a directory and storing the row leaves one. So does one that is killed between
deleting a row and its data; that one has files in it.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Final, TypeVar

import msgspec

from hms_gateway.catalog.directories.known_places import (
    Candidate,
    CountedPlaces,
    KnownPlaces,
    database_places,
    partition_places,
    table_places,
)
from hms_gateway.catalog.directories.places import DatabasePlace, PartitionPlace, PlaceRows, TablePlace
from hms_gateway.metastore.ports.store import FileSystemError, Reach, Snapshot, Store, Transaction, Tree
from hms_gateway.metastore.vocabulary.locations import database_path, join
from hms_gateway.metastore.vocabulary.names import TableId, is_default_database
from hms_gateway.metastore.vocabulary.partition_names import escape
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.sql.repository import is_storable

_log = logging.getLogger(__name__)

# What directories are called while they are set aside, before their names. Hive takes such names for hidden.
ASIDE: Final = ".unknown-"


class UnknownDirectory(msgspec.Struct, frozen=True):
    """A directory without a row; `kept` says why it was to be removed and is there all the same."""

    candidate: Candidate
    tree: Tree
    is_removed: bool = False
    kept: str = ""


class DirectoryRemoval:
    """Removes directories that are old enough, those with files in them only `with_files`."""

    def __init__(
        self,
        store: Store,
        files: Directories,
        known: KnownPlaces,
        older_than: Callable[[Tree], bool],
        *,
        with_files: bool,
    ) -> None:
        self._store = store
        self._files = files
        self._known = known
        self._is_old = older_than
        self._with_files = with_files

    def takes(self, tree: Tree) -> bool:
        return self._is_old(tree) and (self._with_files or not tree.files)

    def remove(self, found: Sequence[UnknownDirectory]) -> list[UnknownDirectory]:
        """Remove directories; returns what became of each. Raises StoreUnavailable, with everything put back."""
        aside: dict[str, str] = {}
        reasons: dict[str, str] = {}
        candidates = [one.candidate for one in found]
        if not candidates:
            return []
        try:
            self._store.write(lambda tx: self._set_aside(tx, candidates, aside, reasons))
            unknown = {one.location for one in self._known.unknown_again(candidates)}
        except BaseException:
            for place in aside:
                self._put_back(place, aside[place])
            raise
        return [self._finished(one, aside, reasons, unknown) for one in found]

    def _set_aside(
        self, tx: Transaction, candidates: Sequence[Candidate], aside: dict[str, str], reasons: dict[str, str]
    ) -> None:
        """A unit of work may run again: what is set aside already then stays so."""
        for one in self._known.still_unknown(candidates, tx):
            place = one.location
            if place in aside:
                continue
            target = _aside(place)
            try:
                self._files.move_directory(place, target)
                aside[place] = target
            except FileSystemError as error:
                reasons[place] = str(error)

    def _finished(
        self, one: UnknownDirectory, aside: dict[str, str], reasons: dict[str, str], unknown: set[str]
    ) -> UnknownDirectory:
        place = one.candidate.location
        if place not in aside:
            return UnknownDirectory(one.candidate, one.tree, kept=reasons.get(place, "it has a row by now"))
        try:
            kept = self._deleted(place, aside[place], has_row=place not in unknown)
        except FileSystemError as error:
            kept = f"{error} (it is {aside[place]} now)"
        return UnknownDirectory(one.candidate, one.tree, is_removed=not kept, kept=kept)

    def _deleted(self, place: str, target: str, *, has_row: bool) -> str:
        """Delete what is set aside, or say why it was put back. Raises FileSystemError."""
        tree = self._files.measure(target)
        if tree is None:
            return ""
        if has_row:
            return self._put_back(place, target) or "it has a row by now"
        if not self.takes(tree):
            return self._put_back(place, target) or "it was changed just now"
        if tree.files:
            self._files.delete_directory(target)
        elif not self._files.delete_directories(target):
            return self._put_back(place, target) or "it was changed just now"
        return ""

    def _put_back(self, place: str, target: str) -> str:
        """Put it back; returns why that failed. Then it keeps the name it was given, unless there is nothing in it."""
        try:
            self._files.move_directory(target, place)
        except FileSystemError as error:
            if self._files.is_directory(place) and self._files.delete_directories(target):
                return ""
            _log.warning("%s cannot be moved back and is now %s: %s", place, target, error)
            return f"it is {target} now: {error}"
        return ""


def _aside(location: str) -> str:
    folder, _, name = location.rpartition("/")
    return f"{folder}/{ASIDE}{name}"


S = TypeVar("S")

# Compared with the catalog at once, which is one pass over it.
CANDIDATES_MAX: Final = 10_000
_NAMES_AT_ONCE: Final = 500
_DATABASE_SUFFIX: Final = ".db"
# What databases and tables without a location of their own have; a `lost+found` is not ours.
_MADE_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


class UnknownDirectories:
    """Finds them, with no more than CANDIDATES_MAX in memory."""

    def __init__(
        self,
        store: Store,
        files: Directories,
        warehouse_root: str,
        problem: Callable[[str, str], None],
        *,
        puts_back: bool,
    ) -> None:
        """`problem` is given the location of what cannot be looked at, and why."""
        self._store = store
        self._files = files
        self._warehouse_root = warehouse_root
        self._problem = problem
        self._puts_back = puts_back

    def find(self, known: KnownPlaces) -> Iterator[list[Candidate]]:
        """In groups, each right after the pass of `known` that found nothing at, in or around its directories."""
        for group in _chunks(self._candidates(), CANDIDATES_MAX):
            yield known.unknown(group)

    def _candidates(self) -> Iterator[Candidate]:
        """Candidates after the quick questions by name: directories whose usual owner is missing, or lies elsewhere."""
        yield from self._below(self._warehouse_root, self._databases)
        for database in database_places(self._store):
            yield from self._of_database(database)
        for table in table_places(self._store):
            if table.owns_data and table.location and table.partition_keys:
                yield from self._below(table.location, partial(self._partitions, table, ""))

    def _below(self, location: str, look: Callable[[str], Iterator[Candidate]]) -> Iterator[Candidate]:
        try:
            if self._files.is_local(location):
                yield from look(self._files.real_location(location))
        except FileSystemError as error:
            self._problem(location, str(error))

    def _databases(self, root: str) -> Iterator[Candidate]:
        for name in self._names(root):
            if name.endswith(_DATABASE_SUFFIX) and _MADE_NAME.fullmatch(name[: -len(_DATABASE_SUFFIX)]):
                yield Candidate("database", join(root, name))

    def _of_database(self, database: DatabasePlace) -> Iterator[Candidate]:
        stored = database.locations
        if is_default_database(database.name) or not stored:
            stored = (database_path(self._warehouse_root, database.name, None), *stored)
        for location in dict.fromkeys(stored):
            yield from self._below(location, partial(self._tables, database.name))

    def _tables(self, db_name: str, folder: str) -> Iterator[Candidate]:
        for names in _chunks(filter(_MADE_NAME.fullmatch, self._names(folder)), _NAMES_AT_ONCE):
            known = self._known_tables(db_name, names)
            yield from (Candidate("table", place) for name in names if (place := join(folder, name)) not in known)

    def _known_tables(self, db_name: str, names: Sequence[str]) -> set[str]:
        found = self._read(lambda places: places.tables_named(db_name, names))
        return {self._files.real_location(table.location) for table in found if table.location}

    def _partitions(self, table: TablePlace, path: str, top: str) -> Iterator[Candidate]:
        """Directories of the level that `path`, a relative one, leads to, and of those below."""
        level = path.count("/") + 1 if path else 0
        head = f"{escape(table.partition_keys[level])}="
        is_last = level + 1 == len(table.partition_keys)
        names = (name for name in self._names(join(top, path)) if name.startswith(head))
        for chunk in _chunks((f"{path}/{name}" if path else name for name in names), _NAMES_AT_ONCE):
            known = self._known_partitions(table, top, chunk) if is_last else self._leading(table, chunk)
            for one in chunk:
                if one not in known:
                    yield Candidate("partition", join(top, one), table)
                elif not is_last:
                    yield from self._partitions(table, one, top)

    def _known_partitions(self, table: TablePlace, top: str, paths: Sequence[str]) -> set[str]:
        found = self._read(lambda places: places.partitions_named(table.table_id, paths))
        return {
            one.name for one in found if one.location and self._files.real_location(one.location) == join(top, one.name)
        }

    def _leading(self, table: TablePlace, paths: Sequence[str]) -> set[str]:
        return self._read(lambda places: {path for path in paths if places.has_partitions_below(table.table_id, path)})

    def _names(self, folder: str) -> Iterator[str]:
        """Without those that Hive takes for hidden, and those that no name in the catalog can be."""
        for name in self._files.names_below(folder):
            if name.startswith(ASIDE):
                yield from self._put_back(folder, name)
            elif name[0] not in "._" and is_storable(name):
                yield name

    def _put_back(self, folder: str, name: str) -> Iterator[str]:
        """Put back what a killed removal has set aside, under its name of before."""
        place, before = join(folder, name), name.removeprefix(ASIDE)
        if not self._puts_back:
            return self._problem(place, f"it is {before}, set aside by a check that was ended; --remove puts it back")
        try:
            self._files.move_directory(place, join(folder, before))
        except FileSystemError as error:
            return self._problem(place, f"it is {before}, set aside by a check that was ended: {error}")
        yield before

    def _read(self, work: Callable[[PlaceRows], S]) -> S:
        return self._store.read(lambda snapshot: work(PlaceRows(snapshot)))


def _chunks(items: Iterable[S], size: int) -> Iterator[list[S]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


_TABLES_KEPT: Final = 10_000


class MissingDirectory(msgspec.Struct, frozen=True):
    """`name` is a table's or a partition's (`sales.orders/ds=1`)."""

    kind: str
    name: str
    location: str


class MissingDirectories:
    """Looks at each table and partition once; on the way it counts what is external and outside the roots."""

    def __init__(self, store: Store, files: Directories) -> None:
        self._store = store
        self._files = files
        self._table = lru_cache(_TABLES_KEPT)(self._read_table)
        self.external_outside = CountedPlaces()

    def find(self) -> Iterator[MissingDirectory]:
        """Missing directories. An object dropped or moved meanwhile is asked for again, and is not missing then."""
        for table in table_places(self._store):
            if self._is_missing(table, table.location) and self._has_table(table):
                yield MissingDirectory("table", str(table), table.location or "")
        for partition in partition_places(self._store):
            owner = self._table(partition.table_id)
            if owner is not None and self._is_missing(owner, partition.location) and self._has_partition(partition):
                yield MissingDirectory("partition", f"{owner}/{partition.name}", partition.location or "")

    def _is_missing(self, table: TablePlace, location: str | None) -> bool:
        if not location:
            return False
        try:
            if not table.owns_data:
                if self._files.reach(location) is Reach.OUTSIDE:
                    self.external_outside.add(str(table))
                return False
            return self._files.is_local(location) and not self._files.is_directory(location)
        except FileSystemError:
            return False

    def _read_table(self, table_id: TableId) -> TablePlace | None:
        found = self._store.read(lambda snapshot: PlaceRows(snapshot).tables_with_ids([table_id]))
        return found[0] if found else None

    def _has_table(self, table: TablePlace) -> bool:
        def read(snapshot: Snapshot) -> bool:
            found = PlaceRows(snapshot).tables_with_ids([table.table_id])
            return any(one.location == table.location for one in found) and not _is_moved(snapshot, table.table_id)

        return self._store.read(read)

    def _has_partition(self, partition: PartitionPlace) -> bool:
        def read(snapshot: Snapshot) -> bool:
            found = PlaceRows(snapshot).partitions_named(partition.table_id, [partition.name])
            return partition in found and not _is_moved(snapshot, partition.table_id)

        return self._store.read(read)


def _is_moved(snapshot: Snapshot, table_id: TableId) -> bool:
    return any(move.table_id == table_id for move in snapshot.pending_moves())
