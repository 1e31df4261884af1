"""Leases under random schedules and faults, a sample of them."""

import pytest

from hms_gateway.rpc.structs import LeaseObject
from hms_gateway.txn.services.leases import LeaseService
from hms_gateway.txn.services.settings import LeaseSettings
from tests.simulation.lease_database import LeaseDatabase
from tests.simulation.lease_simulation import LeaseSimulation
from tests.simulation.planted_lease_bugs import BUGS
from tests.simulation.violations import Violation
from tests.support.sample import sample

STEPS_PER_SEED = 4_000
STEPS = sample(20_000, of=5_000_000)
BUG_STEPS_MAX = 600_000
# Where the first seeds do not find it soon.
SEED_OF_BUG = {"a lease is live at its end": 29}


def play(steps: int, first_seed: int = 0) -> None:
    for seed in sorted(range(max(1, steps // STEPS_PER_SEED)), key=lambda seed: seed != first_seed):
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


def test_what_ended_before_another_became_exclusive_does_not_come_back_with_the_clock() -> None:
    """Found by seed 491."""
    database = LeaseDatabase()
    service = LeaseService(database, LeaseSettings())  # type: ignore[arg-type]
    first = service.grab("ann", [LeaseObject("d", "t")], 100, 0)
    service.grab("bob", [LeaseObject("d", "t")], 1, 0)
    database.clock.now_ms += 1_500
    assert isinstance(first, int)
    service.extend("ann", first, [LeaseObject("d", "t", None, "x")])
    database.clock.now_ms -= 1_000
    assert [lease.user for lease in service.listed([])] == ["ann"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names its seed and step, so that it can be played again."""
    monkeypatch.setattr(*BUGS[name])
    with pytest.raises(Violation, match=r"seed \d+, step \d+"):
        play(BUG_STEPS_MAX, SEED_OF_BUG.get(name, 0))
