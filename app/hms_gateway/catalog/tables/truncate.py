"""Emptying a table or some of its partitions: the files go, the statistics say so (semantics §10.3)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from hms_gateway.catalog.arguments import table_named
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.changes.implicit_locks import held_for_files
from hms_gateway.metastore.checks.errors import file_errors_as_meta, required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.checks.table_shape import with_parameters
from hms_gateway.metastore.ports.store import (
    Reach,
    Selection,
    Snapshot,
    Store,
    StoredPartition,
    StoredTable,
    Transaction,
)
from hms_gateway.metastore.vocabulary.parameters import (
    RAW_BYTES,
    ROW_COUNT,
    STATS_GENERATED,
    STATS_GENERATED_BY_TASK,
    says_true,
    with_fast_statistics,
    with_new_ddl_time,
    written_under,
)
from hms_gateway.metastore.vocabulary.table_types import drop_deletes_data, is_view
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import EnvironmentContext, MetaException, TruncateTableRequest, TruncateTableResponse
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.files.directories import Directories
from hms_gateway.txn.rules.names import Target, target

_KEEPS_FILES: Final = "truncateSkipDataDeletion"
_BY_TASK: Final = {STATS_GENERATED: STATS_GENERATED_BY_TASK}


class _Emptied(msgspec.Struct, frozen=True):
    """What a call is about; `partitions` is None when it is about a table without partition keys."""

    table: StoredTable
    partitions: list[StoredPartition] | None

    @property
    def locations(self) -> list[str]:
        if self.partitions is None:
            descriptors = [self.table.table.sd]
        else:
            descriptors = [stored.partition.sd for stored in self.partitions]
        return [sd.location for sd in descriptors if sd is not None and sd.location]

    def targets(self, part_names: Sequence[str] | None) -> list[Target]:
        """What is changed: the table, or the partitions where only some are meant."""
        db_name, table_name = self.table.table.dbName, self.table.table.tableName
        return [target(db_name, table_name, name) for name in part_names or ()] or [target(db_name, table_name)]


class Truncations:
    """truncate_table in both forms. Raise MetaException, the only exception declared."""

    def __init__(self, store: Store, files: Directories, clock: Clock, events: EventMaker) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._events = events

    def truncate_table(self, call: Call, dbName: str, tableName: str, partNames: list[str]) -> None:
        self._truncate(table_named(dbName, tableName), partNames)

    def truncate_table_req(self, call: Call, req: TruncateTableRequest) -> TruncateTableResponse:
        request = required(req, "req")
        name = table_named(request.dbName, request.tableName)
        self._truncate(name, request.partNames, request.environmentContext, request.writeId)
        return TruncateTableResponse()

    def _truncate(
        self,
        name: TableName,
        part_names: Sequence[str] | None,
        environment: EnvironmentContext | None = None,
        write_id: int | None = None,
    ) -> None:
        """Empty the table, or the partitions of these names.

        `write_id` is that of the transaction which empties a transactional table.

        Files go first: statistics that are too high mislead less than those that deny there is data.
        """
        emptied = self._found(name, part_names)
        if says_true(environment.properties if environment else None, _KEEPS_FILES):
            self._store.write(lambda tx: self._reset_statistics(tx, name, part_names, write_id))
            return
        with held_for_files(self._store, emptied.targets(part_names)):
            # Until the lock was held others may have changed where the files are.
            for location in self._found(name, part_names).locations:
                self._empty(location)
            self._store.write(lambda tx: self._reset_statistics(tx, name, part_names, write_id))

    def _found(self, name: TableName, part_names: Sequence[str] | None) -> _Emptied:
        emptied = self._store.read(lambda snapshot: _load(snapshot, name, part_names))
        _check(emptied.table)
        return emptied

    def _empty(self, location: str) -> None:
        with file_errors_as_meta():
            if not self._files.manages(location):
                outside = " (file_roots)" if self._files.reach(location) is Reach.OUTSIDE else ""
                raise MetaException(f"Cannot truncate: this server does not manage the files in {location}{outside}")
            self._files.delete_directory(location)
            self._files.make_directory(location)

    def _reset_statistics(
        self, tx: Transaction, name: TableName, part_names: Sequence[str] | None, write_id: int | None
    ) -> None:
        emptied = _load(tx, name, part_names)
        stored = emptied.table
        after = stored.table
        if emptied.partitions is None:
            kept = written_under(after.parameters or {}, write_id, after.writeId)
            after = with_parameters(after, self._empty_parameters(after.parameters))
            after = msgspec.structs.replace(after, writeId=kept)
            tx.update_table(stored.table_id, stored.database_id, after)
        else:
            parameters = after.parameters or {}
            tx.update_partitions(stored, [self._emptied(parameters, one, write_id) for one in emptied.partitions])
        # One event for all partitions: followers of the catalog learn that the table changed.
        event = self._events.alter_table(stored.table, after, truncates=True)
        tx.append_event(msgspec.structs.replace(event, emptied_partitions=tuple(part_names or ())))

    def _emptied(self, of_table: Mapping[str, str], stored: StoredPartition, write_id: int | None) -> StoredPartition:
        parameters = self._empty_parameters(stored.partition.parameters)
        kept = written_under(of_table, write_id, stored.partition.writeId)
        partition = msgspec.structs.replace(stored.partition, parameters=parameters, writeId=kept)
        return StoredPartition(stored.partition_id, stored.name, partition)

    def _empty_parameters(self, parameters: dict[str, str] | None) -> dict[str, str]:
        counted = with_fast_statistics(parameters or {}, 0, 0, _BY_TASK)
        return with_new_ddl_time({**counted, ROW_COUNT: "0", RAW_BYTES: "0"}, self._clock.seconds())


def _load(snapshot: Snapshot, name: TableName, part_names: Sequence[str] | None) -> _Emptied:
    table = name.find(snapshot)
    if table is None:
        raise MetaException(f"{name} table not found")
    if not table.table.partitionKeys:
        if part_names:
            raise MetaException(f"{name} is not partitioned")
        return _Emptied(table, None)
    if part_names is None:
        return _Emptied(table, snapshot.partitions(table, Selection()))
    wanted = list(dict.fromkeys(required(part, "partition name") for part in part_names))
    partitions = snapshot.partitions(table, Selection(names=[part for part in wanted if "\0" not in part]))
    missing = set(wanted) - {partition.name for partition in partitions}
    if missing:
        raise MetaException(f"{name} has no partition {min(missing)}")
    return _Emptied(table, partitions)


def _check(table: StoredTable) -> None:
    if is_view(table.table.tableType):
        raise MetaException(f"Cannot truncate a view {table.table.tableName}.")
    if not drop_deletes_data(table.table.parameters or {}):
        raise MetaException(f"Cannot truncate non-managed table {table.table.tableName}.")
