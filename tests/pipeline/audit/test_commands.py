"""The commands of docs/pipeline.md about audits, run as printed."""

import json
import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.pipeline.jobs import run as jobs_run
from hms_gateway.rpc.structs import Database
from tests.pipeline.content import Metastore, add_partitions, make_table
from tests.support.readme import ROOT, prepare
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def printed():
    text = (ROOT / "docs" / "pipeline.md").read_text("utf-8").partition("## Auditing")[2]
    return re.search(r"^```bash\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1].splitlines()


def test_the_commands_do_what_the_document_says(spark, tmp_path, monkeypatch):
    # Each of them would start a session of its own, and stop it.
    monkeypatch.setattr(jobs_run, "session", lambda *_, **__: nullcontext(spark))
    with GatewayServer(tmp_path / "gateway") as server:
        options = {"url": server.url, "user": server.user, "password": server.password}
        metastore = Metastore({**options, "cafile": str(server.data_dir / "certificate.pem")}, server)
        with metastore.client() as client:
            client.call("create_database", Database(name="sales"))
            make_table(client, "sales", "orders", ("hr", "int"))
            add_partitions(client, "sales", "orders", [[str(hour)] for hour in range(24)])
            location = client.call("get_table", "sales", "orders").sd.location
        (Path(location.removeprefix("file:")) / "hr=7").rmdir()
        folder = prepare(tmp_path, server)
        monkeypatch.chdir(folder)
        variables = {
            "HMS_GATEWAY_URL": server.url,
            "HMS_GATEWAY_PASSWORD": server.password,
            "HMS_GATEWAY_CACERT": str(server.data_dir / "certificate.pem"),
        }
        audited, applied = (
            CliRunner().invoke(application, shlex.split(command)[1:], env=variables) for command in printed()
        )
        with metastore.client() as client:
            names = client.call("get_partition_names", "sales", "orders", -1)
    assert audited.exit_code == 1, audited.output
    assert "error   missing       sales.orders/hr=7: the directory does not exist" in audited.stdout
    assert re.search(r"1 tables, \d+ directories, 0 files: 1 errors, 0 warnings, 23 notes", audited.stdout)
    page = (folder / "var" / "audit.html").read_text("utf-8")
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    assert "sales.orders/hr=7" in "".join(root.itertext())
    plan = [json.loads(line) for line in (folder / "var" / "plan.jsonl").read_text("utf-8").splitlines()]
    assert [(one.get("do"), one.get("partition")) for one in plan] == [(None, None), ("drop_partition", "hr=7")]
    assert (applied.exit_code, applied.stdout.strip()) == (0, "1 dropped; 0 not done")
    assert len(names) == 23
