"""Methods that drop partitions, and the data of those a table owns (semantics §2.10)."""

from collections.abc import Callable, Sequence
from typing import Final

from hms_gateway.catalog.arguments import table_in, table_named, table_shown
from hms_gateway.catalog.directories.of_partitions import PartitionDirectories
from hms_gateway.catalog.partitions.writes import (
    check_count,
    location_of,
    shown_partitions,
    table_location,
    table_parameters,
    write,
)
from hms_gateway.metastore.changes.events import EventMaker, PartitionEvents
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName, java_list, matching_expression, named_values, values_name
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    Selection,
    Snapshot,
    Store,
    StoredPartition,
    StoredTable,
    Transaction,
)
from hms_gateway.metastore.vocabulary.parameters import says_true
from hms_gateway.metastore.vocabulary.table_types import drop_deletes_data
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    DropPartitionRequest,
    DropPartitionsRequest,
    DropPartitionsResult,
    EnvironmentContext,
    MetaException,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
)
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.files.directories import Directories

_IS_ARCHIVED: Final = "is_archived"
_ORIGINAL_LOCATION: Final = "original_location"
_MISSING: Final = "Some partitions to drop are missing"

_Dropped = tuple[StoredTable, list[StoredPartition]]


class PartitionDrops:
    """Methods that drop partitions. The data goes after the commit; if that fails, they remain dropped.

    Purging is what every deletion here does. Raise NoSuchObjectException and MetaException.
    """

    def __init__(self, store: Store, files: Directories, events: EventMaker, limits: Limits) -> None:
        self._store = store
        self._directories = PartitionDirectories(files)
        self._limits = limits
        self._events = PartitionEvents(events)

    def drop_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], deleteData: bool) -> bool:
        return self._drop_with_values(table_named(db_name, tbl_name), part_vals, deleteData)

    def drop_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: list[str],
        deleteData: bool,
        environment_context: EnvironmentContext | None,
    ) -> bool:
        return self._drop_with_values(table_named(db_name, tbl_name), part_vals, deleteData)

    def drop_partition_req(self, call: Call, dropPartitionReq: DropPartitionRequest) -> bool:
        req = required(dropPartitionReq, "dropPartitionReq")
        table = table_in(req.catName, req.dbName, req.tblName)
        if req.partVals is not None:
            return self._drop_with_values(table, req.partVals, req.deleteData)
        return self._drop_with_name(table, req.partName, req.deleteData)

    def drop_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str, deleteData: bool) -> bool:
        return self._drop_with_name(table_named(db_name, tbl_name), part_name, deleteData)

    def drop_partition_by_name_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_name: str,
        deleteData: bool,
        environment_context: EnvironmentContext | None,
    ) -> bool:
        return self._drop_with_name(table_named(db_name, tbl_name), part_name, deleteData)

    def drop_partitions_req(self, call: Call, req: DropPartitionsRequest) -> DropPartitionsResult:
        """Drop those named or selected by expressions, all or none of them; the dropped ones, ordered by name.

        An expression that cannot be evaluated to the last partition is an error (semantics §4.5): never are more
        dropped than meant.
        """
        req = required(req, "req")
        parts, name = req.parts, table_shown(call, req.dbName, req.tblName, req.catName)
        check_count((parts and parts.names) or (), self._limits)
        filters_max = self._limits.filters_per_request_max
        if parts is not None and len(parts.exprs or ()) > filters_max:
            raise MetaException(f"More expressions in one request than filters_per_request_max = {filters_max}")
        # Hive asks whether the field was sent, so its default in the IDL never counts (semantics §2.10).
        ignores_missing = req.ifExists is True

        def work(transaction: Transaction) -> _Dropped:
            table = name.load(transaction)
            found = _selected(transaction, table, parts, self._limits, ignores_missing=ignores_missing)
            return self._delete(transaction, table, found)

        dropped = self._drop(CatalogWork(work, name.foreseen), req.deleteData)
        if req.needResult is False:
            return DropPartitionsResult()
        return DropPartitionsResult(shown_partitions(name, [one.partition for one in dropped]))

    def _drop_with_values(self, table_name: TableName, values: Sequence[str] | None, deletes_data: bool | None) -> bool:
        def load(snapshot: Snapshot) -> _Dropped:
            table = table_name.find(snapshot)
            if table is None:
                raise NoSuchObjectException(f"partition values={java_list(values or ())}")
            return table, [_existing(snapshot, table, values)]

        return self._drop_one(table_name, load, deletes_data)

    def _drop_with_name(self, table_name: TableName, name: str | None, deletes_data: bool | None) -> bool:
        """Do as `_drop_with_values`, by the partition's name (semantics §2.13)."""

        def load(snapshot: Snapshot) -> _Dropped:
            table = table_name.load(snapshot)
            return table, [_existing(snapshot, table, named_values(table, name))]

        return self._drop_one(table_name, load, deletes_data)

    def _drop_one(self, table_name: TableName, load: Callable[[Snapshot], _Dropped], deletes_data: bool | None) -> bool:
        """Refuse before waiting for a turn what can be refused. True, as the methods answer."""
        table, found = self._store.read(load)
        names = [one.name for one in found]

        def work(transaction: Transaction) -> _Dropped:
            return self._delete(transaction, *load(transaction))

        self._drop(CatalogWork(work, table_name.foreseen, partitions=(table, names)), deletes_data)
        return True

    def _delete(self, transaction: Transaction, table: StoredTable, found: list[StoredPartition]) -> _Dropped:
        if found:
            transaction.delete_partitions(table, [one.name for one in found])
            transaction.append_event(self._events.drop(table.table, [one.partition for one in found]))
        return table, found

    def _drop(self, work: Callable[[Transaction], _Dropped], deletes_data: bool | None) -> list[StoredPartition]:
        table, dropped = write(self._store, work)
        if deletes_data and drop_deletes_data(table_parameters(table)):
            locations = [location for one in dropped if (location := _data_location(one.partition))]
            self._directories.delete(table_location(table), locations, len(table.key_names))
        return dropped


def _existing(snapshot: Snapshot, table: StoredTable, values: Sequence[str] | None) -> StoredPartition:
    found = snapshot.partition(table, values_name(table, values))
    if found is None:
        raise NoSuchObjectException(f"partition values={java_list(values or ())}")
    return found


def _selected(
    transaction: Transaction,
    table: StoredTable,
    parts: RequestPartsSpec | None,
    limits: Limits,
    *,
    ignores_missing: bool,
) -> list[StoredPartition]:
    if parts is not None and parts.names is not None:
        found = transaction.partitions(table, Selection(names=parts.names))
        if len(found) < len(set(parts.names)) and not ignores_missing:
            raise NoSuchObjectException(_MISSING)
        return found
    if parts is None or parts.exprs is None:
        raise MetaException("Partition spec is not set")
    by_name: dict[str, StoredPartition] = {}
    for expression in parts.exprs:
        matching = _matching_expression(transaction, table, expression.expr, limits)
        if not matching and not ignores_missing:
            raise NoSuchObjectException(_MISSING)
        by_name.update((one.name, one) for one in matching)
    return sorted(by_name.values(), key=lambda one: one.name)


def _matching_expression(
    transaction: Transaction, table: StoredTable, expression: bytes | None, limits: Limits
) -> list[StoredPartition]:
    selection, is_exact = matching_expression(table, expression, limits)
    if not is_exact:
        raise MetaException("The expression that selects partitions to drop cannot be evaluated: send a filter's text")
    return transaction.partitions(table, selection)


def _data_location(partition: Partition) -> str | None:
    """Where the files are; an archived partition remembers where they were before (semantics §2.10)."""
    original = (partition.parameters or {}).get(_ORIGINAL_LOCATION)
    return original if original and says_true(partition.parameters, _IS_ARCHIVED) else location_of(partition)
