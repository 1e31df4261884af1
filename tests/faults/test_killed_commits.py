"""A gateway that is killed between the files of a commit and its row: a check finds them, and removes nothing else."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from hms_gateway.iceberg.appends import REBASE
from tests.cli.operations.test_checking import check, findings
from tests.iceberg_rest.conftest import SCHEMA
from tests.iceberg_rest.test_appends import Writer
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import PASSWORD, USER, GatewayServer

TABLE = "namespaces/sales/tables/orders"


class OverHttp:
    """What `Writer` needs of a client."""

    def __init__(self, gateway: GatewayServer) -> None:
        self._gateway = gateway

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        url = f"http://127.0.0.1:{self._gateway.port}/iceberg/v1/{path}"
        answer = httpx.post(url, json=body, auth=(USER, PASSWORD))
        return answer.status_code, answer.json()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path / "gateway", settings={"tls": False}) as running:
        yield running


def test_files_of_a_killed_commit_are_found_and_removed_and_nothing_else(gateway: GatewayServer) -> None:
    rest = OverHttp(gateway)
    assert rest.post("namespaces", {"namespace": ["sales"]})[0] == 200
    status, table = rest.post(
        "namespaces/sales/tables", {"name": "orders", "schema": SCHEMA, "properties": {REBASE: "true"}}
    )
    assert status == 200
    folder = Writer(rest, table).folder
    assert Writer(rest, table).append(1)[0] == 200
    before = files(folder)
    body = Writer(rest, table).request(2)
    # The row waits for the lock of the database, the files do not.
    with closing(sqlite3.connect(gateway.data_dir / "metastore.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=quietly, args=(rest, body))
        thread.start()
        until(lambda: len(files(folder) - before) == 3, "the client's list, the gateway's and its metadata file")
        gateway.kill()
        thread.join(PATIENCE_SECONDS)
        holder.execute("ROLLBACK")
    left = files(folder) - before - {"2.avro"}
    gateway.start()
    assert (findings(check(gateway.data_dir, "--older-than", "0")))[:-1] == []
    status, now = Writer(rest, table).append(3)
    assert status == 200
    kept = files(folder) - left
    assert findings(check(gateway.data_dir))[:-1] == []
    for option, is_removed in (("--remove", False), ("--remove-with-files", True)):
        done = check(gateway.data_dir, "--older-than", "0", option)
        found = findings(done)[:-1]
        assert {Path(one["location"]).name for one in found} == left
        assert {(one["what"], one["table"], one["removed"]) for one in found} == {
            ("orphan_file", "sales.orders", is_removed)
        }
        assert done.returncode == (0 if is_removed else 1)
    assert files(folder) == kept
    assert [one["snapshot-id"] for one in now["metadata"]["snapshots"]] == [1, 3]


def files(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def quietly(rest: OverHttp, body: Any) -> None:
    with suppress(httpx.HTTPError):
        rest.post(TABLE, body)
