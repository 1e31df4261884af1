"""Requests that schemathesis makes of the OpenAPI document, fitting and not: documented answers, and nothing broken."""

import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.iceberg_rest.conftest import SCHEMA
from tests.iceberg_rest.test_routes import DOCUMENT
from tests.support.readme import ROOT
from tests.support.sample import FIRST_SEED
from tests.support.server import COMMAND, PASSWORD, USER, GatewayServer

pytestmark = [pytest.mark.slow, pytest.mark.whole]

PYTHON = ROOT / ".venv" / "engines" / "schemathesis" / "bin" / "python"
FUZZER = Path(__file__).with_name("fuzzer.py")
COUNT = int(os.environ.get("HMS_TESTS_REQUESTS", "2000"))
# A part with its own gateway takes a minute.
PART = min(COUNT, 500)


def left_behind(client):
    """The metadata file of a table that is dropped."""
    assert client.post("namespaces", json={"namespace": ["sales"]}).status_code == 200
    made = client.post("namespaces/sales/tables", json={"name": "gone", "schema": SCHEMA}).json()
    assert client.delete("namespaces/sales/tables/gone").status_code == 204
    return made["metadata-location"]


def check_whole(client, folder):
    """Everything that is listed can be read, and every metadata file is whole."""
    for (namespace,) in client.get("namespaces").json()["namespaces"]:
        for kind in ("tables", "views"):
            for one in client.get(f"namespaces/{namespace}/{kind}").json()["identifiers"]:
                path = f"namespaces/{namespace}/{kind}/{one['name'].replace('/', '%2F')}"
                loaded = client.get(path)
                assert loaded.status_code == 200, (path, loaded.text)
    for file in folder.glob("warehouse/**/*.metadata.json"):
        json.loads(file.read_bytes())


@pytest.mark.parametrize("part", range(COUNT // PART))
def test_made_requests_get_documented_answers(tmp_path, part):
    if not PYTHON.exists():
        pytest.skip("no schemathesis (scripts/peers all)")
    if not DOCUMENT.exists():
        pytest.skip("no OpenAPI document of Iceberg's REST catalog (HMS_TESTS_ICEBERG_DOCUMENT)")
    with GatewayServer(tmp_path, settings={"tls": False}) as gateway:
        url = f"http://127.0.0.1:{gateway.port}/iceberg"
        with httpx.Client(base_url=f"{url}/v1/", auth=(USER, PASSWORD), timeout=30) as client:
            command = [PYTHON, FUZZER, DOCUMENT, url, PASSWORD, PART, FIRST_SEED + part, left_behind(client)]
            done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-5000:]
            found = json.loads(done.stdout)
            assert found["problems"] == {}, json.dumps(found["problems"], indent=1)
            # Of those that fit many do something.
            assert sum(found["statuses"].values()) > PART // 2
            assert {"200", "204", "400", "404"} <= found["statuses"].keys()
            check_whole(client, tmp_path)
        log = gateway.log_text()
        assert "Traceback" not in log
        assert "request failed" not in log
        # Directories of tables that were dropped without their files stay.
        command = [COMMAND, "check", "--data-dir", str(tmp_path), "--older-than", "86400"]
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
