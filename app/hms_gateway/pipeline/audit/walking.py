"""One level of the tree: each directory of a batch is listed and folded to a row, in an executor."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pyarrow

from hms_gateway.pipeline.audit.rules.areas import Areas
from hms_gateway.pipeline.audit.rules.shapes import is_hidden, is_leftover
from hms_gateway.pipeline.audit.rules.values import Directory, Storage
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.listing import Entry, Files, ListingProblem, files_of, formats_in
from hms_gateway.pipeline.listing import is_hidden as is_hidden_file
from hms_gateway.pipeline.storage import Storage as FileSystems

# Kinds of rows: to be listed on the next level, with the time of the directory itself; listed; could not be listed.
TO_LIST, LISTED, UNREADABLE = 0, 1, 2
LEVEL: Final = pyarrow.schema([("kind", pyarrow.int8()), ("location", pyarrow.string()), ("payload", pyarrow.binary())])
_LEVELS_MAX: Final = 64
_DIRECTORIES_A_BATCH: Final = 2_000
_ROWS_A_PIECE: Final = 5_000
_AT_ONCE: Final = 16

Row = tuple[int, str, bytes]

_encode = msgspec.msgpack.encode


def walk(run: Run, roots: Stored, areas: Any) -> Stored:
    """All directories at and below `roots`, level by level: rows of LEVEL that are LISTED or UNREADABLE."""
    level, found = roots, list[Stored]()
    step = Walk(run.storage, areas)
    for depth in range(1, _LEVELS_MAX):
        pending = level.where(lambda of: of[0] == TO_LIST)
        if not pending.batches:
            break
        level = run.derive(
            f"level-{depth}",
            pending,
            step,
            LEVEL,
            rows_a_batch=_DIRECTORIES_A_BATCH,
            together=("kind",),
            unit="batches of directories",
        )
        found.append(level.where(lambda of: of[0] != TO_LIST))
    return Stored.joined(found or [roots.where(lambda of: False)])


@dataclass(frozen=True)
class Walk:
    """Lists the directories of one batch; pickled to executors. `areas` is a broadcast Areas.

    What lies in a table with a log of its own is for the log to say, and is not listed.
    """

    storage: FileSystems = field(repr=False)
    areas: Any

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        locations = batch.column("location").to_pylist()
        changed = [float(text or 0) for text in batch.column("payload").to_pylist()]
        return _pieces(row for rows in self._listed(locations, changed) for row in rows)

    def _listed(self, locations: Sequence[str], changed: Sequence[float]) -> Iterator[Iterable[Row]]:
        if all(location.startswith("file:") for location in locations):
            yield from map(self._rows, locations, changed)
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(lambda *place: list(self._rows(*place)), locations, changed)

    def _rows(self, location: str, changed_seconds: float) -> Iterator[Row]:
        try:
            files = files_of(location, self.storage)
            path = files.root(location)
            entries = list(files.scan(path))
        except ListingProblem as problem:
            # What is gone is missing, if the catalog names it, and otherwise was removed a moment ago.
            if not isinstance(problem.__cause__, FileNotFoundError):
                yield _unreadable(location, problem.reason)
            return
        except ValueError as error:
            yield _unreadable(location, str(error))
            return
        folded = _folded(files, location, path, entries)
        newest = max(folded.newest_seconds, changed_seconds)
        yield LISTED, location, _encode(msgspec.structs.replace(folded, newest_seconds=newest))
        if self._is_to_be_walked(location):
            yield from _children(location, entries)

    def _is_to_be_walked(self, location: str) -> bool:
        areas: Areas = self.areas.value
        group = areas.group_of(location)
        table = areas.area(group.area).table if group is not None and group.area is not None else None
        return table is None or table.storage in (Storage.PLAIN, Storage.ACID)


def _folded(files: Files, location: str, path: str, entries: Sequence[Entry]) -> Directory:
    found = [
        entry for entry in entries if not entry.is_directory and not is_hidden_file(entry.name, is_directory=False)
    ]
    is_looked_at = not is_leftover(location.rpartition("/")[2])
    return Directory(
        location,
        len(found),
        sum(entry.bytes for entry in found),
        max((entry.modified_ms for entry in entries), default=0) / 1_000,
        _formats(files, path, found) if is_looked_at else {},
    )


def _children(location: str, entries: Iterable[Entry]) -> Iterator[Row]:
    """Of hidden directories only leftovers are listed: what is in others is their engine's."""
    for entry in entries:
        if not entry.is_directory or (is_hidden(entry.name) and not is_leftover(entry.name)):
            continue
        child = f"{location}/{entry.name}"
        if _is_text(child):
            yield TO_LIST, child, repr(entry.modified_ms / 1_000).encode()
        else:
            shown = child.encode(errors="backslashreplace").decode()
            yield _unreadable(shown, "has a name that is not UTF-8")


def _formats(files: Files, path: str, found: Sequence[Entry]) -> dict[str, int]:
    """Formats of all files that are not empty, or of some where the file system is away."""
    formats: dict[str, int] = {}
    for _, name in formats_in(files, path, [entry.name for entry in found if entry.bytes]):
        formats[name] = formats.get(name, 0) + 1
    return formats


def _unreadable(location: str, reason: str) -> Row:
    return UNREADABLE, location, _encode(Directory(location, error=reason))


def _pieces(rows: Iterable[Row]) -> Iterator[pyarrow.RecordBatch]:
    """Rows by their kinds, so that a batch has one kind only."""
    kept: dict[int, list[Row]] = {TO_LIST: [], LISTED: [], UNREADABLE: []}
    for row in rows:
        same = kept[row[0]]
        same.append(row)
        if len(same) == _ROWS_A_PIECE:
            yield _piece(same)
            same.clear()
    yield from (_piece(same) for same in kept.values() if same)


def _piece(rows: Sequence[Row]) -> pyarrow.RecordBatch:
    columns = zip(zip(*rows, strict=True), LEVEL, strict=True)
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(values, of.type) for values, of in columns], schema=LEVEL)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
