"""Materialized views (3.1 and later): what they were built from, and what has changed there since (semantics §10)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from sqlalchemy import bindparam, delete, insert, select, update

from hms_gateway.catalog.arguments import database_name, table_in, with_fields
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import TableId, normalize
from hms_gateway.metastore.vocabulary.table_types import TableType
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    CreationMetadata,
    Materialization,
    MetaException,
    SourceTable,
    Table,
    UpdateTransactionalStatsRequest,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, key_of_qualified
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.schema.catalog import DATABASES, TABLES, VIEW_SOURCES
from hms_gateway.storage.sql.repository import AggregateRows
from hms_gateway.txn.services.materialized_views import ViewFreshnessService

_TABLES_USED_MAX: Final = 1_000
_COUNT_MAX: Final = 2**63 - 1
_COUNTS: Final = (VIEW_SOURCES.c.inserted_count, VIEW_SOURCES.c.updated_count, VIEW_SOURCES.c.deleted_count)


class ChangeCounts(msgspec.Struct, frozen=True):
    """Numbers of inserted, updated and deleted rows."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class ViewSource(msgspec.Struct, frozen=True):
    """A table that a materialized view reads, by its present name, and what has changed in it."""

    source_id: TableId
    db_name: str
    tbl_name: str
    counts: ChangeCounts


class ViewRows(AggregateRows):
    """The tables that materialized views were built from."""

    def sources(self, view_id: TableId) -> list[ViewSource]:
        """Ordered by name; those that are gone are left out."""
        rows = self._connection.execute(
            select(VIEW_SOURCES.c.source_id, DATABASES.c.name, TABLES.c.name, *_COUNTS)
            .join(TABLES, TABLES.c.table_id == VIEW_SOURCES.c.source_id)
            .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
            .where(VIEW_SOURCES.c.view_id == view_id)
            .order_by(DATABASES.c.name, TABLES.c.name)
        )
        return [
            ViewSource(TableId(source_id), db_name, tbl_name, ChangeCounts(*counts))
            for source_id, db_name, tbl_name, *counts in rows
        ]

    def set_sources(self, view_id: TableId, sources: Mapping[TableId, ChangeCounts]) -> None:
        """Instead of those there were."""
        self._connection.execute(delete(VIEW_SOURCES).where(VIEW_SOURCES.c.view_id == view_id))
        rows = [{"view_id": view_id, "source_id": source_id, **_row(one)} for source_id, one in sources.items()]
        if rows:
            self._connection.execute(insert(VIEW_SOURCES), rows)

    def add_changes(self, source_id: TableId, counts: ChangeCounts) -> list[tuple[str, str]]:
        """Add to the counts of every view that reads the table; database and name of these views."""
        rows = self._connection.execute(
            select(VIEW_SOURCES.c.view_id, DATABASES.c.name, TABLES.c.name, *_COUNTS)
            .join(TABLES, TABLES.c.table_id == VIEW_SOURCES.c.view_id)
            .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
            .where(VIEW_SOURCES.c.source_id == source_id)
            .order_by(DATABASES.c.name, TABLES.c.name)
        ).all()
        changed = [
            {"the_view": view_id, **_row(_sum(ChangeCounts(*known), counts), prefix="new_")}
            for view_id, _, _, *known in rows
        ]
        if changed:
            statement = (
                update(VIEW_SOURCES)
                .where(VIEW_SOURCES.c.view_id == bindparam("the_view"), VIEW_SOURCES.c.source_id == source_id)
                .values({column.name: bindparam(f"new_{column.name}") for column in _COUNTS})
            )
            self._connection.execute(statement, changed)
        return [(db_name, tbl_name) for _, db_name, tbl_name, *_ in rows]


class MaterializedViews:
    """Methods on materialized views.

    A view's creation metadata lie in its table; the counts of changes in its sources have rows of their own.
    """

    def __init__(self, store: Store, clock: Clock, events: EventMaker, freshness: ViewFreshnessService) -> None:
        self._store = store
        self._clock = clock
        self._events = events
        self._freshness = freshness

    def get_all_materialized_view_objects_for_rewriting(self, call: Call) -> list[Table]:
        """Views of all databases of the default catalog, ordered by database and name."""

        def work(snapshot: Snapshot) -> list[Table]:
            names = snapshot.database_names(prefix="")
            return [_complete(snapshot, table) for name in names for table in _rewritable(snapshot, name)]

        return [with_fields(table, catName=DEFAULT_CATALOG) for table in self._store.read(work)]

    def get_materialized_views_for_rewriting(self, call: Call, db_name: str) -> list[str]:
        """The views of a database that queries may be rewritten to use, sorted."""
        key = normalize(required(database_name(db_name), "database name"))
        if "\0" in key:
            return []
        return [table.tableName or "" for table in self._store.read(lambda snapshot: _rewritable(snapshot, key))]

    def get_materialization_invalidation_info(
        self, call: Call, creation_metadata: CreationMetadata, validTxnList: str
    ) -> Materialization:
        """Tell whether the sources of the view have changed."""
        given = required(creation_metadata, "creation metadata")
        tables = [required(name, "name of a table used") for name in given.tablesUsed or ()]
        found = self._freshness.invalidation(tables, given.validTxnList, validTxnList)
        return Materialization(found.is_changed, found.is_compacted)

    def update_creation_metadata(
        self, call: Call, catName: str, dbname: str, tbl_name: str, creation_metadata: CreationMetadata
    ) -> None:
        """Note that a view was built anew: from which tables, and what of them it has seen."""
        name = table_in(catName, dbname, tbl_name)
        given = required(creation_metadata, "creation metadata")
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

    def update_transaction_statistics(self, call: Call, req: UpdateTransactionalStatsRequest) -> None:
        """Count what a transaction changed in a table for every view that reads it."""
        request = required(req, "req")
        counts = ChangeCounts(request.insertCount or 0, request.updatedCount or 0, request.deletedCount or 0)
        source = TableId(required(request.tableId, "table id"))
        if min(counts.inserted, counts.updated, counts.deleted) < 0:
            raise MetaException("numbers of changes must not be negative")

        def work(tx: Transaction) -> None:
            for db_name, tbl_name in ViewRows(tx).add_changes(source, counts):
                view = tx.table(db_name, tbl_name)
                assert view is not None
                # Followers of the log read the view's counts with the view.
                tx.append_event(self._events.alter_table(view.table, view.table))

        self._store.write(work)


def complete_view(store: Store, table: Table) -> Table:
    """A view with its sources and the counts of their changes; any other table as it is."""
    if table.tableType != TableType.MATERIALIZED_VIEW or table.creationMetadata is None:
        return table
    return store.read(lambda snapshot: _complete(snapshot, table))


def check_creation_metadata(metadata: CreationMetadata) -> None:
    """Raises MetaException for what cannot be kept."""
    for name in metadata.tablesUsed or ():
        required(name, "name of a table used")
    if len(metadata.tablesUsed or ()) > _TABLES_USED_MAX:
        raise MetaException(f"a view may be built from {_TABLES_USED_MAX} tables")


def stored_creation_metadata(metadata: CreationMetadata, view: Table, now_ms: int) -> CreationMetadata:
    """Metadata kept in the view's table: by the view's present name, built now, without the tables themselves."""
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
        found = tx.table(db_name, tbl_name)
        if found is not None:
            sources[found.table_id] = counts.get((db_name, tbl_name), ChangeCounts())
    ViewRows(tx).set_sources(view_id, sources)


def _rewritable(snapshot: Snapshot, db_name: str) -> list[Table]:
    names = snapshot.table_names(db_name, None, TableType.MATERIALIZED_VIEW)
    return [found.table for found in snapshot.tables(db_name, names) if found.table.rewriteEnabled] if names else []


def _complete(snapshot: Snapshot, view: Table) -> Table:
    metadata = view.creationMetadata
    found = snapshot.table(view.dbName or "", view.tableName or "")
    if metadata is None or found is None:
        return view
    sources = ViewRows(snapshot).sources(found.table_id)
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
    return normalize(key_of_qualified(db_name)), normalize(tbl_name)


def _row(counts: ChangeCounts, prefix: str = "") -> dict[str, int]:
    return {
        f"{prefix}inserted_count": counts.inserted,
        f"{prefix}updated_count": counts.updated,
        f"{prefix}deleted_count": counts.deleted,
    }


def _sum(one: ChangeCounts, other: ChangeCounts) -> ChangeCounts:
    return ChangeCounts(
        min(one.inserted + other.inserted, _COUNT_MAX),
        min(one.updated + other.updated, _COUNT_MAX),
        min(one.deleted + other.deleted, _COUNT_MAX),
    )
