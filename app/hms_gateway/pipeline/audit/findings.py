"""The rules: from the catalog and the directories of one area to findings. Values in, values out."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Final

import msgspec

from hms_gateway.pipeline.audit.places import (
    Area,
    Directory,
    FileOwner,
    Finding,
    Fix,
    Kind,
    Place,
    Severity,
    Thresholds,
    below,
    is_branch,
    is_hidden,
    is_written_well,
    leftover_in,
    partition_name,
    spec_of,
    upwards,
)
from hms_gateway.pipeline.footers.footer import Column
from hms_gateway.pipeline.reports import bytes_text

# The content of an area, sorted by owner: places, leftovers, and strays without an owner.


class Heap(msgspec.Struct):
    """Directories that belong together."""

    files: int = 0
    total_bytes: int = 0
    newest_seconds: float = 0.0
    formats: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, one: Directory) -> None:
        self.files += one.files
        self.total_bytes += one.total_bytes
        self.newest_seconds = max(self.newest_seconds, one.newest_seconds)
        for name, count in one.formats.items():
            self.formats[name] = self.formats.get(name, 0) + count


class Content(msgspec.Struct):
    """The content of the places at one location.

    branches          names of directories below with files of the place, such as those of a UNION ALL
    has_unreadable    part of it could not be listed
    """

    heap: Heap = msgspec.field(default_factory=Heap)
    branches: set[str] = msgspec.field(default_factory=set)
    is_there: bool = False
    has_unreadable: bool = False


class Sorter:
    """Takes directories one by one. A directory belongs to the innermost place that it lies in."""

    def __init__(self, area: Area, places: Iterable[Place]) -> None:
        self.area = area
        self.places: dict[str, list[Place]] = {}
        for place in places:
            self.places.setdefault(place.location, []).append(place)
        self.contents = {location: Content() for location in self.places}
        self._above = _ancestors(self.places, area.location)
        self.leftovers: dict[str, Heap] = {}
        self.strays: list[Directory] = []
        self.unreadable: list[Directory] = []

    def add(self, directory: Directory) -> None:
        self._seen(directory)
        if directory.error:
            self.unreadable.append(directory)
            return
        owner = self.owner(directory.location)
        if owner is not None and not any(map(_is_of_directory, self.places[owner])):
            return
        path = names_below(self.area.location if owner is None else owner, directory.location)
        if (number := leftover_in(path)) is not None:
            top = "/".join([self.area.location if owner is None else owner, *path[:number]])
            self.leftovers.setdefault(top, Heap()).add(directory)
        elif directory.files and not any(map(is_hidden, path)):
            self._add_files(directory, owner, path)

    def owner(self, location: str) -> str | None:
        """The location of the innermost place that a location lies in, or is."""
        for at in upwards(location):
            if at in self.places:
                return at
            if at == self.area.location:
                break
        return None

    def holds_places(self, location: str) -> bool:
        """True if a place lies below, here or in an area of its own."""
        return location in self._above or location in self.area.known

    def _seen(self, directory: Directory) -> None:
        """A directory is there when something in it is; object stores have no other sign of it."""
        for at in upwards(directory.location):
            if (content := self.contents.get(at)) is not None:
                content.is_there = True
                content.has_unreadable = content.has_unreadable or bool(directory.error)
            if at == self.area.location:
                break

    def _add_files(self, directory: Directory, owner: str | None, path: Sequence[str]) -> None:
        if owner is None or not any(_holds_files(place) for place in self.places[owner]):
            self.strays.append(directory)
            return
        content = self.contents[owner]
        content.heap.add(directory)
        if path:
            content.branches.add(path[0])


def names_below(parent: str, location: str) -> list[str]:
    """The names that lead from one location to another one in it."""
    rest = below(parent, location)
    return rest.split("/") if rest else []


def _is_of_directory(place: Place) -> bool:
    """True if the names of directories say whose files they are; a log of the table's own says more."""
    return place.storage in (FileOwner.PLAIN, FileOwner.ACID)


def _holds_files(place: Place) -> bool:
    """True if files directly in the directory are data; those of a partitioned table are in no partition."""
    return not place.is_partitioned or place.storage is not FileOwner.PLAIN


def _ancestors(locations: Iterable[str], top: str) -> set[str]:
    """The locations that others lie below, up to the top."""
    found: set[str] = set()
    for location in locations:
        above = takewhile(lambda at: at not in found, islice(upwards(location), 1, None))
        found.update(takewhile(lambda at: below(top, at) is not None, above))
    return found


# Files that belong to no place: whether they are an unknown partition, an unknown table, or in the wrong directory.


class Stray(msgspec.Struct, frozen=True):
    """The topmost directory of files that belong together, and what is said about it."""

    kind: Kind
    location: str
    text: str
    partition: str | None = None
    fix: Fix | None = None


def strays(area: Area, sorter: Sorter) -> Iterator[tuple[Stray, Heap]]:
    """Explains the files without a place, each topmost directory once."""
    table = area.table
    if table is not None and table.storage is not FileOwner.PLAIN:
        # What an engine with a log of its own has there is for its log to say.
        return
    heaps: dict[str, tuple[Stray, Heap]] = {}
    for directory in sorter.strays:
        stray = _in_database(area, sorter, directory) if table is None else _in_table(area, table, sorter, directory)
        heaps.setdefault(stray.location, (stray, Heap()))[1].add(directory)
    for stray, heap in heaps.values():
        yield _without_wrong_files(stray, heap, table), heap


def _in_database(area: Area, sorter: Sorter, directory: Directory) -> Stray:
    top = _top(area, sorter, directory.location)
    if top is None:
        return Stray(Kind.MISPLACED, directory.location, "files lie beside tables, in no table's directory")
    return Stray(Kind.ORPHAN, top, "no table of the catalog lies here", fix=Fix.DELETE_ORPHAN)


def _in_table(area: Area, table: Place, sorter: Sorter, directory: Directory) -> Stray:
    path = names_below(area.location, directory.location)
    keys, spec = table.keys, spec_of(path[: len(table.keys)])
    if spec is None or not path:
        return _unnamed(area, sorter, directory, path)
    if [name for name, _ in spec] != [key.name for key in keys[: len(spec)]]:
        top = _top(area, sorter, directory.location) or directory.location
        return Stray(
            Kind.MISPLACED, top, f"the name does not have the keys of the table, {_listed(keys)}, in this order"
        )
    if len(spec) < len(keys):
        text = f"files lie above the directories of partitions, {_listed(keys)}, and are not read"
        return Stray(Kind.MISPLACED, directory.location, text)
    top = "/".join([area.location, *path[: len(keys)]])
    return _unregistered(top, keys, [value for _, value in spec], sorter.holds_places(top))


def _unregistered(location: str, keys: Sequence[Column], values: Sequence[str], holds_places: bool) -> Stray:
    name = partition_name(keys, values)
    for key, value in zip(keys, values, strict=True):
        if not is_written_well(value, key.type):
            text = f"{value!r} is not how a value of key {key.name} {key.type} is written; rename the directory"
            return Stray(Kind.MISPLACED, location, text)
    fix = None if holds_places else Fix.ADD_PARTITION
    return Stray(Kind.ORPHAN, location, "the partition is not in the catalog", name, fix)


def _unnamed(area: Area, sorter: Sorter, directory: Directory, path: Sequence[str]) -> Stray:
    if not path:
        return Stray(Kind.MISPLACED, directory.location, "files lie beside the partitions and are not read")
    top = _top(area, sorter, directory.location)
    if top is None:
        return Stray(Kind.MISPLACED, directory.location, "files lie above a partition and are not read")
    return Stray(Kind.ORPHAN, top, "the directory belongs to no partition", fix=Fix.DELETE_ORPHAN)


def _top(area: Area, sorter: Sorter, location: str) -> str | None:
    """The topmost directory on the way that no place lies in; None where there is none."""
    top = area.location
    for name in names_below(area.location, location):
        top = f"{top}/{name}"
        if not sorter.holds_places(top):
            return top
    return None


def _without_wrong_files(stray: Stray, heap: Heap, table: Place | None) -> Stray:
    """A partition is not added for files that its table cannot read."""
    wrong = stray.fix is Fix.ADD_PARTITION and table is not None and wrong_formats(table.format, heap.formats)
    return msgspec.structs.replace(stray, fix=None) if wrong else stray


EMPTY: Final = "empty"
_BINARY_FORMATS: Final = frozenset({"parquet", "orc", "avro", "sequence", "rcfile"})


def wrong_formats(format: str, found: dict[str, int]) -> dict[str, int]:
    """Files by format that a table of `format` cannot have; where that is not known, all but one kind.

    A file without a byte is read as no rows.
    """
    found = {name: count for name, count in found.items() if name != EMPTY}
    if format in _BINARY_FORMATS:
        return {name: count for name, count in found.items() if name != format}
    binary = {name: count for name, count in found.items() if name in _BINARY_FORMATS}
    if format:
        return binary
    return dict(sorted(binary.items(), key=lambda one: -one[1])[1:]) if len(found) > 1 else {}


def _listed(keys: Sequence[Column]) -> str:
    return "/".join(f"{key.name}=…" for key in keys)


# The rules: from what the catalog says about one area, and what lies there, to findings. Values in, values out.


_NAMES_SHOWN: Final = 3


def find(sorter: Sorter, limits: Thresholds, unreadable: Iterable[str] = ()) -> Iterator[Finding]:
    """Finds faults in an area, or in a part of it that holds all of a directory of the area.

    sorter      has been given all tables, partitions and directories there
    unreadable  directories above, and those there: nothing is concluded about what lies in them
    """
    area = sorter.area
    for directory in sorter.unreadable:
        yield _of_area(area, Severity.ERROR, Kind.UNREADABLE, directory.location, Heap(), directory.error)
    if area.table is None or area.table.is_listed:
        yield from _without_place(area, sorter, limits)
    closed = {*unreadable, *(directory.location for directory in sorter.unreadable)}
    for location, places in sorter.places.items():
        yield from _shared(area, location, places, sorter)
        is_closed = not closed.isdisjoint(upwards(location)) if closed else False
        for place in filter(_is_asked_about, places):
            yield from _of_place(place, sorter.contents[location], limits, not is_closed)


def _without_place(area: Area, sorter: Sorter, limits: Thresholds) -> Iterator[Finding]:
    for location, heap in sorter.leftovers.items():
        owner = sorter.owner(location)
        within = area if owner is None else Area(owner, sorter.places[owner][0])
        yield _leftover(within, location, heap, limits, sorter.holds_places(location))
    for stray, heap in strays(area, sorter):
        yield _stray(area, stray, heap, limits)


def _leftover(area: Area, location: str, heap: Heap, limits: Thresholds, holds_places: bool) -> Finding:
    text = f"an engine left {_amount(heap)} behind"
    if _is_young(heap, limits):
        return _of_area(area, Severity.NOTE, Kind.LEFTOVER, location, heap, f"{text}, or still works on them")
    fix = None if holds_places else Fix.DELETE_LEFTOVER
    return _of_area(area, Severity.WARNING, Kind.LEFTOVER, location, heap, text, fix=fix)


def _stray(area: Area, stray: Stray, heap: Heap, limits: Thresholds) -> Finding:
    text = f"{stray.text}: {_amount(heap)}"
    if stray.kind is Kind.ORPHAN and _is_young(heap, limits):
        text = f"{text}; it is new, an engine may be at work"
        return _of_area(area, Severity.NOTE, stray.kind, stray.location, heap, text, stray.partition)
    return _of_area(area, Severity.WARNING, stray.kind, stray.location, heap, text, stray.partition, stray.fix)


def _shared(area: Area, location: str, places: Sequence[Place], sorter: Sorter) -> Iterator[Finding]:
    """Two owners of one directory, or one inside of the other's."""
    around = _around(area, location, sorter)
    is_managed = any(one.is_managed for one in places)
    for place in filter(_is_asked_about, places):
        others = (one for one in places if one is not place and not _is_said_of_tables(place, one))
        # A few are enough: there may be as many as the table has partitions.
        if some := list(islice(others, _NAMES_SHOWN + 1)):
            text = f"the directory is also that of {_names([one.full_name for one in some])}"
            yield _at(place, _severity_shared(is_managed), Kind.SHARED, text)
        elif around and not any(_is_own_table(place, one) for one in around):
            text = f"the directory lies in that of {_names([one.full_name for one in around])}"
            is_any_managed = is_managed or any(one.is_managed for one in around)
            yield _at(place, _severity_shared(is_any_managed), Kind.SHARED, text)


def _around(area: Area, location: str, sorter: Sorter) -> list[Place]:
    """The places of the innermost directory around a location, the area's table at last."""
    if location == area.location:
        return list(area.around)
    owner = sorter.owner(location.rpartition("/")[0])
    if owner is not None:
        return sorter.places[owner]
    return [area.table] if area.table else []


def _is_asked_about(place: Place) -> bool:
    return place.is_audited and place.storage is not FileOwner.NONE


def _is_own_table(place: Place, other: Place) -> bool:
    return other.is_partitioned and (place.database, place.table) == (other.database, other.table)


def _is_said_of_tables(place: Place, other: Place) -> bool:
    """True if two tables share a directory: that is said once, and not of each partition."""
    is_of_two = (place.database, place.table) != (other.database, other.table)
    return is_of_two and None not in (place.partition, other.partition) and place.base == other.base


def _severity_shared(is_managed: bool) -> Severity:
    """A drop of a managed one deletes the data of the others."""
    return Severity.ERROR if is_managed else Severity.WARNING


def _of_place(place: Place, content: Content, limits: Thresholds, is_known: bool) -> Iterator[Finding]:
    yield from _position(place)
    if place.passed_over:
        yield _at(place, Severity.WARNING, Kind.PASSED_OVER, place.passed_over)
    if place.passed_over or not is_known:
        return
    if not content.is_there:
        yield _missing(place)
    elif place.storage is FileOwner.PLAIN and not place.is_partitioned:
        yield from _formats(place, content.heap)
        yield from _branches(place, content)
        if not content.has_unreadable:
            yield from _amounts(place, content.heap, limits)


def _position(place: Place) -> Iterator[Finding]:
    if place.base and not any(below(base, place.location) is not None for base in place.base):
        yield _outside(place)
    elif place.partition is not None and (name := _other_name(place)):
        text = f"the directory is named as that of {name}"
        yield _at(place, Severity.WARNING, Kind.MISPLACED, text)


def _outside(place: Place) -> Finding:
    if place.partition is not None:
        text = f"the partition does not lie in the directory of its table, {place.base[0]}"
        return _at(place, Severity.NOTE, Kind.OUTSIDE, text)
    text = f"the managed table does not lie in the directory of its database, {place.base[0]}"
    return _at(place, Severity.WARNING, Kind.OUTSIDE, text)


def _other_name(place: Place) -> str:
    """The partition that the directory is named for, where this is another one."""
    path = names_below(place.base[0], place.location) if place.base else []
    spec = spec_of(path)
    if spec is None or sorted(name for name, _ in spec) != sorted(key.name for key in place.keys):
        return ""
    named = dict(spec)
    return "" if [named[key.name] for key in place.keys] == list(place.values) else "/".join(path)


def _missing(place: Place) -> Finding:
    if place.is_partitioned:
        text = "the directory of the table does not exist"
        return _at(place, Severity.WARNING, Kind.MISSING, text)
    fix = Fix.DROP_PARTITION if place.partition is not None and place.storage is not FileOwner.LOGGED else None
    return _at(place, Severity.ERROR, Kind.MISSING, "the directory does not exist", fix=fix)


def _formats(place: Place, heap: Heap) -> Iterator[Finding]:
    if wrong := wrong_formats(place.format, heap.formats):
        counts = ", ".join(f"{count} of {name or 'unknown format'}" for name, count in sorted(wrong.items()))
        text = f"of {heap.files} files of a table of format {place.format or 'unknown'}, {counts}"
        yield _at(place, Severity.ERROR, Kind.MIXED_FORMATS, text, heap)


def _branches(place: Place, content: Content) -> Iterator[Finding]:
    odd = [] if place.has_branches else sorted(name for name in content.branches if not is_branch(name))
    if odd:
        text = f"directories in it have files that not every engine reads: {_names(odd)}"
        yield _at(place, Severity.WARNING, Kind.MISPLACED, text, content.heap)


def _amounts(place: Place, heap: Heap, limits: Thresholds) -> Iterator[Finding]:
    if not heap.files:
        yield _at(place, Severity.NOTE, Kind.EMPTY, "the directory has no files", heap)
    if heap.files >= limits.small_files_min and heap.total_bytes < limits.small_bytes * heap.files:
        mean = bytes_text(heap.total_bytes // heap.files)
        text = f"{heap.files} files have a mean size of {mean}; hms-gateway pipeline compact joins them"
        yield _at(place, Severity.NOTE, Kind.SMALL_FILES, text, heap)
    said = [
        f"{name} is {value}, found {found}"
        for name, value, found in (
            ("numFiles", place.num_files, heap.files),
            ("totalSize", place.total_bytes, heap.total_bytes),
        )
        if value is not None and value != found
    ]
    if said:
        text = "; ".join(said)
        yield _at(place, Severity.NOTE, Kind.STALE_COUNTS, text, heap, Fix.SET_COUNTS)


def _is_young(heap: Heap, limits: Thresholds) -> bool:
    return heap.newest_seconds > limits.now_seconds - limits.quiet_seconds


def _of_area(
    area: Area,
    severity: Severity,
    kind: Kind,
    location: str,
    heap: Heap,
    text: str,
    partition: str | None = None,
    fix: Fix | None = None,
) -> Finding:
    database = area.table.database if area.table else area.database
    table = area.table.table if area.table else ""
    counts = (heap.files, heap.total_bytes, heap.newest_seconds)
    return Finding(severity, kind, database, table, partition, location, text, *counts, fix)


def _at(
    place: Place, severity: Severity, kind: Kind, text: str, heap: Heap | None = None, fix: Fix | None = None
) -> Finding:
    found = heap or Heap()
    counts = (found.files, found.total_bytes, found.newest_seconds)
    return Finding(severity, kind, place.database, place.table, place.partition, place.location, text, *counts, fix)


def _amount(heap: Heap) -> str:
    files = "1 file" if heap.files == 1 else f"{heap.files:,} files"
    return f"{files}, {bytes_text(heap.total_bytes)}"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and others"
