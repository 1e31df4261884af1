"""Where the catalog says that things lie, a page at a time: what a check of the directories needs of storage."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.metastore.ids import PartitionId, TableId


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """`locations` are where its tables go, and where its managed tables go, as far as they are stored."""

    name: str
    locations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TablePlace:
    """`owns_data` is true where the catalog deletes the data with the table; views have no location."""

    table_id: TableId
    db_name: str
    name: str
    location: str | None
    owns_data: bool
    partition_keys: tuple[str, ...]
    partition_count: int

    def __str__(self) -> str:
        return f"{self.db_name}.{self.name}"


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    partition_id: PartitionId
    table_id: TableId
    name: str
    location: str | None


@dataclass(frozen=True, slots=True)
class PartitionsBelow:
    """So many partitions of a table that the catalog owns, all at or below one location."""

    table: str
    location: str
    count: int


class PlaceReads(Protocol):
    """Pages come in order of their key and begin behind `after`; one that is not full is the last."""

    def databases(self, after: str, limit: int) -> list[DatabasePlace]: ...

    def tables(self, after: int, limit: int) -> list[TablePlace]: ...

    def tables_with_ids(self, ids: Collection[int]) -> list[TablePlace]: ...

    def partitions(self, after: int, limit: int) -> list[PartitionPlace]: ...

    def partitions_named(self, table_id: TableId, names: Sequence[str]) -> list[PartitionPlace]: ...

    def has_partitions_below(self, table_id: TableId, path: str) -> bool:
        """Whether the table has a partition whose name begins with these parts (`year=2024`) and has more."""

    def owned_tables_elsewhere(self, beginnings: Sequence[str], after: int, limit: int) -> list[TablePlace]:
        """Tables that may own their data, whose locations begin with none of these texts."""

    def owned_partitions_elsewhere(self, beginnings: Sequence[str]) -> list[PartitionsBelow]:
        """The same for partitions, without looking at those that lie below their table."""
