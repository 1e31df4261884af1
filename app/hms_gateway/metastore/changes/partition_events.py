"""Notification events of partitions (semantics §2.20)."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.ports.store import Event
from hms_gateway.structs import Partition, Table

ADD_PARTITION: Final = "ADD_PARTITION"
ALTER_PARTITION: Final = "ALTER_PARTITION"
DROP_PARTITION: Final = "DROP_PARTITION"


class PartitionEvents:
    """Makes the events of partitions out of the states before and after a change."""

    def __init__(self, events: EventMaker) -> None:
        self._events = events

    def add(self, table: Table, names: Sequence[str], partitions: Sequence[Partition]) -> Event:
        """One event for all that a call added; `names` are theirs, in the same order.

        The files of a new partition are not listed: that would cost a directory listing each.
        """
        texts = self._events.partition_texts()
        fields = self._events.whole_table(table) | {
            "partitions": _each_key_values(table, partitions),
            "partitionListJson": [texts.of(partition) for partition in partitions],
            "partitionFiles": [{"partitionName": name, "files": []} for name in names],
        }
        return self._event(ADD_PARTITION, table, fields)

    def drop(self, table: Table, partitions: Sequence[Partition]) -> Event:
        """One event for all that a call dropped."""
        fields = self._events.whole_table(table) | {"partitions": _each_key_values(table, partitions)}
        return self._event(DROP_PARTITION, table, fields)

    def alter(self, table: Table, changes: Sequence[tuple[Partition, Partition]]) -> Iterator[Event]:
        """An event for each pair (before, after); a rename is filed under the old values."""
        table_fields = self._events.whole_table(table)
        texts_before, texts_after = self._events.partition_texts(), self._events.partition_texts()
        for before, after in changes:
            fields = table_fields | {
                "keyValues": _each_key_values(table, [before])[0],
                "partitionObjBeforeJson": texts_before.of(before),
                "partitionObjAfterJson": texts_after.of(after),
            }
            yield self._event(ALTER_PARTITION, table, fields)

    def _event(self, event_type: str, table: Table, fields: dict[str, Any]) -> Event:
        return self._events.event(event_type, table.dbName or "", table.tableName, fields)


def _each_key_values(table: Table, partitions: Sequence[Partition]) -> list[dict[str, str]]:
    keys = [key.name or "" for key in table.partitionKeys or []]
    return [dict(zip(keys, partition.values or [], strict=True)) for partition in partitions]
