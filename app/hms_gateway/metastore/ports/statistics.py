"""What the rules of column statistics need from storage."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from hms_gateway.metastore.ports.stored_table import StoredTable
from hms_gateway.metastore.vocabulary.names import PartitionId, TableId
from hms_gateway.structs import ColumnStatisticsData_v4, FieldSchema


class ColumnFigures(msgspec.Struct, frozen=True):
    """The statistics of one column, computed at `last_analyzed` (seconds); `write_id` is for transactional tables."""

    column: str
    column_type: str
    data: ColumnStatisticsData_v4
    last_analyzed: int
    write_id: int | None = None


class StatisticsReads(Protocol):
    """Column names are normalised by the caller; no columns means all. Columns come in byte order."""

    def of_table(self, table_id: TableId, engine: str, columns: Sequence[str] | None = None) -> list[ColumnFigures]: ...

    def of_partitions(
        self, table: StoredTable, engine: str, names: Sequence[str], columns: Sequence[str] | None = None
    ) -> dict[str, list[ColumnFigures]]:
        """By the name of the partition, in byte order; partitions without statistics are left out."""

    def columns_of_table(self, table_id: TableId) -> list[str]:
        """The columns with statistics of any engine, in byte order."""

    def columns_of_partition(self, table: StoredTable, name: str) -> list[str]:
        """The same for a partition; none when it is not there."""

    def partition_ids(self, table: StoredTable, names: Sequence[str]) -> dict[str, PartitionId]:
        """Those of the named partitions that exist."""


class StatisticsWrites(StatisticsReads, Protocol):
    """Every change is a fixed number of statements, however many partitions it concerns."""

    def put_of_table(self, table_id: TableId, engine: str, figures: Sequence[ColumnFigures]) -> None:
        """Insert or replace."""

    def put_of_partitions(
        self, table_id: TableId, engine: str, figures: Mapping[PartitionId, Sequence[ColumnFigures]]
    ) -> None:
        """Insert or replace, and note the columns in the partitions' COLUMN_STATS_ACCURATE."""

    def delete_of_table(self, table_id: TableId, engine: str, columns: Sequence[str] | None = None) -> int:
        """How many columns lost their statistics."""

    def delete_of_partitions(
        self, engine: str, partition_ids: Sequence[PartitionId], columns: Sequence[str] | None = None
    ) -> int:
        """The same for partitions."""

    def keep_table_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> list[str]:
        """Delete what is not about a column of one of these names and types; the names that were deleted."""

    def keep_partition_columns(
        self, table_id: TableId, columns: Sequence[FieldSchema], partition_ids: Sequence[PartitionId] | None = None
    ) -> None:
        """The same for these partitions or all of the table, also in their COLUMN_STATS_ACCURATE."""

    def delete_below(self, table_id: TableId, path: str) -> None:
        """Delete those of the partitions that lie at `path` or under it."""
