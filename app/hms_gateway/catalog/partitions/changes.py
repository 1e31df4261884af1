"""Methods that alter and rename partitions (semantics §2.11), with the moves of their directories."""

import copy
from collections.abc import Callable, Mapping, Sequence

import msgspec

from hms_gateway.catalog.arguments import table_in, table_named, with_fields
from hms_gateway.catalog.directories.of_partitions import PartitionDirectories
from hms_gateway.catalog.directories.warehouse import DirectoryMoves, MoveTakenBack
from hms_gateway.catalog.partitions.writes import (
    Conflict,
    check_count,
    location_of,
    placed,
    properties,
    require_unchanged,
    retry_on_conflict,
    stored_form,
    table_location,
    table_parameters,
    with_columns,
    write,
)
from hms_gateway.catalog.statistics.aggregation import after_concurrent_write, seen_by
from hms_gateway.metastore.changes.events import EventMaker, PartitionEvents
from hms_gateway.metastore.changes.fencing import check_unchanged_since
from hms_gateway.metastore.changes.implicit_locks import held_for_files
from hms_gateway.metastore.checks.errors import file_errors_as_meta, required
from hms_gateway.metastore.checks.selection import TableName, java_list, values_name
from hms_gateway.metastore.checks.table_shape import StoredDescriptors, elsewhere, with_known_skew
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    Event,
    FileSystemError,
    Selection,
    Snapshot,
    Store,
    StoredPartition,
    StoredTable,
    TableId,
    Transaction,
)
from hms_gateway.metastore.vocabulary.locations import (
    LocationError,
    default_partition_location,
    normalize_location,
    on_file_system_of,
    same_file_system,
)
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.parameters import (
    alter_partition_counts_files,
    with_fast_statistics,
    with_partition_ddl_time,
    written_under,
)
from hms_gateway.metastore.vocabulary.table_types import TableType, is_external, is_transactional, is_view
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlterPartitionsRequest,
    AlterPartitionsResponse,
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    Partition,
    RenamePartitionRequest,
    RenamePartitionResponse,
    StorageDescriptor,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.catalog.statistics import StatisticsRows
from hms_gateway.storage.files.directories import Directories
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.write_ids import ValidIds


class Move(msgspec.Struct, frozen=True):
    """A directory to be renamed because partitions are about to lie elsewhere; `changed` are these, or a prefix."""

    table_id: TableId
    source: str
    target: str
    changed: Sequence[Target]


class PartitionMoves:
    """Commits a change of the catalog together with the move of a directory.

    Hive moves after the commit and takes the catalog back when that fails; here the journalled move comes first, so
    that a change that is taken back is never seen.
    """

    def __init__(self, store: Store, files: Directories) -> None:
        self._store = store
        self._moves = DirectoryMoves(store, files)

    def commit(self, change: Callable[[Transaction], None], move: Move | None) -> None:
        """Move, then commit `change`; nothing has happened when either fails.

        Raises FileSystemError, Conflict and what `change` raises.
        """
        if move is None:
            write(self._store, change)
            return
        moved = self._moves.moved(move.table_id, move.source, move.target)
        try:
            with held_for_files(self._store, move.changed), moved as pending:

                def settled(transaction: Transaction) -> None:
                    self._moves.settle(transaction, pending)
                    change(transaction)

                write(self._store, settled)
        except MoveTakenBack as error:
            raise Conflict from error


class _Change(msgspec.Struct, frozen=True):
    """A partition as it is and as it will be."""

    before: StoredPartition
    after: StoredPartition


class PartitionChanges:
    """Methods that alter or rename partitions. All of a call's partitions change, or none.

    Raise InvalidOperationException and MetaException.
    """

    def __init__(self, store: Store, files: Directories, clock: Clock, events: EventMaker, limits: Limits) -> None:
        self._store = store
        self._files = files
        self._directories = PartitionDirectories(files)
        self._clock = clock
        self._limits = limits
        self._events = PartitionEvents(events)
        self._moves = PartitionMoves(store, files)

    def alter_partition(self, call: Call, db_name: str, tbl_name: str, new_part: Partition) -> None:
        self._alter(table_named(db_name, tbl_name), new_part)

    def alter_partitions(self, call: Call, db_name: str, tbl_name: str, new_parts: list[Partition]) -> None:
        self._alter_all(table_named(db_name, tbl_name), new_parts)

    def alter_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_part: Partition,
        environment_context: EnvironmentContext | None,
    ) -> None:
        self._alter(table_named(db_name, tbl_name), new_part, environment_context)

    def alter_partitions_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_parts: list[Partition],
        environment_context: EnvironmentContext | None,
    ) -> None:
        self._alter_all(table_named(db_name, tbl_name), new_parts, environment_context)

    def alter_partitions_req(self, call: Call, req: AlterPartitionsRequest) -> AlterPartitionsResponse:
        req = required(req, "req")
        table = table_in(req.catName, req.dbName, req.tableName)
        partitions = with_columns(req.partitions or [], req.partitionColSchema)
        if req.writeId is not None and req.writeId > 0:
            partitions = [one and with_fields(one, writeId=req.writeId) for one in partitions]
        self._alter_all(table, partitions, req.environmentContext, req.validWriteIdList)
        return AlterPartitionsResponse()

    def rename_partition(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], new_part: Partition
    ) -> None:
        self._rename(table_named(db_name, tbl_name), part_vals, new_part)

    def rename_partition_req(self, call: Call, req: RenamePartitionRequest) -> RenamePartitionResponse:
        req = required(req, "req")
        self._rename(table_in(req.catName, req.dbName, req.tableName), req.partVals, req.newPart)
        return RenamePartitionResponse()

    def _alter(
        self, table_name: TableName, partition: Partition | None, environment: EnvironmentContext | None = None
    ) -> None:
        """Replace the partition that has the same values."""
        given = required(partition, "partition")
        retry_on_conflict(lambda: self._attempt_alter(table_name, [given], properties(environment), is_single=True))

    def _alter_all(
        self,
        table_name: TableName,
        partitions: Sequence[Partition] | None,
        environment: EnvironmentContext | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        """Replace many at once; `valid_write_ids` are those that their writer sees."""
        given = [required(partition, "partition") for partition in required(partitions, "partitions")]
        check_count(given, self._limits)
        context = properties(environment)
        retry_on_conflict(lambda: self._attempt_alter(table_name, given, context, valid_write_ids))

    def _rename(self, table_name: TableName, values: Sequence[str] | None, partition: Partition | None) -> None:
        """Give a partition new values, and move its directory where the table owns it; without old values, alter it."""
        given = required(partition, "partition")
        if not values:
            self._alter(table_name, given)
            return
        retry_on_conflict(lambda: self._attempt_rename(table_name, values, given))

    def _attempt_alter(
        self,
        table_name: TableName,
        partitions: Sequence[Partition],
        environment: Mapping[str, str],
        valid_write_ids: str | None = None,
        *,
        is_single: bool = False,
    ) -> None:
        table, changes = self._store.read(
            lambda snapshot: self._load(snapshot, table_name, partitions, is_single=is_single)
        )
        if changes:
            self._check_places(table, changes)
            changes = self._counted(table, changes, environment)
            if valid_write_ids and is_transactional(table_parameters(table)):
                seen = seen_by(valid_write_ids)
                changes = [_after_concurrent_write(change, seen) for change in changes]
            events = self._events_of(table, changes)
            names = [change.before.name for change in changes]

            after = [change.after for change in changes]

            def work(transaction: Transaction) -> None:
                check_unchanged_since(transaction, environment, table.table, names)
                _apply(transaction, table, changes, after, events)

            write(self._store, CatalogWork(work, table_name.foreseen, changed_partitions=(table, after)))

    def _load(
        self, snapshot: Snapshot, table_name: TableName, partitions: Sequence[Partition], *, is_single: bool
    ) -> tuple[StoredTable, list[_Change]]:
        table = table_name.find(snapshot)
        if table is None:
            what = "partition" if is_single else "partitions"
            raise InvalidOperationException(f"Unable to alter {what} because table or database does not exist.")
        # Of two changes of one partition the later counts.
        wanted = {values_name(table, partition.values): partition for partition in partitions}
        stored = {one.name: one for one in snapshot.partitions(table, Selection(names=list(wanted)))}
        for name, partition in wanted.items():
            if name not in stored and is_single:
                raise InvalidOperationException("alter is not possible")
            if name not in stored:
                inner = f"NoSuchObjectException(message:partition values={java_list(partition.values or ())})"
                raise InvalidOperationException(f"Alter partition operation failed: {inner}")
        descriptors = StoredDescriptors()
        altered = [self._altered(table, stored[name], partition, descriptors) for name, partition in wanted.items()]
        return table, [
            _Change(stored[name], msgspec.structs.replace(stored[name], partition=partition))
            for name, partition in zip(wanted, altered, strict=True)
        ]

    def _altered(
        self, table: StoredTable, before: StoredPartition, sent: Partition, descriptors: StoredDescriptors
    ) -> Partition:
        """The partition to be stored: what was sent, but for what the metastore itself keeps."""
        _check_owner(table, sent)
        after = copy.copy(sent)
        after.sd = self._descriptor(table, before.partition.sd, sent.sd)
        # Clients that do not know the time of creation send 0 (semantics §13 row 7).
        after.createTime = sent.createTime or before.partition.createTime
        after.lastAccessTime = sent.lastAccessTime or 0
        after.writeId = written_under(table_parameters(table), sent.writeId, before.partition.writeId)
        try:
            after.parameters = with_partition_ddl_time(sent.parameters or {}, self._clock.seconds())
        except ValueError as error:
            raise MetaException(str(error)) from error
        return stored_form(table, after, descriptors)

    def _descriptor(
        self, table: StoredTable, before: StorageDescriptor | None, sent: StorageDescriptor | None
    ) -> StorageDescriptor | None:
        if is_view(table.table.tableType):
            return before
        given = required(sent, "storage descriptor")
        try:
            placed = elsewhere(given, normalize_location(given.location))
        except LocationError as error:
            raise MetaException(str(error)) from error
        return with_known_skew(before, placed)

    def _counted(self, table: StoredTable, changes: Sequence[_Change], environment: Mapping[str, str]) -> list[_Change]:
        """The changes with files counted where that is due (semantics §3.6)."""
        due = [
            location
            for change in changes
            if alter_partition_counts_files(
                table.table.tableType, _parameters(change.before), _parameters(change.after), environment
            )
            and (location := location_of(change.after.partition))
        ]
        with file_errors_as_meta():
            counted = dict(zip(due, self._directories.count(due), strict=True))
        return [_with_statistics(change, counted, environment) for change in changes]

    def _check_places(self, table: StoredTable, changes: Sequence[_Change]) -> None:
        """Only of those that change their place: one that was stored before the roots were narrowed may stay."""
        moved = [
            location
            for change in changes
            if (location := location_of(change.after.partition)) and location != location_of(change.before.partition)
        ]
        self._directories.check_places(moved, is_owned=not is_external(table_parameters(table)))

    def _events_of(self, table: StoredTable, changes: Sequence[_Change]) -> list[Event]:
        pairs = [(change.before.partition, change.after.partition) for change in changes]
        return list(self._events.alter(table.table, pairs))

    def _attempt_rename(self, table_name: TableName, values: Sequence[str], sent: Partition) -> None:
        table, change = self._store.read(lambda snapshot: self._load_rename(snapshot, table_name, values, sent))
        with file_errors_as_meta():
            change, move = self._placed(table, change, sent)
            self._check_places(table, [change])
            change = self._counted_source(table, change)
        events = self._events_of(table, [change])
        try:
            self._moves.commit(lambda tx: _apply(tx, table, [change], [change.after], events), move)
        except FileSystemError as error:
            place = f"{table.table.dbName}.{table.table.tableName} {java_list(values)}"
            text = f"Unable to access old location {move.source if move else None} for partition {place}"
            raise InvalidOperationException(text) from error

    def _load_rename(
        self, snapshot: Snapshot, table_name: TableName, values: Sequence[str], sent: Partition
    ) -> tuple[StoredTable, _Change]:
        table = table_name.find(snapshot)
        if table is None:
            raise InvalidOperationException("Unable to alter partition because table or database does not exist.")
        required(sent.values, "partition values")
        before = snapshot.partition(table, values_name(table, values))
        if before is None:
            raise InvalidOperationException("Unable to rename partition because old partition does not exist")
        new_name = values_name(table, sent.values)
        if snapshot.partition(table, new_name) is not None:
            raise InvalidOperationException(f"Partition already exists:{table_name}.{java_list(sent.values or ())}")
        if table.table.tableType == TableType.EXTERNAL_TABLE:
            # Of a partition of an external table only the values change.
            sent = placed(sent, location_of(before.partition))
        after = msgspec.structs.replace(
            before, name=new_name, partition=self._altered(table, before, sent, StoredDescriptors())
        )
        return table, _Change(before, after)

    def _placed(self, table: StoredTable, change: _Change, sent: Partition) -> tuple[_Change, Move | None]:
        """Where the renamed partition lies, and the move that takes its directory there.

        Partitions of external tables stay where they are, and so do those whose directories are not managed here.
        """
        source, root = location_of(change.before.partition), table_location(table)
        model = location_of(sent)
        if source is None or root is None or model is None:
            return change, None
        if table.table.tableType == TableType.EXTERNAL_TABLE or not self._files.manages(source):
            return _at(change, source), None
        model = normalize_location(model)
        target = on_file_system_of(default_partition_location(root, change.after.name), model)
        if not same_file_system(source, target):
            raise InvalidOperationException(
                f"table new location {target} is on a different file system than the old location {source}."
                " This operation is not supported"
            )
        if target == source:
            return _at(change, target), None
        if self._files.exists(target):
            owner = f"{table.table.dbName}.{table.table.tableName}"
            raise InvalidOperationException(f"New location for this table {owner} already exists : {target}")
        if not self._files.exists(source):
            return _at(change, target), None
        names = (change.before.name, change.after.name)
        changed = [Target(table.table.dbName or "", table.table.tableName, name) for name in names]
        return _at(change, target), Move(table.table_id, source, target, changed)

    def _counted_source(self, table: StoredTable, change: _Change) -> _Change:
        """With the files counted where they still are; those of external tables are not counted here."""
        source = location_of(change.before.partition)
        if source is None or table.table.tableType == TableType.EXTERNAL_TABLE:
            return change
        before, after = _parameters(change.before), _parameters(change.after)
        if not alter_partition_counts_files(table.table.tableType, before, after, {}):
            return change
        statistics = self._directories.count([source])[0]
        return _with_statistics(change, {location_of(change.after.partition) or "": statistics}, {})


def _check_owner(table: StoredTable, sent: Partition) -> None:
    """A partition sent with another table's name cannot be meant for this one; without a name it can."""
    db_name, tbl_name = table.table.dbName or "", table.table.tableName or ""
    if normalize(sent.dbName or db_name) != db_name or normalize(sent.tableName or tbl_name) != tbl_name:
        raise MetaException("The transaction for alter partition did not commit successfully.")


def _parameters(stored: StoredPartition) -> dict[str, str]:
    return stored.partition.parameters or {}


def _with_statistics(
    change: _Change, counted: Mapping[str, tuple[int, int] | None], environment: Mapping[str, str]
) -> _Change:
    statistics = counted.get(location_of(change.after.partition) or "")
    if statistics is None:
        return change
    partition = copy.copy(change.after.partition)
    partition.parameters = with_fast_statistics(partition.parameters or {}, *statistics, environment)
    return msgspec.structs.replace(change, after=msgspec.structs.replace(change.after, partition=partition))


def _after_concurrent_write(change: _Change, seen: ValidIds) -> _Change:
    before, after = change.before.partition, change.after.partition
    parameters = after_concurrent_write(after.parameters or {}, before.writeId, seen)
    after = msgspec.structs.replace(after, parameters=parameters)
    return msgspec.structs.replace(change, after=msgspec.structs.replace(change.after, partition=after))


def _at(change: _Change, location: str) -> _Change:
    after = msgspec.structs.replace(change.after, partition=placed(change.after.partition, location))
    return msgspec.structs.replace(change, after=after)


def _apply(
    transaction: Transaction,
    table: StoredTable,
    changes: Sequence[_Change],
    after: Sequence[StoredPartition],
    events: Sequence[Event],
) -> None:
    """Write the changes, `after`, if everything is still as it was when they were decided. Raises Conflict."""
    current = require_unchanged(transaction, table)
    if not transaction.are_unchanged(current, [change.before for change in changes]):
        raise Conflict
    transaction.update_partitions(current, after)
    _forget_lost_columns(transaction, current, changes)
    for event in events:
        transaction.append_event(event)


def _forget_lost_columns(transaction: Transaction, table: StoredTable, changes: Sequence[_Change]) -> None:
    """Statistics of columns that a partition no longer has, or has with another type, go (semantics §2.7 item 10)."""
    concerned: dict[tuple[tuple[str, str], ...], list[_Change]] = {}
    for change in changes:
        before, after = _columns(change.before), _columns(change.after)
        if not set(before) <= set(after):
            concerned.setdefault(after, []).append(change)
    for columns, changed in concerned.items():
        kept = [FieldSchema(name, column_type) for name, column_type in columns]
        ids = [change.after.partition_id for change in changed]
        StatisticsRows(transaction).keep_partition_columns(table.table_id, kept, ids)


def _columns(stored: StoredPartition) -> tuple[tuple[str, str], ...]:
    descriptor = stored.partition.sd
    return tuple((column.name or "", column.type or "") for column in (descriptor.cols if descriptor else None) or ())
