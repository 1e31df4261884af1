"""Readers with lists of write ids under random schedules, a sample of them."""

import pytest

from tests.simulation.planted_list_bugs import BUGS
from tests.simulation.reader_lists_simulation import Simulation
from tests.simulation.violations import Violation
from tests.support.sample import sample

STEPS_PER_SEED = 5_000
STEPS = sample(40_000, of=5_000_000)
BUG_STEPS_MAX = 2_000_000
# Where a bug shows late, the seed that shows it. The others follow: after a change of the code it may show elsewhere.
SEED_OF_BUG = {
    "a commit commits all before it": 290,
}


def play(steps: int, first_seed: int = 0) -> int:
    hits = 0
    for seed in sorted(range(max(1, steps // STEPS_PER_SEED)), key=lambda seed: seed != first_seed):
        simulation = Simulation(seed)
        simulation.run(STEPS_PER_SEED)
        hits += simulation.hits
    return hits


@pytest.mark.slow
def test_nothing_is_ever_violated() -> None:
    assert play(STEPS) > STEPS // 50


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names its seed and step, so that it can be played again."""
    monkeypatch.setattr(*BUGS[name])
    with pytest.raises(Violation, match=r"seed \d+, step \d+"):
        play(BUG_STEPS_MAX, SEED_OF_BUG.get(name, 0))
