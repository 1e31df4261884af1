"""A gateway, a bridge to it over TLS, PySpark on the bridge; beside them the real metastore with its own PySpark."""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.bridge.bridge_process import BridgeProcess
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.spark.scenario_run import Place
from tests.spark.spark_session import SharedSession, SparkSessionProcess, why_not
from tests.support.server import GatewayServer

LOG_CHARACTERS_SHOWN = 3_000


@pytest.fixture(scope="session")
def gateway(spark_gateway: GatewayServer) -> GatewayServer:
    return spark_gateway


@pytest.fixture(scope="session")
def bridge(spark_bridge: BridgeProcess) -> BridgeProcess:
    return spark_bridge


@pytest.fixture(scope="session")
def place(gateway: GatewayServer, bridge: BridgeProcess, spark: Any) -> Iterator[Place]:
    session = SharedSession(spark)
    yield Place(bridge, session, gateway.data_dir / "warehouse")
    session.close()


@pytest.fixture(scope="session")
def second_session(
    gateway: GatewayServer, spark_thrift_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSessionProcess]:
    """Another JVM, on the gateway's own Thrift port, with no bridge between."""
    folder = tmp_path_factory.mktemp("second-spark")
    with SparkSessionProcess(
        f"thrift://127.0.0.1:{spark_thrift_port}", gateway.data_dir / "warehouse", folder
    ) as session:
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
    folder = tmp_path_factory.mktemp("spark-on-real")
    try:
        with SparkSessionProcess(f"thrift://127.0.0.1:{real.port}", real.warehouse, folder) as spark:
            yield Place(real, spark, real.warehouse)
    finally:
        real.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, BridgeProcess):
                lines = [line for line in value.log_text().splitlines() if '"outcome":"ok"' not in line]
                report.sections.append(("log of the bridge", "\n".join(lines)[-LOG_CHARACTERS_SHOWN:]))
    return report
