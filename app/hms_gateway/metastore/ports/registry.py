"""What the rules of the things that 3.1 and later keep beside the catalog need from storage.

Each is an attribute of the units of work in `ports`. Names may have any characters and any length.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from hms_gateway.metastore.vocabulary.ids import TableId


class ChangeCounts(msgspec.Struct, frozen=True):
    """How many rows were inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class ViewSource(msgspec.Struct, frozen=True):
    """A table that a materialized view reads, by its present name, and what has changed in it."""

    source_id: TableId
    db_name: str
    tbl_name: str
    counts: ChangeCounts


class ViewReads(Protocol):
    """The tables that materialized views were built from."""

    def sources(self, view_id: TableId) -> list[ViewSource]:
        """Ordered by name; those that are gone are left out."""


class ViewWrites(ViewReads, Protocol):
    def set_sources(self, view_id: TableId, sources: Mapping[TableId, ChangeCounts]) -> None:
        """Instead of those there were."""

    def add_changes(self, source_id: TableId, counts: ChangeCounts) -> list[tuple[str, str]]:
        """Add to the counts of every view that reads the table; database and name of these views."""
