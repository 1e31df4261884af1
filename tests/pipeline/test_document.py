"""The blocks of docs/pipeline.md, run as printed in one program, on a port of ours."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.cli.application import application
from hms_gateway.pipeline.jobs import run
from hms_gateway.pipeline.snapshot import diff as comparison
from hms_gateway.structs import Database
from tests.pipeline.crawl.trees import plant
from tests.support.readme import PORT, ROOT, prepare
from tests.support.spark_variables import WARM_DAEMON, submit_arguments

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DOCUMENT = ROOT / "docs" / "pipeline.md"
SECONDS_MAX = 240


def commands(section):
    text = DOCUMENT.read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [
        line
        for block in re.findall(r"^```bash\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    return [shlex.split(line)[1:] for line in lines]


def program():
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return "\n".join(blocks)


def test_the_document_runs_as_printed_and_its_logs_hold_no_password(spark, gateway):
    folder = prepare(gateway.server.data_dir.parent, gateway.server)
    plant(folder / "lake", *(f"sales.db/visits/day=2026-01-0{day}/part-0.parquet" for day in (1, 2, 3)))
    # `spark` is only there so that what can be skipped is; this is a program of its own, found without registration.
    variables = {
        "HMS_GATEWAY_PASSWORD": gateway.server.password,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": submit_arguments(
            log_level="INFO", driver_memory="768m", python_daemon_module=WARM_DAEMON
        ),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", program().replace(f"localhost:{PORT}", f"127.0.0.1:{gateway.server.port}")],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    assert "PushedFilters: [" in ran.stdout
    assert "GreaterThan(key.hr,1)" in ran.stdout
    assert re.search(r"^\|ds=2024-01-03/hr=10 *\|file:", ran.stdout, re.MULTILINE)
    assert re.search(r"^\| *2024-01-01\| *3\|$", ran.stdout, re.MULTILINE)
    assert re.search(r"^\| *CREATE_TABLE\| *3\|$", ran.stdout, re.MULTILINE)
    assert "{'partitions': {'added': 1}} sales.orders/ds=2024-03-01/hr=1" in ran.stdout
    assert "'tables': 1, 'partitions': 3," in ran.stdout
    assert "INFO" in ran.stderr
    assert gateway.server.password not in ran.stdout + ran.stderr
    with gateway.client() as client:
        assert "ds=2024-02-01/hr=2" in client.call("get_partition_names", "sales", "orders", -1)
        client.call("drop_partition_by_name", "sales", "orders", "ds=2024-02-01/hr=1", True)
        client.call("drop_partition_by_name", "sales", "orders", "ds=2024-03-01/hr=1", True)
        client.call("drop_partition_by_name", "sales", "orders", "ds=2024-02-01/hr=2", True)
        client.call("drop_table", "sales", "visits", False)


@pytest.mark.parametrize(("section", "statuses"), [("Compacting", [0, 0, 0]), ("Snapshots", [0, 0, 1])])
def test_commands_run_as_printed(spark, gateway, tmp_path, monkeypatch, section, statuses):
    monkeypatch.chdir(tmp_path)
    # Each of them would start a session of its own, and stop it.
    monkeypatch.setattr(run, "session", lambda *_, **__: nullcontext(spark))
    monkeypatch.setattr(comparison, "session", lambda *_: nullcontext(spark))
    environment = {
        "HMS_GATEWAY_URL": gateway.options["url"],
        "HMS_GATEWAY_USER": gateway.options["user"],
        "HMS_GATEWAY_PASSWORD": gateway.options["password"],
        "HMS_GATEWAY_CACERT": gateway.options["cafile"],
    }
    for words, status in zip(commands(section), statuses, strict=True):
        if words[1:3] == ["snapshot", "var/snapshots/after"]:
            with gateway.client() as client:
                client.call("create_database", Database(name="between"))
        ran = CliRunner().invoke(application, words, env=environment)
        assert ran.exit_code == status, (words, ran.output)
    if section == "Snapshots":
        assert "+ databases    between" in ran.output
        with gateway.client() as client:
            client.call("drop_database", "between", True, True)
