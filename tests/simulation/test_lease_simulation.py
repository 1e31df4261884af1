"""Leases under random schedules and faults. LEASE_SIMULATION_STEPS asks for a longer run."""

import os

import pytest

from tests.simulation.lease_simulation import LeaseSimulation
from tests.simulation.planted_lease_bugs import BUGS
from tests.simulation.violations import Violation

STEPS_PER_SEED = 4_000
STEPS = int(os.environ.get("LEASE_SIMULATION_STEPS", "400000"))
BUG_STEPS_MAX = 600_000


def play(steps: int) -> None:
    for seed in range(max(1, steps // STEPS_PER_SEED)):
        LeaseSimulation(seed).run(STEPS_PER_SEED)


@pytest.mark.slow
def test_nothing_is_ever_violated() -> None:
    play(STEPS)


def test_a_seed_is_played_the_same_again() -> None:
    one, other = LeaseSimulation(7), LeaseSimulation(7)
    for simulation in (one, other):
        simulation.run(500)
    assert one.database.held == other.database.held
    assert one.database.events == other.database.events


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names its seed and step, so that it can be played again."""
    monkeypatch.setattr(*BUGS[name])
    with pytest.raises(Violation, match=r"seed \d+, step \d+"):
        play(BUG_STEPS_MAX)
