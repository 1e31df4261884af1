"""Kill -9 of driver, executors and gateway at random points: the catalog ends as after an undisturbed run.

HMS_PIPELINE_FAULT_RUNS=20 makes twenty runs; the seed of each is its number.
"""

import contextlib
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from benchmarks.pipeline import below
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.jobs.failures import JobFailed
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.structs import NotificationEventRequest
from tests.pipeline.crawl.trees import SMALL, plant
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RUNS = int(os.environ.get("HMS_PIPELINE_FAULT_RUNS", "3"))
VICTIMS = ("driver", "worker", "gateway")
PARTITIONS = 400
A_CALL = 10
SECONDS_MAX = 280
ROOT = Path(__file__).parents[3]


@pytest.fixture
def server(tmp_path):
    with GatewayServer(tmp_path / "gateway") as running:
        yield running


@pytest.fixture
def lake(tmp_path):
    plant(tmp_path / "lake", *(f"t/a={number % 7}/n={number}/f" for number in range(PARTITIONS)))
    return tmp_path / "lake"


def connection(server):
    return {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}


def steps_done(state):
    """How many batches of all stages have left their files behind."""
    return sum(1 for pattern in ("*/plan/*/made/*.json", "*/done/*/*.json") for _ in state.glob(pattern))


@contextlib.contextmanager
def when(state, steps, act):
    """`act` once, in a thread, as soon as so many batches are done."""
    ended = threading.Event()

    def watch():
        while not ended.wait(0.01):
            if steps_done(state) >= steps:
                act()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def check(server, lake, result):
    """Everything is registered, once, with what is in its directory."""
    with Connection.of(connection(server)).open() as client:
        partitions = client.call("get_partitions", "default", "t", -1)
        events = client.call("get_next_notification", NotificationEventRequest(lastEvent=0)).events
        leases = client.call("list_lease", [])
    assert sorted(
        (one.sd.location, one.parameters["numFiles"], one.parameters["totalSize"]) for one in partitions
    ) == sorted((f"file:{lake}/t/a={number % 7}/n={number}", "1", str(len(SMALL))) for number in range(PARTITIONS))
    added = [
        tuple(values.values())
        for event in events
        if event.eventType == "ADD_PARTITION"
        for values in json.loads(event.message)["partitions"]
    ]
    assert len(added) == len(set(added)) == PARTITIONS
    assert [event.eventType for event in events].count("CREATE_TABLE") == 1
    assert (result["status"], result["refused"], leases) == ("done", 0, [])


def program(server, lake, state, run=""):
    words = [json.dumps(connection(server)), str(lake), str(state), run]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.crawl.crawling_program", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def outcome(process):
    with process:
        try:
            out, _ = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return json.loads(out) if process.returncode == 0 else None


def with_killed_driver(server, lake, state, steps):
    process = program(server, lake, state)
    with when(state, steps, process.kill):
        result = outcome(process)
    if result is not None:
        return result
    [run] = [path.name for path in state.iterdir()]
    return outcome(program(server, lake, state, run))


def in_this_process(spark, server, lake, state, steps, act):
    options = JobOptions(connection=Connection.of(connection(server)), state=str(state), calls=2)
    arguments = CrawlArguments(location=str(lake), partitions_a_call=A_CALL)
    with when(state, steps, act):
        try:
            return json.loads(crawl(options, arguments, spark=spark).as_json())
        except JobFailed:
            [run] = [path.name for path in state.iterdir()]
    return json.loads(crawl(dataclasses.replace(options, resume=run), arguments, spark=spark).as_json())


def with_killed_worker(spark, server, lake, state, steps):
    def kill():
        jvm = spark.sparkContext._gateway.proc.pid
        for process in below(jvm):
            with contextlib.suppress(OSError):  # gone meanwhile
                if Path(f"/proc/{process}/comm").read_text().startswith("python"):
                    os.kill(process, signal.SIGKILL)

    return in_this_process(spark, server, lake, state, steps, kill)


def with_killed_gateway(spark, server, lake, state, steps):
    def kill():
        server.kill()
        server.start()

    return in_this_process(spark, server, lake, state, steps, kill)


@pytest.mark.parametrize("number", range(RUNS))
def test_a_killed_run_ends_like_an_undisturbed_one(spark, server, lake, tmp_path, number):
    chance, victim = random.Random(number), VICTIMS[number % len(VICTIMS)]
    state, steps = tmp_path / "state", chance.randint(1, 45)
    print(f"{victim} after {steps} batches")
    if victim == "driver":
        result = with_killed_driver(server, lake, state, steps)
    elif victim == "worker":
        result = with_killed_worker(spark, server, lake, state, steps)
    else:
        result = with_killed_gateway(spark, server, lake, state, steps)
    check(server, lake, result)
