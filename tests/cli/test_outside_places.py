"""An installation whose tables lie outside today's roots: its start says so, and nothing of it is lost."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import Database, Partition
from tests.support.catalog import columns, new_table
from tests.support.patience import until
from tests.support.server import GatewayServer, trusting

EXTERNAL = {"EXTERNAL": "TRUE"}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def upgraded(tmp_path: Path, lake: Path) -> Iterator[GatewayServer]:
    """Filled while `file_roots` named the lake, and started without."""
    before = GatewayServer(tmp_path / "gateway", settings={"file_roots": [f"file:{lake}"]})
    with before, client_of(before) as client:
        fill(client, f"file:{lake}")
        assert "outside the directories" not in before.log_text()
    for path in ("d.db/t", "loose", "parts/ds=1", "ext"):
        (lake / path / "data").write_text("kept")
    with GatewayServer(tmp_path / "gateway") as after:
        yield after


def client_of(gateway: GatewayServer) -> MetastoreClient:
    return MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting())


def fill(client: MetastoreClient, lake: str) -> None:
    client.call("create_database", Database(name="d", locationUri=f"{lake}/d.db"))
    client.call("create_table", new_table("t", "d"))
    client.call("create_table", new_table("loose", location=f"{lake}/loose"))
    client.call("create_table", new_table("inside"))
    client.call("create_table", new_table("parts", keys=columns("ds string"), location=f"{lake}/parts"))
    client.call("append_partition_by_name", "default", "parts", "ds=1")
    client.call(
        "create_table", new_table("ext", location=f"{lake}/ext", parameters=EXTERNAL, table_type="EXTERNAL_TABLE")
    )


def warning(gateway: GatewayServer) -> str:
    """The line of the log about what lies outside."""

    def lines() -> list[str]:
        return [line for line in gateway.log_text().splitlines() if "outside the directories" in line]

    until(lines, "nothing is said")
    [line] = lines()
    return line


def test_the_start_names_what_lies_outside_and_what_to_set(upgraded: GatewayServer, lake: Path) -> None:
    text = warning(upgraded)
    assert "databases 1 (d), tables 3 (d.t, default.loose, default.parts), partitions 1 (default.parts)" in text
    assert f'file_roots = ["file:{lake}"]' in text.replace('\\"', '"')


def test_nothing_is_lost(upgraded: GatewayServer, lake: Path) -> None:
    with client_of(upgraded) as client:
        for db, name in (("d", "t"), ("default", "loose"), ("default", "ext")):
            table = client.call("get_table", db, name)
            client.call(
                "alter_table", db, name, msgspec.structs.replace(table, parameters={**table.parameters, "a": "b"})
            )
        partition: Partition = client.call("get_partition_by_name", "default", "parts", "ds=1")
        client.call("alter_partition", "default", "parts", partition)
        client.call("drop_table", "default", "loose", True)
        client.call("drop_partition_by_name", "default", "parts", "ds=1", True)
        client.call("drop_table", "default", "parts", True)
        client.call("drop_database", "d", True, True)
        assert client.call("get_all_tables", "default") == ["ext", "inside"]
        assert client.call("get_all_databases") == ["default"]
    kept = sorted(str(path.relative_to(lake)) for path in lake.rglob("data"))
    assert kept == ["d.db/t/data", "ext/data", "loose/data", "parts/ds=1/data"]
    assert f"Kept file:{lake}/loose: it is outside the directories this server manages" in upgraded.log_text()
