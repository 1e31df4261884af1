"""Methods on column statistics: the IDL's methods in its order, each one call of the service."""

from collections.abc import Sequence
from typing import Any

from hms_gateway.catalog.arguments import is_newer, table_in, table_named, table_shown, with_fields
from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsService, refuse_merge, single
from hms_gateway.handlers.statistics_shapes import received, shown, shown_aggregate, shown_of_partitions, shown_of_table
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    ColumnStatistics,
    ColumnStatistics_v4,
    ColumnStatisticsDesc,
    CompactionInfoStruct,
    DeleteColumnStatisticsRequest,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    SetPartitionsStatsRequest_v4,
    SetPartitionsStatsResponse,
    Struct,
    TableStatsRequest,
)


class ColumnStatisticsMethods:
    """Structs with sketches come and go in the shape of the caller's dialect (semantics §10.1)."""

    def __init__(self, statistics: ColumnStatisticsService) -> None:
        self._statistics = statistics

    def update_table_column_statistics(self, call: Call, stats_obj: ColumnStatistics) -> bool:
        self._statistics.update_table(_given(stats_obj, None))
        return True

    def update_partition_column_statistics(self, call: Call, stats_obj: ColumnStatistics) -> bool:
        self._statistics.update_partitions([_given(stats_obj, None)])
        return True

    def update_table_column_statistics_req(
        self, call: Call, req: SetPartitionsStatsRequest_v4
    ) -> SetPartitionsStatsResponse:
        request = required(req, "req")
        refuse_merge(bool(request.needMerge))
        self._statistics.update_table(single(_all_given(request)), write_id=_write_id(request))
        return SetPartitionsStatsResponse(result=True)

    def update_partition_column_statistics_req(
        self, call: Call, req: SetPartitionsStatsRequest_v4
    ) -> SetPartitionsStatsResponse:
        request = required(req, "req")
        refuse_merge(bool(request.needMerge))
        self._statistics.update_partitions(_all_given(request), write_id=_write_id(request))
        return SetPartitionsStatsResponse(result=True)

    def get_table_column_statistics(self, call: Call, db_name: str, tbl_name: str, col_name: str) -> Struct:
        found = self._statistics.get_of_table(table_shown(call, db_name, tbl_name), col_name)
        return shown(call, found, newer=is_newer(call, db_name))

    def get_partition_column_statistics(
        self, call: Call, db_name: str, tbl_name: str, part_name: str, col_name: str
    ) -> Struct:
        found = self._statistics.get_of_partition(table_shown(call, db_name, tbl_name), part_name, col_name)
        return shown(call, found, newer=is_newer(call, db_name))

    def get_table_statistics_req(self, call: Call, request: TableStatsRequest) -> Struct:
        request = required(request, "request")
        columns = required(request.colNames, "column names")
        found = self._statistics.of_table(_table_of(request), columns, request.engine, request.validWriteIdList)
        return shown_of_table(call, *found, newer=_is_newer(call, request))

    def get_partitions_statistics_req(self, call: Call, request: PartitionsStatsRequest) -> Struct:
        request = required(request, "request")
        names, columns = required(request.partNames, "partition names"), required(request.colNames, "column names")
        table, seen = _table_of(request), request.validWriteIdList
        found = self._statistics.of_partitions(table, names, columns, request.engine, seen)
        return shown_of_partitions(call, *found, newer=_is_newer(call, request))

    def get_aggr_stats_for(self, call: Call, request: PartitionsStatsRequest) -> Struct:
        request = required(request, "request")
        names, columns = required(request.partNames, "partition names"), required(request.colNames, "column names")
        table, seen = _table_of(request), request.validWriteIdList
        found = self._statistics.aggregated(table, names, columns, request.engine, seen)
        return shown_aggregate(call, found, newer=_is_newer(call, request))

    def set_aggr_stats_for(self, call: Call, request: SetPartitionsStatsRequest) -> bool:
        request = required(request, "request")
        merges, write_id = bool(request.needMerge), _write_id(request)
        self._statistics.set_aggregated(_all_given(request), merges=merges, write_id=write_id)
        return True

    def delete_partition_column_statistics(
        self, call: Call, db_name: str, tbl_name: str, part_name: str, col_name: str, engine: str
    ) -> bool:
        self._statistics.delete_of_partition(table_named(db_name, tbl_name), part_name, col_name, engine)
        return True

    def delete_table_column_statistics(
        self, call: Call, db_name: str, tbl_name: str, col_name: str, engine: str
    ) -> bool:
        self._statistics.delete_of_table(table_named(db_name, tbl_name), col_name, engine)
        return True

    def delete_column_statistics_req(self, call: Call, req: DeleteColumnStatisticsRequest) -> bool:
        request = required(req, "req")
        self._statistics.delete(
            table_in(request.cat_name, request.db_name, request.tbl_name),
            request.part_names,
            request.col_names,
            table_level=bool(request.tableLevel),
            engine=request.engine,
        )
        return True

    def find_columns_with_stats(self, call: Call, cr: CompactionInfoStruct) -> list[str]:
        """For compaction workers, who compute these columns anew."""
        info = required(cr, "cr")
        return self._statistics.columns_known(table_named(info.dbname, info.tablename), info.partitionname)


def _table_of(request: TableStatsRequest | PartitionsStatsRequest) -> TableName:
    return table_in(request.catName, request.dbName, request.tblName)


def _is_newer(call: Call, request: TableStatsRequest | PartitionsStatsRequest) -> bool:
    return is_newer(call, request.dbName) or request.catName is not None


def _all_given(request: SetPartitionsStatsRequest | SetPartitionsStatsRequest_v4) -> Sequence[ColumnStatistics_v4]:
    given: Any = required(request.colStats, "column statistics")
    return [_given(one, request.engine) for one in given]


def _write_id(request: SetPartitionsStatsRequest | SetPartitionsStatsRequest_v4) -> int | None:
    """Hive's clients send -1 for none."""
    return request.writeId if request.writeId is not None and request.writeId > 0 else None


def _given(statistics: object, engine: str | None) -> ColumnStatistics_v4:
    """What was sent, about the table by its plain name; an engine may be said once for all of a request."""
    given = required(received(statistics), "column statistics")
    description = required(given.statsDesc, "description of the statistics")
    assert isinstance(description, ColumnStatisticsDesc)
    table = table_in(description.catName, description.dbName, description.tableName)
    return with_fields(
        given,
        statsDesc=with_fields(description, dbName=table.db_name),
        engine=given.engine or engine,
    )
