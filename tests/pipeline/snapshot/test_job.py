"""Snapshots of a gateway whose catalog others change: each is the catalog as of its event."""

import dataclasses
import random
import threading

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow
import pyarrow.dataset

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import JobFailed, UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.snapshot.job import SnapshotArguments, snapshot
from hms_gateway.pipeline.snapshot.manifest import Manifest
from hms_gateway.pipeline.snapshot.objects import KEYS, KINDS, as_text
from tests.pipeline.content import Metastore
from tests.pipeline.snapshot.catalogs import DATABASES, Changes, open_metastore, timeless, whole
from tests.pipeline.snapshot.two_readings import by_duckdb, by_metastore
from tests.support.sample import sample
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FIRST = 150
CHANGE_SECONDS = 0.02


@pytest.fixture
def metastore(tmp_path):
    """Where directories are left alone, as in the one in this process."""
    with GatewayServer(tmp_path / "var", settings={"file_systems.file": "ignore"}) as running:
        certificate = str(running.data_dir / "certificate.pem")
        options = {"url": running.url, "user": running.user, "password": running.password, "cafile": certificate}
        yield Metastore(options, running)


@pytest.fixture
def options(metastore, tmp_path):
    return JobOptions(connection=Connection.of(metastore.options), state=str(tmp_path / "state"), patience_seconds=20)


def content(path):
    """The objects of a snapshot by their keys, read by pyarrow."""
    schema = pyarrow.schema([(name, pyarrow.string()) for name in (*KEYS, "object")])
    found = pyarrow.dataset.dataset(str(path), schema=schema, partitioning="hive")
    rows = [tuple(row[name] for name in schema.names) for row in found.to_table().to_pylist()]
    assert len({row[:5] for row in rows}) == len(rows)
    return {row[:5]: row[5] for row in rows}


def described_partitions(client):
    """As the metastore itself describes them, not as the job reads them."""
    tables = [(database, name) for database in DATABASES for name in client.call("get_all_tables", database)]
    found = [one for table in tables for one in client.call("get_partitions", *table, -1)]
    return sorted(as_text(one) for one in found)


def replayed(folder, seed, event):
    """The catalog of another metastore to which the same was done, up to the event."""
    folder.mkdir()
    metastore, client = open_metastore(folder)
    try:
        changes = Changes(client, random.Random(seed))
        for _ in range(100_000):
            if metastore.store.version() >= event:
                break
            changes.make_one()
        assert metastore.store.version() == event
        return timeless(whole(client, listed=False), folder)
    finally:
        metastore.store.close()


@pytest.mark.parametrize("seed", range(1, 1 + sample(1, of=10)))
def test_while_others_change_the_catalog_it_is_that_of_its_event(spark, metastore, options, tmp_path, seed):
    ended = threading.Event()

    def change():
        with metastore.client() as client:
            changes = Changes(client, random.Random(seed))
            for _ in range(FIRST):
                changes.make_one()
            begun.set()
            # All of them are made again by the test.
            while not ended.wait(CHANGE_SECONDS):
                changes.make_one()

    begun, writer = threading.Event(), threading.Thread(target=change)
    writer.start()
    try:
        assert begun.wait(60)
        path = tmp_path / "snapshots" / "one"
        result = snapshot(options, SnapshotArguments(path=str(path)), spark=spark)
    finally:
        ended.set()
        writer.join()
    with metastore.client() as client:
        assert client.call("get_current_notificationEventId").eventId > result.event
    assert result.rounds >= 2
    found = {key: text for key, text in content(path).items() if key[0] not in ("functions", "privileges", "roles")}
    expected = replayed(tmp_path / "replay", seed, result.event)
    assert timeless(found, metastore.server.data_dir) == expected
    assert {row.name for row in path.parent.iterdir()} == {"one"}


def test_a_quiet_catalog_is_read_whole_and_again_alike(spark, metastore, options, tmp_path):
    with metastore.client() as client:
        changes = Changes(client, random.Random(3))
        for _ in range(300):
            changes.make_one()
        client.call("create_role", role())
        expected = whole(client)
        partitions = described_partitions(client)
        answers = by_metastore(client)
        event = client.call("get_current_notificationEventId").eventId
    first = snapshot(options, SnapshotArguments(path=str(tmp_path / "first")), spark=spark)
    second = snapshot(options, SnapshotArguments(path=str(tmp_path / "second")), spark=spark)
    assert content(tmp_path / "first") == content(tmp_path / "second") == expected
    assert sorted(text for key, text in expected.items() if key[0] == "partitions") == partitions != []
    assert by_duckdb(tmp_path / "first") == answers
    assert all(answers.values())
    assert (first.event, first.rounds, second.digest) == (event, 2, first.digest)
    assert {kind for kind, number in first.counts.items() if number} >= {*KINDS} - {"role_grants", "privileges"}
    assert sum(first.counts.values()) == len(expected)
    assert first.exit_status == 0
    frame = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "first"))
    assert frame.where("kind = 'tables'").count() == first.counts["tables"]
    shown = frame.where("kind = 'columns' AND item = 'id'").select("type", "position").distinct().collect()
    assert [tuple(row) for row in shown] == [("bigint", 0)]


def role():
    from hms_gateway.rpc.structs import Role

    return Role(roleName="readers", ownerName="ann")


def test_only_some_tables(spark, metastore, options, tmp_path):
    with metastore.client() as client:
        changes = Changes(client, random.Random(4))
        for _ in range(200):
            changes.make_one()
        tables = {f"d1.{name}" for name in client.call("get_all_tables", "d1")}
    chosen = dataclasses.replace(options, only=("d1.*",))
    snapshot(chosen, SnapshotArguments(path=str(tmp_path / "d1")), spark=spark)
    found = content(tmp_path / "d1")
    assert {f"{key[1]}.{key[2]}" for key in found if key[0] == "tables"} == tables
    assert {key[1] for key in found} == {"d1"}
    assert Manifest.of(place(tmp_path / "d1")).only == ("d1.*",)


def place(path):
    from hms_gateway.pipeline.jobs.state import State

    return State.of(str(path), {})


def test_nothing_is_there_until_all_is(spark, metastore, options, tmp_path, monkeypatch):
    from hms_gateway.pipeline.snapshot import job

    path = tmp_path / "one"

    def ended(*_):
        raise JobFailed("the machine is gone")

    with monkeypatch.context() as patch:
        patch.setattr(job, "_kinds", ended)
        with pytest.raises(JobFailed, match="the machine is gone"):
            snapshot(options, SnapshotArguments(path=str(path)), spark=spark)
    assert not path.exists()
    [run] = [one.name for one in (tmp_path / "state").iterdir()]
    with metastore.client() as client:
        Changes(client, random.Random(5)).change_create_database()
        expected = whole(client)
    resumed = snapshot(dataclasses.replace(options, resume=run), SnapshotArguments(path=str(path)), spark=spark)
    assert (resumed.run, content(path)) == (run, expected)
    again = snapshot(dataclasses.replace(options, resume=run), SnapshotArguments(path=str(path)), spark=spark)
    assert again.digest == resumed.digest
    with pytest.raises(UsageRefused, match=f"is the snapshot of event {resumed.event}"):
        snapshot(options, SnapshotArguments(path=str(path)), spark=spark)


def test_a_catalog_that_never_rests_is_named(spark, metastore, options, tmp_path, monkeypatch):
    from hms_gateway.pipeline.snapshot import job, steps

    with metastore.client() as client:
        changes = Changes(client, random.Random(6))
        for _ in range(100):
            changes.make_one()
        read = steps.ReadStep.__call__

        def changed_while_read(self, given, batch):
            outcome = read(self, given, batch)
            table = client.call("get_table", "d1", name)
            table.parameters = {"n": changes.number()}
            client.call("alter_table", "d1", name, table)
            return outcome

        name = client.call("get_all_tables", "d1")[0]
        monkeypatch.setattr(steps.ReadStep, "__call__", changed_while_read)
        monkeypatch.setattr(job, "_Taking", type("Here", (job._Taking,), {"_in_executors": in_this_process}))
        with pytest.raises(JobFailed, match=rf"in 4 rounds; the last time: d1\.{name}") as caught:
            snapshot(options, SnapshotArguments(path=str(tmp_path / "one"), rounds_max=4), spark=spark)
    assert "--only" in caught.value.hint
    assert not (tmp_path / "one").exists()


def in_this_process(self, name, plan):
    from hms_gateway.pipeline.snapshot.units import Work

    with self.run.client() as client:
        self._here(client, name, [Work(**row) for row in plan])


def test_what_does_not_fit_is_refused(spark, metastore, options, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(UsageRefused, match="full is not empty"):
        snapshot(options, SnapshotArguments(path=str(tmp_path / "full")), spark=spark)
    with pytest.raises(UsageRefused, match="--where does not fit a snapshot"):
        snapshot(dataclasses.replace(options, where="ds = '1'"), SnapshotArguments(path="x"), spark=spark)


@pytest.mark.whole
def test_of_the_real_metastore(spark, real, tmp_path):
    options = JobOptions(connection=Connection.of(real.options), state=str(tmp_path / "state"), patience_seconds=20)
    result = snapshot(options, SnapshotArguments(path=str(tmp_path / "real")), spark=spark)
    with real.client() as client:
        assert content(tmp_path / "real") == whole(client)
        assert result.event == client.call("get_current_notificationEventId").eventId
    assert {kind: result.counts[kind] for kind in ("tables", "statistics", "functions")} == {
        "tables": 4,
        "statistics": 2,
        "functions": 1,
    }
