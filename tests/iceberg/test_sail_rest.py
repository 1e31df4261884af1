"""Sail at the REST catalog, over HTTP on loopback: it trusts the certificates of known authorities only."""

import json
import os
import subprocess

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.support.patience import PATIENCE_SECONDS
from tests.support.readme import ROOT
from tests.support.server import COMMAND, PASSWORD, USER, GatewayServer

pytestmark = [pytest.mark.iceberg, pytest.mark.slow, pytest.mark.whole]

PYTHON = ROOT / ".venv" / "engines" / "sail" / "bin" / "python"
STATEMENTS = (
    "CREATE DATABASE sea",
    "CREATE TABLE sea.t (id INT, day DATE) USING iceberg PARTITIONED BY (day)",
    "INSERT INTO sea.t VALUES (1, DATE '2024-05-01'), (2, DATE '2024-05-02')",
    "INSERT INTO sea.t VALUES (3, DATE '2024-05-02')",
    "DELETE FROM sea.t WHERE id = 1",
    "CREATE VIEW sea.v AS SELECT 1 AS one",
    "SELECT id FROM sea.t ORDER BY id",
    "SHOW VIEWS IN sea",
    "DROP VIEW sea.v",
)
PROGRAM = """
import json, sys
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
found = [[list(row) for row in spark.sql(each).collect()] for each in json.loads(sys.argv[1])]
print(json.dumps(found, default=str))
spark.stop()
server.stop()
"""


def test_sail_and_pyiceberg_change_the_same_tables(tmp_path):
    if not PYTHON.exists():
        pytest.skip("no environment of sail (scripts/peers all, requirements/sail.txt)")
    # Spark's client looks for a whole Spark where its program is no file.
    (tmp_path / "on_sail.py").write_text(PROGRAM)
    with GatewayServer(tmp_path / "var", settings={"tls": False}) as gateway:
        uri = f"http://127.0.0.1:{gateway.port}/iceberg"
        command = [COMMAND, "token", "create", USER, "--data-dir", str(gateway.data_dir)]
        token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        catalog = f'[{{type="iceberg-rest", name="lake", uri="{uri}", bearer_access_token="{token}"}}]'
        done = subprocess.run(
            [PYTHON, tmp_path / "on_sail.py", json.dumps(STATEMENTS)],
            env=os.environ | {"SAIL_CATALOG__LIST": catalog},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        *_, rows, views, _ = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[[")))
        assert rows == [[2], [3]]
        assert [row[0] for row in views] == ["v"]
        rest = RestCatalog("rest", uri=uri, auth={"type": "basic", "basic": {"username": USER, "password": PASSWORD}})
        table = rest.load_table("sea.t")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3]
        assert len(table.spec().fields) == 1
