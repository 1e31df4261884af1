"""Histories of processes that write and read a transactional table, with lists, over two gateways on PostgreSQL."""

from pathlib import Path

import pytest

from hms_gateway import MetastoreClient
from tests.linearizability.list_readers import records, violations
from tests.support.catalog import columns, transactional_table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sample import sample
from tests.support.server import GatewayServer, trusting
from tests.support.warm_program import WarmModule

COUNTS = sample("--writers 3 --readers 5 --commits 4", of="--writers 4 --readers 12 --commits 6").split()

READ = {"kind": "read", "list": "default.t:1:9::", "begun": 5.0, "ended": 6.0, "names": ["ds=a", "ds=b"]}
COMMIT = {"kind": "commit", "begun": 1.0, "ended": 2.0, "write_id": 1, "names": ["ds=a", "ds=b"]}


@pytest.mark.slow
@pytest.mark.postgres
def test_processes_see_what_their_lists_say(migrated_postgres_database: str, tmp_path: Path) -> None:
    settings = {"workers": 1, "warehouse_dir": f"file:{tmp_path}/warehouse"}
    one, other = (
        GatewayServer(tmp_path / name, database=migrated_postgres_database, settings=settings)
        for name in ("one", "other")
    )
    with one, other:
        with MetastoreClient(one.url, (one.user, one.password), trusting()) as metastore:
            metastore.call("create_table", transactional_table(keys=columns("ds string")))
        words = [str(tmp_path), one.url, other.url, "--user", one.user, "--password", one.password, *COUNTS]
        readers = WarmModule("tests.linearizability.list_readers", *words)
        readers.communicate(PATIENCE_SECONDS)
        assert readers.returncode == 0
    history = records(tmp_path)
    assert violations(history) == []
    kinds = [record["kind"] for record in history]
    assert kinds.count("commit") > sample(6, of=16)
    assert kinds.count("read") > sample(15, of=100)


@pytest.mark.parametrize(
    ("history", "count"),
    [
        ([COMMIT, READ], 0),
        ([COMMIT, READ | {"names": ["ds=a"]}], 1),
        ([COMMIT, READ | {"list": "default.t:0:9::"}], 1),
        ([COMMIT, READ | {"list": "default.t:1:1:1:"}], 1),
        ([COMMIT | {"ended": 5.5}, READ | {"list": "default.t:0:9::", "names": []}], 0),
        ([COMMIT | {"kind": "abort"}, READ | {"list": "default.t:1:9::1", "names": ["ds=a"]}], 0),
        ([COMMIT | {"begun": 7.0, "ended": 8.0}, READ | {"list": "default.t:0:9::"}], 2),
    ],
)
def test_the_check_sees_what_is_wrong(history: list[dict[str, object]], count: int) -> None:
    assert len(violations(history)) == count
