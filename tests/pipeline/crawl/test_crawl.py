"""Trees of directories become tables and partitions of a real gateway, by a real Spark."""

import dataclasses
import shutil
from datetime import datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.cli.pipeline.results import crawl as show
from hms_gateway.pipeline.compact.job import CompactArguments, compact
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl import steps as registering
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.rpc.structs import NotificationEventRequest, PrincipalType
from tests.pipeline.crawl.trees import parquet, plant
from tests.support.server import USER, GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NO_COLUMNS = {"columns": [], "column_types": []}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A gateway of its own: a crawl looks at every table."""
    settings = {'file_systems."*"': "ignore", "file_systems.file": "manage"}
    with GatewayServer(tmp_path_factory.mktemp("crawl") / "var", settings=settings) as running:
        yield running


@pytest.fixture
def options(server, tmp_path):
    given = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
    return JobOptions(connection=Connection.of(given), state=str(tmp_path / "state"), patience_seconds=20)


@pytest.fixture
def lake(tmp_path):
    return tmp_path / "lake"


def names(options, database, table):
    with options.connection.open() as client:
        return client.call("get_partition_names", database, table, -1)


def partition(options, database, table, name):
    with options.connection.open() as client:
        return client.call("get_partition_by_name", database, table, name)


def refusals(result, lake):
    return {each["item"].removeprefix(f"file:{lake}/"): each["reason"] for each in result.refusals}


def test_names_that_become_others_are_said(spark, options, lake, capsys):
    plant(lake, "odd.db/Order Items-2/a.parquet", "odd.db/Plain/a.parquet")
    result = crawl(options, CrawlArguments(location=str(lake)), spark=spark)
    assert result.renamed == [{"item": f"file:{lake}/odd.db/Order Items-2", "name": "odd.order_items_2"}]
    assert (result.findings, result.exit_status) == (1, 1)
    show(result)
    assert f"named: file:{lake}/odd.db/Order Items-2 as odd.order_items_2" in capsys.readouterr().out


def test_an_empty_catalog_gets_tables_partitions_and_columns(spark, options, lake):
    plant(lake, "shop.db/orders/ds=2026-01-01/hr=1/a", "shop.db/orders/ds=2026-01-02/hr=__HIVE_DEFAULT_PARTITION__/a")
    plant(lake, "shop.db/orders/ds=2026-01-03/hr=3/a", content=parquet(id=2**40, note="x", price=1.5))
    plant(lake, "shop.db/customers/a", "shop.db/customers/b")
    plant(lake, "shop.db/odd/d=a:b c'/x", "shop.db/odd/d=%2F%25/x", "shop.db/odd/d=é=1/x", "shop.db/empty/")
    result = crawl(options, CrawlArguments(location=str(lake)), spark=spark)
    assert result.new_tables == ["shop.customers", "shop.odd", "shop.orders"]
    assert (result.counts["tables"], result.counts["partitions"], result.exit_status) == (3, 6, 0)
    with options.connection.open() as client:
        orders, customers = (client.call("get_table", "shop", name) for name in ("orders", "customers"))
        database = client.call("get_database", "shop")
    assert [(key.name, key.type) for key in orders.partitionKeys] == [("ds", "date"), ("hr", "int")]
    assert [(col.name, col.type) for col in orders.sd.cols] == [
        ("id", "bigint"),
        ("note", "string"),
        ("price", "double"),
    ]
    assert (orders.owner, database.ownerName, database.ownerType) == (USER, USER, PrincipalType.USER)
    assert (orders.tableType, orders.sd.location) == ("EXTERNAL_TABLE", f"file:{lake}/shop.db/orders")
    assert (customers.partitionKeys, customers.parameters["EXTERNAL"]) == ([], "TRUE")
    assert names(options, "shop", "odd") == ["d=%2F%25", "d=a%3Ab c%27", "d=é%3D1"]
    odd = partition(options, "shop", "odd", "d=a%3Ab c%27")
    assert (odd.values, odd.sd.location) == (["a:b c'"], f"file:{lake}/shop.db/odd/d=a:b c'")
    assert odd.parameters["numFiles"] == "1"
    assert odd.parameters["totalSize"] == str((lake / "shop.db/odd/d=a:b c'/x").stat().st_size)
    again = crawl(options, CrawlArguments(location=str(lake)), spark=spark)
    assert (again.counts["tables"], again.counts["partitions"], again.findings, again.refused) == (0, 0, 0, 0)


def test_what_cannot_be_taken_is_named_and_the_rest_done(spark, options, lake):
    plant(
        lake, "t/d=1/a", "t/d=01/a", "t/d=2/a", "t/d=007/a", "t/d=x/a", "t/d=4/e=5/a", "t/other/a", "t/loose", "t/d=/a"
    )
    plant(lake, "csv/a", content=b"id,note\n1,a\n")
    plant(lake, "mixed/d=1/a")
    plant(lake, "mixed/d=2/a", content=b"id,note\n")
    plant(lake, "torn/a", content=b"PAR1 and no more")
    plant(lake, "t/d=8/b", content=b"id,note\n")
    plant(lake, "t/d=8/a")
    plant(lake, "two/t/d=1/a")
    known = registering.table_of(
        {"database": "default", "table": "known", "keys": ["d"], "types": ["int"], "format": "orc", **NO_COLUMNS},
        f"file:{lake}/t",
    )
    with options.connection.open() as client:
        client.call("create_table", known)
    result = crawl(options, CrawlArguments(location=str(lake)), spark=spark)
    found = refusals(result, lake)
    assert names(options, "default", "known") == ["d=007", "d=1", "d=2", "d=4"]
    assert found.pop("t/d=01") == "has the values of default.known d=1 in another spelling"
    assert found.pop("t/d=x") == "has the value 'x' for the key d, which is not a int"
    assert found.pop("t/d=") == "has an empty value of the key d"
    assert found.pop("t/other") == "is not key=value, between the partitions of a table"
    assert found.pop("t") == "has 1 files beside partitions; no reader of the table sees them"
    assert found.pop("csv") == "has text files, which do not say their columns; create the table, then crawl again"
    assert "has files of several formats" in found.pop("mixed")
    assert "has files of several formats" in found.pop("t/d=8")
    assert f"{lake}/torn/a" in found.pop("torn")
    assert (found, result.new_tables) == ({}, ["default.t"])
    assert result.exit_status == 1
    listed = pyarrow.parquet.read_table(f"{result.folder}/result/refused.parquet").to_pylist()
    assert len(listed) == result.refused == 9
    with options.connection.open() as client:
        client.call("drop_table", "default", "known", False)


def test_columns_that_spark_does_not_read_are_named_and_make_no_table(spark, options, lake):
    at = datetime(2026, 1, 1)
    plant(lake, "nano/d=1/a", content=parquet(id=1, at=pyarrow.scalar(at, pyarrow.timestamp("ns"))))
    plant(lake, "half/a", content=parquet(half=pyarrow.scalar(1.0, pyarrow.float16())))
    plant(lake, "cases/a", content=parquet(A=1, a=2))
    plant(lake, "fine/a", content=parquet(id=1, at=pyarrow.scalar(at, pyarrow.timestamp("us"))))
    plant(lake, *(f"mixed/{number}" for number in range(8)), content=parquet(id="x"))
    plant(lake, "mixed/8")
    plant(lake, *(f"days/d={day}/a" for day in range(12)))
    plant(lake, "days/d=12/a", content=parquet(id=True))
    result = crawl(options, CrawlArguments(location=str(lake), database="unread"), spark=spark)
    reasons = refusals(result, lake)
    unread = "is not registered: Spark does not read column"
    assert {name: reasons.pop(name) for name in ("nano", "half", "cases")} == {
        "nano": f"{unread} at of {lake}/nano/d=1/a, which is a timestamp of nanoseconds; write microseconds",
        "half": f"{unread} half of {lake}/half/a, which is a float of 16 bits; write 32",
        "cases": f"{unread} a of {lake}/cases/a, which has the name of another column, but for upper and lower case",
    }
    for name, types in (("mixed", ("string", "bigint")), ("days", ("boolean", "bigint"))):
        conflict = reasons.pop(name)
        assert "; Spark reads no type from both, write one of the files again" in conflict
        assert all(f" {type} in {lake}/{name}/" in conflict for type in types)
    assert (reasons, result.new_tables, result.exit_status) == ({}, ["unread.fine"], 1)


def test_the_folder_around_a_table_is_its_database_on_request(spark, options, lake):
    plant(lake, "sales/visits/d=1/a", "loose/a")
    arguments = CrawlArguments(location=str(lake), database="shelf", databases_from_folders=True)
    result = crawl(options, arguments, spark=spark)
    assert (result.new_tables, result.refused) == (["shelf.loose", "sales.visits"], 0)


def test_the_name_of_another_table_is_not_taken(spark, options, lake):
    plant(lake, "a.db/name/d=1/f", "x/a.db/name/d=2/f", "b.db/taken/d=1/f")
    taken = registering.table_of(
        {"database": "b", "table": "taken", "keys": ["d"], "types": ["int"], "format": "parquet", **NO_COLUMNS},
        f"file:{lake}-other/taken",
    )
    with options.connection.open() as client:
        registering.create_database(client, "b")
        client.call("create_table", taken)
    result = crawl(options, CrawlArguments(location=str(lake)), spark=spark)
    assert refusals(result, lake) == {
        "b.db/taken": "is not registered: table b.taken exists and lies elsewhere",
        "x/a.db/name": f"is not registered: table a.name is to be that of file:{lake}/a.db/name",
    }
    assert (names(options, "a", "name"), names(options, "b", "taken")) == (["d=1"], [])


def test_a_table_that_was_compacted_is_crawled_again(spark, options, lake):
    """It lies elsewhere now, and its old directory is no new table."""
    plant(lake, *(f"people/{number}" for number in range(4)), content=parquet(id=1))
    assert crawl(options, CrawlArguments(location=str(lake)), spark=spark).new_tables == ["default.people"]
    of_people = dataclasses.replace(options, only=("default.people",), roots=(f"file:{lake}",))
    assert compact(of_people, CompactArguments(), spark=spark).exit_status == 0
    with options.connection.open() as client:
        assert "/.hms-compact/" in client.call("get_table", "default", "people").sd.location
    again = crawl(options, CrawlArguments(location=str(lake)), spark=spark)
    assert (again.new_tables, again.refusals, again.exit_status) == ([], [], 0)


def test_what_is_gone_is_reported_and_dropped_on_request(spark, options, lake):
    plant(lake, *(f"days/n={number}/a" for number in range(50)))
    location = CrawlArguments(location=str(lake))
    crawl(options, location, spark=spark)
    for number in (3, 4):
        shutil.rmtree(lake / f"days/n={number}")
    seen = crawl(options, location, spark=spark)
    assert (seen.counts["gone"], seen.counts["dropped"], seen.findings, seen.exit_status) == (2, 0, 2, 1)
    pruned = crawl(options, dataclasses.replace(location, prune=True), spark=spark)
    assert (pruned.counts["dropped"], pruned.findings, pruned.exit_status) == (2, 0, 0)
    assert len(names(options, "default", "days")) == 48
    for number in range(10, 20):
        shutil.rmtree(lake / f"days/n={number}")
    plant(lake, "days/n=100/a")
    held = crawl(options, dataclasses.replace(location, prune=True), spark=spark)
    assert (held.counts["gone"], held.counts["dropped"], held.unpruned) == (10, 0, ["default.days"])
    assert held.counts["partitions"] == 1
    forced = crawl(dataclasses.replace(options, yes=True), dataclasses.replace(location, prune=True), spark=spark)
    assert forced.counts["dropped"] == 10
    assert sorted(names(options, "default", "days")) == sorted(
        f"n={number}" for number in (*range(3), *range(5, 10), *range(20, 50), 100)
    )


def test_a_dry_run_changes_nothing_and_its_plan_can_be_done(spark, options, lake):
    plant(lake, "planned/d=1/a", "planned/d=2/a", "other/d=1/a")
    only = dataclasses.replace(options, only=("default.plan*",))
    with options.connection.open() as client:
        before = client.call("get_current_notificationEventId").eventId
    planned = crawl(dataclasses.replace(only, dry_run=True), CrawlArguments(location=str(lake)), spark=spark)
    assert (planned.status, planned.new_tables, planned.counts["partitions"]) == ("planned", ["default.planned"], 2)
    with options.connection.open() as client:
        assert client.call("get_current_notificationEventId").eventId == before
    done = crawl(dataclasses.replace(only, resume=planned.run), CrawlArguments(location=str(lake)), spark=spark)
    assert (done.run, done.counts["tables"], done.counts["partitions"]) == (planned.run, 1, 2)
    with options.connection.open() as client:
        events = client.call("get_next_notification", NotificationEventRequest(lastEvent=before)).events
    assert [event.eventType for event in events] == ["CREATE_TABLE", "ADD_PARTITION"]


def test_a_part_of_a_table_is_crawled_by_its_own_location(spark, options, lake):
    plant(lake, *(f"parts/y={year}/m={month}/a" for year in (2025, 2026) for month in (1, 2)))
    crawl(options, CrawlArguments(location=str(lake)), spark=spark)
    plant(lake, "parts/y=2026/m=3/a", "parts/y=2025/m=3/a")
    shutil.rmtree(lake / "parts/y=2025/m=1")
    part = crawl(options, CrawlArguments(location=f"{lake}/parts/y=2026"), spark=spark)
    assert (part.counts["partitions"], part.counts["gone"]) == (1, 0)
    assert len(names(options, "default", "parts")) == 5


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("lake/nowhere", r"location /\S+/lake/nowhere is not a directory"),
        ("lake/file", r"location /\S+/lake/file is not a directory"),
        ("file:lake", "location file:lake cannot be used: Relative path"),
        ("nowhere://lake", "nowhere"),
    ],
)
def test_a_location_that_is_none_is_said_at_once(options, lake, monkeypatch, location, said):
    plant(lake, "file")
    monkeypatch.chdir(lake.parent)
    with pytest.raises(UsageRefused, match=said):
        crawl(options, CrawlArguments(location=location))
    assert not Path(options.state).exists()


def test_a_relative_location_is_that_of_the_driver(spark, options, lake, monkeypatch):
    plant(lake, "near/d=1/f")
    monkeypatch.chdir(lake.parent)
    crawl(options, CrawlArguments(location="lake"), spark=spark)
    assert partition(options, "default", "near", "d=1").sd.location == f"file:{lake}/near/d=1"


def test_a_filter_of_partitions_is_refused(options, lake):
    with pytest.raises(UsageRefused, match="takes no filter of partitions"):
        crawl(dataclasses.replace(options, where="d=1"), CrawlArguments(location=str(lake)))


def test_files_behind_fsspec_are_crawled_as_well(spark, options, tmp_path):
    plant(tmp_path / "far", "t/d=1/a", "t/d=2/a")
    spark.sparkContext.addPyFile(str(Path(__file__).with_name("far_files.py")))
    given = dataclasses.replace(options, storage={"far": {"implementation": "far_files.FarFiles"}})
    result = crawl(given, CrawlArguments(location=f"far://{tmp_path}/far", database="far"), spark=spark)
    assert (result.refusals, result.counts["directories"]) == ([], 2)
    assert result.counts["partitions"] == 2
    assert partition(options, "far", "t", "d=2").sd.location == f"far:{tmp_path}/far/t/d=2"
