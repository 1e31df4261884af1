"""Hive 3.1.3's own client for Java at the Thrift port: java/third/ThirdClient.java."""

import subprocess
from pathlib import Path

import pytest

from tests.oracle.third_peer import LIBRARIES, SHORT_LIFE
from tests.support.java_classes import class_path
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, free_port

pytestmark = [pytest.mark.java, pytest.mark.slow]

SOURCE = Path(__file__).parent / "java" / "third" / "ThirdClient.java"


def test_tables_partitions_locks_and_transactions(tmp_path: Path) -> None:
    if not LIBRARIES.is_dir():
        pytest.skip("no jars of Hive 3 (requirements/iceberg-java.txt)")
    classes, port = class_path(LIBRARIES, SOURCE), free_port()
    settings = {"thrift_port": port, "thrift_dialect": "4", "authorization": None}
    with GatewayServer(tmp_path / "gateway", settings=settings):
        program = ["java", *SHORT_LIFE, "-cp", classes, "ThirdClient", f"thrift://127.0.0.1:{port}"]
        finished = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (finished.returncode, finished.stdout.splitlines()[-1:]) == (0, ["done"]), finished.stderr
