"""The commands of docs/pipeline.md on statistics, run as printed."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from tests.support.readme import ROOT, prepare

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SECONDS_MAX = 240


def commands():
    text = (ROOT / "docs" / "pipeline.md").read_text("utf-8").partition("\n## Statistics\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for line in block.splitlines()]


def test_the_commands_of_the_document_do_what_it_says(spark, gateway):
    """`spark` is only there so that what can be skipped is."""
    folder = prepare(gateway.server.data_dir.parent, gateway.server)
    environment = {
        "HMS_GATEWAY_PASSWORD": gateway.server.password,
        "HMS_GATEWAY_URL": gateway.server.url,
        "HMS_GATEWAY_CACERT": str(gateway.server.data_dir / "certificate.pem"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYSPARK_SUBMIT_ARGS": "--conf spark.driver.memory=768m pyspark-shell",
    }
    ran = [
        subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        for command in commands()
    ]
    # The tables of this gateway have text files, or none.
    assert [each.returncode for each in ran] == [0, 0], [each.stderr[-2_000:] for each in ran]
    assert re.search(r"^rows counted +0 % -> 100 %$", ran[0].stdout, re.MULTILINE), ran[0].stdout
    page = (folder / "var" / "stats.html").read_text("utf-8")
    assert ElementTree.fromstring(page.partition("\n")[2]).tag == "html"
    planned = msgspec.json.decode(ran[1].stdout)
    assert planned["status"] == "planned"
    assert planned["counts"]["partitions"] == 6
    assert gateway.server.password not in "".join(each.stdout + each.stderr for each in ran)
