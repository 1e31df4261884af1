"""Materialized views (3.1 and later): what they were built from, and what has changed there since (semantics §10)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.registry import ChangeCounts, ViewSource
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import TableId, normalize
from hms_gateway.metastore.vocabulary.table_types import TableType
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import CreationMetadata, MetaException, SourceTable, Table

_TABLES_USED_MAX: Final = 1_000


class MaterializedViewService:
    """A view's creation metadata lie in its table; the counts of changes in its sources have rows of their own."""

    def __init__(self, store: Store, clock: Clock, events: EventMaker) -> None:
        self._store = store
        self._clock = clock
        self._events = events

    def names_for_rewriting(self, db_name: str | None) -> list[str]:
        """The views of a database that queries may be rewritten to use, sorted. Raises MetaException."""
        key = normalize(required(db_name, "database name"))
        if "\0" in key:
            return []
        return [table.tableName or "" for table in self._store.read(lambda snapshot: _rewritable(snapshot, key))]

    def objects_for_rewriting(self) -> list[Table]:
        """Those of all databases, ordered by database and name."""

        def work(snapshot: Snapshot) -> list[Table]:
            names = snapshot.database_names()
            return [_complete(snapshot, table) for name in names for table in _rewritable(snapshot, name)]

        return self._store.read(work)

    def complete(self, table: Table) -> Table:
        """A view with its sources and the counts of their changes; any other table as it is."""
        if table.tableType != TableType.MATERIALIZED_VIEW or table.creationMetadata is None:
            return table
        return self._store.read(lambda snapshot: _complete(snapshot, table))

    def set_creation_metadata(self, name: TableName, metadata: CreationMetadata | None) -> None:
        """Note that a view was built anew: from which tables, and what of them it has seen. Raises MetaException."""
        given = required(metadata, "creation metadata")
        check_creation_metadata(given)

        def work(tx: Transaction) -> None:
            found = name.find(tx)
            if found is None or found.table.tableType != TableType.MATERIALIZED_VIEW:
                raise MetaException(f"There is no materialized view {shown(str(name))}")
            before = found.table
            stored = stored_creation_metadata(given, before, self._clock.milliseconds())
            after = msgspec.structs.replace(before, creationMetadata=stored)
            tx.update_table(found.table_id, found.database_id, after)
            note_sources(tx, found.table_id, given)
            tx.append_event(self._events.alter_table(before, after))

        with unstorable_as_meta():
            self._store.write(work)

    def add_changes(self, table_id: int | None, counts: ChangeCounts) -> None:
        """Count what a transaction changed in a table for every view that reads it. Raises MetaException."""
        source = TableId(required(table_id, "table id"))
        if min(counts.inserted, counts.updated, counts.deleted) < 0:
            raise MetaException("numbers of changes must not be negative")

        def work(tx: Transaction) -> None:
            for db_name, tbl_name in tx.views.add_changes(source, counts):
                view = tx.table(db_name, tbl_name)
                assert view is not None
                # Followers of the log read the view's counts with the view.
                tx.append_event(self._events.alter_table(view.table, view.table))

        self._store.write(work)


def check_creation_metadata(metadata: CreationMetadata) -> None:
    """Raises MetaException for what cannot be kept."""
    for name in metadata.tablesUsed or ():
        required(name, "name of a table used")
    if len(metadata.tablesUsed or ()) > _TABLES_USED_MAX:
        raise MetaException(f"a view may be built from {_TABLES_USED_MAX} tables")


def stored_creation_metadata(metadata: CreationMetadata, view: Table, now_ms: int) -> CreationMetadata:
    """What is kept in the view's table: by the view's present name, built now, without the tables themselves."""
    return msgspec.structs.replace(
        metadata,
        catName=metadata.catName or "hive",
        dbName=view.dbName,
        tblName=view.tableName,
        tablesUsed=set(metadata.tablesUsed or ()),
        materializationTime=now_ms if metadata.materializationTime is None else metadata.materializationTime,
        sourceTables=None,
    )


def note_sources(tx: Transaction, view_id: TableId, metadata: CreationMetadata) -> None:
    """Begin to count changes in the tables a view was built from, of those that are there."""
    counts = {_place(one.table): _counts(one) for one in metadata.sourceTables or () if one is not None}
    places = {*counts, *(_parsed(name) for name in metadata.tablesUsed or ())}
    sources: dict[TableId, ChangeCounts] = {}
    for db_name, tbl_name in places:
        found = None if "\0" in db_name or "\0" in tbl_name else tx.table(db_name, tbl_name)
        if found is not None:
            sources[found.table_id] = counts.get((db_name, tbl_name), ChangeCounts())
    tx.views.set_sources(view_id, sources)


def _rewritable(snapshot: Snapshot, db_name: str) -> list[Table]:
    names = snapshot.table_names(db_name, None, TableType.MATERIALIZED_VIEW)
    return [found.table for found in snapshot.tables(db_name, names) if found.table.rewriteEnabled] if names else []


def _complete(snapshot: Snapshot, view: Table) -> Table:
    metadata = view.creationMetadata
    found = snapshot.table(view.dbName or "", view.tableName or "")
    if metadata is None or found is None:
        return view
    sources = snapshot.views.sources(found.table_id)
    tables = _tables(snapshot, sources)
    listed = [
        SourceTable(
            with_id(tables[source.source_id]), source.counts.inserted, source.counts.updated, source.counts.deleted
        )
        for source in sources
        if source.source_id in tables
    ]
    named = msgspec.structs.replace(metadata, dbName=view.dbName, tblName=view.tableName, sourceTables=listed)
    return msgspec.structs.replace(view, creationMetadata=named)


def with_id(stored: StoredTable) -> Table:
    """The table with the id it is known by in update_transaction_statistics (4.x)."""
    return msgspec.structs.replace(stored.table, id=stored.table_id)


def _tables(snapshot: Snapshot, sources: Sequence[ViewSource]) -> Mapping[TableId, StoredTable]:
    by_database: dict[str, list[str]] = {}
    for source in sources:
        by_database.setdefault(source.db_name, []).append(source.tbl_name)
    return {
        found.table_id: found for db_name, names in by_database.items() for found in snapshot.tables(db_name, names)
    }


def _place(table: Table | None) -> tuple[str, str]:
    given = required(table, "source table")
    return normalize(given.dbName or ""), normalize(given.tableName or "")


def _counts(source: SourceTable) -> ChangeCounts:
    return ChangeCounts(
        max(0, source.insertedCount or 0), max(0, source.updatedCount or 0), max(0, source.deletedCount or 0)
    )


def _parsed(name: str) -> tuple[str, str]:
    """`db.table`, or `catalog.db.table` as some clients write it."""
    db_name, _, tbl_name = name.rpartition(".")
    return normalize(db_name.rpartition(".")[2]), normalize(tbl_name)
