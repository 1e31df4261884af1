"""Marks on partitions, which say that something has happened to them (semantics §2.12)."""

from collections.abc import Mapping, Sequence

from sqlalchemy import exists, insert, select

from hms_gateway.catalog.arguments import table_named
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import TableId
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import InvalidPartitionException, MetaException, PartitionEventType, UnknownTableException
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.schema.catalog import PARTITION_MARKS
from hms_gateway.storage.sql.fragments import encode_texts, text_hash
from hms_gateway.storage.sql.repository import AggregateRows


class PartitionMarkRows(AggregateRows):
    def has(self, table_id: TableId, values: Sequence[str], event_type: int) -> bool:
        statement = select(
            exists().where(
                PARTITION_MARKS.c.table_id == table_id,
                PARTITION_MARKS.c.values_hash == _hash(values),
                PARTITION_MARKS.c.event_type == event_type,
            )
        )
        return bool(self._connection.execute(statement).scalar_one())

    def insert(self, table_id: TableId, values: Sequence[str], event_type: int, now_seconds: int) -> None:
        self._connection.execute(
            insert(PARTITION_MARKS).values(
                table_id=table_id, values_hash=_hash(values), event_type=event_type, event_time=now_seconds
            )
        )


class PartitionMarks:
    """Methods on marks. A partition need not be there to be marked. Marks go with the table, as they do not in Hive."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def markPartitionForEvent(
        self, call: Call, db_name: str, tbl_name: str, part_vals: dict[str, str], eventType: int
    ) -> None:
        """`part_vals` has a value for each partition key."""
        name, kind = table_named(db_name, tbl_name), _known(eventType)

        def work(tx: Transaction) -> None:
            table = _load(name, tx)
            PartitionMarkRows(tx).insert(table.table_id, _values(table, part_vals), kind, self._clock.seconds())

        self._store.write(work)

    def isPartitionMarkedForEvent(
        self, call: Call, db_name: str, tbl_name: str, part_vals: dict[str, str], eventType: int
    ) -> bool:
        name, kind = table_named(db_name, tbl_name), _known(eventType)

        def work(snapshot: Snapshot) -> bool:
            table = _load(name, snapshot)
            return PartitionMarkRows(snapshot).has(table.table_id, _values(table, part_vals), kind)

        return self._store.read(work)


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


def _hash(values: Sequence[str]) -> str:
    return text_hash(encode_texts(values))
