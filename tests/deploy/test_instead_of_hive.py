"""deploy/instead-of-hive.yml: its parts fit together, and the commands of its containers run as processes."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from hms_gateway.runtime.settings_reading import load_settings
from tests.spark.spark_session import why_not
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, free_port
from tests.support.spark_variables import VARIABLES

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "deploy" / "instead-of-hive.yml").read_text("utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
SETTINGS = {
    name.lower(): value.strip("\"'")
    for name, value in re.findall(r"^      HMS_GATEWAY_(\w+): (.*)$", COMPOSE, re.MULTILINE)
}
COMMANDS = [
    json.loads(text) for text in re.findall(r"^    command:\s*(\[.*?^      \])", COMPOSE, re.MULTILINE | re.DOTALL)
]


def test_the_settings_are_accepted_and_let_in_the_network_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"host": "0.0.0.0", **SETTINGS}.items():
        monkeypatch.setenv(f"HMS_GATEWAY_{name.upper()}", value)
    settings = load_settings()
    [subnet] = re.findall(r"- subnet: (\S+)$", COMPOSE, re.MULTILINE)
    assert settings.thrift_networks == [subnet]
    assert (settings.thrift_sasl, settings.http_networks) == ("off", [])
    assert f"EXPOSE {settings.port} {settings.thrift_port}\n" in DOCKERFILE
    assert "ports:" not in COMPOSE


def test_both_images_have_one_account_and_both_may_write_the_warehouse() -> None:
    [user] = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    assert f"useradd --uid {user} " in COMPOSE
    assert f"USER {user}\n" in COMPOSE
    folder = SETTINGS["warehouse_dir"].removeprefix("file:")
    assert re.search(rf"install -d -o hms .*{folder}", DOCKERFILE)
    assert f"install -d -o spark {folder}" in COMPOSE
    assert COMPOSE.count(f"- warehouse:{folder}\n") == 2  # `duckdb` has that of `spark`


def test_the_versions_are_those_that_are_tested() -> None:
    named = re.findall(r"(pyspark|duckdb)==(\S+)", COMPOSE)
    assert dict(named) == {name: version(name) for name in ("pyspark", "duckdb")}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.whole
def test_spark_writes_and_duckdb_reads(tmp_path: Path) -> None:
    """On loopback, below a folder of the test: the rest is as in the file."""
    if reason := why_not():
        pytest.skip(reason)
    port, warehouse = free_port(), tmp_path / "warehouse"
    settings: dict[str, object] = {
        "thrift_port": port,
        "thrift_networks": ["127.0.0.0/8"],
        "authorization": SETTINGS["authorization"],
        "warehouse_dir": f"file:{warehouse}",
    }
    with GatewayServer(tmp_path / "var", settings=settings):
        printed = [
            ran(
                [
                    word.replace("metastore:9083", f"127.0.0.1:{port}").replace("/warehouse", str(warehouse))
                    for word in one
                ],
                tmp_path,
            )
            for one in COMMANDS
        ]
    assert printed == [
        "2\t12.5",
        "[(datetime.date(2024, 5, 1), 9.5), (datetime.date(2024, 5, 2), 3.0)]",
    ]


def ran(command: list[str], folder: Path) -> str:
    """Last line that a container's command prints."""
    spark = Path(find_spec("pyspark").origin).parent
    programs = {"spark-sql": str(spark / "bin" / "spark-sql"), "python": sys.executable}
    local = {
        **os.environ,
        **VARIABLES,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": "",
        "SPARK_HOME": str(spark),
    }
    ended = subprocess.run(
        [programs[command[0]], *command[1:]],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=local,
        cwd=folder,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()[-1]
