"""The rules: planted defects are found and nothing else is, in any catalog, however the work is cut."""

from random import Random

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.pipeline.audit.findings import Sorter, find
from hms_gateway.pipeline.audit.places import Area, Areas, Group, below, partition_place, replaced_place, table_place
from tests.pipeline.audit.realizing import partition_of, table_of
from tests.pipeline.audit.world import LIMITS, PLANTS, healthy, plant
from tests.support.sample import sample

ROOT = "file:/warehouse"


def audited(world):
    """All findings: what Spark does with tasks, in one."""
    tables, partitions = {}, []
    for name, table in world.tables.items():
        made = table_of(table.row)
        place = table_place(made, [world.databases[table.row.database]])
        if place is None:
            continue
        tables[name] = place
        for values, row in table.partitions.items():
            partition = partition_place(partition_of(table, values, made.sd), place)
            partitions += [one for one in (partition, replaced_place(partition, row.parameters)) if one is not None]
    areas = Areas(tables.values(), {name: [location] for name, location in world.databases.items()})
    directories = list(world.directories())
    unreadable = [one.location for one in directories if one.error]
    tops = sorted({place.location for place in partitions if areas.group_of(place.location) is None})

    def group_of(location):
        found = areas.group_of(location)
        return found or next((Group(top) for top in tops if below(top, location) is not None), None)

    groups = {}
    for place in [*tables.values(), *partitions]:
        groups.setdefault(group_of(place.location), ([], []))[0].append(place)
    for directory in directories:
        if (group := group_of(directory.location)) is not None:
            groups.setdefault(group, ([], []))[1].append(directory)
    found = []
    for group, (places, of_group) in groups.items():
        area = areas.area(group.area)
        if group.area in tops:
            area = Area(group.area, places[0])
        above = [one for one in unreadable if below(one, group.area) is not None]
        sorter = Sorter(area, places)
        for directory in of_group:
            sorter.add(directory)
        found += find(sorter, LIMITS, above)
    return found


def compared(findings):
    return sorted(
        (one.kind.value, one.severity.value, one.full_name, one.location, one.fix and one.fix.value) for one in findings
    )


def wanted(expected):
    return sorted((one.kind, one.severity, one.name, one.location, one.fix) for one in expected)


@pytest.mark.slow
@given(st.integers(0, 2**40))
def test_nothing_is_found_where_nothing_is_wrong(seed):
    assert compared(audited(healthy(ROOT, Random(seed)))) == []


@pytest.mark.slow
@given(st.integers(0, 2**40), st.integers(1, 12))
def test_all_planted_defects_are_found_and_nothing_else(seed, count):
    world = healthy(ROOT, Random(seed))
    expected = plant(world, count)
    assert compared(audited(world)) == wanted(expected)


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTS, ids=lambda one: one.__name__)
def test_each_defect_is_found_alone(planted):
    seen = 0
    for seed in range(sample(8, of=40)):
        world = healthy(ROOT, Random(seed))
        expected = planted(world)
        assert compared(audited(world)) == wanted(expected)
        seen += bool(expected)
    assert seen
