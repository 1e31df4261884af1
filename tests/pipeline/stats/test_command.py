"""The commands of docs/pipeline.md on statistics, run as printed."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from tests.support.readme import ROOT, prepare
from tests.support.spark_variables import VARIABLES, WARM_DAEMON, submit_arguments

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SECONDS_MAX = 240


def commands():
    text = (ROOT / "docs" / "pipeline.md").read_text("utf-8").partition("\n## Statistics\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for line in block.splitlines()]


def run(gateway, command):
    folder = prepare(gateway.server.data_dir.parent, gateway.server)
    environment = {
        "HMS_GATEWAY_PASSWORD": gateway.server.password,
        "HMS_GATEWAY_URL": gateway.server.url,
        "HMS_GATEWAY_CACERT": str(gateway.server.data_dir / "certificate.pem"),
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


def test_the_command_of_the_document_that_plans(spark, gateway):
    [command] = [each for each in commands() if "--dry-run" in each]
    ran, _ = run(gateway, command)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2_000:]
    planned = msgspec.json.decode(ran.stdout)
    assert planned["status"] == "planned"
    with gateway.client() as client:
        wanted = client.call("get_partitions_by_filter", "sales", "orders", "ds >= '2024-01-02'", -1)
    assert planned["counts"]["partitions"] == len(wanted) > 0
