"""Transactions and locks under random schedules and faults, a sample: TXN_SIMULATION_STEPS=5000000 asks for more."""

import os

import pytest

from tests.simulation.planted_bugs import BUGS
from tests.simulation.txn_simulation import Simulation
from tests.simulation.violations import Violation

# Each seed is a world of its own; what worlds keep in memory grows with their length.
STEPS_PER_SEED = 4_000
STEPS = int(os.environ.get("TXN_SIMULATION_STEPS", "100000"))
BUG_STEPS_MAX = 600_000


def play(steps: int) -> None:
    for seed in range(max(1, steps // STEPS_PER_SEED)):
        Simulation(seed).run(STEPS_PER_SEED)


@pytest.mark.slow
def test_nothing_is_ever_violated() -> None:
    play(STEPS)


def test_a_seed_is_played_the_same_again() -> None:
    one, other = Simulation(7), Simulation(7)
    for simulation in (one, other):
        simulation.run(500)
    assert one.store.txns.known == other.store.txns.known
    assert one.store.txns.locks == other.store.txns.locks


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names its seed and step, so that it can be played again."""
    monkeypatch.setattr(*BUGS[name])
    with pytest.raises(Violation, match=r"seed \d+, step \d+"):
        play(BUG_STEPS_MAX)
