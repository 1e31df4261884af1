"""Every scenario on our metastore and on the real one: the same answers, and the same catalog after them."""

import os

import pytest

from tests.spark.declared import declared
from tests.spark.recording import load
from tests.spark.scenario_run import differences, outcome, unexpected
from tests.spark.scenarios import SCENARIOS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The real metastore is asked again only for some, all of them with HMS_TESTS_LIVE=all: the record has the rest.
LIVE = (
    "partitioned_text_date", "partitioned_parquet_int", "unpartitioned_orc", "external_text", "filters_parquet",
    "special_characters_orc", "databases", "views", "functions", "cascade",
)  # fmt: skip
LIVE_NOW = tuple(SCENARIOS) if os.environ.get("HMS_TESTS_LIVE") == "all" else LIVE
_used: set[tuple[str, int]] = set()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_ends_as_with_the_real_metastore(place, name):
    found = outcome(place, SCENARIOS[name])
    assert not list(unexpected(SCENARIOS[name], found["answers"]))
    assert undeclared(name, found) == []


@pytest.mark.java
@pytest.mark.parametrize("name", LIVE_NOW)
def test_the_record_is_what_the_real_metastore_does(real_place, name):
    assert list(differences(load(name), outcome(real_place, SCENARIOS[name]))) == []


def test_every_declared_difference_was_seen(place):
    """Runs after the scenarios; says nothing when only some of them ran."""
    ran = {name for name, _ in _used}
    if ran == set(SCENARIOS):
        seen = {index for _, index in _used}
        assert [row for index, row in enumerate(declared()) if index not in seen] == []


def undeclared(name: str, found: dict[str, object]) -> list[tuple[str, object, object]]:
    """The differences to the record that docs/spark.md does not name."""
    rows = declared()
    left = []
    _used.add((name, -1))
    for path, real, ours in differences(load(name), found):
        covering = [index for index, row in enumerate(rows) if row.covers(name, path, real, ours)]
        _used.update((name, index) for index in covering)
        if not covering:
            left.append((path, real, ours))
    return left
