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


def test_made_requests_get_documented_answers(tmp_path):
    if not PYTHON.exists():
        pytest.skip("no schemathesis (scripts/peers all)")
    if not DOCUMENT.exists():
        pytest.skip("no OpenAPI document of Iceberg's REST catalog (HMS_TESTS_ICEBERG_DOCUMENT)")
    with GatewayServer(tmp_path, settings={"tls": False}) as gateway:
        url = f"http://127.0.0.1:{gateway.port}/iceberg"
        with httpx.Client(base_url=f"{url}/v1/", auth=(USER, PASSWORD), timeout=30) as client:
            command = [PYTHON, FUZZER, DOCUMENT, url, PASSWORD, str(COUNT), str(FIRST_SEED), left_behind(client)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-5000:]
            found = json.loads(done.stdout)
            assert found["problems"] == {}, json.dumps(found["problems"], indent=1)
            # Of those that fit many do something.
            assert sum(found["statuses"].values()) > COUNT // 2
            assert {"200", "204", "400", "404"} <= found["statuses"].keys()
            check_whole(client, tmp_path)
        log = gateway.log_text()
        assert "Traceback" not in log
        assert "request failed" not in log
        checked = subprocess.run(
            [COMMAND, "check", "--data-dir", str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
