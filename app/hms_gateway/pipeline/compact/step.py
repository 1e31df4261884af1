"""Compacts one partition after the other, or a table without keys: read, write beside, compare, swap.

The swap is one call that the metastore refuses when anything has changed the partition since it was read, or when the
run's lease is lost. Before it and behind it the files of the old directory are looked at again, since files may come
without the metastore.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS
from hms_gateway.pipeline.compact.bins import gain
from hms_gateway.pipeline.compact.filing import DataFile, Filing, NotPlain, fingerprint
from hms_gateway.pipeline.compact.leftovers import Note, is_used
from hms_gateway.pipeline.compact.looking import described
from hms_gateway.pipeline.compact.places import base_of, target_of
from hms_gateway.pipeline.compact.rewriting import Rewriting, RewrittenFile
from hms_gateway.pipeline.compact.swap import Left, NewFiles, left, swapped
from hms_gateway.pipeline.compact.tables import format_of, left_alone, unsafe
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import LeaseLost
from hms_gateway.pipeline.listing import ListingProblem
from hms_gateway.pipeline.storage import Storage
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

UNCHANGED_SINCE: Final = "hms.unchanged.since"
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
        return _location(self.one)


def _location(one: Partition | Table) -> str:
    return (one.sd.location if one.sd else None) or ""


@dataclass(frozen=True)
class CompactStep:
    """`locks` asks for Hive's lock EXCL_WRITE besides the lease that the run holds."""

    run: str
    target_bytes: int
    locks: bool
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        counts: dict[str, int] = {}
        refused = []
        for row in batch.rows():
            name = f"{row['database']}.{row['table']}" + (f"/{row['name']}" if row["name"] else "")
            try:
                with self._locked(client, row) as alive:
                    found = self._compact(client, row, alive)
            except LeftOut as reason:
                refused.append(Refusal(name, str(reason)))
                continue
            except (NotPlain, OptionError) as reason:
                refused.append(Refusal(name, str(reason)))
                continue
            except (ListingProblem, OSError) as problem:
                refused.append(Refusal(name, f"cannot be read or written: {problem}"))
                continue
            for key, number in found.items():
                counts[key] = counts.get(key, 0) + number
        return StepOutcome(counts, refused)

    def _compact(self, client: PatientClient, row: dict[str, Any], alive: Any) -> dict[str, int]:
        seen = look(client, row)
        if (waiting := left(seen.one.parameters)) is not None:
            if waiting.run == self.run:
                return self._done(seen, row)
            raise LeftOut(f"was compacted by {waiting.run}; compact --clean removes the old files first")
        base = base_of(_location(seen.table), is_partitioned=bool(row["name"]))
        location = target_of(base, self.run, seen.location)
        if reason := left_alone(seen.table) or unsafe(seen.one.sd, seen.table) or ("" if location else _OUTSIDE):
            raise LeftOut(reason)
        filing = Filing.of(location, self.storage)
        source = filing.files.root(seen.location)
        files = filing.data_files(source)
        if not gain(files, self.target_bytes).is_worth_it:
            return {"unchanged": 1}
        note = Note(filing, filing.files.root(base), self.run, row["name"], filing.files.root(location))
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
        """Of a partition that was swapped before the run was killed, perhaps before its note was removed."""
        filing = Filing.of(seen.location, self.storage)
        base = base_of(_location(seen.table), is_partitioned=bool(row["name"]))
        Note(filing, filing.files.root(base), self.run, row["name"], filing.files.root(seen.location)).remove()
        files = filing.data_files(filing.files.root(seen.location))
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
        """Of what this run has left when it was killed; never where a partition lies, under whatever name."""
        if not note.is_there:
            return
        if is_used(client, seen.table, note):
            raise LeftOut(f"would get the directory {note.path}, which another partition has; begin a new run")
        note.remove_all()

    def _written(self, note: Note, seen: Seen, source: str, files: list[DataFile], alive: Any) -> RewrittenFile:
        """What is in the new directory, which is gone again when this raises."""
        note.write()
        assert seen.one.sd is not None
        format = format_of(seen.one.sd)
        try:
            rewriting = Rewriting(note.filing, format, source, note.path, self.run, self.target_bytes, alive)
            written = rewriting.write(files)
            if note.filing.data_files(source) != files:
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
        source = note.filing.files.root(seen.location)
        try:
            self._alter(client, row, seen, swapped(seen.one, new, old))
        except (LeftOut, LeaseLost):
            if not is_used(client, seen.table, note):
                note.remove_all()
            raise
        if note.filing.data_files(source) == files:
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
                if now.location == _location(after) != seen.location:
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
    event: int = client.call("get_current_notificationEventId").eventId
    try:
        table = client.call("get_table", row["database"], row["table"])
        found = dict(described(client, table, [row["name"]]))
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
