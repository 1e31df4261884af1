"""What others do while a job is at work: tables are dropped, made anew and altered, directories come and go, and
another run of the same job begins.
"""

import dataclasses
import shutil
import threading

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.audit.apply_job import apply
from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.compact.job import compact
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.crawl.steps import table_of
from hms_gateway.pipeline.errors import TablesHeld
from hms_gateway.pipeline.migrate.job import migrate
from hms_gateway.pipeline.stats.job import StatsArguments, stats
from hms_gateway.rpc.structs import FieldSchema, NotificationEventRequest
from tests.pipeline.compact import warehouse
from tests.pipeline.crawl.trees import plant
from tests.pipeline.faults import cases

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROW = {
    "database": "default",
    "format": "parquet",
    "columns": ["id", "note"],
    "column_types": ["bigint", "string"],
}


@pytest.fixture
def place(gateway, tmp_path):
    """A gateway of the test's own; `source` is the filled one."""
    with cases.opened(tmp_path / "place", gateway) as opened:
        yield opened


def planned(place, spark, job, arguments, **options):
    """The options that resume a run of which only the plan is made."""
    given = place.options(**options)
    made = job(dataclasses.replace(given, dry_run=True), arguments, spark=spark)
    return dataclasses.replace(given, resume=made.run)


def make(place, name, keys, location=None):
    with place.metastore.client() as client:
        row = {**ROW, "table": name, "keys": keys, "types": ["int"] * len(keys)}
        client.call("create_table", table_of(row, location or f"file:{place.lake}/{name}"))


def drop(place, database, name):
    with place.metastore.client() as client:
        client.call("drop_table", database, name, False)


def names(place, table):
    with place.metastore.client() as client:
        return client.call("get_partition_names", "default", table, -1)


def reasons(place, result):
    return {each["item"].removeprefix(f"file:{place.lake}/"): each["reason"] for each in result.refusals}


def test_a_crawl_names_what_is_dropped_or_made_anew_and_does_the_rest(spark, place):
    for name in ("stays", "dropped", "anew", "elsewhere", "grown"):
        plant(place.lake, *(f"{name}/d={day}/f" for day in (1, 2)))
        if name != "elsewhere":
            make(place, name, ["d"])
    arguments = CrawlArguments(location=str(place.lake))
    again = planned(place, spark, crawl, arguments)
    for name in ("dropped", "anew"):
        drop(place, "default", name)
    make(place, "anew", ["d", "h"])
    make(place, "elsewhere", ["d"], "file:/somewhere/else")
    with place.metastore.client() as client:
        grown = client.call("get_table", "default", "grown")
        grown.sd.cols = [*grown.sd.cols, FieldSchema(name="more", type="int")]
        client.call("alter_table", "default", "grown", grown)
    result = crawl(again, arguments, spark=spark)
    found = reasons(place, result)
    assert names(place, "stays") == names(place, "grown") == ["d=1", "d=2"]
    assert names(place, "anew") == names(place, "elsewhere") == []
    assert found["dropped/d=1"].startswith("is not registered: ")
    assert "anew/d=1" in found
    assert "exists and lies at file:/somewhere/else" in found["elsewhere"]
    assert "exists and lies at file:/somewhere/else" in found["elsewhere/d=1"]
    assert {item.partition("/")[0] for item in found} == {"dropped", "anew", "elsewhere"}
    assert (result.counts["partitions"], result.exit_status) == (4, 1)
    with place.metastore.client() as client:
        [one] = client.call("get_partitions_by_names", "default", "grown", ["d=2"])
    assert [column.name for column in one.sd.cols] == ["id", "note", "more"]


@pytest.mark.whole
def test_statistics_name_a_table_that_is_dropped_and_take_the_rest(spark, place):
    for name in ("t", "u"):
        cases.lake_of(place, *(f"{name}/d={day}/f" for day in (1, 2)))
        cases.external(place, name, "1", "2")
    again = planned(place, spark, stats, StatsArguments())
    drop(place, "default", "u")
    result = stats(again, StatsArguments(), spark=spark)
    found = {each["item"]: each["reason"] for each in result.refusals}
    assert {item.partition(" ")[0] for item in found} == {"default.u"}
    assert (result.counts["written"], result.exit_status) == (2, 1)
    with place.metastore.client() as client:
        assert client.call("get_table", "default", "t").parameters["spark.sql.statistics.numRows"] == "2"


@pytest.mark.whole
def test_compacting_names_a_table_that_is_dropped_and_does_the_rest(spark, place):
    arguments, _ = cases.fill_compact(place)
    with place.metastore.client() as client:
        other = warehouse.make_table(client, "other")
        warehouse.add_partitions(client, other, "1")
        [one] = warehouse.partitions(client, other).values()
        warehouse.fill(one.sd.location)
    again = planned(place, spark, compact, arguments)
    drop(place, "lake", "small")
    result = compact(again, arguments, spark=spark)
    assert (result.counts["compacted"], result.refused) == (1, 24)
    assert result.reasons["lake.small/ds=3"] == "is not there any more"


@pytest.mark.whole
def test_a_plan_is_done_as_far_as_its_table_is_there(spark, place):
    arguments, _ = cases.fill_apply(place)
    again = planned(place, spark, apply, arguments)
    drop(place, "default", "t")
    result = apply(again, arguments, spark=spark)
    assert {each["reason"] for each in result.refusals} >= {"its table is not in the catalog any more"}
    assert (result.counts, result.exit_status) == ({"done_before": 20, "deleted": 1, "files_deleted": 10}, 1)


def test_an_audit_says_that_its_table_was_changed_meanwhile(spark, place):
    cases.lake_of(place, "t/d=1/f", "u/d=1/f")
    for name in ("t", "u"):
        cases.external(place, name, "1")
    again = planned(place, spark, audit, AuditArguments(no_footers=True))
    for name in ("t", "u"):
        shutil.rmtree(place.lake / name)
    drop(place, "default", "u")
    result = audit(again, AuditArguments(no_footers=True), spark=spark)
    found = {
        (each["table"], each["partition"]): (each["severity"], each["text"])
        for each in result.examples
        if each["kind"] == "missing"
    }
    text = "the directory does not exist"
    assert found["t", "d=1"] == ("error", text)
    assert found["u", "d=1"] == ("note", f"{text}; the table was changed while it was audited")


@pytest.mark.whole
def test_a_migration_passes_over_a_table_that_the_source_drops(spark, place, gateway):
    arguments, _ = cases.fill_migrate(place)
    with gateway.client() as client:
        cases.make_table(client, "stock", "passing", ("n", "int"))
    again = planned(place, spark, migrate, arguments)
    drop(dataclasses.replace(place, metastore=gateway), "stock", "passing")
    result = migrate(again, arguments, spark=spark)
    assert (result.refusals, result.differences) == ((), ())
    with place.metastore.client() as client:
        assert "items" in (there := client.call("get_all_tables", "stock"))
        assert "passing" not in there


def test_two_crawls_at_once_register_everything_once(spark, place):
    plant(place.lake, *(f"t/a={number % 7}/n={number}/f" for number in range(80)))
    arguments = CrawlArguments(location=str(place.lake), partitions_a_call=5)
    held, waiting, results = [], [], []
    ready = threading.Barrier(2)

    def run(number):
        options = place.options(state=str(place.folder / f"state-{number}"))
        ready.wait()
        try:
            results.append(crawl(options, arguments, spark=spark))
        except TablesHeld as refused:
            held.append(str(refused))
            [name] = [path.name for path in (place.folder / f"state-{number}").iterdir()]
            waiting.append(dataclasses.replace(options, resume=name))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results += [crawl(options, arguments, spark=spark) for options in waiting]
    assert [(result.status, result.refused) for result in results] == 2 * [("done", 0)]
    assert all("exclusive lease" in text and "default.t" in text for text in held)
    assert len(names(place, "t")) == 80
    _, happened = cases.catalog(place, results[0].run)
    assert set(happened.values()) == {1}
    assert sum(name[0] == "ADD_PARTITION" for name in happened) == 80
    with place.metastore.client() as client:
        assert client.call("list_lease", []) == []


@pytest.mark.whole
def test_a_tree_that_changes_while_it_is_crawled(spark, place):
    stable = [f"t/d={number}" for number in range(200)]
    plant(place.lake, *(f"{name}/f" for name in stable))
    ended = threading.Event()

    def change():
        number = 1_000
        while not ended.is_set():
            plant(place.lake, *(f"t/d={each}/f" for each in range(number, number + 20)))
            for each in range(number, number + 20, 2):
                shutil.rmtree(place.lake / f"t/d={each}")
            number = number + 20 if number < 3_000 else 1_000

    thread = threading.Thread(target=change)
    thread.start()
    try:
        arguments = CrawlArguments(location=str(place.lake))
        result = crawl(place.options(), arguments, spark=spark)
    finally:
        ended.set()
        thread.join()
    assert result.status == "done"
    assert {f"t/{name}" for name in names(place, "t")} >= set(stable)
    assert not set(reasons(place, result)) & set(stable)
    assert set(reasons(place, result).values()) <= {"is not there (any more)"}
    after = crawl(place.options(), dataclasses.replace(arguments, prune=True), spark=spark)
    assert (after.findings, after.refused) == (0, 0)
    assert sorted(names(place, "t")) == sorted(path.name for path in (place.lake / "t").iterdir())
    with place.metastore.client() as client:
        events = client.call("get_next_notification", NotificationEventRequest(lastEvent=0)).events
    assert [event.eventType for event in events].count("CREATE_TABLE") == 1
