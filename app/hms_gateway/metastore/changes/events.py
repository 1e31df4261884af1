"""Notification events of databases and tables, and what the messages of all events share (semantics §2.20)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.metastore.checks.table_shape import PartitionTexts
from hms_gateway.metastore.ports.store import Event
from hms_gateway.rpc.structs import Database, Function, Partition, Struct, Table
from hms_gateway.rpc.structs.catalogs import plain_name, unfolded
from hms_gateway.runtime.clock import Clock
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target

CREATE_DATABASE: Final = "CREATE_DATABASE"
ALTER_DATABASE: Final = "ALTER_DATABASE"
DROP_DATABASE: Final = "DROP_DATABASE"
RESTORE_CATALOG: Final = "RESTORE_CATALOG"
"""The type of the event that a restore leaves. No cache knows what it changed, so it drops all."""
CREATE_TABLE: Final = "CREATE_TABLE"
ALTER_TABLE: Final = "ALTER_TABLE"
DROP_TABLE: Final = "DROP_TABLE"
DROP_FUNCTION: Final = "DROP_FUNCTION"


def event_message(fields: Mapping[str, Any]) -> str:
    """The JSON text of an event, without white space: `fields` in their order.

    Before them two names, empty as Hive has them when they are not configured.
    """
    message = {"server": "", "servicePrincipal": "", **fields}
    try:
        return msgspec.json.encode(message).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which every store of the message refuses.
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


class EventMaker:
    """Makes events; what they say about an object is the object in TJSON, as Hive's consumers expect.

    Names in an event are those under which the object is stored. Hive repeats the caller's spelling, which would leave
    it to every consumer to fold the case.
    """

    def __init__(self, clock: Clock, to_tjson: Callable[[Struct], bytes]) -> None:
        self._clock = clock
        self._to_tjson = to_tjson

    def event(self, event_type: str, db_name: str, table_name: str | None, fields: Mapping[str, Any]) -> Event:
        """An event with `fields` after the two that every message starts with."""
        return Event(event_type, db_name, table_name, event_message(fields))

    def timestamp(self) -> int:
        """Now, in seconds, as every message carries it."""
        return self._clock.seconds()

    def object_json(self, struct: Struct) -> str:
        """A struct as the text of a `…ObjJson` key, as answers show it."""
        return self._to_tjson(unfolded(struct)).decode()

    def partition_texts(self) -> PartitionTexts:
        """Partitions of one request as the texts of `…ObjJson` keys."""
        return PartitionTexts(lambda struct: self._to_tjson(unfolded(struct)))

    def create_database(self, database: Database) -> Event:
        return self._database(CREATE_DATABASE, database.name or "", {"dbJson": self.object_json(database)})

    def drop_database(self, name: str) -> Event:
        return self._database(DROP_DATABASE, name, {})

    def alter_database(self, before: Database, after: Database) -> Event:
        states = {"dbObjBeforeJson": self.object_json(before), "dbObjAfterJson": self.object_json(after)}
        return self._database(ALTER_DATABASE, before.name or "", states)

    def create_table(self, table: Table) -> Event:
        return self._table(CREATE_TABLE, table, self.whole_table(table) | {"files": []})

    def drop_table(self, table: Table) -> Event:
        return self._table(DROP_TABLE, table, self.whole_table(table))

    def alter_table(self, before: Table, after: Table, *, truncates: bool = False) -> Event:
        """A rename is filed under the new name; the message itself names the old table (semantics §2.20)."""
        fields = self.table_fields(before) | {
            "tableObjBeforeJson": self.object_json(before),
            "tableObjAfterJson": self.object_json(after),
            "timestamp": self.timestamp(),
            "isTruncateOp": truncates,
        }
        event = self._table(ALTER_TABLE, after, fields)
        old_name = (before.dbName or "", before.tableName or "")
        return (
            event
            if old_name == (after.dbName, after.tableName)
            else msgspec.structs.replace(event, renamed_from=old_name)
        )

    def drop_function(self, function: Function) -> Event:
        db_name = function.dbName or ""
        fields = {"db": plain_name(db_name), "functionName": function.functionName, "timestamp": self.timestamp()}
        return self.event(DROP_FUNCTION, db_name, None, fields)

    def table_fields(self, table: Table) -> dict[str, Any]:
        """The keys by which every message about a table or its partitions names the table."""
        return {"db": plain_name(table.dbName or ""), "table": table.tableName, "tableType": table.tableType}

    def whole_table(self, table: Table) -> dict[str, Any]:
        """The keys of messages that show the table as it is."""
        return self.table_fields(table) | {"tableObjJson": self.object_json(table), "timestamp": self.timestamp()}

    def _database(self, event_type: str, name: str, states: Mapping[str, str]) -> Event:
        return self.event(event_type, name, None, {"db": plain_name(name), **states, "timestamp": self.timestamp()})

    def _table(self, event_type: str, table: Table, fields: Mapping[str, Any]) -> Event:
        return self.event(event_type, table.dbName or "", table.tableName, fields)


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


OPEN_TXN: Final = "OPEN_TXN"
ALLOC_WRITE_ID: Final = "ALLOC_WRITE_ID"
COMMIT_TXN: Final = "COMMIT_TXN"
ABORT_TXN: Final = "ABORT_TXN"
TXN_EVENTS: Final = frozenset({OPEN_TXN, ALLOC_WRITE_ID, COMMIT_TXN, ABORT_TXN})

# Hive leaves these of a commit to be filled in by replication, from the notes of what was written.
_FILLED_IN_LATER: Final = ("writeIds", "databases", "tables", "partitions", "tableObjs", "partitionObjs", "files")
# Not a key of Hive's, whose readers pass over it.
_COMMITTED: Final = "tableWriteIds"


class CommittedWriteId(NamedTuple):
    """A write id of a table that a transaction has committed. The name is that at the commit."""

    db_name: str
    table_name: str
    write_id: int


def opened(txn_ids: Sequence[int], seconds: int) -> Event:
    """Transactions that have got their first write id: later than they were opened, and before all that they write."""
    return _event(OPEN_TXN, {"txnIds": list(txn_ids), "timestamp": seconds})


def allocated(table: Target, write_ids: Mapping[TxnId, int], seconds: int) -> Event:
    """Write ids of a table, by transaction."""
    fields = {
        "dbName": table.db_name,
        "tableName": table.table_name,
        "txnIdList": list(write_ids),
        "writeIdList": list(write_ids.values()),
        "timestamp": seconds,
    }
    return _event(ALLOC_WRITE_ID, fields, table)


def committed(txn_id: int, write_ids: Mapping[Target, int] | None, seconds: int) -> Event:
    """A transaction is committed, with what it had of each table; None where that was not looked up."""
    fields: dict[str, Any] = {"txnid": txn_id, "timestamp": seconds, **dict.fromkeys(_FILLED_IN_LATER)}
    if write_ids is not None:
        fields[_COMMITTED] = [
            {"db": table.db_name, "table": table.table_name, "writeId": write_id}
            for table, write_id in write_ids.items()
        ]
    return _event(COMMIT_TXN, fields)


def aborted(txn_id: int, tables: Iterable[Target], seconds: int) -> Event:
    """A transaction is aborted that had write ids of these tables."""
    databases = sorted({table.db_name for table in tables})
    return _event(ABORT_TXN, {"txnid": txn_id, "timestamp": seconds, "dbsUpdated": databases})


def committed_write_ids(event: Event) -> list[CommittedWriteId]:
    """Write ids that a commit says it has committed."""
    said = msgspec.json.decode(event.message).get(_COMMITTED, ()) if event.message else ()
    return [CommittedWriteId(one["db"], one["table"], one["writeId"]) for one in said]


def _event(event_type: str, fields: Mapping[str, Any], table: Target | None = None) -> Event:
    db_name, table_name = ("", None) if table is None else (table.db_name, table.table_name)
    return Event(event_type, db_name, table_name, event_message(fields))
