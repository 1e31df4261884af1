"""The blocks of docs/calling.md for PySpark and PyIceberg, run as printed, on a port of ours."""

import sys

import pytest

from tests.bridge.bridge_process import connected
from tests.support.readme import block, prepare, run

pytestmark = pytest.mark.slow


@pytest.fixture
def printed_by(gateway, bridge):
    """`printed_by("pyspark", "shop")` runs a block, then drops its database: these tests share a catalog."""
    folder = prepare(gateway.data_dir.parent, gateway)
    made = []

    def printed(name, database):
        made.append(database)
        # `var` is a link here, and a location by way of a link is not below the warehouse.
        program = block(name).replace(":9083", f":{bridge.port}").replace('"var/', f'"{gateway.data_dir}/')
        return run([sys.executable, "-c", program], folder, gateway, SPARK_LOCAL_IP="127.0.0.1")

    yield printed
    with connected(bridge) as client:
        for database in made:
            client.drop_database(database, True, True)


@pytest.mark.spark
def test_pyspark(printed_by):
    rows = printed_by("pyspark", "shop").splitlines()
    assert "|  1|  9.5|2024-05-01|" in rows
    assert "|  2|  3.0|2024-05-01|" in rows


@pytest.mark.iceberg
def test_pyiceberg(printed_by):
    pytest.importorskip("pyiceberg.catalog.hive", reason="no PyIceberg (requirements/spark.txt)")
    assert printed_by("pyiceberg", "lake").strip() == "[{'id': 1, 'name': 'one'}, {'id': 2, 'name': 'two'}]"
