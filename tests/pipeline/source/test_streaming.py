"""Events as a stream of a real Spark: each of them once, over restarts, and what happens when some have expired."""

import sqlite3
from time import monotonic

import pytest

from hms_gateway.rpc.structs import Database
from tests.pipeline.content import Metastore
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer

PySparkException = pytest.importorskip("pyspark.errors", reason="no PySpark (requirements/spark.txt)").PySparkException
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def own_gateway(tmp_path):
    with GatewayServer(tmp_path / "var") as running:
        options = {"url": running.url, "user": running.user, "password": running.password, "verify": "false"}
        yield Metastore(options, running)


def change(metastore, *names):
    """One event for each."""
    with metastore.client() as client:
        for name in names:
            client.call("create_database", Database(name=name))


def run(spark, metastore, folder, **options):
    """What has happened since the last run, until there is no more; the batches with their events."""
    seen = []

    def keep(frame, batch):
        seen.append((batch, sorted((row.id, row.database) for row in frame.collect())))

    given = {**metastore.options, "startingEvent": "earliest", **options}
    stream = spark.readStream.format("hms").options(object="events", **given).load().writeStream
    writer = stream.foreachBatch(keep).option("checkpointLocation", str(folder)).trigger(availableNow=True)
    patience = monotonic() + PATIENCE_SECONDS
    while not _ended(writer.start()):
        assert monotonic() < patience
    return [events for _, events in seen if events]


def _ended(query):
    """Whether the query came to its end; False where Spark gave up a worker, for which it waits ten seconds."""
    try:
        assert query.awaitTermination(PATIENCE_SECONDS)
    except PySparkException as error:
        if "Python worker failed to connect back" not in str(error):
            raise
        return False
    finally:
        query.stop()
    return True


def test_each_event_is_read_once_over_restarts(spark, own_gateway, tmp_path):
    change(own_gateway, "a", "b", "c", "d", "e")
    first = run(spark, own_gateway, tmp_path / "checkpoint", eventsPerBatch="2", eventsPerTask="1")
    assert all(len(batch) <= 2 for batch in first)
    change(own_gateway, "f", "g")
    second = run(spark, own_gateway, tmp_path / "checkpoint")
    assert [len(second), [name for _, name in second[0]]] == [1, ["f", "g"]]
    everything = [event for batch in first + second for event in batch]
    ids = [number for number, _ in everything]
    assert ids == list(range(1, len(ids) + 1))
    assert [name for _, name in everything][-7:] == list("abcdefg")
    assert run(spark, own_gateway, tmp_path / "checkpoint") == []


def test_a_stream_may_begin_at_an_event(spark, gateway, tmp_path):
    change(gateway, "a", "b", "c")
    with gateway.client() as client:
        newest = client.call("get_current_notificationEventId").eventId
    found = run(spark, gateway, tmp_path / "checkpoint", startingEvent=str(newest - 1))
    assert found == [[(newest - 1, "b"), (newest, "c")]]


@pytest.mark.whole
def test_events_that_have_expired_are_an_error_that_says_so(spark, own_gateway, tmp_path):
    change(own_gateway, "a")
    run(spark, own_gateway, tmp_path / "checkpoint")
    change(own_gateway, "b", "c", "d")
    with own_gateway.client() as client:
        newest = client.call("get_current_notificationEventId").eventId
    # As the gateway does it when they are older than event_seconds_max.
    with sqlite3.connect(own_gateway.server.data_dir / "metastore.db") as database:
        database.execute("DELETE FROM notifications WHERE event_id < ?", [newest])
    database.close()
    with pytest.raises(PySparkException) as caught:
        run(spark, own_gateway, tmp_path / "checkpoint")
    text = f"events {newest - 2} to {newest - 1} are no longer in the metastore's notification log; begin a new query"
    assert text in str(caught.value)
    assert run(spark, own_gateway, tmp_path / "new checkpoint") == [[(newest, "d")]]


def test_only_events_are_a_stream(spark, gateway):
    source = spark.readStream.format("hms").options(object="tables", **gateway.options)
    with pytest.raises(PySparkException, match="object tables cannot be read as a stream; only events can"):
        source.load().writeStream.format("noop").start().awaitTermination(60)
