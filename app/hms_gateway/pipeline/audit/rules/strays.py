"""Files that belong to no place: whether they are an unknown partition, an unknown table, or in the wrong directory."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from hms_gateway.pipeline.audit.rules.contents import Heap, Sorter, names_below
from hms_gateway.pipeline.audit.rules.shapes import is_written_well, partition_name, spec_of
from hms_gateway.pipeline.audit.rules.values import Area, Directory, Fix, Key, Kind, Place, Storage


class Stray(msgspec.Struct, frozen=True):
    """The topmost directory of files that belong together, and what is said about it."""

    kind: Kind
    location: str
    text: str
    partition: str | None = None
    fix: Fix | None = None


def strays(area: Area, sorter: Sorter) -> Iterator[tuple[Stray, Heap]]:
    """What the files without a place are, each topmost directory once."""
    table = area.table
    if table is not None and table.storage is not Storage.PLAIN:
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


def _unregistered(location: str, keys: Sequence[Key], values: Sequence[str], holds_places: bool) -> Stray:
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


def _listed(keys: Sequence[Key]) -> str:
    return "/".join(f"{key.name}=…" for key in keys)
