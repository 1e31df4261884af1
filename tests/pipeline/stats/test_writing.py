"""What is written, and what is not since it changed; what others make of it."""

import random
from datetime import date
from decimal import Decimal

import pyarrow
import pytest
from pyarrow import orc

from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.stats.job import StatsArguments, stats
from hms_gateway.rpc.structs import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
)
from tests.pipeline.footers.content import HIVE, TEXTS, TYPES
from tests.pipeline.stats.content import add_partitions, fill_partitioned, make_table, write_files
from tests.pipeline.stats.oracles import plain
from tests.pipeline.stats.test_footers import only, statistics_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_what_changes_between_reading_and_writing_is_left_out_and_named(spark, gateway, options, tmp_path):
    with gateway.client() as client:
        data = list(fill_partitioned(client, "moving", "parquet", tmp_path, random.Random(2)))
    planned = stats(only(options, "moving", dry_run=True), StatsArguments(), spark=spark)
    write_files(tmp_path / "p0", "parquet", random.Random(77), files=1)
    with gateway.client() as client:
        client.call("drop_partition_by_name", "sales", "moving", data[1], False)
        [moved] = client.call("get_partitions_by_names", "sales", "moving", [data[2]])
        moved.sd.location = f"file:{tmp_path}/p3"
        client.call("alter_partitions", "sales", "moving", [moved])
    result = stats(only(options, "moving", resume=planned.run), StatsArguments(), spark=spark)
    reasons = {each["item"]: each["reason"] for each in result.refusals}
    assert "has changed since it was read" in reasons[f"sales.moving {data[0]}"]
    assert "was dropped" in reasons[f"sales.moving {data[1]}"]
    assert "has changed since it was read" in reasons[f"sales.moving {data[2]}"]
    assert "sales.moving" in reasons
    assert (result.counts["written"], result.exit_status) == (1, 1)
    assert set(statistics_of(gateway, "moving", data)) == {data[3]}
    after = stats(only(options, "moving"), StatsArguments(), spark=spark)
    assert (after.counts["written"], after.counts["fresh"], after.refused) == (2, 1, 0)
    assert set(statistics_of(gateway, "moving", data)) == {data[0], data[2], data[3]}
    assert statistics_of(gateway, "moving", None) != {}


# What the real metastore on Derby can add up: it computes decimals with five digits, and ranges in 64 bits.
SUMMED = ("tiny", "whole", "big", "wide", "money", "day", "moment", "note", "data", "flag")


def moderate_table(source, rows, *, all_null):
    """Random values without the extreme ones; in some partitions nothing but nulls."""

    def values(make):
        return [None if all_null or source.random() < 0.2 else make() for _ in range(rows)]

    columns = {
        "tiny": values(lambda: source.randrange(-128, 128)),
        "whole": values(lambda: source.randrange(-(10**9), 10**9)),
        "big": values(lambda: source.randrange(-(10**15), 10**15)),
        "wide": values(lambda: source.uniform(-1e9, 1e9)),
        "money": values(lambda: Decimal(source.randrange(-9_999, 9_999))),
        "day": values(lambda: date(1900 + source.randrange(200), 1, 1)),
        "moment": values(lambda: source.randrange(10**15)),
        "note": values(lambda: source.choice(TEXTS)),
        "data": values(lambda: source.choice(TEXTS).encode()),
        "flag": values(lambda: source.random() < 0.5),
    }
    return pyarrow.table({name: pyarrow.array(columns[name], TYPES[name]) for name in SUMMED})


@pytest.mark.whole
def test_the_real_metastore_adds_the_same_statistics_up_to_the_same_figures(spark, gateway, real, options, tmp_path):
    source = random.Random(12)
    columns = {name: HIVE[name] for name in SUMMED}
    values = [[str(number)] for number in range(6)]
    names = [f"ds={number}" for number in range(6)]
    for number in range(6):
        (tmp_path / f"p{number}").mkdir()
        table = moderate_table(source, source.choice((3, 50)), all_null=number == 4)
        orc.write_table(table, tmp_path / f"p{number}" / "a.orc")
    with gateway.client() as client:
        make_table(client, "summed", "orc", tmp_path, "ds", columns=columns)
        add_partitions(client, "summed", "orc", tmp_path, values, columns=columns)
    stats(only(options, "summed"), StatsArguments(), spark=spark)
    request = PartitionsStatsRequest(dbName="sales", tblName="summed", colNames=list(SUMMED), partNames=names)
    with gateway.client() as ours, real.client() as theirs:
        make_table(theirs, "summed", "orc", tmp_path, "ds", columns=columns)
        add_partitions(theirs, "summed", "orc", tmp_path, values, columns=columns)
        copied = [
            ColumnStatistics(
                statsDesc=ColumnStatisticsDesc(isTblLevel=False, dbName="sales", tableName="summed", partName=name),
                statsObj=[ColumnStatisticsObj(one.colName, one.colType, one.statsData) for one in each],
            )
            for name, each in ours.call("get_partitions_statistics_req", request).partStats.items()
        ]
        theirs.call("set_aggr_stats_for", SetPartitionsStatsRequest(colStats=copied))
        sums = [client.call("get_aggr_stats_for", request) for client in (ours, theirs)]
    assert sums[0].partsFound == sums[1].partsFound == len(names)
    by_column = [{one.colName: plain(one.colName, one.statsData) for one in each.colStats} for each in sums]
    assert set(by_column[0]) == set(SUMMED)
    assert by_column[0] == by_column[1]


def test_sparks_own_properties_are_those_that_spark_writes(spark, gateway, options, tmp_path):
    columns = {column: of for column, of in HIVE.items() if column not in ("exact", "data", "real", "wide")}
    location = tmp_path / "t"
    write_files(location, "parquet", random.Random(21), columns=list(columns))
    with gateway.client() as client:
        make_table(client, "planned", "parquet", location, columns=columns)
    stats(only(options, "planned"), StatsArguments(is_full=True), spark=spark)
    spark.sql(f"create table planned using parquet location 'file:{location}'")
    try:
        spark.sql("analyze table planned compute statistics for all columns")
        catalog = spark._jsparkSession.sessionState().catalog()
        name = spark._jvm.org.apache.spark.sql.catalyst.TableIdentifier("planned")
        theirs = catalog.getTableMetadata(name).stats().get()
        with gateway.client() as client:
            ours = client.call("get_table", "sales", "planned").parameters
        prefix = "spark.sql.statistics."
        assert ours[f"{prefix}numRows"] == str(theirs.rowCount().get())
        for column in columns:
            entries = theirs.colStats().apply(column).toMap(column).iterator()
            said = {}
            while entries.hasNext():
                pair = entries.next()
                said[pair._1().removeprefix(f"{column}.")] = pair._2()
            found = {key: ours.get(f"{prefix}colStats.{column}.{key}") for key in said}
            if column == "note":
                # Spark counts characters, Hive's statistics bytes.
                said.pop("avgLen"), said.pop("maxLen")
            said.pop("distinctCount")
            assert {key: found[key] for key in said} == said, column
    finally:
        spark.sql("drop table planned")


def test_a_part_of_the_partitions_does_not_change_what_the_table_has(spark, gateway, options, tmp_path):
    with gateway.client() as client:
        data = list(fill_partitioned(client, "parts", "orc", tmp_path, random.Random(31)))
    first = stats(only(options, "parts", where="ds = '2024-01-01'"), StatsArguments(), spark=spark)
    assert (first.counts["written"], first.counts["tables_written"]) == (1, 0)
    assert set(statistics_of(gateway, "parts", data)) == {"ds=2024-01-01"}
    assert statistics_of(gateway, "parts", None) == {}
    every = stats(only(options, "parts"), StatsArguments(), spark=spark)
    assert (every.counts["written"], every.counts["fresh"], every.counts["tables_written"]) == (3, 1, 1)
    with pytest.raises(UsageRefused, match=r"--where .nosuch = 1. is not a filter of sales\.parts"):
        stats(only(options, "parts", where="nosuch = 1"), StatsArguments(), spark=spark)
