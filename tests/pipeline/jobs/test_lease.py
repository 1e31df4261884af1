"""A run's lease over a real gateway."""

import threading

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.records import Lease
from hms_gateway.pipeline.jobs.state import State
from tests.support.server import GatewayServer


@pytest.mark.slow
def test_a_lease_is_given_back_to_a_gateway_that_was_away(tmp_path):
    lost = []
    with GatewayServer(tmp_path) as server:
        login = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
        lease = Lease(Connection.of(login), State.of(str(tmp_path / "state"), {}), 20, lost.append)
        lease.grab(["shop.orders"])
        server.kill()
        again = threading.Thread(target=server.start)
        again.start()
        lease.drop(60)
        again.join()
        with MetastoreClient(server.url, (server.user, server.password), verify=False) as client:
            assert client.call("list_lease", []) == []
    assert lost == []
