"""What any user records in the catalog does not lead an operator's jobs to files that are not the catalog's.

A location, a parameter, a note beside a table, a link below the warehouse: each names somebody else's directory, which
the account that runs the job may read and write.
"""

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from msgspec.structs import replace

from hms_gateway.pipeline.audit.apply_job import ApplyArguments, apply
from hms_gateway.pipeline.audit.applying import PlanHead, PlannedFix, write_plan
from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.audit.places import Fix
from hms_gateway.pipeline.compact.job import CleanArguments, CompactArguments, clean, compact
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.stats.job import StatsArguments, stats
from hms_gateway.rpc.structs import Partition
from tests.pipeline.compact.warehouse import add_partitions, data_files, fill, make_table, partitions, path
from tests.pipeline.crawl.trees import plant

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXTERNAL = {"EXTERNAL": "TRUE"}
AT_ONCE = AuditArguments(no_footers=True, delete_orphans=True, quiet_seconds=0)


@pytest.fixture
def client(gateway):
    with gateway.client() as opened:
        yield opened


@pytest.fixture
def options(gateway, tmp_path):
    """Those of a test's own tables, which its name begins."""
    return JobOptions(connection=Connection.of(gateway.options), state=str(tmp_path / "state"), patience_seconds=20)


@pytest.fixture
def others(tmp_path):
    """Somebody else's folder with small Parquet files, which a table can be put on."""
    folder = tmp_path / "others" / "salaries"
    fill(str(folder), seed=7)
    return folder


def of(options, name):
    return replace_options(options, only=(f"lake.{name}",))


def replace_options(options, **changed):
    from dataclasses import replace as replaced

    return replaced(options, **changed)


def contents(folder):
    return {file: file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}


def known_columns(client, name):
    """Names of the columns of a table that the metastore has statistics of, and its parameters."""
    table = client.call("get_table", "lake", name)
    return {key: value for key, value in table.parameters.items() if "numRows" in key or "colStats" in key}


def test_no_orphan_is_deleted_in_somebody_elses_folder(spark, client, options, tmp_path):
    home = tmp_path / "home"
    (home / "documents").mkdir(parents=True)
    (home / "documents" / "thesis").write_bytes(b"years of work")
    os.utime(home / "documents" / "thesis", (1, 1))
    os.utime(home / "documents", (1, 1))
    make_table(client, "orphans_of_others", location=f"file:{home}", parameters=EXTERNAL)
    plan = str(tmp_path / "plan.jsonl")
    found = audit(of(options, "orphans_of_others"), replace_options(AT_ONCE, fix=plan), spark=spark)
    assert "documents" not in Path(plan).read_text("utf-8")
    [said] = [one for one in found.examples if one["kind"] == "passed_over"]
    assert (said["table"], said["location"], found.passed_over) == ("orphans_of_others", f"file:{home}", 1)
    # Nor by a plan that an audit before has made.
    event = client.call("get_current_notificationEventId").eventId
    head = PlanHead(url=options.connection.url, run="", event=event, quiet_seconds=0)
    action = {"says": "", "database": "lake", "table": "orphans_of_others", "files": 1, "total_bytes": 13}
    write_plan(plan, head, [PlannedFix(do=Fix.DELETE_ORPHAN, location=f"file:{home}/documents", **action)])
    [refused] = apply(options, ApplyArguments(plan=plan), spark=spark).refusals
    assert "outside of the gateway's roots" in refused["reason"]
    assert (home / "documents" / "thesis").read_bytes() == b"years of work"


def test_no_value_of_somebody_elses_files_becomes_statistics(spark, client, options, others):
    make_table(client, "stats_of_others", keys=(), location=f"file:{others}", parameters=EXTERNAL)
    for arguments in (StatsArguments(), StatsArguments(is_full=True)):
        taken = stats(of(options, "stats_of_others"), arguments, spark=spark)
        assert (taken.counts["written"], taken.counts["files"], taken.passed_over) == (0, 0, 1)
        [said] = taken.passed_by
        assert (said["table"], "--root PLACE" in said["reason"]) == ("stats_of_others", True)
        assert known_columns(client, "stats_of_others") == {}
    vouched_for = replace_options(of(options, "stats_of_others"), roots=(str(others.parent),))
    assert stats(vouched_for, StatsArguments(), spark=spark).counts["tables_written"] == 1


def test_a_partition_outside_is_said_once_for_its_table(spark, client, options, others):
    table = make_table(client, "partitions_of_others", parameters=EXTERNAL)
    sd = table.sd
    client.call(
        "add_partitions",
        [
            Partition(
                values=[f"{number}"],
                dbName="lake",
                tableName=table.tableName,
                sd=replace(sd, location=f"file:{others}/{number}"),
                parameters={},
            )
            for number in range(5)
        ],
    )
    found = audit(of(options, table.tableName), AT_ONCE, spark=spark)
    [said] = [one for one in found.examples if one["kind"] == "passed_over"]
    assert said["text"] == "it lies outside of the gateway's roots; --root PLACE takes it in (5 places)"
    assert found.passed_over == 5
    [said] = stats(of(options, table.tableName), StatsArguments(), spark=spark).passed_by
    assert said["reason"].endswith("(5 partitions)")


@pytest.fixture
def everything(client):
    """A table at the top of the disk, for one test: every table of the gateway lies in its directory."""
    yield make_table(client, "everything", keys=(), location="file:/", parameters=EXTERNAL)
    client.call("drop_table", "lake", "everything", False)


def test_a_table_at_the_top_of_the_disk_does_not_hide_others(spark, client, options, everything):
    table = make_table(client, "hidden_by_it")
    (path(table.sd.location) / "stray").mkdir()
    (path(table.sd.location) / "stray" / "file").write_bytes(b"1")
    found = audit(replace_options(options, only=("lake.everything", "lake.hidden_by_it")), AT_ONCE, spark=spark)
    kinds = {(one["kind"], one["table"]) for one in found.examples}
    assert {("passed_over", "everything"), ("orphan", "hidden_by_it")} <= kinds


def test_a_table_at_the_top_of_the_disk_does_not_end_a_crawl(spark, client, options, everything, tmp_path):
    plant(tmp_path / "tree", "crawled.db/t/d=1/a")
    done = crawl(options, CrawlArguments(location=f"{tmp_path}/tree"), spark=spark)
    assert (done.refusals, done.new_tables, done.counts["partitions"]) == ([], ["crawled.t"], 1)
    client.call("drop_database", "crawled", False, True)


def test_somebody_elses_files_are_not_compacted(spark, client, options, others):
    make_table(client, "compact_of_others", keys=(), location=f"file:{others}", parameters=EXTERNAL)
    before = contents(others.parent)
    done = compact(of(options, "compact_of_others"), CompactArguments(), spark=spark)
    assert (done.counts["compacted"], done.refused, done.passed_over) == (0, 0, 1)
    assert contents(others.parent) == before


@pytest.mark.parametrize("place", ["outside", pytest.param("in the warehouse", marks=pytest.mark.whole)])
def test_cleaning_believes_no_directory_that_a_parameter_names(
    spark,
    client,
    options,
    gateway,
    others,
    place,
):
    if place == "in the warehouse":
        others = gateway.server.data_dir / "warehouse" / "lake.db" / "no table of anybody"
        fill(str(others))
    for file in contents(others):
        os.utime(file, (1_000, 1_000))
    table = make_table(client, f"cleaned_{place.replace(' ', '_')}", keys=())
    claimed = {
        "hms.compact.replaces": f"file:{others}",
        "hms.compact.files": "removing",
        "hms.compact.at": "2000",
        "hms.compact.run": "compact-1",
    }
    changed = replace(table, parameters={**table.parameters, **claimed})
    client.call("alter_table", "lake", table.tableName, changed)
    before = contents(others)
    done = clean(of(options, table.tableName), CleanArguments(grace_seconds=0), spark=spark)
    assert (done.counts["cleaned"], done.refused) == (0, 1)
    assert contents(others) == before != {}


@pytest.mark.parametrize("link", [pytest.param(False, marks=pytest.mark.whole), True])
def test_compact_believes_no_note_that_names_another_directory(spark, client, options, others, link):
    table = make_table(client, f"notes_{link}".lower())
    add_partitions(client, table, "1")
    hidden = path(table.sd.location) / ".hms-compact" / "compact-0"
    (hidden / ".new").mkdir(parents=True)
    (hidden / "ds=1").symlink_to(others)
    named = str(hidden / "ds=1") if link else str(others)
    (hidden / ".new" / "note.json").write_text(json.dumps({"name": "ds=1", "path": named}))
    before = contents(others)
    compact(of(options, table.tableName), CompactArguments(), spark=spark)
    assert contents(others) == before != {}


def test_a_link_below_the_warehouse_leads_nowhere(spark, client, options, others, tmp_path):
    table = make_table(client, "links", keys=())
    folder = path(table.sd.location)
    folder.rmdir()
    folder.symlink_to(others)
    before = contents(others)
    taken = stats(of(options, "links"), StatsArguments(), spark=spark)
    notes = [(note["path"], note["reason"].partition(",")[0]) for note in taken.notes]
    assert notes == [(str(folder), "leads through a symbolic link")]
    assert known_columns(client, "links") == {}
    plan = str(tmp_path / "plan.jsonl")
    found = audit(of(options, "links"), replace_options(AT_ONCE, fix=plan), spark=spark)
    assert ("unreadable", f"file:{folder}") in {(one["kind"], one["location"]) for one in found.examples}
    done = compact(of(options, "links"), CompactArguments(), spark=spark)
    assert done.counts["compacted"] == 0
    assert contents(others) == before
    # Who runs the job can vouch for the link itself.
    vouched_for = replace_options(of(options, "links"), roots=(str(folder),))
    assert stats(vouched_for, StatsArguments(), spark=spark).counts["tables_written"] == 1


@pytest.mark.parametrize("is_directory", [False, pytest.param(True, marks=pytest.mark.whole)])
def test_a_link_among_files_leads_nowhere(spark, client, options, others, is_directory):
    table = make_table(client, f"mixed_{is_directory}".lower())
    table = client.call("get_table", "lake", table.tableName)
    add_partitions(client, table, "1")
    location = partitions(client, table)["1"].sd.location
    fill(location)
    (path(location) / "part-9").symlink_to(others if is_directory else data_files(str(others))[0])
    taken = stats(of(options, table.tableName), StatsArguments(), spark=spark)
    [note] = taken.notes
    assert (taken.counts["failed"], path(note["path"]).name) == (1, "part-9")
    assert note["reason"].startswith("leads through a symbolic link")
    full = stats(of(options, table.tableName), StatsArguments(is_full=True), spark=spark)
    assert full.counts["failed"] == 1
    assert compact(of(options, table.tableName), CompactArguments(), spark=spark).counts["compacted"] == 0


def test_a_location_that_only_the_catalog_names_is_not_crawled(spark, options, others):
    arguments = CrawlArguments(location=f"file:{others}", is_vouched_for=False)
    with pytest.raises(UsageRefused, match="outside of the gateway's roots"):
        crawl(options, arguments, spark=spark)
