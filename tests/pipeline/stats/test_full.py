"""Statistics of the data itself: exact ones for all columns, distinct values as sketches that merge."""

import os
import random

import pyarrow
import pytest
from pyarrow import parquet

from hms_gateway.pipeline.stats.job import StatsArguments, stats
from tests.pipeline.footers.content import HIVE
from tests.pipeline.stats.content import add_partitions, fill_partitioned, make_table
from tests.pipeline.stats.oracles import by_arrow, member, plain
from tests.pipeline.stats.test_footers import only, statistics_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kind", "without"),
    [("parquet", ("exact",)), ("orc", ("exact", "moment", "day"))],
)
def test_every_column_has_the_statistics_of_its_data(spark, gateway, options, tmp_path, kind, without):
    """Spark does not read nanoseconds of Parquet, and other times than what C++ wrote in ORC before 1970."""
    table = f"full_{kind}"
    with gateway.client() as client:
        data = fill_partitioned(client, table, kind, tmp_path / "odd {name} %41 é#?", random.Random(5), without)
    result = stats(only(options, table), StatsArguments(is_full=True), spark=spark)
    found = statistics_of(gateway, table, data)
    for name, rows in data.items():
        for column in set(HIVE) - set(without):
            assert plain(column, found[name][column]) == by_arrow(column, rows[column]), (name, column)
    assert result.coverage.columns_after == len(data) * (len(HIVE) - len(without))


def test_footers_and_data_give_the_same_figures(spark, gateway, options, tmp_path):
    """Files that Spark wrote itself, with everything but NaN and old timestamps, of which its footers say nothing."""
    rows = (
        "select cast(id as tinyint) tiny, cast(id as smallint) small, cast(id - 50 as int) whole, id * 1000000007 big,"
        " cast(id / 7 as float) real, -id / 3 wide, cast(id / 100 as decimal(9,2)) money,"
        " cast(-id * 12345678901234567890 as decimal(38,10)) huge, date_add(date '1960-02-29', cast(id as int)) day,"
        " if(id % 3 = 0, null, repeat('é', cast(id % 5 as int))) note, cast(repeat('x', cast(id % 7 as int)) as binary)"
        " data, id % 2 = 0 flag, timestamp_micros(id * 1000001 - 50) moment from range(101)"
    )
    kinds = ("parquet", "orc")
    columns = {column: of for column, of in HIVE.items() if column != "exact"}
    for kind in kinds:
        spark.sql(rows).repartition(2).write.option("outputTimestampType", "TIMESTAMP_MICROS").format(kind).save(
            f"file:{tmp_path}/{kind}"
        )
        with gateway.client() as client:
            make_table(client, f"agree_{kind}", kind, tmp_path / kind, columns=columns)
    stats(only(options, "agree_*"), StatsArguments(), spark=spark)
    of_footers = [statistics_of(gateway, f"agree_{kind}", None) for kind in kinds]
    stats(only(options, "agree_*"), StatsArguments(is_full=True), spark=spark)
    for kind, by_footers in zip(kinds, of_footers, strict=True):
        in_full = statistics_of(gateway, f"agree_{kind}", None)
        assert set(in_full) == set(columns)
        known = set(columns) if kind == "orc" else set(columns) - {"flag", "moment"}
        assert known <= set(by_footers)
        for column in set(by_footers):
            first, second = plain(column, by_footers[column]), plain(column, in_full[column])
            assert first.pop("longest", 0) <= second.pop("longest", 0)
            assert first == second, (kind, column)


def test_distinct_values_of_the_table_are_those_of_all_partitions_together(spark, gateway, options, tmp_path):
    """Each partition has 500 of 1,500 values: the largest of them is a third, their sum more than there are."""
    columns = {"big": "bigint", "note": "string"}
    with gateway.client() as client:
        make_table(client, "distinct_values", "parquet", tmp_path, "ds", columns=columns)
        add_partitions(client, "distinct_values", "parquet", tmp_path, [[str(n)] for n in range(5)], columns=columns)
    for number in range(5):
        (tmp_path / f"p{number}").mkdir()
        values = range(number * 250, number * 250 + 500)
        table = pyarrow.table({"big": list(values), "note": [f"value {value}" for value in values]})
        parquet.write_table(table, tmp_path / f"p{number}" / "a.parquet")
    for attempt in ("all of them", "one of them, and what is kept of the others"):
        stats(only(options, "distinct_values"), StatsArguments(is_full=True), spark=spark)
        whole = statistics_of(gateway, "distinct_values", None)
        each = statistics_of(gateway, "distinct_values", [f"ds={number}" for number in range(5)])
        for column in columns:
            # Three standard deviations of a sketch of 4,096 registers.
            assert abs(member(whole[column]).numDVs - 1_500) < 1_500 * 0.05, attempt
            for of_partition in each.values():
                assert abs(member(of_partition[column]).numDVs - 500) < 500 * 0.05
        with gateway.client() as client:
            parameters = client.call("get_table", "sales", "distinct_values").parameters
        assert parameters["spark.sql.statistics.colStats.big.distinctCount"] == str(member(whole["big"]).numDVs)
        os.utime(tmp_path / "p3" / "a.parquet", (1_700_000_000, 1_700_000_000))


def test_text_files_are_read_as_hive_writes_them(spark, gateway, options, tmp_path):
    columns = {"whole": "int", "note": "string", "flag": "boolean"}
    with gateway.client() as client:
        make_table(client, "texts", "text", tmp_path / "t", columns=columns)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "000000_0").write_bytes('1\x01é,"\x01true\n\\N\x01\x01false\n-7\x01\\N\x01\\N\n'.encode())
    skipped = stats(only(options, "texts"), StatsArguments(), spark=spark)
    assert "take the statistics with --full" in skipped.notes[0]["reason"]
    stats(only(options, "texts"), StatsArguments(is_full=True), spark=spark)
    found = statistics_of(gateway, "texts", None)
    assert plain("whole", found["whole"]) == {"nulls": 1, "low": -7, "high": 1}
    assert plain("note", found["note"]) == {"nulls": 1, "longest": 4, "average": 2.0}
    assert plain("flag", found["flag"]) == {"nulls": 1, "trues": 1, "falses": 1}


def test_files_that_spark_cannot_read_are_named_and_the_rest_is_done(spark, gateway, options, tmp_path):
    with gateway.client() as client:
        without = tuple(set(HIVE) - {"whole", "big", "wide", "day", "note"})
        data = fill_partitioned(client, "damaged", "parquet", tmp_path, random.Random(8), without)
    file = tmp_path / "p1" / "part-0.parquet"
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    result = stats(only(options, "damaged"), StatsArguments(is_full=True), spark=spark)
    [note] = result.notes
    assert note["path"] == f"file:{tmp_path}/p1"
    assert "cannot be read" in note["reason"]
    assert (result.counts["written"], result.counts["failed"]) == (len(data) - 1, 1)
