"""The commands of docs/pipeline.md on statistics, run as printed."""

import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.pipeline.jobs import run as jobs_run
from tests.support.readme import ROOT, prepare
from tests.support.spark_variables import VARIABLES, WARM_DAEMON, submit_arguments

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SECONDS_MAX = 240


def commands():
    text = (ROOT / "docs" / "pipeline.md").read_text("utf-8").partition("\n## Statistics\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for line in block.splitlines()]


def variables(gateway):
    return {
        "HMS_GATEWAY_PASSWORD": gateway.server.password,
        "HMS_GATEWAY_URL": gateway.server.url,
        "HMS_GATEWAY_CACERT": str(gateway.server.data_dir / "certificate.pem"),
    }


def run(gateway, command):
    folder = prepare(gateway.server.data_dir.parent, gateway.server)
    environment = {
        **variables(gateway),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        **VARIABLES,
        "PYSPARK_SUBMIT_ARGS": submit_arguments(driver_memory="768m", python_daemon_module=WARM_DAEMON),
    }
    ran = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert gateway.server.password not in ran.stdout + ran.stderr
    return ran, folder


def test_the_command_of_the_document_that_writes(spark, gateway):
    """`spark` is only there so that what can be skipped is. The partitions of this gateway have no files."""
    [command] = [each for each in commands() if "--report" in each]
    ran, folder = run(gateway, command.replace("'sales.*'", "sales.orders --only sales.days"))
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2_000:]
    assert re.search(r"^rows counted +0 % -> 100 %$", ran.stdout, re.MULTILINE), ran.stdout
    page = (folder / "var" / "stats.html").read_text("utf-8")
    assert ElementTree.fromstring(page.partition("\n")[2]).tag == "html"


def test_the_command_of_the_document_that_plans(spark, gateway, monkeypatch):
    """In this process: it would start a session of its own."""
    [command] = [each for each in commands() if "--dry-run" in each]
    folder = prepare(gateway.server.data_dir.parent, gateway.server)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(jobs_run, "session", lambda *_, **__: nullcontext(spark))
    ran = CliRunner().invoke(application, shlex.split(command)[1:], env=variables(gateway))
    assert ran.exit_code == 0, ran.output
    planned = msgspec.json.decode(ran.stdout)
    assert planned["status"] == "planned"
    with gateway.client() as client:
        wanted = client.call("get_partitions_by_filter", "sales", "orders", "ds >= '2024-01-02'", -1)
    assert planned["counts"]["partitions"] == len(wanted) > 0
