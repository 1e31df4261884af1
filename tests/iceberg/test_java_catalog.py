"""Iceberg's own HiveCatalog for Java, whose MetastoreLock takes an exclusive lock for each commit: java/Appender.java.

It brings Hive 3's client. The gateway refuses a change while a lock of another caller excludes it.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from hms_gateway.rpc.structs import (
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    ShowLocksRequest,
    UnlockRequest,
)
from tests.iceberg.test_catalog import SCHEMA
from tests.iceberg.test_writers import start, statuses
from tests.oracle.peer import SHORT_LIFE
from tests.oracle.third_peer import LIBRARIES
from tests.support import java_classes
from tests.support.sample import sample

pytestmark = [pytest.mark.iceberg, pytest.mark.java, pytest.mark.slow]

SOURCE = Path(__file__).parent / "java" / "Appender.java"
COMMITS_EACH = 4
JAVA_WRITERS = sample(1, of=2)
SECONDS_MAX = 120

Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def class_path() -> str:
    if not LIBRARIES.is_dir():
        pytest.skip("no jars of Iceberg (requirements/iceberg-java.txt)")
    return java_classes.class_path(LIBRARIES, SOURCE)


@pytest.fixture
def begin(class_path, uri) -> Started:
    """Start the program on a table: which file it appends first, and how many."""
    program = ["java", *SHORT_LIFE, "-Xmx256m", "-cp", class_path, "Appender", uri]

    def begun(database: str, table: str, first: int, count: int) -> subprocess.Popen[str]:
        command = [*program, database, table, str(first), str(count)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    return begun


@pytest.fixture
def namespace(catalog, request):
    name = request.node.name
    catalog.create_namespace(name)
    yield name
    catalog.drop_table(f"{name}.t")
    catalog.drop_namespace(name)


def files(process: subprocess.Popen[str]) -> set[str]:
    """The names that it has printed at its end."""
    with process:
        try:
            printed, _ = process.communicate(timeout=SECONDS_MAX)
        finally:
            process.kill()
    assert process.returncode == 0
    return {Path(line).name for line in printed.splitlines()}


@pytest.mark.whole
def test_java_and_python_append_to_one_table(begin, uri, catalog, namespace, thrift_client):
    table = catalog.create_table(f"{namespace}.t", SCHEMA)
    writers = [begin(namespace, "t", number * COMMITS_EACH, COMMITS_EACH) for number in range(JAVA_WRITERS)]
    python = start(uri, table, 100, COMMITS_EACH)
    seen = [files(writer) for writer in writers]
    assert statuses([python]) == [0]
    expected = {f"{number}.parquet" for number in range(JAVA_WRITERS * COMMITS_EACH)}
    table.refresh()
    # Each Java process has seen its own; the last of them all of Java's.
    assert expected <= set.union(*seen)
    assert len(table.snapshots()) == (JAVA_WRITERS + 1) * COMMITS_EACH
    assert not thrift_client.show_locks(ShowLocksRequest()).locks


def test_a_commit_waits_for_the_lock_of_another(begin, namespace, thrift_client):
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, namespace, "t")
    held = thrift_client.lock(LockRequest([component], user="another", hostname="elsewhere"))
    assert held.state == LockState.ACQUIRED
    writer = begin(namespace, "t", 0, 1)
    end = monotonic() + SECONDS_MAX
    while not waits(thrift_client, namespace) and writer.poll() is None and monotonic() < end:
        thrift_client.heartbeat(HeartbeatRequest(lockid=held.lockid))
        sleep(0.1)
    assert waits(thrift_client, namespace)
    thrift_client.unlock(UnlockRequest(held.lockid))
    assert files(writer) == {"0.parquet"}


def waits(thrift_client, database: str) -> bool:
    locks = thrift_client.show_locks(ShowLocksRequest(dbname=database)).locks
    return LockState.WAITING in {lock.state for lock in locks}
