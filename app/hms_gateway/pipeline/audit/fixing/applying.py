"""Does the actions of a plan, each after a look at the catalog and at the directory. Runs in executors."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from hms_gateway.metastore.vocabulary.locations import join
from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS
from hms_gateway.metastore.vocabulary.partition_names import name_to_values
from hms_gateway.pipeline.audit.fixing.changes import changed_places
from hms_gateway.pipeline.audit.fixing.looking import Looker, Seen
from hms_gateway.pipeline.audit.fixing.plan import PlanHead, PlannedFix
from hms_gateway.pipeline.audit.rules.shapes import is_leftover
from hms_gateway.pipeline.audit.rules.values import Fix, below, location_of
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.listing import ListingProblem
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
    StorageDescriptor,
    Table,
    ThriftException,
)

_NO_COUNTING: Final = EnvironmentContext(properties={DO_NOT_UPDATE_STATS: "true"})


class _Refused(Exception):
    """An action is not done; the text says why."""


class Applier:
    """The step of job `apply`: the rows of a batch are actions on one table, of one kind."""

    def __init__(self, head: PlanHead, storage: Storage, clock: Callable[[], float] = time.time) -> None:
        self._head = head
        self._looker = Looker(storage)
        self._clock = clock

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        actions = [msgspec.convert(row, PlannedFix) for row in batch.rows()]
        work = _Work(client, self._head, self._looker, self._clock())
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

    def _change(self, done: str, actions: Sequence[PlannedFix], name: str, *arguments: Any) -> None:
        """One call for several actions; what the metastore refuses is refused for all of them."""
        try:
            self._client.call(name, *arguments)
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
        request = DropPartitionsRequest(
            dbName=wanted[0].database,
            tblName=wanted[0].table,
            parts=RequestPartsSpec(names=[action.partition or "" for action in wanted]),
            deleteData=False,
            ifExists=True,
            needResult=False,
        )
        self._change("dropped", wanted, "drop_partitions_req", request)

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
        found, seen = self._partitions(actions), dict[str, Seen]()
        wanted = list(self._wanted(actions, lambda action: self._is_to_add(action, found, seen)))
        made = [(action, self._new_partition(action, table, seen[action.location])) for action in wanted]
        parts = [(action, part) for action, part in made if part is not None]
        if not parts:
            return
        request = AddPartitionsRequest(
            dbName=wanted[0].database,
            tblName=wanted[0].table,
            parts=[part for _, part in parts],
            ifNotExists=True,
            needResult=False,
            environmentContext=_NO_COUNTING,
        )
        self._change("added", [action for action, _ in parts], "add_partitions_req", request)

    def _is_to_add(self, action: PlannedFix, found: Mapping[str, Partition], seen: dict[str, Seen]) -> bool:
        there = found.get(action.partition or "")
        if there is not None:
            self._check_location(action, there.sd)
            return False
        look = self._looker.look(action.location)
        if look is None or not look.files:
            raise _Refused("has no files any more; the partition is not added")
        seen[action.location] = look
        return True

    def _new_partition(self, action: PlannedFix, table: Table, seen: Seen) -> Partition | None:
        """With the location as the table spells its own; None where it does not lie in the table's directory."""
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
            method = "alter_partitions_with_environment_context"
            self._change("counted", wanted, method, *place, changed, _NO_COUNTING)

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

    def _look_at_files(self, action: PlannedFix) -> Seen:
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
        names = [action.partition for action in actions]
        try:
            found = self._client.call("get_partitions_by_names", actions[0].database, actions[0].table, names)
        except NoSuchObjectException:
            return {}
        by_values = {tuple(partition.values or ()): partition for partition in found}
        named = ((name or "", tuple(name_to_values(name or ""))) for name in names)
        return {name: by_values[values] for name, values in named if values in by_values}

    def _check_location(self, action: PlannedFix, sd: StorageDescriptor | None) -> None:
        if location_of(sd.location if sd else None) != action.location:
            raise _Refused(f"is not the location of {action.table_name} {action.partition or ''} any more".rstrip())


def _counted(parameters: Mapping[str, str], seen: Seen) -> dict[str, str]:
    return {**parameters, "numFiles": str(seen.files), "totalSize": str(seen.total_bytes)}


def _owner(action: PlannedFix, places: Mapping[str, str]) -> str | None:
    """A table or partition at or in the directory; around an orphan, too, while leftovers lie in places."""
    for place, name in places.items():
        is_around = action.do is Fix.DELETE_ORPHAN and below(place, action.location) is not None
        if is_around or below(action.location, place) is not None:
            return name
    return None
