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
from hms_gateway.rpc.structs import Database
from tests.spark.spark_session import why_not
from tests.support.readme import PORT, ROOT, prepare
from tests.support.server import GatewayServer
from tests.support.spark_variables import WORKER_PATH, submit_arguments

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DOCUMENT = ROOT / "docs" / "pipeline.md"
SECONDS_MAX = 600


def commands(text, language):
    """The words of each command in the blocks of a language, without the program's name."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def program():
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return "\n".join(blocks)


@pytest.mark.whole
def test_the_document_runs_as_printed_and_its_logs_hold_no_password(tmp_path):
    """A program of its own, found without registration."""
    if reason := why_not():
        pytest.skip(reason)
    with GatewayServer(tmp_path / "var") as server:
        login = {"HMS_GATEWAY_PASSWORD": server.password}
        for words in commands(DOCUMENT.read_text("utf-8").partition("\n## ")[0], "sh"):
            made = CliRunner().invoke(application, words, env={**login, "HMS_GATEWAY_URL": server.url})
            assert made.exit_code == 0, made.output
        variables = {
            **login,
            "PYSPARK_SUBMIT_ARGS": submit_arguments(log_level="INFO", driver_memory="768m"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": WORKER_PATH,
        }
        ran = subprocess.run(
            [sys.executable, "-c", program().replace(f"localhost:{PORT}", f"127.0.0.1:{server.port}")],
            cwd=prepare(tmp_path, server),
            env={**{name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    assert "PushedFilters: [" in ran.stdout
    assert "GreaterThan(key.hr,1)" in ran.stdout
    assert re.search(r"^\|ds=2024-01-03/hr=10 *\|file:", ran.stdout, re.MULTILINE)
    assert re.search(r"^\| *2024-01-01\| *1\|$", ran.stdout, re.MULTILINE)
    assert re.search(r"^\| *CREATE_TABLE\| *1\|$", ran.stdout, re.MULTILINE)
    assert "{'partitions': {'added': 1}} sales.orders/ds=2024-03-01/hr=1" in ran.stdout
    assert "'tables': 1, 'partitions': 3," in ran.stdout
    assert "INFO" in ran.stderr
    assert server.password not in ran.stdout + ran.stderr


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
    text = DOCUMENT.read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for words, status in zip(commands(text, "bash"), statuses, strict=True):
        if words[1:3] == ["snapshot", "var/snapshots/after"]:
            with gateway.client() as client:
                client.call("create_database", Database(name="between"))
        ran = CliRunner().invoke(application, words, env=environment)
        assert ran.exit_code == status, (words, ran.output)
    if section == "Snapshots":
        assert "+ databases    between" in ran.output
        with gateway.client() as client:
            client.call("drop_database", "between", True, True)
