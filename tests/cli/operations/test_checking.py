"""`hms-gateway check` as a process, beside a running gateway: what it finds, what it removes, how it ends."""

import csv
import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import Database
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
from tests.support.catalog import columns, new_table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, trusting
from tests.support.warm_program import run_program


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path_factory.mktemp("gateway")) as running:
        with MetastoreClient(running.url, (running.user, running.password), trusting()) as client:
            client.call("create_database", Database(name="sales"))
            client.call("create_table", new_table("orders", "sales", keys=columns("day string")))
            client.call("append_partition_by_name", "sales", "orders", "day=1")
        yield running


@pytest.fixture
def warehouse(gateway: GatewayServer) -> Path:
    return gateway.data_dir / "warehouse"


def check(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    return run_program(["check", "--data-dir", str(folder), *options], environment, seconds_max=PATIENCE_SECONDS)


def findings(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_nothing_to_find(gateway: GatewayServer) -> None:
    done = check(gateway.data_dir)
    assert findings(done) == [{"what": "summary", "is_clean": True, "too_young": 0, "external_outside_roots": 0}]
    assert done.returncode == 0


def test_directories_without_rows_are_listed_and_removed_on_request(gateway: GatewayServer, warehouse: Path) -> None:
    (warehouse / "sales.db" / "empty" / "deep").mkdir(parents=True)
    (warehouse / "sales.db" / "orders" / "day=2").mkdir()
    (warehouse / "sales.db" / "orders" / "day=2" / "file").write_text("12345")
    young = check(gateway.data_dir)
    assert (findings(young)[-1]["too_young"], young.returncode) == (2, 0)
    listed = check(gateway.data_dir, "--older-than", "0")
    *found, summary = findings(listed)
    assert sorted((one["kind"], one["files"], one["bytes"], one["removed"]) for one in found) == [
        ("partition", 1, 5, False),
        ("table", 0, 0, False),
    ]
    assert (summary["unknown_directory"], summary["is_clean"], listed.returncode) == (2, False, 1)
    as_rows = check(gateway.data_dir, "--older-than", "0", "--format", "csv")
    header, *rows = csv.reader(as_rows.stdout.splitlines())
    assert (header, as_rows.returncode) == (["what", "is_left", "text"], 1)
    assert {(what, is_left, text.partition(" ")[0]) for what, is_left, text in rows} == {
        ("unknown_directory", "true", one["location"]) for one in found
    }
    emptied = check(gateway.data_dir, "--older-than", "0", "--remove")
    assert {(one["kind"], one["removed"]) for one in findings(emptied)[:-1]} == {("table", True), ("partition", False)}
    assert emptied.returncode == 1
    done = check(gateway.data_dir, "--older-than", "0", "--remove-with-files")
    assert ([one["removed"] for one in findings(done)[:-1]], done.returncode) == ([True], 0)
    left = sorted(str(path.relative_to(warehouse)) for path in warehouse.rglob("*"))
    assert left == ["sales.db", "sales.db/orders", "sales.db/orders/day=1"]


def test_missing_directories_and_moves_that_did_not_end_are_listed(gateway: GatewayServer, warehouse: Path) -> None:
    store = open_store(f"sqlite:///{gateway.data_dir}/metastore.db", SystemClock(), Limits())
    try:
        table_id = store.read(lambda snapshot: snapshot.table("sales", "orders").table_id)  # type: ignore[union-attr]
        move_id = store.write(lambda tx: tx.insert_pending_move(table_id, "file:/x/a", "file:/x/b"))
        (warehouse / "sales.db" / "orders" / "day=1").rename(warehouse / "day=1")
        moving = check(gateway.data_dir)
        store.write(lambda tx: tx.delete_pending_move(move_id))
        done = check(gateway.data_dir)
    finally:
        store.close()
        (warehouse / "day=1").rename(warehouse / "sales.db" / "orders" / "day=1")
    assert [one["what"] for one in findings(moving)] == ["pending_move", "summary"]
    location = f"file:{warehouse}/sales.db/orders/day=1"
    assert findings(done)[0] == {
        "what": "missing_directory",
        "kind": "partition",
        "name": "sales.orders/day=1",
        "location": location,
    }
    assert (moving.returncode, done.returncode) == (1, 1)


def test_what_lies_outside_is_listed_with_what_to_set(gateway: GatewayServer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    done = check(gateway.data_dir, "--config", str(_settings(tmp_path, warehouse_dir=f"file:{tmp_path}/elsewhere")))
    outside = findings(done)[0]
    assert outside["what"] == "outside_roots"
    assert outside["tables"] == {"count": 1, "first": ["sales.orders"]}
    assert outside["partitions"] == {"count": 1, "first": ["sales.orders"]}
    assert outside["file_roots"] == [f"file:{gateway.data_dir}/warehouse"]
    assert done.returncode == 1


def test_a_check_makes_no_database(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not found; --data-dir or --database says where it is" in done.stderr
    (tmp_path / "metastore.db").touch()
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "hms-gateway migrate" in done.stderr


def test_a_damaged_database_is_named(gateway: GatewayServer, tmp_path: Path) -> None:
    source = gateway.data_dir / "metastore.db"
    copy = tmp_path / "metastore.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("VACUUM INTO ?", [str(copy)])
    content = bytearray(copy.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096 * 8] = b"\xff" * 4096 * 8
    copy.write_bytes(content)
    done = check(tmp_path)
    assert done.returncode in (1, 2)
    assert '"what": "damaged_database"' in done.stdout


def _settings(folder: Path, **values: str) -> Path:
    file = folder / "settings.toml"
    file.write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))
    return file
