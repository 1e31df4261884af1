"""A gateway, a bridge to it over TLS, PySpark on the bridge; beside them the real metastore with its own PySpark.

The tests of this folder share them: a JVM takes seconds to start.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.bridge_process import BridgeProcess
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.spark.catalog_content import ThriftPort
from tests.spark.scenario_run import Place
from tests.spark.spark_session import SparkSessionProcess, why_not
from tests.support.server import GatewayServer, free_port

LOG_CHARACTERS_SHOWN = 3_000


@pytest.fixture(scope="session")
def thrift_port() -> int:
    """Of the gateway itself."""
    return free_port()


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, thrift_port: int) -> Iterator[GatewayServer]:
    if reason := why_not():
        pytest.skip(reason)
    settings = {"thrift_port": thrift_port, "locks_implicit": "deny"}
    with GatewayServer(tmp_path_factory.mktemp("spark-gateway") / "var", settings=settings) as running:
        yield running


@pytest.fixture(scope="session")
def bridge(gateway: GatewayServer) -> Iterator[BridgeProcess]:
    with BridgeProcess(gateway) as running:
        yield running


@pytest.fixture(scope="session")
def place(gateway: GatewayServer, bridge: BridgeProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from _place(bridge, gateway.data_dir / "warehouse", tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="session")
def second_session(
    place: Place, thrift_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSessionProcess]:
    """Another JVM, on the gateway's own Thrift port, with no bridge between."""
    folder = tmp_path_factory.mktemp("second-spark")
    with SparkSessionProcess(f"thrift://127.0.0.1:{thrift_port}", place.warehouse, folder) as session:
        yield session


@pytest.fixture(scope="session")
def real_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The real metastore, asked directly over TCP."""
    if reason := why_not():
        pytest.skip(reason)
    real = RealMetastore(tmp_path_factory.mktemp("real-metastore"), notifies=False)
    try:
        real.start()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    try:
        yield from _place(real, real.warehouse, tmp_path_factory.mktemp("spark-on-real"))
    finally:
        real.stop()


def _place(metastore: ThriftPort, warehouse: Path, folder: Path) -> Iterator[Place]:
    with SparkSessionProcess(f"thrift://127.0.0.1:{metastore.port}", warehouse, folder) as spark:
        yield Place(metastore, spark, warehouse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, BridgeProcess):
                lines = [line for line in value.log_text().splitlines() if '"outcome":"ok"' not in line]
                report.sections.append(("log of the bridge", "\n".join(lines)[-LOG_CHARACTERS_SHOWN:]))
    return report
