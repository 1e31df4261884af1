"""Steps of executors: compact a partition (read, write beside, compare, swap), and remove files that were left.

The swap is one call that the metastore refuses when anything has changed the partition since it was read, or when the
run's lease is lost. Before it and behind it the files of the old directory are looked at again, since files may come
without the metastore.
"""

import os
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow

from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS, UNCHANGED_SINCE
from hms_gateway.pipeline.catalog import cut, latest, location_of, partitions_or_table
from hms_gateway.pipeline.compact.looking import PARTITIONS_A_CALL, Note, is_used
from hms_gateway.pipeline.compact.rewriting import Rewriting, RewrittenFile
from hms_gateway.pipeline.compact.rules import (
    HIDDEN,
    REMOVING,
    DataFile,
    Left,
    NewFiles,
    NotPlain,
    base_of,
    cleaned,
    data_files,
    fingerprint,
    format_of,
    gain,
    is_of_one,
    left,
    left_alone,
    marked,
    names_in,
    swapped,
    target_of,
    unsafe,
)
from hms_gateway.pipeline.errors import LeaseLost, OptionError
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.stored import texts
from hms_gateway.pipeline.storage import Files, ListingProblem, Storage, files_of
from hms_gateway.rpc.structs import (
    DataOperationType,
    EnvironmentContext,
    HeartbeatRequest,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchObjectException,
    Partition,
    Table,
    UnlockRequest,
)

_ATTEMPTS: Final = 5
_HEARTBEAT_SECONDS: Final = 30.0


class LeftOut(Exception):
    """A partition is not compacted; the text says why, with the partition as subject."""


class Seen(NamedTuple):
    """A partition, or a table without keys, as it was at an event."""

    event: int
    table: Table
    one: Partition | Table

    @property
    def location(self) -> str:
        return location_of(self.one)


@dataclass(frozen=True)
class CompactStep:
    """`locks` asks for Hive's lock EXCL_WRITE besides the lease that the run holds."""

    run: str
    target_bytes: int
    locks: bool
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        counts = Counter[str]()
        refused = []
        for row in batch.rows():
            name = _name(row)
            try:
                with self._locked(client, row) as alive:
                    counts.update(self._compact(client, row, alive))
            except (LeftOut, NotPlain, OptionError) as reason:
                refused.append(Refusal(name, str(reason)))
            except (ListingProblem, OSError) as problem:
                refused.append(Refusal(name, f"cannot be read or written: {problem}"))
        return StepOutcome(counts, refused)

    def _compact(self, client: PatientClient, row: dict[str, Any], alive: Any) -> dict[str, int]:
        seen = look(client, row)
        if (waiting := left(seen.one.parameters)) is not None:
            if waiting.run == self.run:
                return self._done(seen, row)
            raise LeftOut(f"was compacted by {waiting.run}; compact --clean removes the old files first")
        base = base_of(location_of(seen.table), is_partitioned=bool(row["name"]))
        location = target_of(base, self.run, seen.location)
        if reason := left_alone(seen.table) or unsafe(seen.one.sd, seen.table) or ("" if location else _OUTSIDE):
            raise LeftOut(reason)
        filing = files_of(location, self.storage)
        source = filing.root(seen.location)
        files = data_files(filing, source)
        if not gain(files, self.target_bytes).is_worth_it:
            return {"unchanged": 1}
        note = Note(filing, filing.root(base), self.run, row["name"], filing.root(location))
        self._check_free(client, seen, note)
        written = self._written(note, seen, source, files, alive)
        old = Left(seen.location, fingerprint(files), time.time(), self.run)
        new = NewFiles(location, written.files, written.bytes, written.rows)
        self._swap(client, row, seen, files, note, old, new)
        note.remove()
        return {
            "compacted": 1,
            "files_before": len(files),
            "files_after": new.files,
            "bytes_before": sum(file.bytes for file in files),
            "bytes_after": new.bytes,
            "rows": new.rows,
        }

    def _done(self, seen: Seen, row: dict[str, Any]) -> dict[str, int]:
        """Figures of a partition that was swapped before the run was killed, perhaps before its note was removed."""
        filing = files_of(seen.location, self.storage)
        base = base_of(location_of(seen.table), is_partitioned=bool(row["name"]))
        Note(filing, filing.root(base), self.run, row["name"], filing.root(seen.location)).remove()
        files = data_files(filing, filing.root(seen.location))
        parameters = seen.one.parameters or {}
        return {
            "compacted": 1,
            "files_before": row["files"],
            "files_after": len(files),
            "bytes_before": row["bytes"],
            "bytes_after": sum(file.bytes for file in files),
            "rows": int(parameters.get("numRows", "0")),
        }

    def _check_free(self, client: PatientClient, seen: Seen, note: Note) -> None:
        """Removes what this run left when it was killed; never where a partition lies, under whatever name."""
        if not note.is_there:
            return
        if is_used(client, seen.table, note):
            raise LeftOut(f"would get the directory {note.path}, which another partition has; begin a new run")
        note.remove_all()

    def _written(self, note: Note, seen: Seen, source: str, files: list[DataFile], alive: Any) -> RewrittenFile:
        """Writes the new directory, which is gone again when this raises."""
        note.write()
        assert seen.one.sd is not None
        format = format_of(seen.one.sd)
        try:
            rewriting = Rewriting(note.filing, format, source, note.path, self.run, self.target_bytes, alive)
            written = rewriting.write(files)
            if data_files(note.filing, source) != files:
                raise LeftOut("has other files than when it was read; try again when no other program writes there")
        except BaseException:
            with suppress(OSError):
                note.remove_all()
            raise
        return written

    def _swap(
        self,
        client: PatientClient,
        row: dict[str, Any],
        seen: Seen,
        files: list[DataFile],
        note: Note,
        old: Left,
        new: NewFiles,
    ) -> None:
        """Raises LeftOut when others have changed the partition. When no answer comes, the note stays."""
        source = note.filing.root(seen.location)
        try:
            self._alter(client, row, seen, swapped(seen.one, new, old))
        except (LeftOut, LeaseLost):
            if not is_used(client, seen.table, note):
                note.remove_all()
            raise
        if data_files(note.filing, source) == files:
            return
        now = look(client, row)
        if now.location != new.location:
            return
        back = LeftOut(
            "got other files while it was swapped, and is as it was; try again when no other program writes there"
        )
        try:
            self._alter(client, row, now, seen.one)
        except LeftOut as refused:
            raise LeftOut(f"got other files in {seen.location} while it was swapped: move them by hand") from refused
        note.remove_all()
        raise back

    def _alter(self, client: PatientClient, row: dict[str, Any], seen: Seen, after: Partition | Table) -> None:
        """On the condition that it is as it was seen. Raises LeftOut."""
        for _ in range(_ATTEMPTS):
            try:
                alter(client, row, after, seen.event)
                return
            except (InvalidOperationException, MetaException, NoSuchObjectException) as refused:
                # The events may be about something else of the table, or too many to be compared.
                now = look(client, row)
                if now.location == location_of(after) != seen.location:
                    # The call was done after all.
                    return
                if now.one != seen.one:
                    raise LeftOut("was changed by others while it was read; try again") from refused
                seen, last = now, refused
        raise LeftOut(f"cannot be changed: {last.message}")

    @contextmanager
    def _locked(self, client: PatientClient, row: dict[str, Any]) -> Iterator[Any]:
        """Hive's lock, where it is asked for; `alive` has to be called now and then. Raises LeftOut."""
        if not self.locks:
            yield lambda: None
            return
        answer = client.call("lock", _lock_request(row, self.run))
        try:
            if answer.state != LockState.ACQUIRED:
                raise LeftOut("is locked by others; hms-gateway locks show names them")
            last = time.monotonic()

            def alive() -> None:
                nonlocal last
                if time.monotonic() - last > _HEARTBEAT_SECONDS:
                    client.call("heartbeat", HeartbeatRequest(lockid=answer.lockid))
                    last = time.monotonic()

            yield alive
        finally:
            with suppress(Exception):
                client.call("unlock", UnlockRequest(answer.lockid))


_OUTSIDE: Final = "lies outside of the table's directory"


def look(client: PatientClient, row: dict[str, Any]) -> Seen:
    """The event first: what happens behind it and is read already does not hurt. Raises LeftOut."""
    event = latest(client)
    try:
        table = client.call("get_table", row["database"], row["table"])
        found = dict(partitions_or_table(client, table, [row["name"]]))
    except NoSuchObjectException as gone:
        raise LeftOut("is not there any more") from gone
    if row["name"] not in found:
        raise LeftOut("is not there any more")
    return Seen(event, table, found[row["name"]])


def alter(client: PatientClient, row: dict[str, Any], after: Partition | Table, event: int) -> None:
    """Raises what the metastore raises."""
    context = EnvironmentContext({UNCHANGED_SINCE: str(event), DO_NOT_UPDATE_STATS: "true"})
    names = (row["database"], row["table"])
    if isinstance(after, Table):
        client.call("alter_table_with_environment_context", *names, after, context)
    else:
        client.call("alter_partitions_with_environment_context", *names, [after], context)


def _lock_request(row: dict[str, Any], run: str) -> LockRequest:
    component = LockComponent(
        type=LockType.EXCL_WRITE,
        level=LockLevel.PARTITION if row["name"] else LockLevel.TABLE,
        dbname=row["database"],
        tablename=row["table"],
        partitionname=row["name"] or None,
        operationType=DataOperationType.NO_TXN,
    )
    user = os.environ.get("USER") or "hms-gateway"
    # A batch that is tried again needs a lock of its own: the same request would get the first one's answer.
    agent = f"{run} {uuid.uuid4().hex}"
    return LockRequest(component=[component], user=user, hostname=socket.gethostname(), agentInfo=agent)


# Removes the files of directories that were left: only those that were compacted, and only where nothing else is.


PLACES: Final = pyarrow.schema([("path", pyarrow.string())])
OLD_PLACES: Final = pyarrow.schema(texts("database", "table", "name", "path"))


def path_of(location: str, storage: Storage) -> str:
    """Locations of one directory have one path; of a file system that cannot be opened the location is its own."""
    try:
        files = files_of(location, storage)
        return files.location(files.root(location))
    except OptionError:
        return location.rstrip("/")


@dataclass(frozen=True)
class PlacesOf:
    """Paths of tables and all their partitions; for batches of tables."""

    client: Callable[[], PatientClient]
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with self.client() as client:
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
        for some in cut(names, PARTITIONS_A_CALL):
            yield self._paths([one for _, one in partitions_or_table(client, table, some)])

    def _paths(self, found: list[Any]) -> pyarrow.RecordBatch:
        paths = [path_of(location, self.storage) for one in found if (location := location_of(one))]
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
        counts = Counter[str]()
        refused = []
        for row in batch.rows():
            try:
                counts.update(self._clean(client, row))
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
        filing = files_of(old.location, self.storage)
        path = filing.root(old.location)
        removed: dict[str, int] = {}
        if filing.is_directory(path):
            if not is_of_one(old.location, seen.location):
                # A user who may alter a table can write any directory into its parameters.
                raise LeftOut(f"was not compacted from {old.location}; nothing there is removed")
            seen = self._marked(client, row, seen, old, data_files(filing, path))
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


def _removed(filing: Files, path: str, old: Left) -> dict[str, int]:
    """Files that came later stay. Raises LeftOut."""
    files = [file for file in data_files(filing, path) if file.modified_ms <= old.at * 1000]
    for file in files:
        filing.remove_file(f"{path}/{file.name}")
    if data_files(filing, path):
        raise LeftOut(f"was in {old.location}, to which files came when it was compacted; they are left there")
    for name in names_in(filing, path):
        if not filing.is_directory(f"{path}/{name}"):
            filing.remove_file(f"{path}/{name}")
    filing.remove_if_empty(path)
    folder = path.rpartition("/")[0]
    while f"/{HIDDEN}" in folder:
        filing.remove_if_empty(folder)
        folder = folder.rpartition("/")[0]
    return {"files": len(files), "bytes": sum(file.bytes for file in files)}


def _name(row: dict[str, Any]) -> str:
    return f"{row['database']}.{row['table']}" + (f"/{row['name']}" if row["name"] else "")
