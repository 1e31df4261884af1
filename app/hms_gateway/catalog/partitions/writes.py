"""What all changes of partitions share: load and decide first, then write only if nothing moved in between."""

import copy
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from hms_gateway.catalog.arguments import with_fields
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.checks.table_shape import StoredDescriptors, elsewhere
from hms_gateway.metastore.ports.store import DuplicateKey, Store, StoredTable, Transaction, UnstorableText
from hms_gateway.metastore.vocabulary.parameters import written_under
from hms_gateway.rpc.structs import EnvironmentContext, FieldSchema, MetaException, Partition
from hms_gateway.runtime.limits import Limits

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


def placed(partition: Partition, location: str | None) -> Partition:
    """A copy of a partition that lies somewhere else."""
    moved = copy.copy(partition)
    if moved.sd is not None:
        moved.sd = elsewhere(moved.sd, location)
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


def shown_partitions(table: TableName, partitions: list[Partition]) -> list[Partition]:
    """Partitions as they are answered: newer callers see their catalog."""
    if table.shown_catalog is None:
        return partitions
    return [with_fields(partition, catName=table.shown_catalog) for partition in partitions]


def with_columns(partitions: list[Partition], columns: list[FieldSchema] | None) -> list[Partition]:
    """Newer clients send the columns once, for every partition that comes without its own."""
    if columns is None:
        return partitions
    return [
        with_fields(partition, sd=with_fields(partition.sd, cols=columns))
        if partition is not None and partition.sd is not None and partition.sd.cols is None
        else partition
        for partition in partitions
    ]
