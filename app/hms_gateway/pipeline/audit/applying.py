"""The plan that `audit --fix` writes, and its actions, each done after a look at the catalog and at the directory."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from hms_gateway.metastore.vocabulary.locations import join
from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS
from hms_gateway.metastore.vocabulary.partition_names import name_to_values
from hms_gateway.pipeline.audit.places import Fix, below, is_leftover, location_of
from hms_gateway.pipeline.catalog import (
    PARTITIONS_A_CALL,
    CatalogReader,
    add_partitions,
    cut,
    drop_partitions,
    events,
    latest,
)
from hms_gateway.pipeline.errors import EventsExpired, OptionError, StateFailed, UsageRefused
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.reports import bytes_text
from hms_gateway.pipeline.storage import Entry, Files, ListingProblem, Storage, files_of, is_hidden
from hms_gateway.rpc.structs import (
    EnvironmentContext,
    NoSuchObjectException,
    Partition,
    StorageDescriptor,
    Table,
    ThriftException,
)

VERSION: Final = 1


class PlanHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line.

    event          the newest event of the metastore before its catalog was read
    quiet_seconds  what changed later than so long ago is not deleted
    """

    plan: str = "hms-gateway pipeline audit"
    version: int = VERSION
    url: str
    run: str
    event: int
    quiet_seconds: float


class PlannedFix(msgspec.Struct, frozen=True, kw_only=True):
    """One line: `says` is for people, the rest for `apply`. What a plan should not do is a line to be deleted."""

    do: Fix
    says: str
    database: str
    table: str = ""
    partition: str | None = None
    location: str
    files: int = 0
    total_bytes: int = 0

    @property
    def table_name(self) -> str:
        """The object of the lease: the table, or the database if the directory is that of no table."""
        return f"{self.database}.{self.table or '*'}"


_decode_head = msgspec.json.Decoder(PlanHead, strict=True).decode
_decode_action = msgspec.json.Decoder(PlannedFix, strict=True).decode


def action_of(row: Mapping[str, Any]) -> PlannedFix:
    """The action for a finding that has a fix."""
    fix = Fix(row["fix"])
    return PlannedFix(
        do=fix,
        says=_said(fix, row),
        database=row["database"],
        table=row["table"],
        partition=row["partition"],
        location=row["location"],
        files=row["files"],
        total_bytes=row["total_bytes"],
    )


def write_plan(path: str, head: PlanHead, actions: Iterable[PlannedFix]) -> int:
    """Returns the number of actions. The file appears whole or not at all. Raises StateFailed."""
    unfinished, count = f"{path}.unfinished", 0
    try:
        with open(unfinished, "wb") as file:
            file.write(msgspec.json.encode(head) + b"\n")
            for action in actions:
                file.write(msgspec.json.encode(action) + b"\n")
                count += 1
        os.replace(unfinished, path)
    except OSError as error:
        raise StateFailed(f"plan {path} cannot be written: {error.strerror}", "give another file to --fix") from error
    return count


def read_head(path: str) -> PlanHead:
    """Raises UsageRefused."""
    for number, line in _lines(path):
        head: PlanHead = _decoded(path, number, line, _decode_head)
        if head.version != VERSION:
            raise UsageRefused(f"plan {path} is of version {head.version}, not {VERSION}", "audit again with --fix")
        return head
    raise UsageRefused(f"plan {path} is empty", "hms-gateway pipeline audit --fix writes one")


def read_actions(path: str) -> Iterator[PlannedFix]:
    """In the order of the file; empty lines do not count. Raises UsageRefused for a line that is not an action."""
    lines = _lines(path)
    next(lines, None)
    for number, line in lines:
        yield _decoded(path, number, line, _decode_action)


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        text = f"plan {path} cannot be read: {error.strerror}"
        raise UsageRefused(text, "hms-gateway pipeline audit --fix writes one") from error


def _decoded(path: str, number: int, line: bytes, decode: Any) -> Any:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "delete the line, or audit again with --fix"
        raise UsageRefused(f"plan {path}, line {number}: {error}", hint) from error


def _said(fix: Fix, row: Mapping[str, Any]) -> str:
    name = f"{row['database']}.{row['table']}" if row["table"] else row["database"]
    amount = f"{row['files']:,} {'file' if row['files'] == 1 else 'files'}, {bytes_text(row['total_bytes'])}"
    place = row["location"]
    if fix is Fix.DROP_PARTITION:
        return f"drop partition {row['partition']} of {name} from the catalog: {place} does not exist"
    if fix is Fix.ADD_PARTITION:
        return f"add partition {row['partition']} to {name}: {place} has {amount}"
    if fix is Fix.SET_COUNTS:
        of = f"{name}/{row['partition']}" if row["partition"] else name
        return f"set numFiles and totalSize of {of} to what is in {place}: {amount}"
    if fix is Fix.DELETE_LEFTOVER:
        return f"DELETE the leftover {place} of {name}: {amount}"
    return f"DELETE the orphan {place} in {name}: {amount}"


# Looks at one directory right before something is done about it, and deletes it.


class SeenDirectory(msgspec.Struct, frozen=True):
    """Visible files at and below a directory; `newest_seconds` and `all_files` are about hidden ones, too.

    `newest_seconds` is 0 where the file system does not know when anything was changed.
    """

    files: int = 0
    total_bytes: int = 0
    newest_seconds: float = 0.0
    all_files: int = 0


class Looker:
    """Directories by location. Methods raise ListingProblem, OSError and OptionError."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def look(self, location: str) -> SeenDirectory | None:
        """None where there is no directory."""
        files = files_of(location, self._storage)
        path = files.root(location)
        if not files.is_directory(path):
            return None
        visible = size = count = newest_ms = 0
        for entry, is_visible in _everything(files, path, True):
            newest_ms = max(newest_ms, entry.modified_ms)
            if entry.is_link or not entry.is_directory:
                count += 1
                visible += is_visible
                size += entry.bytes if is_visible else 0
        return SeenDirectory(visible, size, newest_ms / 1_000, count)

    def delete(self, location: str) -> int:
        """The directory with all that is in it; how many files that were. A link in it is deleted, not followed."""
        seen = self.look(location)
        if seen is None:
            return 0
        files = files_of(location, self._storage)
        files.delete(files.root(location))
        return seen.all_files


def _everything(files: Files, path: str, is_visible: bool) -> Iterator[tuple[Entry, bool]]:
    """Every entry below a directory, and whether engines see it. Raises ListingProblem."""
    for entry in files.scan(path):
        is_seen = is_visible and not is_hidden(entry.name, is_directory=entry.is_directory)
        yield entry, is_seen
        if entry.is_directory and not entry.is_link:
            yield from _everything(files, f"{path}/{entry.name}", is_seen)


# Directories of the catalog that are new since an audit, by the metastore's notification log.


def changed_tables(client: PatientClient, event: int) -> set[tuple[str, str]]:
    """Database and table of every change since an event. Raises EventsExpired."""
    return {(one.dbName or "", one.tableName or "") for one in events(client, event, latest(client)) if one.tableName}


def changed_places(client: PatientClient, event: int) -> dict[str, str] | None:
    """Locations of what was changed since an event, with names. None where the log does not reach back so far."""
    try:
        tables = changed_tables(client, event)
    except EventsExpired:
        return None
    return {location: name for database, table in tables for location, name in _places(client, database, table)}


def _places(client: PatientClient, database: str, table: str) -> Iterator[tuple[str, str]]:
    with suppress(NoSuchObjectException):
        found = client.call("get_table", database, table)
        if (location := location_of(found.sd.location if found.sd else None)) is not None and not found.partitionKeys:
            yield location, f"{database}.{table}"
        reader = CatalogReader(client)
        for some in cut(reader.partition_names(found), PARTITIONS_A_CALL):
            for partition in reader.partitions(found, some).values():
                location = location_of(partition.sd.location if partition.sd else None)
                if location is not None:
                    yield location, f"a partition of {database}.{table}"


# Does the actions of a plan, each after a look at the catalog and at the directory. Runs in executors.


_NO_COUNTING: Final = EnvironmentContext(properties={DO_NOT_UPDATE_STATS: "true"})


class _Refused(Exception):
    """An action is not done; the text says why."""


class Applier:
    """The step of job `apply`: the rows of a batch are actions on one table, of one kind."""

    def __init__(self, head: PlanHead, storage: Storage) -> None:
        self._head = head
        self._looker = Looker(storage)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        actions = [msgspec.convert(row, PlannedFix) for row in batch.rows()]
        work = _Work(client, self._head, self._looker, time.time())
        return work.do(actions)


class _Work:
    """One batch. Whatever has been done before, by this run or by others, counts as `done_before`."""

    def __init__(self, client: PatientClient, head: PlanHead, looker: Looker, now_seconds: float) -> None:
        self._client = client
        self._head = head
        self._looker = looker
        self._now_seconds = now_seconds
        self._counts: dict[str, int] = {}
        self._refused: list[Refusal] = []

    def do(self, actions: Sequence[PlannedFix]) -> StepOutcome:
        kind = actions[0].do
        if kind is Fix.DROP_PARTITION:
            self._drop(actions)
        elif kind is Fix.ADD_PARTITION:
            self._add(actions)
        elif kind is Fix.SET_COUNTS:
            self._set_counts(actions)
        else:
            self._delete(actions)
        return StepOutcome(self._counts, self._refused)

    def _wanted(self, actions: Sequence[PlannedFix], is_wanted: Callable[[PlannedFix], bool]) -> Iterator[PlannedFix]:
        """The actions that are still to be done; refusals are noted."""
        for action in actions:
            try:
                wanted = is_wanted(action)
            except _Refused as refused:
                self._refused.append(Refusal(action.location, str(refused)))
                continue
            except (OSError, ListingProblem, OptionError) as error:
                self._refused.append(Refusal(action.location, f"cannot be looked at: {error}"))
                continue
            if wanted:
                yield action
            else:
                self._count("done_before")

    def _count(self, name: str, number: int = 1) -> None:
        if number:
            self._counts[name] = self._counts.get(name, 0) + number

    def _change(self, done: str, actions: Sequence[PlannedFix], change: Callable[..., Any], *arguments: Any) -> None:
        """One change for several actions; a refusal of the metastore is one of all of them."""
        try:
            change(self._client, *arguments)
        except ThriftException as refused:
            self._refused += [Refusal(action.location, f"is refused: {refused.message}") for action in actions]
        else:
            self._count(done, len(actions))

    # Partitions without a directory ------------------------------------------------------------------------------

    def _drop(self, actions: Sequence[PlannedFix]) -> None:
        found = self._partitions(actions)
        wanted = list(self._wanted(actions, lambda action: self._is_to_drop(action, found.get(action.partition or ""))))
        if not wanted:
            return
        names = [action.partition or "" for action in wanted]
        self._change("dropped", wanted, drop_partitions, wanted[0].database, wanted[0].table, names)

    def _is_to_drop(self, action: PlannedFix, partition: Partition | None) -> bool:
        if partition is None:
            return False
        self._check_location(action, partition.sd)
        if self._looker.look(action.location) is not None:
            raise _Refused("exists again; the partition stays")
        return True

    # Directories without a partition -----------------------------------------------------------------------------

    def _add(self, actions: Sequence[PlannedFix]) -> None:
        table = self._table(actions[0])
        if table is None:
            self._refused += [
                Refusal(action.location, "its table is not in the catalog any more") for action in actions
            ]
            return
        found, seen = self._partitions(actions), dict[str, SeenDirectory]()
        wanted = list(self._wanted(actions, lambda action: self._is_to_add(action, found, seen)))
        made = [(action, self._new_partition(action, table, seen[action.location])) for action in wanted]
        parts = [(action, part) for action, part in made if part is not None]
        if not parts:
            return
        self._change(
            "added", [action for action, _ in parts], add_partitions, table, [part for _, part in parts], _NO_COUNTING
        )

    def _is_to_add(self, action: PlannedFix, found: Mapping[str, Partition], seen: dict[str, SeenDirectory]) -> bool:
        there = found.get(action.partition or "")
        if there is not None:
            self._check_location(action, there.sd)
            return False
        look = self._looker.look(action.location)
        if look is None or not look.files:
            raise _Refused("has no files any more; the partition is not added")
        seen[action.location] = look
        return True

    def _new_partition(self, action: PlannedFix, table: Table, seen: SeenDirectory) -> Partition | None:
        """A partition whose location is spelled as the table's; None where it does not lie in the table's directory."""
        sd = table.sd or StorageDescriptor()
        path = below(location_of(sd.location) or "", action.location)
        if not path:
            self._refused.append(Refusal(action.location, "does not lie in the directory of its table any more"))
            return None
        return Partition(
            dbName=action.database,
            tableName=action.table,
            values=name_to_values(action.partition or ""),
            sd=msgspec.structs.replace(sd, location=join(sd.location or "", path)),
            parameters=_counted({}, seen),
        )

    # Counts ------------------------------------------------------------------------------------------------------

    def _set_counts(self, actions: Sequence[PlannedFix]) -> None:
        tables = [action for action in actions if action.partition is None]
        parts = [action for action in actions if action.partition is not None]
        self._count("counted", len(list(self._wanted(tables, self._set_counts_of_table))))
        if not parts:
            return
        found, changed = self._partitions(parts), list[Partition]()
        wanted = list(self._wanted(parts, lambda action: self._is_to_count(action, found, changed)))
        if changed:
            place = (parts[0].database, parts[0].table)
            self._change("counted", wanted, _alter_partitions, *place, changed)

    def _set_counts_of_table(self, action: PlannedFix) -> bool:
        table = self._table(action)
        if table is None:
            raise _Refused("its table is not in the catalog any more")
        self._check_location(action, table.sd)
        parameters = _counted(table.parameters or {}, self._look_at_files(action))
        if parameters == table.parameters:
            return False
        changed = msgspec.structs.replace(table, parameters=parameters)
        method = "alter_table_with_environment_context"
        try:
            self._client.call(method, action.database, action.table, changed, _NO_COUNTING)
        except ThriftException as refused:
            raise _Refused(f"is refused: {refused.message}") from refused
        return True

    def _is_to_count(self, action: PlannedFix, found: Mapping[str, Partition], changed: list[Partition]) -> bool:
        partition = found.get(action.partition or "")
        if partition is None:
            raise _Refused("its partition is not in the catalog any more")
        self._check_location(action, partition.sd)
        parameters = _counted(partition.parameters or {}, self._look_at_files(action))
        if parameters == partition.parameters:
            return False
        changed.append(msgspec.structs.replace(partition, parameters=parameters))
        return True

    def _look_at_files(self, action: PlannedFix) -> SeenDirectory:
        seen = self._looker.look(action.location)
        if seen is None:
            raise _Refused("does not exist any more")
        return seen

    # Leftovers and orphans ---------------------------------------------------------------------------------------

    def _delete(self, actions: Sequence[PlannedFix]) -> None:
        places = changed_places(self._client, self._head.event)
        for action in self._wanted(actions, lambda action: self._is_to_delete(action, places)):
            try:
                seen = self._looker.delete(action.location)
            except OSError as error:
                self._refused.append(Refusal(action.location, f"cannot be deleted: {error.strerror or error}"))
                continue
            self._count("deleted")
            self._count("files_deleted", seen)

    def _is_to_delete(self, action: PlannedFix, places: Mapping[str, str] | None) -> bool:
        if action.do is Fix.DELETE_LEFTOVER and not is_leftover(action.location.rpartition("/")[2]):
            raise _Refused("does not have the name of a leftover; it stays")
        seen = self._looker.look(action.location)
        if seen is None:
            return False
        if places is None:
            raise _Refused("may be in use: the metastore's log does not reach back to the audit any more; audit again")
        if (owner := _owner(action, places)) is not None:
            raise _Refused(f"is a directory of {owner} since the audit")
        is_of_unknown_age = seen.all_files and not seen.newest_seconds
        if is_of_unknown_age or seen.newest_seconds > self._now_seconds - self._head.quiet_seconds:
            raise _Refused("has changed lately; it stays")
        if action.do is Fix.DELETE_ORPHAN and (seen.files, seen.total_bytes) != (action.files, action.total_bytes):
            raise _Refused(f"has changed since the audit: {seen.files} files of {seen.total_bytes} bytes now")
        return True

    # The catalog -------------------------------------------------------------------------------------------------

    def _table(self, action: PlannedFix) -> Table | None:
        try:
            table: Table = self._client.call("get_table", action.database, action.table)
        except NoSuchObjectException:
            return None
        return table

    def _partitions(self, actions: Sequence[PlannedFix]) -> dict[str, Partition]:
        """By name, those that are there."""
        table = self._table(actions[0])
        if table is None:
            return {}
        try:
            found = CatalogReader(self._client).partitions(table, [action.partition or "" for action in actions])
        except NoSuchObjectException:
            return {}
        by_values = {tuple(partition.values or ()): partition for partition in found.values()}
        named = ((name, tuple(name_to_values(name))) for name in (action.partition or "" for action in actions))
        return {name: by_values[values] for name, values in named if values in by_values}

    def _check_location(self, action: PlannedFix, sd: StorageDescriptor | None) -> None:
        if location_of(sd.location if sd else None) != action.location:
            raise _Refused(f"is not the location of {action.table_name} {action.partition or ''} any more".rstrip())


def _alter_partitions(client: PatientClient, database: str, table: str, changed: Sequence[Partition]) -> None:
    client.call("alter_partitions_with_environment_context", database, table, list(changed), _NO_COUNTING)


def _counted(parameters: Mapping[str, str], seen: SeenDirectory) -> dict[str, str]:
    return {**parameters, "numFiles": str(seen.files), "totalSize": str(seen.total_bytes)}


def _owner(action: PlannedFix, places: Mapping[str, str]) -> str | None:
    """A table or partition at or in the directory; around an orphan, too, while leftovers lie in places."""
    for place, name in places.items():
        is_around = action.do is Fix.DELETE_ORPHAN and below(place, action.location) is not None
        if is_around or below(action.location, place) is not None:
            return name
    return None
