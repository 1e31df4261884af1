"""Looks for tables and partitions to compact, and for directories that a killed run has left. Runs in executors."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import pyarrow

from hms_gateway.pipeline.catalog import cut, location_of, partitions_or_table
from hms_gateway.pipeline.compact.rules import (
    HIDDEN,
    NotPlain,
    base_of,
    data_files,
    gain,
    left,
    names_in,
    target_of,
    unsafe,
)
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.batches import RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.stored import numbers, texts
from hms_gateway.pipeline.storage import Files, ListingProblem, Storage, files_of
from hms_gateway.rpc.structs import NoSuchObjectException, Partition, Table

# Leftovers of a killed run: directories that were written and did not take the place of another.
#
# A note about a directory is written before the directory, and removed when it is a partition's. A directory without a
# note is never removed: it may be what a dropped partition of an external table has left to its owner.


_NOTES: Final = ".new"
PARTITIONS_A_CALL: Final = 500


@dataclass(frozen=True)
class Note:
    """That `path` is being written for a partition, or for a table where the name is empty."""

    filing: Files
    base: str
    run: str
    name: str
    path: str

    @property
    def file(self) -> str:
        return f"{_notes(self.base, self.run)}/{sha256(self.path.encode()).hexdigest()[:32]}.json"

    @property
    def is_there(self) -> bool:
        """True if a run that was killed has left the note or the directory."""
        return self.file.rpartition("/")[2] in names_in(self.filing, _notes(self.base, self.run)) or bool(
            names_in(self.filing, self.path)
        )

    def write(self) -> None:
        """Raises OSError."""
        with self.filing.writing(self.file) as out:
            out.write(json.dumps({"name": self.name, "path": self.path}).encode())

    def remove(self) -> None:
        self.filing.remove_file(self.file)
        self.filing.remove_if_empty(_notes(self.base, self.run))

    def remove_all(self) -> None:
        """Delete the directory too, and those around it that are empty then. Raises OSError."""
        with suppress(FileNotFoundError):
            self.filing.delete(self.path)
        self.remove()
        folder = self.path.rpartition("/")[0]
        while f"/{HIDDEN}" in folder:
            self.filing.remove_if_empty(folder)
            folder = folder.rpartition("/")[0]


def _notes(base: str, run: str) -> str:
    return f"{base}/{HIDDEN}/{run}/{_NOTES}"


def place_of(table: Table, storage: Storage) -> tuple[Files, str]:
    """The file system and the directory of a table's notes. Raises OptionError."""
    location = location_of(table)
    base = base_of(location, is_partitioned=bool(table.partitionKeys))
    filing = files_of(base, storage)
    return filing, filing.root(base)


def has_leftovers(table: Table, storage: Storage) -> bool:
    """True if there are notes of other runs; the caller has no run."""
    try:
        filing, base = place_of(table, storage)
        return any(names_in(filing, _notes(base, run)) for run in names_in(filing, f"{base}/{HIDDEN}"))
    except (OptionError, OSError):
        return False


@dataclass(frozen=True)
class RemoveLeftovers:
    """Removes leftovers of the tables in a batch, which the run holds: no other run writes there."""

    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        removed = 0
        for database, table in sorted({(row["database"], row["table"]) for row in batch.rows()}):
            with suppress(NoSuchObjectException, OptionError, OSError):
                found = client.call("get_table", database, table)
                filing, base = place_of(found, self.storage)
                for note in notes(filing, base):
                    removed += self._removed(client, found, note)
        return StepOutcome({"leftovers": removed})

    def _removed(self, client: PatientClient, table: Table, note: Note) -> int:
        if not table.partitionKeys and not _is_of(table, note):
            return 0
        if is_used(client, table, note):
            note.remove()
            return 0
        note.remove_all()
        return 1


def _is_of(table: Table, note: Note) -> bool:
    """Tables without keys have their notes together with those of others, of which some run may be at work."""
    location = location_of(table)
    return note.path.rpartition("/")[2] == note.filing.root(location).rpartition("/")[2]


def notes(filing: Files, base: str) -> Iterator[Note]:
    """All that are there. One about a directory elsewhere is none of ours: others may write here, too."""
    for run in names_in(filing, f"{base}/{HIDDEN}"):
        for name in names_in(filing, _notes(base, run)):
            path = f"{_notes(base, run)}/{name}"
            try:
                said: dict[str, Any] = json.loads(_read(filing, path))
                if said["path"].startswith(f"{base}/{HIDDEN}/{run}/"):
                    yield Note(filing, base, run, said["name"], said["path"])
            except FileNotFoundError:
                continue
            except (ValueError, KeyError, TypeError, AttributeError):
                # It was not written to its end, so that nothing was written behind it.
                filing.remove_file(path)


def _read(filing: Files, path: str) -> bytes:
    with filing.reading(path) as file:
        content: bytes = file.read()
    return content


def is_used(client: PatientClient, table: Table, note: Note) -> bool:
    """True if the table or any of its partitions lies in the directory of a note, under whatever name."""
    if not table.partitionKeys:
        return _lies(table, note)
    names = client.call("get_partition_names", table.dbName, table.tableName, -1)
    pieces = cut(names, PARTITIONS_A_CALL)
    return any(_lies(one, note) for piece in pieces for _, one in partitions_or_table(client, table, piece))


def _lies(one: Partition | Table, note: Note) -> bool:
    location = location_of(one)
    try:
        return bool(location) and note.filing.root(location) == note.path
    except OptionError:
        return False


# Candidates: tables, their partitions, and the content of each directory.


CANDIDATE: Final = "candidate"
# Nothing to gain; not plain; cannot be listed; outside of the job's roots; waits to be cleaned; has what a killed run
# has left.
ENOUGH: Final = "enough"
NOT_PLAIN: Final = "not plain"
UNREADABLE: Final = "unreadable"
PASSED_OVER: Final = "passed over"
LEFT: Final = "left"
LEFTOVERS: Final = "leftovers"

TABLES: Final = pyarrow.schema(texts("database", "table"))
NAMES: Final = pyarrow.schema([*TABLES, *texts("name", "reason")])
FOUND: Final = pyarrow.schema(
    [
        ("what", pyarrow.string()),
        *TABLES,
        *texts("name", "location"),
        *numbers("files", "after", "bytes"),
        ("reason", pyarrow.string()),
    ]
)


@dataclass(frozen=True)
class Look:
    """Looks into the directories of some partitions of one table, or of a table without keys."""

    client: Callable[[], PatientClient]
    run: str
    target_bytes: int
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        rows = batch.to_pylist()
        if rows[0]["reason"]:
            return
        with self.client() as client:
            found = sorted(self._found(client, rows), key=lambda row: str(row["what"]))
        if found:
            yield pyarrow.RecordBatch.from_pylist(found, FOUND)

    def _found(self, client: PatientClient, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        database, name = rows[0]["database"], rows[0]["table"]
        try:
            table = client.call("get_table", database, name)
            names = [row["name"] for row in rows]
            for partition, one in partitions_or_table(client, table, names):
                yield {"database": database, "table": name, "name": partition, **self._look(table, one)}
        except NoSuchObjectException:
            return
        if has_leftovers(table, self.storage):
            yield {"what": LEFTOVERS, "database": database, "table": name, "name": names[0]}

    def _look(self, table: Table, one: Partition | Table) -> dict[str, Any]:
        location = location_of(one)
        if (waiting := left(one.parameters)) is not None:
            return {"what": LEFT, "location": waiting.location, "reason": f"was compacted by {waiting.run}"}
        if reason := unsafe(one.sd, table):
            return {"what": NOT_PLAIN, "location": location, "reason": reason}
        base = base_of(location_of(table), is_partitioned=bool(table.partitionKeys))
        if not target_of(base, self.run, location):
            return {"what": NOT_PLAIN, "location": location, "reason": "lies outside of the table's directory"}
        try:
            filing = files_of(location, self.storage)
            found = gain(data_files(filing, filing.root(location)), self.target_bytes)
        except NotPlain as reason_text:
            return {"what": NOT_PLAIN, "location": location, "reason": str(reason_text)}
        except OptionError as reason_text:
            return {"what": PASSED_OVER, "location": location, "reason": str(reason_text)}
        except (ListingProblem, OSError) as problem:
            return {"what": UNREADABLE, "location": location, "reason": str(problem)}
        what = CANDIDATE if found.is_worth_it else ENOUGH
        sizes = {"files": found.before, "after": found.after, "bytes": found.bytes}
        return {"what": what, "location": location, **sizes}
