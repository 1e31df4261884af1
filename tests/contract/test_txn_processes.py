"""Several processes with several threads each on one database: ids, exclusive locks and deadlocks between them."""

import json
from pathlib import Path

import pytest

from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
from tests.support.sample import sample
from tests.support.warm_program import WarmModule
from tests.txn.scenario import World

PROCESSES, THREADS = sample((2, 3), of=(4, 4))
ROUNDS = 5


@pytest.mark.slow
# On MariaDB tests/linearizability asks the same and more.
@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
def test_processes_exclude_each_other(database_url: str, tmp_path: Path) -> None:
    register = tmp_path / "register"
    register.write_text("00000000")
    running = [
        WarmModule("tests.contract.txn_process", database_url, str(seed), str(THREADS), str(ROUNDS), str(register))
        for seed in range(PROCESSES)
    ]
    outputs = [process.communicate(timeout=240)[0] for process in running]
    assert [process.returncode for process in running] == [0] * PROCESSES
    histories = [client for output in outputs for client in json.loads(output)]

    # An update that got lost would mean that two held the exclusive lock at once.
    assert int(register.read_text()) == sum(len(told["held"]) for told in histories) == PROCESSES * THREADS * ROUNDS
    for kind in ("txns", "locks", "writes"):
        given = [number for told in histories for number in told[kind]]
        assert len(given) == len(set(given)), f"{kind} given twice"
        assert all(told[kind] == sorted(told[kind]) for told in histories), f"{kind} went backwards"
    assert sorted(number for told in histories for number in told["txns"]) == list(
        range(1, PROCESSES * THREADS * ROUNDS + 1)
    )
    store = open_store(database_url, SystemClock(), Limits())
    world = World(store, lambda seconds: None)
    assert world.shown_locks() == []
    aborted = {one.txn_id for one in world.transactions.open_txns().unfinished}
    assert aborted == {txn_id for told in histories for txn_id in told["victims"]}
    store.close()
