"""The commands of the README and of docs/pipeline.md on crawl and runs, as printed."""

import inspect
import re
import shlex
import subprocess
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.cli.application import application
from hms_gateway.cli.pipeline.jobs import job_of, show_of
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.pipeline.jobs import run
from hms_gateway.rpc.structs import PartitionsStatsRequest
from tests.pipeline.crawl.trees import plant
from tests.support.readme import README, ROOT
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DOCUMENT = ROOT / "docs" / "pipeline.md"
VISITS = [f"sales.db/visits/day=2026-01-0{day}/part-0.parquet" for day in (1, 2, 3)]


@pytest.fixture
def server(tmp_path):
    with GatewayServer(tmp_path / "gateway") as running:
        yield running


@pytest.fixture
def shell(spark, server, tmp_path, monkeypatch):
    """Runs lines in a folder with a lake; each command would start a session of its own, and stop it."""
    plant(tmp_path / "lake", *VISITS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "session", lambda *_, **__: nullcontext(spark))
    environment = {"HMS_GATEWAY_URL": server.url, "HMS_GATEWAY_PASSWORD": server.password}

    def lines_printed(lines):
        printed = ""
        for line in lines:
            words = shlex.split(line.replace("$PWD", str(tmp_path)))
            if words[0] != "hms-gateway":
                subprocess.run(words, check=True)
                continue
            ran = CliRunner().invoke(application, words[1:], env=environment)
            assert ran.exit_code == 0, (line, ran.output)
            assert server.password not in ran.output
            printed += ran.output
        return printed

    return lines_printed


def lines_with(part):
    """The lines of the shell block of the document that has a command."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    [block] = [block for block in blocks if part in block]
    return block.splitlines()


def test_the_readme_goes_from_files_to_tables_with_statistics(shell, server):
    lines = re.findall(r"^    .venv/bin/(hms-gateway .+)$", README.read_text("utf-8"), re.MULTILINE)
    assert (len(lines), "pipeline crawl" in lines[0]) == (3, True)
    printed = shell(lines)
    assert re.search(r"partitions registered +3$", printed, re.MULTILINE)
    names = [f"day=2026-01-0{day}" for day in (1, 2, 3)]
    with MetastoreClient(server.url, (server.user, server.password), verify=False) as client:
        found = client.call("get_aggr_stats_for", PartitionsStatsRequest("sales", "visits", ["id"], names))
    assert (found.partsFound, found.colStats[0].statsData.longStats.highValue) == (3, 1)


def test_the_document_crawls_prunes_and_lists_its_runs(shell, server):
    printed = shell(lines_with("pipeline crawl"))
    assert re.search(r"partitions to register +3$", printed, re.MULTILINE)
    assert re.search(r"partitions gone +1 \(1 dropped\)$", printed, re.MULTILINE)
    listed = shell(lines_with("pipeline runs")).splitlines()
    assert [line.split("\t")[1] for line in listed] == 2 * ["status", "planned", "done", "done"]


@pytest.mark.parametrize("kind", ["apply", "audit", "clean", "compact", "crawl", "migrate", "snapshot", "stats"])
def test_what_a_run_is_resumed_with_is_found_by_its_kind(kind):
    work, arguments = job_of(kind)
    assert (work.__name__, arguments.__name__.lower()) == (kind, f"{kind}arguments")
    [shown] = inspect.signature(show_of(kind)).parameters.values()
    assert shown.annotation == inspect.signature(work).return_annotation.__name__


def test_a_planned_run_of_any_kind_is_resumed_by_its_name(shell, tmp_path):
    shell(["hms-gateway pipeline compact --clean --dry-run --insecure"])
    [run_id] = [folder.name for folder in (tmp_path / "var" / "pipeline").iterdir()]
    assert run_id.startswith("clean-")
    resumed = shell([f"hms-gateway pipeline runs --resume {run_id} --insecure"]).splitlines()
    assert resumed[0].startswith(f"run {run_id}: done in ")
    itself = shell(["hms-gateway pipeline compact --clean --insecure"]).splitlines()
    assert resumed[1:] == itself[1:]
    assert [line.split()[0] for line in resumed[1:]] == ["cleaned", "removed", "waiting"]
