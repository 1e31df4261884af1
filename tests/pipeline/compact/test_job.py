"""Compacting with Spark: rows before and after, readers meanwhile, a driver that is killed, and the command."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.cli.application import application
from hms_gateway.pipeline.compact.job import CleanArguments, CompactArguments, clean, compact
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.errors import TablesHeld
from hms_gateway.pipeline.jobs import run as jobs_run
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.rpc.structs import LeaseObject, Partition
from tests.pipeline.compact.warehouse import (
    FILES,
    ROWS,
    add_partitions,
    data_files,
    fill,
    leftovers,
    make_table,
    partitions,
    path,
    rows,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ARGUMENTS = CompactArguments(target_bytes=1 << 20)


@pytest.fixture
def client(gateway):
    with gateway.client() as client:
        yield client


def options_for(gateway, tmp_path, *only):
    state = str(tmp_path / "state")
    return JobOptions(connection=Connection.of(gateway.options), state=state, only=only, patience_seconds=20)


@contextlib.contextmanager
def filled(client, name, format="parquet", count=3):
    table = make_table(client, name, format)
    add_partitions(client, table, *map(str, range(count)))
    for number, one in enumerate(partitions(client, table).values()):
        fill(one.sd.location, format, seed=number)
    yield table
    client.call("drop_table", "lake", name, True)


def spark_rows(spark, client, table):
    """What a reader sees that asks the metastore where the partitions are."""
    locations = [one.sd.location for one in partitions(client, table).values()]
    return sorted(map(tuple, spark.read.parquet(*locations).collect()), key=str)


def test_rows_by_spark_before_and_after_and_again(spark, gateway, client, tmp_path):
    options = options_for(gateway, tmp_path, "lake.jobs_*")
    with filled(client, "jobs_a") as table, filled(client, "jobs_b", "orc"), filled(client, "jobs_c", "text"):
        make_table(client, "jobs_special", parameters={"storage_handler": "x.Y"})
        before = spark_rows(spark, client, table)
        old = partitions(client, table)
        planned = compact(JobOptions(**{**fields(options), "dry_run": True}), ARGUMENTS, spark=spark)
        assert (planned.counts["candidates"], planned.counts["files_before"], planned.counts["files_after"]) == (
            9,
            9 * FILES,
            9,
        )
        assert partitions(client, table) == old
        done = compact(JobOptions(**{**fields(options), "resume": planned.run}), ARGUMENTS, spark=spark)
        assert (done.counts["compacted"], done.counts["files_after"], done.exit_status) == (9, 9, 0)
        assert done.counts["rows"] == 9 * FILES * ROWS
        assert done.left_alone == {"is kept by x.Y": 1}
        assert spark_rows(spark, client, table) == before
        again = compact(options, ARGUMENTS, spark=spark)
        assert again.counts["compacted"] == 0
        assert again.left_alone[f"was compacted by {done.run}"] == 9
        shared = Partition(values=["other"], dbName="lake", tableName="jobs_b", sd=old["1"].sd, parameters={})
        client.call("add_partitions", [shared])
        cleaned = clean(options, CleanArguments(grace_seconds=0), spark=spark)
        assert (cleaned.counts["cleaned"], cleaned.counts["files"], cleaned.refused) == (8, 8 * FILES, 1)
        assert list(cleaned.reasons) == ["lake.jobs_a/ds=1"]
        assert not path(old["0"].sd.location).exists()
        assert len(data_files(old["1"].sd.location)) == FILES
        assert spark_rows(spark, client, table) == before
        client.call("drop_table", "lake", "jobs_special", True)


def test_a_table_without_keys_that_was_compacted_is_crawled_as_itself(spark, gateway, client, tmp_path):
    options = options_for(gateway, tmp_path, "lake.crawled")
    table = make_table(client, "crawled", keys=())
    fill(table.sd.location)
    assert compact(options, ARGUMENTS, spark=spark).counts["compacted"] == 1
    place = CrawlArguments(location=table.sd.location.rpartition("/")[0])
    for _ in range(2):
        crawled = crawl(options, place, spark=spark)
        mine = [one for one in crawled.refusals if one["item"].startswith(table.sd.location)]
        assert (mine, crawled.counts["tables"]) == ([], 0)
        # The old files go, and the table stays where it is.
        clean(options, CleanArguments(grace_seconds=0), spark=spark)
    assert not path(table.sd.location).exists()
    client.call("drop_table", "lake", "crawled", True)


def fields(options):
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


def test_readers_meanwhile_never_fail_and_never_see_other_rows(spark, gateway, client, tmp_path):
    with filled(client, "read_meanwhile", count=8) as table:
        wanted = spark_rows(spark, client, table)
        seen, problems, ended = [], [], threading.Event()

        def read():
            with gateway.client() as own:
                while not ended.is_set():
                    try:
                        seen.append(spark_rows(spark, own, table) == wanted)
                    except Exception as problem:
                        problems.append(problem)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            done = compact(options_for(gateway, tmp_path, "lake.read_meanwhile"), ARGUMENTS, spark=spark)
        finally:
            ended.set()
            reader.join()
        assert done.counts["compacted"] == 8
        assert problems == []
        assert len(seen) > 1
        assert all(seen)


WRITTEN_BY_SPARK = """
SELECT CAST(id AS bigint) id,
       CAST(id % 3 AS string) note,
       TIMESTAMP '2024-03-31 02:30:00.123456' + make_interval(0, 0, 0, CAST(id AS int), 0, 0, id) AS at,
       DATE '1200-01-01' + CAST(id AS int) AS day,
       CAST(id / 7 AS decimal(9, 3)) small, CAST(id / 7 AS decimal(30, 10)) large,
       CAST(id AS tinyint) tiny, CAST(id / 3 AS float) f, id % 2 = 0 flag, unhex(hex(id)) raw,
       array(id, null) list,
       map('k', array(named_struct('x', id))) nested, named_struct('a', CAST(null AS int), 'b', id) s
FROM range({begin}, {begin} + 10)
"""


@pytest.mark.parametrize(
    ("format", "legacy"),
    [("parquet", "false"), ("parquet", "true"), pytest.param("orc", "false", marks=pytest.mark.whole)],
)
def test_what_spark_wrote_it_reads_alike_afterwards(spark, gateway, client, tmp_path, format, legacy):
    name = f"by_spark_{format}_{legacy}"
    with filled(client, name, format, count=1) as table:
        [one] = partitions(client, table).values()
        for file in data_files(one.sd.location):
            file.unlink()
        spark.conf.set("spark.sql.parquet.writeLegacyFormat", legacy)
        try:
            for begin in (0, 10):
                rows_of = spark.sql(WRITTEN_BY_SPARK.format(begin=begin)).coalesce(1)
                rows_of.write.mode("append").format(format).save(one.sd.location)
        finally:
            spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
        before = spark.read.format(format).load(one.sd.location)
        schema, wanted = before.schema, sorted(map(str, before.collect()))
        done = compact(options_for(gateway, tmp_path, f"lake.{name}"), ARGUMENTS, spark=spark)
        if format == "parquet" and legacy == "true":
            # Lists of old Hive have other names within, which pyarrow does not write.
            assert "pyarrow would write as another kind of column" in done.reasons[f"lake.{name}/ds=0"]
            return
        assert (done.counts["compacted"], done.counts["rows"], dict(done.reasons)) == (1, 20, {})
        [after] = partitions(client, table).values()
        assert len(data_files(after.sd.location)) == 1
        frame = spark.read.format(format).load(after.sd.location)
        assert frame.schema == schema
        assert sorted(map(str, frame.collect())) == wanted


def test_a_table_that_another_holds_is_left_alone(spark, gateway, client, tmp_path):
    with filled(client, "held", count=1) as table:
        lease = client.call("grab_lease", [LeaseObject("lake", "held", None, "x")], 600, 0)
        before = partitions(client, table)
        with pytest.raises(TablesHeld, match=f"exclusive lease {lease} of admin on lake.held"):
            compact(options_for(gateway, tmp_path, "lake.held"), ARGUMENTS, spark=spark)
        client.call("drop_lease", lease, [])
        assert partitions(client, table) == before


def words_of(gateway, tmp_path, *words):
    given = ["--url", gateway.server.url, "--user", gateway.server.user, "-k", "--state", str(tmp_path / "state")]
    return ["pipeline", "compact", *given, "--master", "local[2]", *words]


@pytest.mark.whole
def test_a_driver_that_is_killed_loses_nothing_and_the_next_run_tidies_up(spark, gateway, client, tmp_path):
    with filled(client, "killed", count=40) as table:
        wanted = {value: rows(one.sd.location) for value, one in partitions(client, table).items()}
        running = subprocess.Popen(
            [
                *(sys.executable, "-m", "hms_gateway"),
                *words_of(gateway, tmp_path, "--only", "lake.killed", "--conf", "spark.ui.enabled=false"),
            ],
            env={**os.environ, "HMS_GATEWAY_PASSWORD": gateway.server.password, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        swaps = random.Random().randrange(1, 25)
        while running.poll() is None and moved(client, table) < swaps:
            time.sleep(0.05)
        # Driver, JVM and workers.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        assert {value: rows(one.sd.location) for value, one in partitions(client, table).items()} == wanted
        # The lease of a driver that is gone would end by itself.
        client.call("force_drop_lease", [LeaseObject("lake", "killed", None, "x")])
        done = compact(options_for(gateway, tmp_path, "lake.killed"), ARGUMENTS, spark=spark)
        assert (moved(client, table), done.refused) == (40, 0)
        after = {value: one.sd.location for value, one in partitions(client, table).items()}
        assert {value: rows(location) for value, location in after.items()} == wanted
        assert len(leftovers(table)) == 40
        assert all(len(data_files(location)) == 1 for location in after.values())


def moved(client, table):
    return sum("/.hms-compact/" in one.sd.location for one in partitions(client, table).values())


def test_the_command_says_what_it_did(spark, gateway, client, tmp_path, monkeypatch):
    # It would start a session of its own, and stop it.
    monkeypatch.setattr(jobs_run, "session", lambda *_, **__: nullcontext(spark))

    def run(*words):
        environment = {"HMS_GATEWAY_PASSWORD": gateway.server.password}
        return CliRunner().invoke(application, words_of(gateway, tmp_path, *words), env=environment)

    with filled(client, "said", count=2):
        ran = run("--only", "lake.said", "--target-bytes", "1m")
        assert ran.exit_code == 0, ran.output
        assert f"files       {2 * FILES} before, 2 after" in ran.stdout
        assert "'many' is not a whole number" in run("--target-bytes", "many").stderr
