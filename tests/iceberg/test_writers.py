"""Several processes that append to one table at the same time, and one that dies while it holds the lock."""

import subprocess
import sys
from pathlib import Path

import pytest

from hms_gateway.rpc.structs import ShowLocksRequest
from tests.iceberg.test_catalog import SCHEMA, ids
from tests.support.sample import sample

pytestmark = [pytest.mark.iceberg, pytest.mark.slow]

APPENDER = Path(__file__).with_name("appender.py")
PROCESSES = sample(3, of=8)
COMMITS_EACH = sample(3, of=5)
SECONDS_MAX = 120


@pytest.fixture
def table(catalog, request):
    name = request.node.name
    catalog.create_namespace(name)
    yield catalog.create_table(f"{name}.t", SCHEMA)
    catalog.drop_table(f"{name}.t")
    catalog.drop_namespace(name)


def start(uri: str, table, first: int, count: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(APPENDER), uri, ".".join(table.name()), str(first), str(count)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def statuses(writers: list[subprocess.Popen[str]]) -> list[int]:
    """How each ended; none is left running."""
    try:
        return [writer.wait(SECONDS_MAX) for writer in writers]
    finally:
        for writer in writers:
            with writer:
                writer.kill()


def test_no_snapshot_is_lost_and_no_lock_is_left(uri, table, thrift_client):
    writers = [start(uri, table, number * COMMITS_EACH, COMMITS_EACH) for number in range(PROCESSES)]
    assert statuses(writers) == [0] * PROCESSES
    table.refresh()
    assert ids(table) == list(range(PROCESSES * COMMITS_EACH))
    assert len(table.snapshots()) == PROCESSES * COMMITS_EACH
    assert not thrift_client.show_locks(ShowLocksRequest()).locks


def test_the_lock_of_a_killed_writer_expires(uri, table, thrift_client):
    with start(uri, table, 99, "stop") as killed:
        assert killed.stdout.readline() == "locked\n"
        others = [start(uri, table, number, 1) for number in range(2)]
        killed.kill()
    assert len(thrift_client.show_locks(ShowLocksRequest()).locks) >= 1
    assert statuses(others) == [0, 0]
    table.refresh()
    assert ids(table) == [0, 1]
    assert not thrift_client.show_locks(ShowLocksRequest()).locks
