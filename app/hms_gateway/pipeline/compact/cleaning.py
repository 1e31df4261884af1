"""Removes the files of directories that were left: only those that were compacted, and only where nothing else is."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow

from hms_gateway.pipeline.compact.filing import DataFile, Filing, NotPlain, fingerprint
from hms_gateway.pipeline.compact.looking import described
from hms_gateway.pipeline.compact.places import HIDDEN, is_of_one
from hms_gateway.pipeline.compact.step import LeftOut, Seen, alter, look
from hms_gateway.pipeline.compact.swap import REMOVING, Left, cleaned, left, marked
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.listing import ListingProblem
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import InvalidOperationException, MetaException, NoSuchObjectException, Partition, Table

PLACES: Final = pyarrow.schema([("path", pyarrow.string())])
OLD_PLACES: Final = pyarrow.schema([(name, pyarrow.string()) for name in ("database", "table", "name", "path")])
_PARTITIONS_A_CALL: Final = 500


def path_of(location: str, storage: Storage) -> str:
    """Locations of one directory have one path; of a file system that cannot be opened the location is its own."""
    try:
        files = Filing.of(location, storage).files
        return files.location(files.root(location))
    except OptionError:
        return location.rstrip("/")


@dataclass(frozen=True)
class PlacesOf:
    """Where tables and all their partitions lie; for batches of tables."""

    connection: Connection
    patience_seconds: float
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with PatientClient(self.connection, self.patience_seconds) as client:
            for row in batch.to_pylist():
                try:
                    table = client.call("get_table", row["database"], row["table"])
                    yield self._paths([table])
                    yield from self._of_partitions(client, table)
                except NoSuchObjectException:
                    continue

    def _of_partitions(self, client: PatientClient, table: Any) -> Iterator[pyarrow.RecordBatch]:
        if not table.partitionKeys:
            return
        names = client.call("get_partition_names", table.dbName, table.tableName, -1)
        for at in range(0, len(names), _PARTITIONS_A_CALL):
            found = described(client, table, names[at : at + _PARTITIONS_A_CALL])
            yield self._paths([one for _, one in found])

    def _paths(self, found: list[Any]) -> pyarrow.RecordBatch:
        locations = [one.sd.location for one in found if one.sd and one.sd.location]
        paths = [path_of(location, self.storage) for location in locations]
        return pyarrow.RecordBatch.from_pydict({"path": pyarrow.array(paths, pyarrow.string())})


@dataclass(frozen=True)
class OldPlaces:
    """The paths of the directories that were left; for batches of what a look has found."""

    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        rows = [{**row, "path": path_of(row["location"], self.storage)} for row in batch.to_pylist()]
        yield pyarrow.RecordBatch.from_pylist(rows, OLD_PLACES)


@dataclass(frozen=True)
class CleanStep:
    """`shared` of a row says whether something else lies in the old directory."""

    grace_seconds: float
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        counts = {"cleaned": 0, "files": 0, "bytes": 0, "waiting": 0}
        refused = []
        for row in batch.rows():
            try:
                for key, number in self._clean(client, row).items():
                    counts[key] += number
            except (LeftOut, NotPlain) as reason:
                refused.append(Refusal(_name(row), str(reason)))
            except (ListingProblem, OptionError, OSError) as problem:
                refused.append(Refusal(_name(row), f"has old files that cannot be removed: {problem}"))
        return StepOutcome(counts, refused)

    def _clean(self, client: PatientClient, row: dict[str, Any]) -> dict[str, int]:
        seen = look(client, row)
        old = left(seen.one.parameters)
        if old is None:
            return {}
        if time.time() - old.at < self.grace_seconds:
            return {"waiting": 1}
        if row["shared"] or path_of(old.location, self.storage) == path_of(seen.location, self.storage):
            raise LeftOut(f"was in {old.location}, where something else lies now; nothing there is removed")
        filing = Filing.of(old.location, self.storage)
        path = filing.files.root(old.location)
        removed: dict[str, int] = {}
        if filing.files.is_directory(path):
            if not is_of_one(old.location, seen.location):
                # A user who may alter a table can write any directory into its parameters.
                raise LeftOut(f"was not compacted from {old.location}; nothing there is removed")
            seen = self._marked(client, row, seen, old, filing.data_files(path))
            removed = _removed(filing, path, old)
        self._alter(client, row, seen, cleaned(seen.one))
        return {"cleaned": 1, **removed}

    def _marked(self, client: PatientClient, row: dict[str, Any], seen: Seen, old: Left, files: list[DataFile]) -> Seen:
        """That the old files are being removed, before the first one is: so that a killed cleaning can go on."""
        if old.fingerprint == REMOVING:
            return seen
        if files and fingerprint(files) != old.fingerprint:
            raise LeftOut(f"was in {old.location}, where other files are than were compacted; nothing there is removed")
        self._alter(client, row, seen, marked(seen.one))
        return look(client, row)

    def _alter(self, client: PatientClient, row: dict[str, Any], seen: Seen, after: Partition | Table) -> None:
        try:
            alter(client, row, after, seen.event)
        except (InvalidOperationException, MetaException, NoSuchObjectException) as refused:
            raise LeftOut(f"was changed while it was cleaned; clean again: {refused.message}") from refused


def _removed(filing: Filing, path: str, old: Left) -> dict[str, int]:
    """Files that came later stay. Raises LeftOut."""
    files = [file for file in filing.data_files(path) if file.modified_ms <= old.at * 1000]
    for file in files:
        filing.remove_file(f"{path}/{file.name}")
    if filing.data_files(path):
        raise LeftOut(f"was in {old.location}, to which files came when it was compacted; they are left there")
    for name in filing.names(path):
        if not filing.files.is_directory(f"{path}/{name}"):
            filing.remove_file(f"{path}/{name}")
    filing.remove_if_empty(path)
    folder = path.rpartition("/")[0]
    while f"/{HIDDEN}" in folder:
        filing.remove_if_empty(folder)
        folder = folder.rpartition("/")[0]
    return {"files": len(files), "bytes": sum(file.bytes for file in files)}


def _name(row: dict[str, Any]) -> str:
    return f"{row['database']}.{row['table']}" + (f"/{row['name']}" if row["name"] else "")
