"""A standalone cluster with two workers: the package comes as an archive, the password in the configuration."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hms_gateway.rpc.structs import NotificationEventRequest
from tests.pipeline.content import DAYS, HOURS, make_table
from tests.support import spark_cluster
from tests.support.spark_variables import SHORT_LIFE, VARIABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

PROGRAM = Path(__file__).with_name("program.py")
SECONDS_MAX = 270
CONFIGURATION = {
    "spark.archives": "{archive}#environment",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.hms.url": "{url}",
    "spark.hms.user": "{user}",
    "spark.hms.password": "{password}",
    "spark.hms.cafile": "{cafile}",
    **spark_cluster.CONFIGURATION,
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    # Nothing begins before both executors are there.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.ui.enabled": "false",
    "spark.log.level": "INFO",
}


@pytest.fixture
def submit(cluster, archive, gateway, tmp_path):
    """Run a Python file by spark-submit, as docs/pipeline.md says; what it has printed, and all that was logged."""
    values = {**gateway.options, "archive": archive}
    lines = [f"{name} {value.format_map(values)}\n" for name, value in CONFIGURATION.items()]
    (tmp_path / "cluster.conf").write_text("".join(lines))
    (tmp_path / "environment").symlink_to(sys.prefix)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HMS_GATEWAY_", "SPARK_"))}
    variables |= {"PYSPARK_PYTHON": "./environment/bin/python", "SPARK_LOCAL_IP": "127.0.0.1"}
    variables |= {"SPARK_SUBMIT_OPTS": SHORT_LIFE, "SPARK_LAUNCHER_OPTS": VARIABLES["SPARK_LAUNCHER_OPTS"]}

    def run(program, *arguments):
        import pyspark

        home = Path(pyspark.__file__).parent
        command = [home / "bin" / "spark-submit", "--master", cluster.url, "--properties-file", "cluster.conf"]
        ran = subprocess.run(
            [*command, program, *arguments],
            cwd=tmp_path,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert ran.returncode == 0, ran.stderr[-5_000:]
        return ran.stdout, ran.stderr + cluster.log_text()

    return run


def test_read_follow_and_write_on_a_cluster(submit, gateway, tmp_path):
    with gateway.client() as client:
        make_table(client, "stock", "twice", ("ds", "string"), ("hr", "int"))
        newest = client.call("get_current_notificationEventId").eventId
    printed, logged = submit(PROGRAM, tmp_path)
    seen = json.loads(printed.splitlines()[-1])
    assert {Path(place).parts[-6] for place in seen["executors"]} == {"environment"}
    assert len(set(seen["executors"])) == 2
    assert seen["read"] == sorted(f"ds={DAYS[1]}/hr={hour}" for hour in HOURS)
    assert seen["events"] == list(range(1, newest + 1))
    # Two attempts of one task have made its calls.
    assert {file.name for file in tmp_path.glob("attempt-*")} == {"attempt-0", "attempt-1"}
    with gateway.client() as client:
        assert len(client.call("get_partition_names", "stock", "twice", -1)) == 40
        events = client.call("get_next_notification", NotificationEventRequest(lastEvent=newest)).events
    assert [event.eventType for event in events if event.tableName == "twice"] == ["ADD_PARTITION"] * 8
    assert "Executor" in logged
    assert gateway.options["password"] not in printed + logged
