"""A gateway over HTTPS with something in it, the real metastore over Thrift, and one Spark session for all."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.pipeline.content import Metastore, fill, filled_gateway
from tests.spark.spark_session import why_not
from tests.support.spark_variables import WORKER_PATH

# A task is tried again, so that repeated calls can be seen; not many threads: there are others on the machine.
MASTER = "local[2,4]"
CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.sql.python.filterPushdown.enabled": "true",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if reason := why_not():
        pytest.skip(reason)
    pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("pipeline-spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = WORKER_PATH
    builder = SparkSession.builder.master(MASTER).appName("pipeline").config("spark.local.dir", str(folder))
    for name, value in CONFIGURATION.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", f"file:{folder}/warehouse").getOrCreate()
    jvm = session.sparkContext._gateway.proc
    yield session
    session.stop()
    jvm.stdin.close()
    try:
        jvm.wait(20)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with filled_gateway(tmp_path_factory.mktemp("pipeline-gateway")) as metastore:
        yield metastore


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    peer = RealMetastore(Path(tmp_path_factory.mktemp("pipeline-real")))
    try:
        peer.start()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    try:
        metastore = Metastore({"url": f"thrift://127.0.0.1:{peer.port}"})
        fill(metastore)
        yield metastore
    finally:
        peer.stop()
