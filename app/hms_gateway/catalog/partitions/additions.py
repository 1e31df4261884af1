"""Methods that add partitions: single ones, lists, specs, and appending by values or by name (semantics §2.8)."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

import msgspec

from hms_gateway.catalog.access.grant_rows import GrantRows
from hms_gateway.catalog.access.grants import has_partition_privileges
from hms_gateway.catalog.arguments import table_shown
from hms_gateway.catalog.directories.of_partitions import Found, PartitionDirectories
from hms_gateway.catalog.partitions.specs import partitions_of
from hms_gateway.catalog.partitions.writes import (
    check_count,
    location_of,
    properties,
    require_unchanged,
    retry_on_conflict,
    shown_partitions,
    stored_form,
    table_location,
    table_parameters,
    with_columns,
    write,
)
from hms_gateway.metastore.changes.events import EventMaker, PartitionEvents
from hms_gateway.metastore.checks.errors import file_errors_as_meta, java_text, required
from hms_gateway.metastore.checks.selection import TableName, named_values, values_name
from hms_gateway.metastore.checks.table_shape import StoredDescriptors, elsewhere
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    Event,
    NewPartition,
    OutcomeUnknown,
    Selection,
    Snapshot,
    Store,
    StoredTable,
    StoreError,
    Transaction,
)
from hms_gateway.metastore.vocabulary.locations import (
    LocationError,
    default_partition_location,
    is_normalized,
    normalize_location,
)
from hms_gateway.metastore.vocabulary.parameters import (
    FAST_STATISTICS,
    add_partition_counts_files,
    with_ddl_time,
    with_fast_statistics,
    with_new_ddl_time,
)
from hms_gateway.metastore.vocabulary.table_types import is_external, is_view
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    AddPartitionsResult,
    AlreadyExistsException,
    AppendPartitionsRequest,
    EnvironmentContext,
    InvalidObjectException,
    MetaException,
    Partition,
    PartitionSpec,
    StorageDescriptor,
)
from hms_gateway.runtime.call_keys import recalled_value
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.presented import creation_seconds, is_recorded
from hms_gateway.storage.files.directories import Directories

OnInsert: TypeAlias = Callable[[Transaction, Sequence[NewPartition]], None]
"""Something to do with new partitions, which come as the call gave them."""

_NO_TABLE: Final = "Unable to add partition because table or database do not exist"


class _Request(msgspec.Struct, frozen=True):
    """One call. The texts are those by which the calls differ, `owner` what every partition has to name exactly.

    `is_answered` when the reply has the partitions: then they are kept for a repetition of the call.
    """

    table_name: TableName
    partitions: Callable[[StoredTable], Sequence[Partition | None]]
    no_table: str = _NO_TABLE
    exists: str = "Partition already exists: "
    owner: TableName | None = None
    skips_existing: bool = False
    is_answered: bool = True
    refusal_prefix: str = ""
    renews_ddl_time: bool = False
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)


class _Made(msgspec.Struct):
    """The directories one call has made, over all its attempts, and the partitions that they are for."""

    new: set[str] = msgspec.field(default_factory=set)
    names: dict[str, str] = msgspec.field(default_factory=dict)


class PartitionAdditions:
    """Methods that add partitions. All of a call's partitions are added, or none.

    Raise InvalidObjectException (no such table), AlreadyExistsException and MetaException.
    """

    def __init__(
        self,
        store: Store,
        files: Directories,
        clock: Clock,
        events: EventMaker,
        limits: Limits,
        on_insert: OnInsert,
    ) -> None:
        """`on_insert` runs in the unit of work that adds partitions, once they are there."""
        self._on_insert = on_insert
        self._store = store
        self._directories = PartitionDirectories(files)
        self._clock = clock
        self._limits = limits
        self._events = PartitionEvents(events)

    def add_partition(self, call: Call, new_part: Partition) -> Partition:
        return self.add_partition_with_environment_context(call, new_part, None)

    def add_partition_with_environment_context(
        self, call: Call, new_part: Partition, environment_context: EnvironmentContext | None
    ) -> Partition:
        """Add one partition to the table it names and return it as stored (semantics §2.8)."""
        given = required(new_part, "partition")
        name = TableName(given.dbName, given.tableName)
        added = self._add(_Request(name, lambda _: [given], environment=properties(environment_context)))
        return shown_partitions(table_shown(call, None, None, given.catName), added)[0]

    def add_partitions(self, call: Call, new_parts: list[Partition]) -> int:
        """Add partitions of the table that the first one names; the number added."""
        given = required(new_parts, "partitions")
        if not given:
            return 0
        first = required(given[0], "partition")
        return len(self._add_to(TableName(first.dbName, first.tableName), given))

    def add_partitions_pspec(self, call: Call, new_parts: list[PartitionSpec]) -> int:
        """Add the partitions of specs to the table the first spec names; the number added."""
        given = partitions_of(new_parts)
        return len(self._add_to(TableName(new_parts[0].dbName, new_parts[0].tableName), given)) if new_parts else 0

    def add_partitions_req(self, call: Call, request: AddPartitionsRequest) -> AddPartitionsResult:
        request = required(request, "request")
        # Hive leaves the list out when there was nothing to add.
        wants_result = request.needResult is not False and bool(request.parts)
        table = table_shown(call, request.dbName, request.tblName, request.catName)
        added = self._add_to(
            table,
            with_columns(request.parts or [], request.partitionColSchema),
            skips_existing=bool(request.ifNotExists),
            is_answered=wants_result,
            environment=request.environmentContext,
        )
        return AddPartitionsResult(shown_partitions(table, added)) if wants_result else AddPartitionsResult()

    def append_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: list[str]) -> Partition:
        return self.append_partition_with_environment_context(call, db_name, tbl_name, part_vals, None)

    def append_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: list[str],
        environment_context: EnvironmentContext | None,
    ) -> Partition:
        """Add the partition with these values, made like its table."""
        return self._append(table_shown(call, db_name, tbl_name), lambda _: part_vals, environment_context)

    def append_partition_req(self, call: Call, appendPartitionsReq: AppendPartitionsRequest) -> Partition:
        req = required(appendPartitionsReq, "appendPartitionsReq")
        table = table_shown(call, req.dbName, req.tableName, req.catalogName)
        if req.partVals is not None:
            return self._append(table, lambda _: req.partVals, req.environmentContext)
        return self._append_named(table, req.name, req.environmentContext)

    def append_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str) -> Partition:
        return self.append_partition_by_name_with_environment_context(call, db_name, tbl_name, part_name, None)

    def append_partition_by_name_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_name: str,
        environment_context: EnvironmentContext | None,
    ) -> Partition:
        return self._append_named(table_shown(call, db_name, tbl_name), part_name, environment_context)

    def _add_to(
        self,
        table_name: TableName,
        partitions: Sequence[Partition],
        *,
        skips_existing: bool = False,
        is_answered: bool = True,
        environment: EnvironmentContext | None = None,
    ) -> list[Partition]:
        """Add partitions, all of which must name the table exactly as `table_name` does; those added.

        With `skips_existing` what exists already is left alone. Where the reply does not have them (`is_answered`), a
        repetition of the call gets none.
        """
        if not partitions:
            return []
        check_count(partitions, self._limits)
        return self._add(
            _Request(
                table_name,
                lambda _: partitions,
                no_table=f"Unable to add partitions because database or table {table_name} does not exist",
                owner=table_name,
                refusal_prefix="java.io.IOException: ",
                skips_existing=skips_existing,
                is_answered=is_answered,
                environment=properties(environment),
            )
        )

    def _append_named(
        self, table_name: TableName, name: str | None, environment: EnvironmentContext | None
    ) -> Partition:
        """Do as `_append`, by the partition's name (semantics §2.8, §2.13)."""
        return self._append(
            table_name,
            lambda table: named_values(table, name, InvalidObjectException),
            environment,
            f"{table_name} table not found",
        )

    def _append(
        self,
        table_name: TableName,
        values: Callable[[StoredTable], Sequence[str] | None],
        environment: EnvironmentContext | None,
        no_table: str = _NO_TABLE,
    ) -> Partition:
        request = _Request(
            table_name,
            lambda table: [_like_table(table, values(table))],
            no_table=no_table,
            exists="Partition already exists:",
            renews_ddl_time=True,
            environment=properties(environment),
        )
        return shown_partitions(table_name, self._add(request))[0]

    def _add(self, request: _Request) -> list[Partition]:
        recalled = recalled_value()
        if recalled is not None:
            return cast(list[Partition], recalled.value)
        made = _Made()
        try:
            added = retry_on_conflict(lambda: self._attempt(request, made))
        except OutcomeUnknown:
            raise
        except BaseException:
            self._take_back(request.table_name, made, made.new)
            raise
        self._take_back(request.table_name, made, made.new.difference(map(location_of, added)))
        return added

    def _attempt(self, request: _Request, made: _Made) -> list[Partition]:
        table, planned = self._store.read(lambda snapshot: self._load(snapshot, request))
        if not planned:
            return []
        found = self._make_directories(table, planned, request.environment, made)
        planned = _with_statistics(planned, found, request.environment)
        self._write(table, planned, is_answered=request.is_answered)
        # The call that made the directories found here may have failed and removed them; those with files in them stay.
        doubtful = [one.location for one in found if not (one.statistics and one.statistics[0])]
        self._directories.make_again(doubtful)
        return [one.partition for one in planned]

    def _load(self, snapshot: Snapshot, request: _Request) -> tuple[StoredTable, list[NewPartition]]:
        table = request.table_name.find(snapshot)
        if table is None:
            raise InvalidObjectException(request.no_table)
        given = [required(partition, "partition") for partition in request.partitions(table)]
        if request.owner is not None:
            _check_owner(request.owner, given)
        for partition in given:
            required(partition.values, "partition values")
        names = [values_name(table, partition.values) for partition in given]
        existing = set(snapshot.partition_names(table, Selection(names=names)))
        return table, self._plan(table, list(zip(names, given, strict=True)), existing, request)

    def _plan(
        self, table: StoredTable, given: Sequence[tuple[str, Partition]], existing: set[str], request: _Request
    ) -> list[NewPartition]:
        planned: dict[str, NewPartition] = {}
        now = self._clock.seconds()
        for name, partition in given:
            if name in existing:
                if request.skips_existing:
                    continue
                raise AlreadyExistsException(request.exists + java_text(partition))
            if name in planned:
                text = f"java.io.IOException: Duplicate partitions in the list: {java_text(partition)}"
                raise MetaException(text)
            added = copy.copy(partition)
            added.sd = self._descriptor(table, name, partition.sd, request.refusal_prefix)
            added.createTime = creation_seconds(partition.createTime, now)
            added.lastAccessTime = partition.lastAccessTime or 0
            dated = with_new_ddl_time if request.renews_ddl_time else with_ddl_time
            added.parameters = dated(partition.parameters or {}, now)
            planned[name] = NewPartition(name, added)
        return list(planned.values())

    def _descriptor(
        self, table: StoredTable, name: str, descriptor: StorageDescriptor | None, refusal_prefix: str
    ) -> StorageDescriptor | None:
        if is_view(table.table.tableType):
            if descriptor is not None and descriptor.location:
                raise MetaException(f"{refusal_prefix}Cannot specify location for a view partition")
            return None if descriptor is None else _placed(descriptor, descriptor.location)
        given = required(descriptor, "storage descriptor")
        root = table_location(table)
        default = default_partition_location(root, name) if root else None
        if not given.location:
            return _placed(given, default)
        if root and given.location == default and is_normalized(root):
            return _placed(given, default)
        try:
            return _placed(given, normalize_location(given.location))
        except LocationError as error:
            raise MetaException(str(error)) from error

    def _make_directories(
        self, table: StoredTable, planned: Sequence[NewPartition], environment: Mapping[str, str], made: _Made
    ) -> list[Found]:
        """The directories that were there before this call."""
        if is_view(table.table.tableType):
            return []
        placed = {location: one for one in planned if (location := location_of(one.partition))}
        made.names.update((location, one.name) for location, one in placed.items())
        counts_files = add_partition_counts_files(table.table.tableType, environment)
        counted = {location for location, one in placed.items() if counts_files and _lacks_statistics(one.partition)}
        self._directories.check_places(placed, is_owned=not is_external(table_parameters(table)))
        with file_errors_as_meta():
            return self._directories.make(list(placed), counted, made.new)

    def _write(self, table: StoredTable, planned: Sequence[NewPartition], *, is_answered: bool) -> None:
        """The unit of work gives the call's answer, which is kept for a repetition of the call."""
        descriptors = StoredDescriptors()
        stored = [NewPartition(one.name, stored_form(table, one.partition, descriptors)) for one in planned]
        event = self._events.add(table.table, [one.name for one in stored], [one.partition for one in stored])
        copies_grants = not is_recorded()

        def work(transaction: Transaction) -> list[Partition]:
            _insert(transaction, table, stored, event, copies_grants=copies_grants)
            self._on_insert(transaction, planned)
            return [one.partition for one in planned] if is_answered else []

        names = [(table.table.dbName or "", table.table.tableName or "")]
        write(self._store, CatalogWork(work, names, new_partitions=(table, stored)))

    def _take_back(self, table_name: TableName, made: _Made, locations: set[str]) -> None:
        """Remove directories this call has made for nothing, unless others have stored a partition there meanwhile.

        Looking again afterwards closes the gap: others make sure of their directories after they commit, so either
        they have committed by now, and we see it, or they have not, and they will see that the directory is gone.
        """
        if not locations:
            return
        names = [made.names[location] for location in locations]
        try:
            root, used = self._in_use(table_name, names)
            unused = sorted(locations - used)
            self._directories.take_back(root, unused)
            _, used = self._in_use(table_name, names)
            self._directories.make_again(sorted(used.intersection(unused)))
        except StoreError:
            return

    def _in_use(self, table_name: TableName, names: Sequence[str]) -> tuple[str | None, set[str]]:
        """The table's directory, and those of the partitions with these names."""

        def work(snapshot: Snapshot) -> tuple[str | None, set[str]]:
            table = table_name.find(snapshot)
            if table is None:
                return None, set()
            stored = snapshot.partitions(table, Selection(names=names))
            return table_location(table), {location for one in stored if (location := location_of(one.partition))}

        return self._store.read(work)


def _check_owner(owner: TableName, partitions: Sequence[Partition]) -> None:
    """Names are compared exactly here, unlike everywhere else (semantics §0.2)."""
    for partition in partitions:
        if partition.dbName != owner.db_name or partition.tableName != owner.tbl_name:
            raise MetaException(f"Partition does not belong to target table {owner}: {java_text(partition)}")


def _placed(descriptor: StorageDescriptor, location: str | None) -> StorageDescriptor:
    """A copy at its place. Calls answer with it, so it has what Java cannot leave unset (semantics §3.3)."""
    placed = elsewhere(descriptor, location)
    placed.compressed = bool(descriptor.compressed)
    placed.numBuckets = descriptor.numBuckets or 0
    return placed


def _like_table(table: StoredTable, values: Sequence[str] | None) -> Partition:
    if is_view(table.table.tableType) or table.table.sd is None:
        raise MetaException("Cannot append a partition to a view")
    return Partition(
        values=list(required(values, "partition values")),
        dbName=table.table.dbName,
        tableName=table.table.tableName,
        sd=elsewhere(table.table.sd, None),
    )


def _lacks_statistics(partition: Partition) -> bool:
    return any(key not in (partition.parameters or {}) for key in FAST_STATISTICS)


def _with_statistics(
    planned: Sequence[NewPartition], found: Sequence[Found], environment: Mapping[str, str]
) -> list[NewPartition]:
    counted = {one.location: one.statistics for one in found if one.statistics is not None}
    return [_counted(one, counted.get(location_of(one.partition) or ""), environment) for one in planned]


def _counted(planned: NewPartition, statistics: tuple[int, int] | None, environment: Mapping[str, str]) -> NewPartition:
    if statistics is None or not _lacks_statistics(planned.partition):
        return planned
    partition = copy.copy(planned.partition)
    partition.parameters = with_fast_statistics(partition.parameters or {}, *statistics, environment)
    return msgspec.structs.replace(planned, partition=partition)


def _insert(
    transaction: Transaction,
    table: StoredTable,
    partitions: Sequence[NewPartition],
    event: Event,
    *,
    copies_grants: bool,
) -> None:
    """With `copies_grants` they have the table's privileges, where it has them for partitions."""
    current = require_unchanged(transaction, table)
    transaction.insert_partitions(current, partitions)
    if copies_grants and has_partition_privileges(current) and partitions:
        created = partitions[0].partition.createTime or 0
        GrantRows(transaction).copy_to_partitions(current, [one.name for one in partitions], created)
    transaction.append_event(event)
