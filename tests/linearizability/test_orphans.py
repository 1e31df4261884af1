"""A client that is killed keeps its locks until it was silent for the time-out, by the database's clock, no longer."""

import time
from pathlib import Path

import pytest

from hms_gateway.rpc.structs import TxnAbortedException
from tests.linearizability.playing import OTHERS_OF_THE_WHOLE
from tests.linearizability.services import GatewayServices
from tests.support.patience import until
from tests.support.server import GatewayServer
from tests.support.warm_program import WarmModule

pytestmark = pytest.mark.slow

TIMEOUT_SECONDS = 3.0
# Databases count in milliseconds.
SLACK_SECONDS = 0.005
HEARTBEATS = 20


@pytest.mark.parametrize("database", OTHERS_OF_THE_WHOLE)
def test_locks_of_the_dead_fall_free_in_time(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = None
    if database != "sqlite":
        url = request.getfixturevalue(f"migrated_{database}_database")
    settings = {"txn_timeout_seconds": TIMEOUT_SECONDS}
    with GatewayServer(tmp_path / "gateway", database=url, settings=settings) as server:
        account = (server.url, server.user, server.password)
        services = GatewayServices(*account)
        ids, last_heartbeat = killed_client(services, account)
        txn_id, of_txn, alone = ids
        for table, orphan in (("t", of_txn), ("u", alone)):
            lock_id, state = services.lock(0, False, [(("default", table, None), "EXCLUSIVE", None)])
            assert lock_id > orphan
            if state == "WAITING":
                until(lambda lock_id=lock_id: services.check_lock(lock_id) == "ACQUIRED", pause_seconds=0.02)
            assert seconds_since(last_heartbeat) > TIMEOUT_SECONDS - SLACK_SECONDS
        services.db_name = "default"
        assert {row[0] for row in services.show_locks()}.isdisjoint(ids[1:])
        assert services.open_txns(txn_id) == (txn_id, [(txn_id, False)])
        # What the dead one had still sent, or would send if it were not quite dead.
        with pytest.raises(TxnAbortedException):
            services.commit(txn_id, checks=True, is_strict=False)
        services.close()


def killed_client(services: GatewayServices, account: tuple[str, str, str]) -> tuple[list[int], int]:
    """The ids of its transaction and locks, and when it sent its last heartbeat, at the earliest."""
    process = WarmModule("tests.linearizability.orphan", *account)
    try:
        ids = [int(word) for word in process.stdout.readline().split()]
        for _ in range(HEARTBEATS):
            assert process.stdout.readline()
        # Others have to wait for as long as it lives.
        lock_id, state = services.lock(0, False, [(("default", "t", None), "SHARED_READ", None)])
        assert state == "WAITING"
        services.unlock(lock_id)
    finally:
        process.kill()
    beats = process.communicate()[0].split()
    return ids, int(beats[-1])


def seconds_since(time_ns: int) -> float:
    return (time.monotonic_ns() - time_ns) / 1e9
