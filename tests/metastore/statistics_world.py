"""Statistics to send, and the service under test over a real store with a partitioned table."""

from collections.abc import Callable
from typing import Any

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import (
    ColumnStatistics_v4,
    ColumnStatisticsData_v4,
    ColumnStatisticsDesc,
    ColumnStatisticsObj_v4,
    LongColumnStatsData_v4,
    Partition,
    StringColumnStatsData_v4,
    ThriftException,
)
from tests.support.catalog import Catalog, columns, new_table, to_tjson
from tests.support.partition_calls import PartitionCalls
from tests.support.statistics_calls import StatisticsCalls

T = TableName("default", "t")
P = TableName("default", "p")


def make_service(catalog: Catalog) -> StatisticsCalls:
    """With the table `t(a int, b string)`, and `p`, which is the same partitioned by (ds, hr)."""
    catalog.tables.create(new_table())
    catalog.tables.create(new_table("p", keys=columns("ds string", "hr int")))
    add_partitions(catalog, ["a", "1"], ["a", "2"], ["b", "1"])
    return StatisticsCalls(catalog.store, catalog.clock, catalog.event_maker)


def partitions(catalog: Catalog) -> PartitionCalls:
    return PartitionCalls(catalog.store, catalog.files, catalog.clock, catalog.settings, to_tjson)


def add_partitions(catalog: Catalog, *values: list[str], table: TableName = P) -> None:
    descriptor = catalog.tables.get(table).sd
    descriptor.location = None
    for each in values:
        parameters = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
        partition = Partition(values=each, dbName="default", tableName=table.tbl_name, sd=descriptor)
        partition.parameters = parameters
        partitions(catalog).add(partition)


def longs(low: int | None, high: int | None, nulls: int = 0, distinct: int = 1) -> ColumnStatisticsData_v4:
    return ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(low, high, nulls, distinct))


def strings(longest: int, average: float, nulls: int = 0, distinct: int = 1) -> ColumnStatisticsData_v4:
    return ColumnStatisticsData_v4(stringStats=StringColumnStatsData_v4(longest, average, nulls, distinct))


def statistics(
    table: TableName = T, part_name: str | None = None, *, analyzed: int | None = None, **data: Any
) -> ColumnStatistics_v4:
    """Of each column given by name; its type is that of the data."""
    types = {"longStats": "int", "stringStats": "string"}
    objects = [
        ColumnStatisticsObj_v4(name, next(types[kind] for kind in types if getattr(value, kind) is not None), value)
        for name, value in data.items()
    ]
    description = ColumnStatisticsDesc(part_name is None, table.db_name, table.tbl_name, part_name, analyzed)
    return ColumnStatistics_v4(description, objects)


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value
