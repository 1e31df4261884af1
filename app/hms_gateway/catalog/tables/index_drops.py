"""Taking an index out of the catalog, alone or with its table (semantics §2.17)."""

from typing import Any, Final, Protocol

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.ports.objects import StoredIndex
from hms_gateway.metastore.ports.store import Event, Snapshot, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.table_types import TableType
from hms_gateway.structs import Index

DROP_INDEX: Final = "DROP_INDEX"


class TableRemoval(Protocol):
    def remove(self, tx: Transaction, found: StoredTable, *, delete_data: bool) -> list[str]:
        """Take a table out of the catalog; the directories to delete after the commit."""


def remove_index(
    tx: Transaction, stored: StoredIndex, tables: TableRemoval, events: EventMaker, *, delete_data: bool
) -> list[str]:
    """Remove the index and the table it keeps its entries in; the directories to delete after the commit."""
    table = dropped_table(tx, stored.index)
    tx.indexes.delete(stored.index_id)
    locations = [] if table is None else tables.remove(tx, table, delete_data=delete_data)
    tx.append_event(_dropped(events, stored.index))
    return locations


def dropped_table(snapshot: Snapshot, index: Index) -> StoredTable | None:
    """What goes with the index. Another table that took the name stays: who drops an index may have no right to it."""
    table = index_table(snapshot, index)
    return table if table is not None and table.table.tableType == TableType.INDEX_TABLE else None


def index_table(snapshot: Snapshot, index: Index) -> StoredTable | None:
    """Where the index keeps its entries, in its own database unless it names another one."""
    return None if index.indexTableName is None else snapshot.table(*index_table_name(index, index.indexTableName))


def index_table_name(index: Index, given: str) -> tuple[str, str]:
    """Database and table that an index's `indexTableName` means."""
    db_name, dot, tbl_name = given.rpartition(".")
    return normalize(db_name if dot else index.dbName or ""), normalize(tbl_name)


def index_event(events: EventMaker, event_type: str, index: Index, fields: dict[str, Any]) -> Event:
    """An event about an index, filed under the table it is for."""
    db_name = index.dbName or ""
    message = {"db": db_name, **fields, "timestamp": events.timestamp()}
    return events.event(event_type, db_name, index.origTableName, message)


def _dropped(events: EventMaker, index: Index) -> Event:
    fields = {
        "indexName": index.indexName,
        "origTableName": index.origTableName,
        "indexTableName": index.indexTableName,
    }
    return index_event(events, DROP_INDEX, index, fields)
