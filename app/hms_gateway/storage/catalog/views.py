"""The tables that materialized views were built from, as rows."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import bindparam, delete, insert, select, update

from hms_gateway.metastore.ports.registry import ChangeCounts, ViewSource
from hms_gateway.metastore.vocabulary.names import TableId
from hms_gateway.storage.schema.catalog import DATABASES, TABLES, VIEW_SOURCES
from hms_gateway.storage.sql.repository import Repository

_COUNT_MAX: Final = 2**63 - 1
_COUNTS: Final = (VIEW_SOURCES.c.inserted_count, VIEW_SOURCES.c.updated_count, VIEW_SOURCES.c.deleted_count)


class ViewRepository(Repository):
    """`registry_ports.ViewWrites`."""

    def sources(self, view_id: TableId) -> list[ViewSource]:
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
        self._connection.execute(delete(VIEW_SOURCES).where(VIEW_SOURCES.c.view_id == view_id))
        rows = [{"view_id": view_id, "source_id": source_id, **_row(one)} for source_id, one in sources.items()]
        if rows:
            self._connection.execute(insert(VIEW_SOURCES), rows)

    def add_changes(self, source_id: TableId, counts: ChangeCounts) -> list[tuple[str, str]]:
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
