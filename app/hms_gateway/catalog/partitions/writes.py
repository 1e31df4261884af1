"""Writes of partitions that several methods share; drops of partitions."""

import copy
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from hms_gateway.catalog.directories.of_partitions import PartitionDirectories
from hms_gateway.metastore.changes.events import PartitionEvents
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName, java_list, matching_expression, named_values, values_name
from hms_gateway.metastore.checks.table_shape import StoredDescriptors
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    DuplicateKey,
    Selection,
    Snapshot,
    Store,
    StoredPartition,
    StoredTable,
    Transaction,
    UnstorableText,
)
from hms_gateway.metastore.vocabulary.parameters import says_true, written_under
from hms_gateway.metastore.vocabulary.partition_names import (
    PartitionValueRefused,
    check_valid_characters,
    have_valid_characters,
)
from hms_gateway.metastore.vocabulary.table_types import drop_deletes_data
from hms_gateway.rpc.structs import (
    EnvironmentContext,
    MetaException,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
    StorageDescriptor,
)
from hms_gateway.runtime.limits import Limits

# What all changes of partitions share: load and decide first, then write only if nothing moved in between.


class PartitionValues:
    """The whitelist an operator may set; without one every value is fine."""

    def __init__(self, whitelist_pattern: str) -> None:
        self._whitelist = re.compile(whitelist_pattern) if whitelist_pattern else None

    def are_valid(self, values: Sequence[str] | None) -> bool:
        """Tell whether every value matches the whitelist as a whole."""
        return have_valid_characters(required(values, "partition values"), self._whitelist)

    def check(self, values: Sequence[str] | None) -> None:
        """Raise MetaException for the first value that does not match."""
        try:
            check_valid_characters(required(values, "partition values"), self._whitelist)
        except PartitionValueRefused as error:
            raise MetaException(str(error)) from error


T = TypeVar("T")

# Each attempt is lost only when another change of the same table came first.
_ATTEMPTS_MAX: Final = 20

# What a client may send and the server does not keep: grants have rows of their own, the rest belongs to one call.
_NOT_STORED: Final = ("privileges", "catName", "isStatsCompliant", "colStats", "fileMetadata")


class Conflict(Exception):
    """What a decision was based on has changed before it could be written; the decision has to be made again."""


def retry_on_conflict(attempt: Callable[[], T]) -> T:
    """The result of the first attempt without a conflict. Raises MetaException when all attempts have one.

    Directories and events take time to make, so they are made outside the unit of work, of which one runs at a time.
    """
    for _ in range(_ATTEMPTS_MAX):
        try:
            return attempt()
        except Conflict:
            continue
    raise MetaException("The table is being changed by too many others at once; try again")


def write(store: Store, work: Callable[[Transaction], T]) -> T:
    """Run a unit of work; a name that another call has taken meanwhile is a conflict."""
    try:
        return store.write(work)
    except DuplicateKey as error:
        raise Conflict from error
    except UnstorableText as error:
        raise MetaException(str(error)) from error


def require_unchanged(transaction: Transaction, loaded: StoredTable) -> StoredTable:
    """The table as it is now, which must be as it was loaded, but for the number of partitions. Raises Conflict."""
    current = transaction.unchanged(loaded)
    if current is None:
        raise Conflict
    return current


def check_count(partitions: Sequence[object], limits: Limits) -> None:
    """Raise MetaException when one request is about too many partitions (design D15)."""
    if len(partitions) > limits.partitions_per_request_max:
        raise MetaException(
            f"More partitions in one request than partitions_per_request_max = {limits.partitions_per_request_max}"
        )


def properties(environment: EnvironmentContext | None) -> dict[str, str]:
    """The entries of an environment context, empty without a context."""
    return (environment.properties if environment else None) or {}


def table_parameters(table: StoredTable) -> dict[str, str]:
    return table.table.parameters or {}


def table_location(table: StoredTable) -> str | None:
    return table.table.sd.location if table.table.sd else None


def location_of(partition: Partition) -> str | None:
    return partition.sd.location if partition.sd else None


def with_location(descriptor: StorageDescriptor, location: str | None) -> StorageDescriptor:
    """A copy of a descriptor that lies somewhere else."""
    moved = copy.copy(descriptor)
    moved.location = location
    return moved


def stored_form(table: StoredTable, partition: Partition, descriptors: StoredDescriptors) -> Partition:
    """What is stored: the table's own names, and a descriptor with every field that reads return (semantics §3.3).

    `descriptors` are shared by the partitions of one request.
    """
    stored = copy.copy(partition)
    for name in _NOT_STORED:
        setattr(stored, name, None)
    stored.writeId = written_under(table_parameters(table), partition.writeId)
    stored.dbName, stored.tableName = table.table.dbName, table.table.tableName
    if partition.sd is not None:
        stored.sd = descriptors.of(partition.sd)
    return stored


# Dropping partitions, and the data of those a table owns (semantics §2.10).


_IS_ARCHIVED: Final = "is_archived"
_ORIGINAL_LOCATION: Final = "original_location"
_MISSING: Final = "Some partitions to drop are missing"

_Dropped = tuple[StoredTable, list[StoredPartition]]


class PartitionDrops:
    """Every call that drops partitions. The data goes after the commit; if that fails, they remain dropped."""

    def __init__(
        self, store: Store, directories: PartitionDirectories, limits: Limits, events: PartitionEvents
    ) -> None:
        self._store = store
        self._directories = directories
        self._limits = limits
        self._events = events

    def drop(self, table_name: TableName, values: Sequence[str] | None, *, deletes_data: bool) -> None:
        """Drop the partition with these values. Raises NoSuchObjectException and MetaException."""

        def load(snapshot: Snapshot) -> _Dropped:
            table = table_name.find(snapshot)
            if table is None:
                raise NoSuchObjectException(f"partition values={java_list(values or ())}")
            return table, [_existing(snapshot, table, values)]

        self._drop_one(table_name, load, deletes_data=deletes_data)

    def drop_by_name(self, table_name: TableName, name: str | None, *, deletes_data: bool) -> None:
        """The same by the partition's name (semantics §2.13). Raises as `drop`."""

        def load(snapshot: Snapshot) -> _Dropped:
            table = table_name.load(snapshot)
            return table, [_existing(snapshot, table, named_values(table, name))]

        self._drop_one(table_name, load, deletes_data=deletes_data)

    def drop_all(
        self, table_name: TableName, parts: RequestPartsSpec | None, *, ignores_missing: bool, deletes_data: bool
    ) -> list[Partition]:
        """Drop those named or selected by expressions, all or none of them; the dropped ones, ordered by name.

        An expression that cannot be evaluated to the last partition is an error (semantics §4.5): never are more
        dropped than meant. Raises NoSuchObjectException and MetaException.
        """
        check_count((parts and parts.names) or (), self._limits)
        filters_max = self._limits.filters_per_request_max
        if parts is not None and len(parts.exprs or ()) > filters_max:
            raise MetaException(f"More expressions in one request than filters_per_request_max = {filters_max}")

        def work(transaction: Transaction) -> _Dropped:
            table = table_name.load(transaction)
            found = _selected(transaction, table, parts, self._limits, ignores_missing=ignores_missing)
            return self._delete(transaction, table, found)

        foreseen = CatalogWork(work, table_name.foreseen)
        return [one.partition for one in self._drop(foreseen, deletes_data=deletes_data)]

    def _drop_one(self, table_name: TableName, load: Callable[[Snapshot], _Dropped], *, deletes_data: bool) -> None:
        """What can be refused is refused before it waits for its turn."""
        table, found = self._store.read(load)
        names = [one.name for one in found]

        def work(transaction: Transaction) -> _Dropped:
            return self._delete(transaction, *load(transaction))

        self._drop(CatalogWork(work, table_name.foreseen, partitions=(table, names)), deletes_data=deletes_data)

    def _delete(self, transaction: Transaction, table: StoredTable, found: list[StoredPartition]) -> _Dropped:
        if found:
            transaction.delete_partitions(table, [one.name for one in found])
            transaction.append_event(self._events.drop(table.table, [one.partition for one in found]))
        return table, found

    def _drop(self, work: Callable[[Transaction], _Dropped], *, deletes_data: bool) -> list[StoredPartition]:
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
