"""Methods on column statistics, and the shapes that each generation of clients sends and gets."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from hms_gateway.catalog.arguments import is_newer, table_in, table_named, table_shown, with_fields
from hms_gateway.catalog.statistics.aggregation import member_of
from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsService, refuse_merge, single
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    STRUCTS,
    AggrStats,
    AggrStats_v4,
    ColumnStatistics,
    ColumnStatistics_v4,
    ColumnStatisticsData,
    ColumnStatisticsData_v4,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    ColumnStatisticsObj_v4,
    CompactionInfoStruct,
    DeleteColumnStatisticsRequest,
    LongColumnStatsData,
    PartitionsStatsRequest,
    PartitionsStatsResult,
    PartitionsStatsResult_v4,
    SetPartitionsStatsRequest,
    SetPartitionsStatsRequest_v4,
    SetPartitionsStatsResponse,
    Struct,
    TableStatsRequest,
    TableStatsResult,
    TableStatsResult_v4,
    Timestamp,
    TimestampColumnStatsData,
)

_KINDS: Final = tuple(field.name for field in ColumnStatisticsData.definition.fields)


def received(statistics: Any) -> ColumnStatistics_v4 | None:
    """Statistics that a caller of any dialect sent, with sketches as bytes."""
    if statistics is None or isinstance(statistics, ColumnStatistics_v4):
        return statistics
    objects = [
        ColumnStatisticsObj_v4(one.colName, one.colType, _received_data(one.statsData))
        for one in statistics.statsObj or ()
    ]
    return ColumnStatistics_v4(
        statsDesc=statistics.statsDesc,
        statsObj=objects,
        isStatsCompliant=statistics.isStatsCompliant,
        engine=statistics.engine,
    )


def shown(call: Call, statistics: ColumnStatistics_v4, *, newer: bool) -> Struct:
    """Statistics as the caller's dialect has them, as the functions below; `newer` callers take sketches as bytes."""
    if call.dialect is Dialect.HIVE_4:
        return statistics
    objects = [_shown_object(one, newer) for one in statistics.statsObj or ()]
    return ColumnStatistics(statsDesc=statistics.statsDesc, statsObj=objects)


def shown_of_table(
    call: Call, objects: list[ColumnStatisticsObj_v4], is_compliant: bool | None, *, newer: bool
) -> Struct:
    if call.dialect is Dialect.HIVE_4:
        return TableStatsResult_v4(objects, is_compliant)
    return TableStatsResult([_shown_object(one, newer) for one in objects], is_compliant)


def shown_of_partitions(
    call: Call, objects: dict[str, list[ColumnStatisticsObj_v4]], is_compliant: bool | None, *, newer: bool
) -> Struct:
    if call.dialect is Dialect.HIVE_4:
        return PartitionsStatsResult_v4(objects, is_compliant)
    shown = {name: [_shown_object(one, newer) for one in of] for name, of in objects.items()}
    return PartitionsStatsResult(shown, is_compliant)


def shown_aggregate(call: Call, statistics: AggrStats_v4, *, newer: bool) -> Struct:
    if call.dialect is Dialect.HIVE_4:
        return statistics
    objects = [_shown_object(one, newer) for one in statistics.colStats or ()]
    return AggrStats(objects, statistics.partsFound, statistics.isStatsCompliant)


def _received_data(data: ColumnStatisticsData | None) -> ColumnStatisticsData_v4 | None:
    if data is None:
        return None
    converted: dict[str, Any] = {}
    for name in _KINDS:
        value = getattr(data, name)
        if value is not None:
            converted[name] = _in_class(value, "_v4", _as_bytes)
    return ColumnStatisticsData_v4(**converted)


def _shown_object(one: ColumnStatisticsObj_v4, newer: bool) -> ColumnStatisticsObj:
    assert isinstance(one.statsData, ColumnStatisticsData_v4)
    found = member_of(one.statsData)
    assert found is not None
    kind, value = found
    if isinstance(value, TimestampColumnStatsData):
        # 2.3 counts timestamps as whole numbers.
        kind, value = "longStats", _as_long(value)
    else:
        value = _in_class(value, "", _as_it_is if newer else _as_text)
    return ColumnStatisticsObj(one.colName, one.colType, ColumnStatisticsData(**{kind: value}))


def _in_class(value: Any, suffix: str, convert: Any) -> Any:
    """The same figures in the class of the other shape; those with one shape only stay."""
    struct_class, names = _other_shape(type(value).__name__, suffix)
    if struct_class is None:
        return value
    fields = {name: getattr(value, name) for name in names}
    fields["bitVectors"] = convert(fields["bitVectors"])
    return struct_class(**fields)


@cache
def _other_shape(given: str, suffix: str) -> tuple[Any, tuple[str, ...]]:
    """The class of the other shape with the names of its fields; None where there is one shape only."""
    struct_class: Any = STRUCTS.get(given.removesuffix("_v4") + suffix)
    return struct_class, () if struct_class is None else tuple(field.name for field in struct_class.definition.fields)


def _as_bytes(sketch: str | bytes | None) -> bytes | None:
    return sketch.encode(errors="surrogatepass") if isinstance(sketch, str) else sketch


def _as_it_is(sketch: bytes | None) -> bytes | None:
    return sketch


def _as_text(sketch: bytes | None) -> str | None:
    try:
        return None if sketch is None else sketch.decode()
    except UnicodeDecodeError:
        return None


def _as_long(value: TimestampColumnStatsData) -> LongColumnStatsData:
    low, high = value.lowValue, value.highValue
    return LongColumnStatsData(
        lowValue=low.secondsSinceEpoch if isinstance(low, Timestamp) else None,
        highValue=high.secondsSinceEpoch if isinstance(high, Timestamp) else None,
        numNulls=value.numNulls,
        numDVs=value.numDVs,
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
