"""One server with the demo data for all real clients, bindings generated from our schema, logs shown on failure."""

import shutil
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.long_table import LongTable, make_long_table
from tests.interop.raw import catalog
from tests.support.server import GatewayServer

SCHEMA = Path(__file__).parents[2] / "schema" / "hive_metastore.thrift"
NODE_FOLDER = Path(__file__).parent / "node"
LONG_TABLE_PARTITIONS = 2_500
LOG_CHARACTERS_SHOWN = 3_000


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """The gateway over TLS with the document's sample objects. Tests that write use databases of their own."""
    with GatewayServer(tmp_path_factory.mktemp("gateway"), demo=True, settings={"authorization": None}) as running:
        yield running


@pytest.fixture(scope="session")
def long_table(server: GatewayServer) -> LongTable:
    """A table with more partitions than fit into one piece of an answer."""
    table = LongTable("long_replies", "events", [f"{number:05}" for number in range(LONG_TABLE_PARTITIONS)])
    make_long_table(server, table)
    return table


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """A demo server with small limits, for bad input. In the end it must answer as before, with the catalog it had."""
    server = GatewayServer(
        tmp_path_factory.mktemp("strict"),
        demo=True,
        settings={"header_seconds_max": 2.0},
        limits={"body_bytes_max": 256 * 1024, "body_read_seconds_max": 1.0},
    )
    with server:
        before = catalog(server)
        yield server
        assert catalog(server) == before
        assert "Traceback (most recent call last)" not in server.log_text()


@pytest.fixture(scope="session")
def generate(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`generate("js:node")` runs the Thrift compiler over our schema; the folder with what it wrote."""
    compiler = shutil.which("thrift")
    if compiler is None:
        pytest.skip("no Thrift compiler (command `thrift`, package thrift-compiler)")
    folders: dict[str, Path] = {}

    def generate(generator: str) -> Path:
        if generator not in folders:
            folder = tmp_path_factory.mktemp("generated")
            subprocess.run(
                [compiler, "-r", "-nowarn", "--gen", generator, "-out", folder, SCHEMA],
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
            folders[generator] = folder
        return folders[generator]

    return generate


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder of the npm packages. Skips where Node.js or the packages are missing."""
    if shutil.which("node") is None:
        pytest.skip("no Node.js (command `node`)")
    modules = NODE_FOLDER / "node_modules"
    if not (modules / "thrift").is_dir():
        pytest.skip("npm packages not installed (`npm ci` in tests/interop/node)")
    return modules


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, GatewayServer):
                report.sections.append((f"log of {value.url}", _remarkable(value.log_text())))
    return report


def _remarkable(log: str) -> str:
    """The end of a log without the calls that went well."""
    lines = [line for line in log.splitlines() if '"outcome":"ok"' not in line]
    return "\n".join(lines)[-LOG_CHARACTERS_SHOWN:]
