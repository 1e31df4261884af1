"""The commands of docs/pipeline.md on statistics, run as printed."""

import re
import shlex
from contextlib import nullcontext
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.pipeline.jobs import run as jobs_run
from tests.support.readme import ROOT, prepare

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def commands():
    text = (ROOT / "docs" / "pipeline.md").read_text("utf-8").partition("\n## Statistics\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for line in block.splitlines()]


@pytest.fixture
def run(spark, gateway, monkeypatch):
    """Runs a command in this process: it would start a session of its own, and stop it."""
    folder = prepare(gateway.server.data_dir.parent, gateway.server)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(jobs_run, "session", lambda *_, **__: nullcontext(spark))
    environment = {
        "HMS_GATEWAY_PASSWORD": gateway.server.password,
        "HMS_GATEWAY_URL": gateway.server.url,
        "HMS_GATEWAY_CACERT": str(gateway.server.data_dir / "certificate.pem"),
    }

    def ran(command):
        ran = CliRunner().invoke(application, shlex.split(command)[1:], env=environment)
        assert ran.exit_code == 0, ran.output
        assert gateway.server.password not in ran.output
        return ran.stdout

    return ran


def test_the_command_of_the_document_that_writes(run, gateway):
    """The partitions of this gateway have no files."""
    [command] = [each for each in commands() if "--report" in each]
    printed = run(command.replace("'sales.*'", "sales.orders --only sales.days"))
    assert re.search(r"^rows counted +0 % -> 100 %$", printed, re.MULTILINE), printed
    page = (gateway.server.data_dir / "stats.html").read_text("utf-8")
    assert ElementTree.fromstring(page.partition("\n")[2]).tag == "html"


def test_the_command_of_the_document_that_plans(run, gateway):
    [command] = [each for each in commands() if "--dry-run" in each]
    planned = msgspec.json.decode(run(command))
    assert planned["status"] == "planned"
    with gateway.client() as client:
        wanted = client.call("get_partitions_by_filter", "sales", "orders", "ds >= '2024-01-02'", -1)
    assert planned["counts"]["partitions"] == len(wanted) > 0
