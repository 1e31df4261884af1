"""The blocks of docs/engines.md, run as printed at the Thrift port; PySpark's and PyIceberg's run in tests/spark.

`scripts/peers all` makes the environments of the large programs.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.oracle.peer import SHORT_LIFE, SHORT_LIVES
from tests.oracle.third_peer import LIBRARIES
from tests.support.patience import until
from tests.support.readme import THRIFT_PORT, block, prepare, run
from tests.support.server import GatewayServer, free_port

pytestmark = pytest.mark.slow

CLIENTS = Path(sys.prefix) / "thrift-clients"
ENVIRONMENTS = Path(sys.prefix) / "engines"
STANDS_IN = Path(__file__).parent / "java" / "hive" / "LlapSigner.java"
OPENED = ("--add-opens=java.base/java.net=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED")
# Its asynchronous log and its optimizer are in jars that PySpark does not have.
LACKING = "--hiveconf hive.async.log.enabled=false --hiveconf hive.cbo.enable=false"
HIVE_SERVER_PORT = "10000"


class Folder:
    """A folder like the page's beside a running gateway, whose Thrift port the blocks are told."""

    def __init__(self, path: Path, server: GatewayServer, port: int) -> None:
        self.path, self._server, self._port = prepare(path, server), server, port

    def block(self, name: str) -> str:
        return block(name).replace(THRIFT_PORT, str(self._port))

    def run(self, *command: str, **variables: str) -> str:
        """What a command prints."""
        return run([*command], self.path, self._server, **variables)


@pytest.fixture(scope="module", params=["2.3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    path, port = tmp_path_factory.mktemp("engines"), free_port()
    settings = {"thrift_port": port, "thrift_dialect": request.param, "authorization": None}
    with GatewayServer(path / "var", demo=True, settings=settings) as server:
        yield Folder(path, server, port)


def program_of(environment: str, command: str) -> str:
    program = ENVIRONMENTS / environment / "bin" / command
    if not program.exists():
        pytest.skip(f"no environment of {environment} (scripts/peers all, requirements/{environment}.txt)")
    return str(program)


def client_of_python(folder: Folder, name: str) -> list[str]:
    if not CLIENTS.is_dir():
        pytest.skip("no clients for Python (requirements/thrift-clients.txt)")
    return folder.run(sys.executable, "-c", folder.block(name), PYTHONPATH=str(CLIENTS)).splitlines()


def test_hive_metastore_client(folder: Folder) -> None:
    assert client_of_python(folder, "hive-metastore-client") == ["['hair_color=black', 'hair_color=brown']"]


@pytest.mark.parametrize("folder", ["4"], indirect=True)
def test_pymetastore(folder: Folder) -> None:
    expected = ["hmshttptestdatabase ['black']", "hmshttptestdatabase ['brown']"]
    assert client_of_python(folder, "pymetastore") == expected


@pytest.mark.whole
def test_airflow(folder: Folder) -> None:
    python = program_of("airflow", "python")
    lines = folder.run(python, "-c", folder.block("airflow"), AIRFLOW_HOME=str(folder.path)).splitlines()
    assert [line for line in lines if "[" not in line] == ["last: brown", "there: True", "green: False"]


@pytest.mark.whole
def test_datahub(folder: Folder) -> None:
    datahub = program_of("datahub", "datahub")
    (folder.path / "recipe.yml").write_text(folder.block("datahub"))
    quiet = {"HOME": str(folder.path), "DATAHUB_TELEMETRY_ENABLED": "false"}
    folder.run(datahub, "ingest", "-c", "recipe.yml", **quiet)
    found = {aspect.get("entityUrn") for aspect in json.loads((folder.path / "datahub.json").read_text())}
    assert "urn:li:dataset:(urn:li:dataPlatform:hive,hmshttptestdatabase.test_table,PROD)" in found


@pytest.mark.whole
def test_sail(folder: Folder) -> None:
    # Spark's client looks for a whole Spark where its program is no file.
    (folder.path / "on_sail.py").write_text(folder.block("sail"))
    printed = folder.run(program_of("sail", "python"), "on_sail.py")
    assert [line for line in printed.splitlines() if "[" not in line] == ["parquet 3", "delta 3"]


@pytest.mark.java
@pytest.mark.whole
def test_iceberg_for_java(folder: Folder) -> None:
    if shutil.which("javac") is None or not LIBRARIES.is_dir():
        pytest.skip("no JDK, or no jars of Iceberg (requirements/iceberg-java.txt)")
    (folder.path / "Lake.java").write_text(folder.block("iceberg for java"))
    printed = folder.run("java", *SHORT_LIFE, "-cp", f"{LIBRARIES}/*", "Lake.java")
    assert "[java.numbers] table {" in printed
    assert "1: id: required long" in printed


@pytest.fixture
def jars() -> Path:
    if shutil.which("javac") is None or (found := find_spec("pyspark")) is None or found.origin is None:
        pytest.skip("no JDK (command javac), or no PySpark (requirements/spark.txt)")
    return Path(found.origin).parent / "jars"


@pytest.mark.java
@pytest.mark.whole
def test_hive(folder: Folder, jars: Path) -> None:
    """Hive's command line is made of PySpark's jars, and of one interface that they lack."""
    commands = folder.path / "bin"
    folder.run("javac", "-d", str(commands), str(STANDS_IN), **SHORT_LIVES)
    hive = f"java {' '.join((*SHORT_LIFE, *OPENED))} -cp '{commands}:{jars}/*' org.apache.hadoop.hive.cli.CliDriver -S"
    scratch = f"--hiveconf hive.exec.scratchdir={folder.path}/scratch"
    (commands / "hive").write_text(f'#!/bin/sh\nexec {hive} {LACKING} {scratch} "$@"\n')
    (commands / "hive").chmod(0o755)
    printed = folder.run("sh", "-c", folder.block("hive"), PATH=f"{commands}:{os.environ['PATH']}")
    assert printed.splitlines()[-1] == "day=2024-05-01"


@pytest.mark.spark
@pytest.mark.whole
def test_beeline(folder: Folder, jars: Path) -> None:
    port = free_port()
    variables = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SPARK_HOME": str(jars.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "HIVE_SERVER2_THRIFT_BIND_HOST": "127.0.0.1",
        "HIVE_SERVER2_THRIFT_PORT": str(port),
    }
    log = folder.path / "hiveserver2.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            ["sh", "-c", folder.block("spark's hiveserver2")],
            cwd=folder.path,
            env=os.environ | variables,
            stdout=output,
            stderr=output,
            start_new_session=True,
        ) as server,
    ):
        try:
            until(lambda: server.poll() is not None or listens(port), f"no HiveServer2: {log}", 0.1)
            text = folder.block("beeline").replace(HIVE_SERVER_PORT, str(port))
            assert "test_table" in folder.run("sh", "-c", text, **variables)
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
