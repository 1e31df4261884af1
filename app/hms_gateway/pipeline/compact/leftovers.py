"""What a run that was killed has left: directories that were written and did not take the place of another.

A note about a directory is written before the directory, and removed when it is a partition's. A directory without a
note is never removed: it may be what a dropped partition of an external table has left to its owner.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from hms_gateway.pipeline.compact.filing import Filing
from hms_gateway.pipeline.compact.places import HIDDEN, base_of
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.batches import RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import NoSuchObjectException, Partition, Table

_NOTES: Final = ".new"
_PARTITIONS_A_CALL: Final = 500


@dataclass(frozen=True)
class Note:
    """That `path` is being written for a partition, or for a table where the name is empty."""

    filing: Filing
    base: str
    run: str
    name: str
    path: str

    @property
    def file(self) -> str:
        return f"{_notes(self.base, self.run)}/{sha256(self.path.encode()).hexdigest()[:32]}.json"

    @property
    def is_there(self) -> bool:
        """Whether a run that was killed has left the note or the directory."""
        return self.file.rpartition("/")[2] in self.filing.names(_notes(self.base, self.run)) or bool(
            self.filing.names(self.path)
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
            self.filing.files.delete(self.path)
        self.remove()
        folder = self.path.rpartition("/")[0]
        while f"/{HIDDEN}" in folder:
            self.filing.remove_if_empty(folder)
            folder = folder.rpartition("/")[0]


def _notes(base: str, run: str) -> str:
    return f"{base}/{HIDDEN}/{run}/{_NOTES}"


def place_of(table: Table, storage: Storage) -> tuple[Filing, str]:
    """Where the notes of a table are. Raises OptionError."""
    location = (table.sd.location if table.sd else None) or ""
    base = base_of(location, is_partitioned=bool(table.partitionKeys))
    filing = Filing.of(base, storage)
    return filing, filing.files.root(base)


def has_leftovers(table: Table, storage: Storage) -> bool:
    """Whether there are notes of other runs; the caller has no run."""
    try:
        filing, base = place_of(table, storage)
        return any(filing.names(_notes(base, run)) for run in filing.names(f"{base}/{HIDDEN}"))
    except (OptionError, OSError):
        return False


@dataclass(frozen=True)
class RemoveLeftovers:
    """Of the tables in a batch, which the run holds: no other run writes there."""

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
    location = (table.sd.location if table.sd else None) or ""
    return note.path.rpartition("/")[2] == note.filing.files.root(location).rpartition("/")[2]


def notes(filing: Filing, base: str) -> Iterator[Note]:
    """All that are there. One about a directory elsewhere is none of ours: others may write here, too."""
    for run in filing.names(f"{base}/{HIDDEN}"):
        for name in filing.names(_notes(base, run)):
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


def _read(filing: Filing, path: str) -> bytes:
    with filing.reading(path) as file:
        content: bytes = file.read()
    return content


def is_used(client: PatientClient, table: Table, note: Note) -> bool:
    """Whether the table or any of its partitions lies in the directory of a note, under whatever name."""
    if not table.partitionKeys:
        return _lies(table, note)
    names = client.call("get_partition_names", table.dbName, table.tableName, -1)
    pieces = (names[at : at + _PARTITIONS_A_CALL] for at in range(0, len(names), _PARTITIONS_A_CALL))
    return any(
        _lies(one, note)
        for piece in pieces
        for one in client.call("get_partitions_by_names", table.dbName, table.tableName, piece)
    )


def _lies(one: Partition | Table, note: Note) -> bool:
    location = (one.sd.location if one.sd else None) or ""
    try:
        return bool(location) and note.filing.files.root(location) == note.path
    except OptionError:
        return False
