"""The fake that the simulation runs on behaves as the databases do."""

import pytest

from tests.contract.test_txn_scenarios import SCENARIOS
from tests.simulation.txn_memory import MemoryStore
from tests.txn.scenario import World


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    store = MemoryStore()

    def sleep(seconds: int) -> None:
        store.clock_ms += seconds * 1000

    World(store, sleep).play(SCENARIOS[name])
