"""Marks on partitions, which say that something has happened to them, and their expiry (semantics §2.12)."""

from collections.abc import Mapping, Sequence

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.selection.table_name import TableName
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import InvalidPartitionException, MetaException, PartitionEventType, UnknownTableException


class PartitionMarkService:
    """A partition need not be there to be marked. Marks go with the table, as they do not in Hive."""

    def __init__(self, store: Store, clock: Clock, settings: MetastoreSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    def mark(self, name: TableName, spec: Mapping[str, str] | None, event_type: int | None) -> None:
        """`spec` has a value for each partition key.

        Raises UnknownTableException, InvalidPartitionException, MetaException.
        """
        kind = _known(event_type)

        def work(tx: Transaction) -> None:
            table = _load(name, tx)
            tx.partition_event_marks.insert(table.table_id, _values(table, spec), kind, self._clock.seconds())

        self._store.write(work)

    def is_marked(self, name: TableName, spec: Mapping[str, str] | None, event_type: int | None) -> bool:
        """Whether it was, no longer ago than the setting says. Raises as `mark`."""
        kind = _known(event_type)
        oldest = self._oldest_seconds()

        def work(snapshot: Snapshot) -> bool:
            table = _load(name, snapshot)
            return snapshot.partition_event_marks.has(table.table_id, _values(table, spec), kind, oldest)

        return self._store.read(work)

    def expire(self) -> int:
        """Forget the marks that are older than the setting allows; how many. Any replica may do it at any time."""
        oldest = self._oldest_seconds()
        return self._store.write(lambda tx: tx.partition_event_marks.delete_before(oldest)) if oldest else 0

    def _oldest_seconds(self) -> int:
        """Marks from before do not count; 0 where they are kept for ever."""
        seconds_max = self._settings.partition_mark_seconds_max
        return max(0, self._clock.seconds() - seconds_max) if seconds_max > 0 else 0


def _known(event_type: int | None) -> int:
    if required(event_type, "event type") != PartitionEventType.LOAD_DONE:
        raise MetaException(f"unknown partition event type {event_type}")
    return PartitionEventType.LOAD_DONE


def _load(name: TableName, snapshot: Snapshot) -> StoredTable:
    table = name.find(snapshot)
    if table is None:
        raise UnknownTableException(f"Table: {name.tbl_name} is not found.")
    return table


def _values(table: StoredTable, spec: Mapping[str, str] | None) -> Sequence[str]:
    """In the order of the table's keys."""
    given = required(spec, "partition values")
    if len(given) != len(table.key_names):
        raise InvalidPartitionException(
            f"Number of partition columns in table: {len(table.key_names)}"
            f" doesn't match with number of supplied partition values: {len(given)}"
        )
    values = []
    for key in table.key_names:
        value = given.get(key)
        if value is None:
            raise InvalidPartitionException(f"No value found for partition column: {key}")
        values.append(value)
    return values
