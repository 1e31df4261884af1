"""One level of the tree: each directory of a batch is listed, in an executor.

A directory above all tables leads to directories. The first one that has partitions (`key=value`), or only files,
is a table's, and so is the location of a table that the catalog knows. Below it a directory is a value of a key, down
to the partitions, whose files are folded into one row.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow

from hms_gateway.pipeline.crawl.keys import split_component
from hms_gateway.pipeline.listing import Entry, Files, Folded, ListingProblem, files_of, fold, is_hidden, unlike
from hms_gateway.pipeline.storage import Storage

# Kinds of rows: a directory to list on the next level; one with data; something in the way.
TO_LIST, DATA, REFUSED = 0, 1, 2
# `root` is the path of the table, empty above all tables; `relative` goes on from there.
LEVEL: Final = pyarrow.schema(
    [
        ("kind", pyarrow.int8()),
        ("root", pyarrow.string()),
        ("relative", pyarrow.string()),
        ("files", pyarrow.int64()),
        ("bytes", pyarrow.int64()),
        ("samples", pyarrow.list_(pyarrow.string())),
        ("reason", pyarrow.string()),
    ]
)
ROWS_A_PIECE: Final = 5_000
LEVELS_MAX: Final = 64
# Files of which the footers show the columns of a new table.
SAMPLES_MAX: Final = 32
_AT_ONCE: Final = 16
_NOTHING: Final = (0, 0, ())
_OWNERS: Final = {"Delta Lake": {"_delta_log"}, "Hudi": {".hoodie"}, "Iceberg": {"metadata", "data"}}

Row = tuple[Any, ...]


def joined(root: str, relative: str) -> str:
    """The path of a row."""
    return f"{root}/{relative}" if root and relative else root or relative


@dataclass(frozen=True)
class Walk:
    """Lists the directories of one batch; pickled to executors.

    tables  by path, the number of keys of the tables that the catalog has there; None for one to leave alone
    """

    location: str
    storage: Storage = field(repr=False)
    tables: Mapping[str, int | None]

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        files = files_of(self.location, self.storage)
        wanted = zip(batch.column("root").to_pylist(), batch.column("relative").to_pylist(), strict=True)
        return pieces(row for rows in self._listed(files, wanted) for row in rows)

    def _listed(self, files: Files, wanted: Iterable[tuple[str, str]]) -> Iterator[Iterable[Row]]:
        if not files.waits:
            yield from (self._rows(files, root, relative) for root, relative in wanted)
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(lambda place: list(self._rows(files, *place)), wanted)

    def _rows(self, files: Files, root: str, relative: str) -> Iterator[Row]:
        try:
            yield from self._in_table(files, root, relative) if root else self._above(files, relative)
        except ListingProblem as problem:
            inside = problem.path.removeprefix(f"{root}/") if root else problem.path
            yield refused(root, "" if inside == root else inside, problem.reason)

    def _in_table(self, files: Files, root: str, relative: str) -> Iterator[Row]:
        path, keys = joined(root, relative), self.tables.get(root, -1)
        depth = relative.count("/") + 1 if relative else 0
        if keys is None:
            return
        if keys == depth:
            yield self._folded(files, root, relative, files.scan(path))
            return
        entries = list(files.scan(path)) if keys == -1 else files.scan(path)
        if keys == -1 and not any(_is_value(entry) for entry in entries):
            yield self._folded(files, root, relative, entries)
            return
        yield from self._values(root, relative, entries)

    def _folded(self, files: Files, root: str, relative: str, entries: Iterable[Entry]) -> Row:
        """One with data. Files that no reader reads together would fail every query of the table."""
        path = joined(root, relative)
        found = fold(files, path, entries)
        if (two := unlike(files, path, found.names)) is None:
            return data(root, relative, found)
        (one, its_format), (other, of_other) = two
        reason = f"has files of several formats ({one} is {its_format} and {other} is {of_other})"
        return refused(root, relative, f"{reason}; leave files of one format in it")

    def _values(self, root: str, relative: str, entries: Iterable[Entry]) -> Iterator[Row]:
        """The children of a directory between a table's and its partitions'."""
        loose = 0
        for entry in entries:
            if is_hidden(entry.name, is_directory=entry.is_directory):
                continue
            place = f"{relative}/{entry.name}" if relative else entry.name
            path = f"{root}/{place}"
            if not entry.is_directory:
                loose += 1
            elif not _is_text(place):
                yield refused(root, _shown(place), "has a name that is not UTF-8")
            elif path in self.tables:
                yield to_list(path, "")
            elif not _is_value(entry):
                yield refused(root, place, "is not key=value, between the partitions of a table")
            elif place.count("/") >= LEVELS_MAX:
                yield refused(root, place, f"lies more than {LEVELS_MAX} directories below its table")
            else:
                yield to_list(root, place)
        if loose:
            yield refused(root, relative, f"has {loose} files beside partitions; no reader of the table sees them")

    def _above(self, files: Files, path: str) -> Iterator[Row]:
        """A directory above all tables, or the first of a table."""
        everything = list(files.scan(path))
        owner = _owner({entry.name for entry in everything if entry.is_directory})
        if owner:
            yield refused(
                "", path, f"is a table of {owner}, which alone knows its files; register it with its own tools"
            )
            return
        entries = [entry for entry in everything if not is_hidden(entry.name, is_directory=entry.is_directory)]
        if any(map(_is_value, entries)):
            yield from self._values(path, "", entries)
        elif entries and not any(entry.is_directory for entry in entries):
            yield self._folded(files, path, "", entries)
        else:
            yield from self._children(path, entries)

    def _children(self, path: str, entries: Iterable[Entry]) -> Iterator[Row]:
        for entry in entries:
            child = f"{path}/{entry.name}"
            if not entry.is_directory:
                yield refused("", child, "is a file beside directories; it belongs to no table")
            elif not _is_text(child):
                yield refused("", _shown(child), "has a name that is not UTF-8")
            elif child.count("/") - self.location.count("/") >= LEVELS_MAX:
                yield refused("", child, f"lies more than {LEVELS_MAX} directories deep")
            else:
                yield to_list(child, "") if child in self.tables else to_list("", child)


def to_list(root: str, relative: str) -> Row:
    return TO_LIST, root, relative, *_NOTHING, ""


def data(root: str, relative: str, found: Folded) -> Row:
    """Row with files that show the columns: of a partition the largest one, of a table without keys some."""
    samples = [found.largest] if found.largest else []
    if not relative and found.names:
        samples = sorted(found.names)[:: -(-len(found.names) // SAMPLES_MAX)]
    return DATA, root, relative, found.files, found.bytes, samples, ""


def refused(root: str, relative: str, reason: str) -> Row:
    return REFUSED, root, relative, *_NOTHING, reason


def pieces(rows: Iterable[Row]) -> Iterator[pyarrow.RecordBatch]:
    """Rows by their kinds, so that a batch has one kind only."""
    kept: dict[int, list[Row]] = {TO_LIST: [], DATA: [], REFUSED: []}
    for row in rows:
        same = kept[row[0]]
        same.append(row)
        if len(same) == ROWS_A_PIECE:
            yield _piece(same)
            same.clear()
    yield from (_piece(same) for same in kept.values() if same)


def _piece(rows: list[Row]) -> pyarrow.RecordBatch:
    columns = zip(zip(*rows, strict=True), LEVEL, strict=True)
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(values, of.type) for values, of in columns], schema=LEVEL)


def _owner(names: set[str]) -> str:
    """The format whose table has directories with these names, empty for one of Hive's."""
    return next((owner for owner, marks in _OWNERS.items() if marks <= names), "")


def _is_value(entry: Entry) -> bool:
    return entry.is_directory and "=" in entry.name and split_component(entry.name) is not None


def _is_text(path: str) -> bool:
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: str) -> str:
    return path.encode(errors="backslashreplace").decode()
