"""Calls on column statistics by short names, as a client of Hive 4 makes them; of no columns all are read."""

from collections.abc import Sequence
from typing import Any

from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsMethods, with_statistics
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Store
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    ColumnStatistics_v4,
    CompactionInfoStruct,
    DeleteColumnStatisticsRequest,
    Partition,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    SetPartitionsStatsRequest_v4,
    TableStatsRequest,
)
from hms_gateway.runtime.clock import Clock

CALL = Call("nobody", dialect=Dialect.HIVE_4)


class StatisticsCalls:
    def __init__(self, store: Store, clock: Clock, events: EventMaker) -> None:
        self._store = store
        self.methods: Any = ColumnStatisticsMethods(store, clock, events)

    def update_table(self, statistics: ColumnStatistics_v4, *, write_id: int | None = None) -> None:
        request = SetPartitionsStatsRequest_v4([statistics], writeId=write_id)
        self.methods.update_table_column_statistics_req(CALL, request)

    def update_partitions(self, statistics: Sequence[ColumnStatistics_v4], *, write_id: int | None = None) -> None:
        request = SetPartitionsStatsRequest_v4(list(statistics), writeId=write_id)
        self.methods.update_partition_column_statistics_req(CALL, request)

    def set_aggregated(self, statistics: Sequence[ColumnStatistics_v4], *, merges: bool = False) -> None:
        request: Any = SetPartitionsStatsRequest(list(statistics), merges)  # type: ignore[arg-type]
        self.methods.set_aggr_stats_for(CALL, request)

    def of_table(self, table: TableName, columns: Sequence[str] | None, engine: str | None = None) -> Any:
        wanted = self._columns(table, None) if columns is None else list(columns)
        request = TableStatsRequest(table.db_name, table.tbl_name, wanted, engine=engine)
        return self.methods.get_table_statistics_req(CALL, request).tableStats

    def of_partitions(self, table: TableName, part_names: Sequence[str], columns: Sequence[str] | None) -> Any:
        every = [name for part_name in part_names for name in self._columns(table, part_name)]
        wanted = sorted(set(every)) if columns is None else list(columns)
        request = PartitionsStatsRequest(table.db_name, table.tbl_name, wanted, list(part_names))
        return self.methods.get_partitions_statistics_req(CALL, request).partStats

    def get_of_table(self, table: TableName, column: str | None) -> Any:
        return self.methods.get_table_column_statistics(CALL, table.db_name, table.tbl_name, column)

    def get_of_partition(self, table: TableName, part_name: str | None, column: str | None) -> Any:
        return self.methods.get_partition_column_statistics(CALL, table.db_name, table.tbl_name, part_name, column)

    def aggregated(self, table: TableName, part_names: Sequence[str], columns: Sequence[str]) -> Any:
        request = PartitionsStatsRequest(table.db_name, table.tbl_name, list(columns), list(part_names))
        return self.methods.get_aggr_stats_for(CALL, request)

    def delete_of_table(self, table: TableName, column: str | None, engine: str | None = None) -> None:
        assert self.methods.delete_table_column_statistics(CALL, table.db_name, table.tbl_name, column, engine)

    def delete_of_partition(self, table: TableName, part_name: str | None, column: str | None) -> None:
        assert self.methods.delete_partition_column_statistics(
            CALL, table.db_name, table.tbl_name, part_name, column, None
        )

    def delete(
        self,
        table: TableName,
        part_names: Sequence[str] | None,
        columns: Sequence[str] | None,
        *,
        table_level: bool,
    ) -> None:
        request = DeleteColumnStatisticsRequest(
            None,
            table.db_name,
            table.tbl_name,
            part_names,  # type: ignore[arg-type]
            columns,  # type: ignore[arg-type]
            tableLevel=table_level,
        )
        assert self.methods.delete_column_statistics_req(CALL, request)

    def with_statistics(self, table: TableName, partitions: list[Partition]) -> Any:
        return with_statistics(self._store, table, partitions, None, None)

    def _columns(self, table: TableName, part_name: str | None) -> list[str]:
        info = CompactionInfoStruct(dbname=table.db_name, tablename=table.tbl_name, partitionname=part_name)
        found: list[str] = self.methods.find_columns_with_stats(CALL, info)
        return found
