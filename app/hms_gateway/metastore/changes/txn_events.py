"""Events of transactions that have write ids, in the shapes of Hive 3 and later (semantics §2.20).

Transactions without write ids have no events: they change nothing that a reader's list could name, and most only read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.metastore.changes.events import event_message
from hms_gateway.metastore.ports.store import Event
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target

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
    """What a commit says that it has committed."""
    said = msgspec.json.decode(event.message).get(_COMMITTED, ()) if event.message else ()
    return [CommittedWriteId(one["db"], one["table"], one["writeId"]) for one in said]


def _event(event_type: str, fields: Mapping[str, Any], table: Target | None = None) -> Event:
    db_name, table_name = ("", None) if table is None else (table.db_name, table.table_name)
    return Event(event_type, db_name, table_name, event_message("", "", fields))
