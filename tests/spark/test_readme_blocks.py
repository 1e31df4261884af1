"""The blocks of docs/engines.md for PySpark and PyIceberg, and DuckDB's of docs/calling.md, as printed on our port.

HMS_TESTS_PYSPARK names a folder with another PySpark (`pip install --target FOLDER pyspark==3.5.7`).
"""

import os
import re
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from tests.bridge.bridge_process import BridgeProcess, connected
from tests.spark.spark_session import why_not
from tests.support.readme import PORT, THRIFT_PORT, block, prepare, run
from tests.support.server import GatewayServer, free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """A new installation, whose settings say nothing of rights; with a Thrift port of its own."""
    if reason := why_not():
        pytest.skip(reason)
    settings = {"authorization": None, "thrift_port": free_port()}
    with GatewayServer(tmp_path_factory.mktemp("readme") / "var", settings=settings) as running:
        yield running, settings["thrift_port"]


@pytest.fixture(scope="module", params=["own port", pytest.param("bridge", marks=pytest.mark.whole)])
def door(request, gateway):
    server, thrift_port = gateway
    if request.param == "own port":
        yield SimpleNamespace(port=thrift_port)
        return
    with BridgeProcess(server) as running:
        yield running


@pytest.fixture
def printed_by(gateway, door):
    """`printed_by("pyspark", "shop")` runs a block, then drops its database: these tests share a catalog."""
    server, _ = gateway
    folder = prepare(server.data_dir.parent, server)
    made = set()

    def printed(name, database):
        made.add(database)
        # `var` is a link here, and a location by way of a link is not below the warehouse.
        program = block(name).replace(THRIFT_PORT, str(door.port)).replace(f":{PORT}", f":{server.port}")
        program = program.replace('"var/', f'"{server.data_dir}/')
        variables = {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.environ.get("HMS_TESTS_PYSPARK", "")}
        return run([sys.executable, "-c", program], folder, server, **variables)

    yield printed
    with connected(door) as client:
        for database in made:
            client.drop_database(database, True, True)


@pytest.mark.spark
@pytest.mark.whole
def test_pyspark(printed_by):
    rows = printed_by("pyspark", "shop").splitlines()
    assert "|  1|  9.5|2024-05-01|" in rows
    assert "|  2|  3.0|2024-05-01|" in rows
    if find_spec("duckdb"):
        assert re.search(r"2024-05-01 .* 2 .* 12\.5 ", printed_by("duckdb", "shop"))


@pytest.mark.iceberg
def test_pyiceberg(printed_by):
    pytest.importorskip("pyiceberg.catalog.hive", reason="no PyIceberg (requirements/spark.txt)")
    assert printed_by("pyiceberg", "lake").strip() == "[{'id': 1, 'name': 'one'}, {'id': 2, 'name': 'two'}]"
