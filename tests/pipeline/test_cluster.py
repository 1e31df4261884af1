"""A job as a program of spark-submit on a standalone cluster of two workers, as docs/pipeline.md says.

Runs where HMS_PIPELINE_CLUSTER is set: five JVMs are started for it.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")

import pyspark

from hms_gateway.cli.pipeline import __path__ as commands
from tests.pipeline.crawl.trees import plant
from tests.support.server import GatewayServer, free_port

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif("HMS_PIPELINE_CLUSTER" not in os.environ, reason="HMS_PIPELINE_CLUSTER is not set"),
]

HOME = Path(pyspark.__path__[0])
SECONDS_MAX = 180
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")},
    "SPARK_HOME": str(HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
}
PROPERTIES = """\
spark.hms.password {password}
spark.executor.memory 512m
spark.executor.cores 1
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.ui.enabled false
spark.eventLog.enabled true
spark.eventLog.dir file://{events}
"""


@pytest.fixture
def cluster(tmp_path):
    """The master's URL, once both workers are there."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(daemon(tmp_path, "master.Master", "--port", str(port), "--webui-port", "0"))
        for number in (1, 2):
            work = str(tmp_path / f"work{number}")
            options = ("--cores", "1", "--memory", "700m", "--webui-port", "0", "--work-dir", work)
            stack.enter_context(daemon(tmp_path, "worker.Worker", *options, url))
        wait_for(lambda: sum(log.read_text().count("Registering worker") for log in tmp_path.glob("*Master*.log")) == 2)
        yield url


@contextlib.contextmanager
def daemon(folder, name, *words):
    log = folder / f"{name}-{len(list(folder.glob('*.log')))}.log"
    command = [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *words]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=ENVIRONMENT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def wait_for(is_so):
    pause = threading.Event()
    for _ in range(1_000):
        if is_so():
            return
        pause.wait(0.1)
    raise AssertionError("the workers did not come")


def test_spark_submit_runs_a_job_and_shows_no_password(cluster, tmp_path):
    plant(tmp_path / "lake", *(f"shop.db/orders/ds=2026-01-0{day}/n={n}/a" for day in range(1, 6) for n in range(20)))
    (tmp_path / "events").mkdir()
    with GatewayServer(tmp_path / "gateway") as server:
        properties = tmp_path / "hms.properties"
        properties.write_text(PROPERTIES.format(password=server.password, events=tmp_path / "events"))
        submit = [str(HOME / "bin/spark-submit"), "--master", cluster, "--properties-file", str(properties)]
        job = [f"{next(iter(commands))}/__main__.py", "crawl", "-k", "--json", "--state", str(tmp_path / "state")]
        ran = subprocess.run(
            [*submit, *job, "--url", server.url, str(tmp_path / "lake")],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    assert json.loads(ran.stdout)["counts"]["partitions"] == 100
    assert len(list(tmp_path.glob("work*/app-*/*"))) == 2
    written = [path for place in ("work1", "work2", "events", "state") for path in (tmp_path / place).rglob("*")]
    shown = [path for path in (*written, *tmp_path.glob("*.log")) if path.is_file()]
    assert not [path for path in shown if server.password.encode() in path.read_bytes()]
    assert server.password not in ran.stdout + ran.stderr
