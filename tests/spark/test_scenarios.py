"""Every scenario on our metastore and on the real one: the same answers, and the same catalog after them."""

from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.spark.declared import declared
from tests.spark.recording import load
from tests.spark.sample import SAMPLE
from tests.spark.scenario_run import differences, outcome, unexpected
from tests.spark.scenarios import SCENARIOS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_used: set[tuple[str, int]] = set()


@pytest.mark.parametrize("name", SAMPLE)
def test_a_scenario_ends_as_with_the_real_metastore(place, name):
    found = outcome(place, SCENARIOS[name])
    assert not list(unexpected(SCENARIOS[name], found["answers"]))
    assert undeclared(name, found) == []


@pytest.mark.java
@pytest.mark.whole
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_record_is_what_the_real_metastore_does(real_place, name):
    assert list(differences(load(name), outcome(real_place, SCENARIOS[name]))) == []


def test_every_declared_difference_was_seen(place):
    """Runs after the scenarios; says nothing of a difference when only some ran of those that may show it."""
    ran = {name for name, _ in _used}
    seen = {index for _, index in _used}
    showing = [{name for name in SCENARIOS if fnmatchcase(name, row.scenarios)} for row in declared()]
    assert [row for index, row in enumerate(declared()) if showing[index] <= ran and index not in seen] == []


def undeclared(name: str, found: dict[str, Any]) -> list[tuple[str, object, object]]:
    """The differences to the record that docs/reference/spark.md does not name."""
    rows = declared()
    left = []
    _used.add((name, -1))
    recorded = load(name)
    both = zip(recorded["answers"], found["answers"], strict=True)
    recorded["answers"] = [None if ours is None else real for real, ours in both]
    for path, real, ours in differences(recorded, found):
        covering = [index for index, row in enumerate(rows) if row.covers(name, path, real, ours)]
        _used.update((name, index) for index in covering)
        if not covering:
            left.append((path, real, ours))
    return left
