"""The rules: from what the catalog says about one area, and what lies there, to findings. Values in, values out."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from hms_gateway.pipeline.audit.rules.contents import Content, Heap, Sorter, names_below
from hms_gateway.pipeline.audit.rules.shapes import is_branch, spec_of
from hms_gateway.pipeline.audit.rules.strays import Stray, strays, wrong_formats
from hms_gateway.pipeline.audit.rules.values import (
    Area,
    Finding,
    Fix,
    Kind,
    Place,
    Severity,
    Storage,
    Thresholds,
    below,
)
from hms_gateway.pipeline.reports.amounts import bytes_text

_NAMES_SHOWN: Final = 3


def find(sorter: Sorter, limits: Thresholds, unreadable: Iterable[str] = ()) -> Iterator[Finding]:
    """What is wrong in an area, or in a part of it that holds all of what lies in a directory of the area.

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
        is_closed = not closed.isdisjoint(_and_above(location)) if closed else False
        for place in filter(_is_asked_about, places):
            yield from _of_place(place, sorter.contents[location], limits, not is_closed)


def _and_above(location: str) -> Iterator[str]:
    yield location
    while "/" in location:
        location = location.rpartition("/")[0]
        yield location


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
    return place.is_audited and place.storage is not Storage.NONE


def _is_own_table(place: Place, other: Place) -> bool:
    return other.is_partitioned and (place.database, place.table) == (other.database, other.table)


def _is_said_of_tables(place: Place, other: Place) -> bool:
    """Whether it is two tables that share a directory: that is said once, and not of each partition."""
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
    elif place.storage is Storage.PLAIN and not place.is_partitioned:
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
    fix = Fix.DROP_PARTITION if place.partition is not None and place.storage is not Storage.LOGGED else None
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
