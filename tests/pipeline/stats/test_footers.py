"""Statistics out of footers, in a real gateway: they are those of the data."""

import dataclasses
import os
import random

import pytest

from hms_gateway.pipeline.stats.job import StatsArguments, stats
from hms_gateway.rpc.structs import PartitionsStatsRequest, TableStatsRequest
from tests.pipeline.footers.content import HIVE
from tests.pipeline.stats.content import DAYS, fill_partitioned, make_table, write_files
from tests.pipeline.stats.oracles import by_arrow, plain

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def only(options, table, **more):
    return dataclasses.replace(options, only=(f"sales.{table}",), **more)


def statistics_of(gateway, table, names):
    """By partition and column; those of the whole table where there are no names."""
    with gateway.client() as client:
        if names is None:
            request = TableStatsRequest(dbName="sales", tblName=table, colNames=list(HIVE))
            return {one.colName: one.statsData for one in client.call("get_table_statistics_req", request).tableStats}
        request = PartitionsStatsRequest(dbName="sales", tblName=table, colNames=list(HIVE), partNames=list(names))
        found = client.call("get_partitions_statistics_req", request).partStats
        return {name: {one.colName: one.statsData for one in each} for name, each in found.items()}


def partitions_of(gateway, table, names):
    with gateway.client() as client:
        found = client.call("get_partitions_by_names", "sales", table, list(names))
        return {name: found_of for name in names for found_of in found if made(found_of) == name}


def made(partition):
    from hms_gateway.metastore.vocabulary.partition_names import make_name

    return make_name(["ds"], partition.values)


def compared(column, found, data):
    """Both without what footers do not say: the longest string, but for a bound."""
    ours, theirs = plain(column, found), by_arrow(column, data)
    if "longest" in ours:
        assert ours.pop("longest") <= theirs.pop("longest")
    return ours, theirs


@pytest.mark.parametrize("kind", ["parquet", pytest.param("orc", marks=pytest.mark.whole)])
def test_partitions_have_the_statistics_of_their_data(spark, gateway, options, tmp_path, kind):
    table = f"footers_{kind}"
    with gateway.client() as client:
        data = fill_partitioned(client, table, kind, tmp_path / table, random.Random(5))
    result = stats(only(options, table), StatsArguments(), spark=spark)
    found = statistics_of(gateway, table, data)
    missing = 0
    for name, rows in data.items():
        for column in HIVE:
            if column not in found[name]:
                assert column in ("real", "wide") or (kind, column) == ("parquet", "flag")
                missing += 1
                continue
            ours, theirs = compared(column, found[name][column], rows[column])
            assert ours == theirs, (name, column)
    assert (result.status, result.findings, result.refused) == ("done", 0, 0)
    assert sum(each["partitions"] for each in result.left_out) == missing
    assert result.coverage.columns_after == len(data) * len(HIVE) - missing
    for number, (name, partition) in enumerate(partitions_of(gateway, table, data).items()):
        files = list((tmp_path / table / f"p{number}").iterdir())
        parameters = partition.parameters
        assert parameters["numRows"] == parameters["spark.sql.statistics.numRows"] == str(len(data[name]))
        assert parameters["numFiles"] == str(len(files))
        assert parameters["totalSize"] == str(sum(file.stat().st_size for file in files))
        assert parameters["owned_by"] == "tester"


def test_duckdb_counts_the_same_rows_nulls_and_bounds(spark, gateway, options, tmp_path):
    # Loaded before pytest freezes what it has read, it tells of leaks at the end of each process.
    import duckdb

    with gateway.client() as client:
        data = fill_partitioned(client, "by_duckdb", "parquet", tmp_path / "t", random.Random(6))
    stats(only(options, "by_duckdb"), StatsArguments(), spark=spark)
    found = statistics_of(gateway, "by_duckdb", data)
    for number, name in enumerate(data):
        files = f"read_parquet('{tmp_path}/t/p{number}/*')"
        rows = duckdb.sql(f"select count(*) from {files}").fetchall()[0][0]
        assert partitions_of(gateway, "by_duckdb", [name])[name].parameters["numRows"] == str(rows)
        for column in set(found[name]) - {"flag", "note", "data", "real", "wide"}:
            values = {"day": f"{column} - date '1970-01-01'", "moment": f"epoch_us({column})"}
            value = (values | {"exact": f"epoch_ns({column})"}).get(column, column)
            query = f"select min({value}), max({value}), count(*) - count({column}) from {files}"
            low, high, nulls = duckdb.sql(query).fetchall()[0]
            if (units := {"moment": 10**6, "exact": 10**9}.get(column)) and low is not None:
                low, high = low // units, high // units
            ours = plain(column, found[name][column])
            assert (ours["low"], ours["high"], ours["nulls"]) == (low, high, nulls), (name, column)


def test_a_table_without_partitions(spark, gateway, options, tmp_path):
    with gateway.client() as client:
        make_table(client, "whole", "parquet", tmp_path / "whole")
    rows = write_files(tmp_path / "whole", "parquet", random.Random(9), files=3)
    result = stats(only(options, "whole"), StatsArguments(), spark=spark)
    found = statistics_of(gateway, "whole", None)
    for column in set(found):
        ours, theirs = compared(column, found[column], rows[column])
        assert ours == theirs, column
    with gateway.client() as client:
        parameters = client.call("get_table", "sales", "whole").parameters
    assert parameters["numRows"] == str(len(rows))
    assert parameters["numFiles"] == "3"
    assert result.coverage.partitions_after == 1


def test_only_what_has_changed_is_taken_again(spark, gateway, options, tmp_path):
    with gateway.client() as client:
        data = fill_partitioned(client, "again", "parquet", tmp_path / "t", random.Random(3))
    first = stats(only(options, "again"), StatsArguments(), spark=spark)
    same = stats(only(options, "again"), StatsArguments(), spark=spark)
    assert (first.counts["written"], same.counts["written"], same.counts["fresh"]) == (len(DAYS), 0, len(DAYS))
    assert same.coverage.columns_before == same.coverage.columns_after == first.coverage.columns_after
    whole = statistics_of(gateway, "again", None)
    # A file that is gone makes nothing younger.
    os.unlink(tmp_path / "t" / "p1" / "part-1.parquet")
    changed = stats(only(options, "again"), StatsArguments(), spark=spark)
    assert (changed.counts["written"], changed.counts["fresh"]) == (1, len(DAYS) - 1)
    assert statistics_of(gateway, "again", None) != whole
    every = stats(only(options, "again"), StatsArguments(is_all=True), spark=spark)
    assert every.counts["written"] == len(data)
    assert statistics_of(gateway, "again", None) == statistics_of(gateway, "again", None)


def test_corrupt_empty_and_missing_files_are_named_and_the_rest_is_done(spark, gateway, options, tmp_path):
    with gateway.client() as client:
        data = fill_partitioned(client, "broken", "parquet", tmp_path / "t", random.Random(4))
    (tmp_path / "t" / "p0" / "part-9.parquet").write_bytes(b"PAR1nonsensePAR1")
    (tmp_path / "t" / "p1" / "part-9.parquet").touch()
    for file in (tmp_path / "t" / "p2").iterdir():
        file.unlink()
    (tmp_path / "t" / "p2").rmdir()
    result = stats(only(options, "broken"), StatsArguments(), spark=spark)
    reasons = {note["path"]: note["reason"] for note in result.notes}
    assert "footer that cannot be read" in reasons[str(tmp_path / "t" / "p0" / "part-9.parquet")]
    assert "is empty" in reasons[str(tmp_path / "t" / "p1" / "part-9.parquet")]
    assert reasons[f"{tmp_path}/t/p2"] == "is not there (any more)"
    assert (result.counts["failed"], result.counts["written"], result.exit_status) == (2, 2, 1)
    assert [each["item"] for each in result.refusals] == ["sales.broken"]
    assert set(statistics_of(gateway, "broken", data)) == {list(data)[1], list(data)[3]}
    assert statistics_of(gateway, "broken", None) == {}


def test_a_dry_run_writes_nothing(spark, gateway, options, tmp_path):
    with gateway.client() as client:
        data = fill_partitioned(client, "dry", "orc", tmp_path / "t", random.Random(4))
        before = client.call("get_current_notificationEventId").eventId
    planned = stats(only(options, "dry", dry_run=True), StatsArguments(), spark=spark)
    with gateway.client() as client:
        assert client.call("get_current_notificationEventId").eventId == before
    assert (planned.status, planned.counts["planned"]) == ("planned", len(data))
    done = stats(only(options, "dry", resume=planned.run), StatsArguments(), spark=spark)
    assert done.counts["written"] == len(data)
