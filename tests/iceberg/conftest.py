"""A gateway whose locks live five seconds and stop changes of others, a bridge to it over TLS, PyIceberg's own catalog
on the bridge, and Iceberg's REST catalog for Java at the gateway.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.iceberg.java_library import Java, running
from tests.support.server import GatewayServer

pytest.importorskip("pyiceberg.catalog.hive", reason="no PyIceberg (requirements/spark.txt)")

from pyiceberg.catalog.hive import HiveCatalog

LOCK_SECONDS = 5
# The defaults wait up to a minute between two looks at a lock.
LOCK_CHECKS = {"lock-check-min-wait-time": "0.02", "lock-check-max-wait-time": "0.2", "lock-check-retries": "100"}


@pytest.fixture(scope="session")
def iceberg_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    folder = tmp_path_factory.mktemp("iceberg-gateway")
    with GatewayServer(folder, settings={"txn_timeout_seconds": LOCK_SECONDS, "locks_implicit": "deny"}) as running:
        yield running


@pytest.fixture(scope="session")
def iceberg_bridge(iceberg_gateway: GatewayServer) -> Iterator[BridgeProcess]:
    with BridgeProcess(iceberg_gateway) as running:
        yield running


@pytest.fixture(scope="session")
def warehouse(iceberg_gateway: GatewayServer) -> Path:
    return iceberg_gateway.data_dir / "warehouse"


@pytest.fixture(scope="session")
def uri(iceberg_bridge: BridgeProcess) -> str:
    return f"thrift://127.0.0.1:{iceberg_bridge.port}"


@pytest.fixture
def open_catalog(uri: str) -> Callable[..., HiveCatalog]:
    """Catalogs with properties of the test's choice."""
    return lambda **properties: HiveCatalog("test", uri=uri, **(LOCK_CHECKS | properties))


@pytest.fixture
def catalog(open_catalog: Callable[..., HiveCatalog]) -> HiveCatalog:
    return open_catalog()


@pytest.fixture
def thrift_client(iceberg_bridge: BridgeProcess) -> Iterator[ApacheClient]:
    """Another client, that looks at what PyIceberg leaves in the metastore."""
    with connected(iceberg_bridge) as client:
        yield client


@pytest.fixture(scope="session")
def java(iceberg_gateway: GatewayServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    with running(tmp_path_factory.mktemp("java"), iceberg_gateway) as java:
        yield java


@pytest.fixture(scope="session")
def rest(java: Java, iceberg_gateway: GatewayServer) -> Iterator[Any]:
    catalog = java.rest_catalog(iceberg_gateway)
    yield catalog
    catalog.close()


@pytest.fixture
def namespace(java: Java, rest: Any, request: pytest.FixtureRequest) -> str:
    name = "java_" + re.sub(r"\W", "_", request.node.name.removeprefix("test_"), flags=re.ASCII)[:100].lower()
    rest.createNamespace(java.namespace(name))
    return name
