"""The shapes of column statistics that each generation of clients sends and gets (semantics §10.1)."""

from functools import cache
from typing import Any, Final

from hms_gateway.catalog.statistics.aggregation import member_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    STRUCTS,
    AggrStats,
    AggrStats_v4,
    ColumnStatistics,
    ColumnStatistics_v4,
    ColumnStatisticsData,
    ColumnStatisticsData_v4,
    ColumnStatisticsObj,
    ColumnStatisticsObj_v4,
    LongColumnStatsData,
    PartitionsStatsResult,
    PartitionsStatsResult_v4,
    Struct,
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
