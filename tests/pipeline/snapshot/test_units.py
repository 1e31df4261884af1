"""What an event makes necessary to read again: for random changes, on a real metastore, without Spark."""

import random

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.catalog import events, latest
from hms_gateway.pipeline.snapshot.objects import LISTED
from hms_gateway.pipeline.snapshot.units import (
    CATALOG,
    CONTENTS,
    DATABASE,
    DEFINITION,
    PARTITION,
    TABLE,
    Reading,
    Rounds,
    Unit,
    is_settled,
    to_read,
    units_of,
    works_of,
)
from hms_gateway.rpc.structs import NotificationEvent, Table
from tests.pipeline.snapshot.catalogs import Changes, descriptor, everything, open_metastore, read, statistics, whole
from tests.support.sample import FIRST_SEED, sample


@pytest.fixture
def client(tmp_path):
    metastore, client = open_metastore(tmp_path)
    yield client
    metastore.store.close()


def event(kind, database="d", table=None, message="{}"):
    return NotificationEvent(1, 0, kind, database, table, message)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + sample(1, of=3)))
def test_reading_again_what_events_name_gives_the_catalog(client, seed):
    changes = Changes(client, random.Random(seed))
    for _ in range(150):
        changes.make_one()
    kept, children = read(client, everything(client))
    kept = [(0, row) for row in kept if row.kind not in LISTED]
    readings = [Reading(latest(client), frozenset((Unit(CATALOG),)))]
    for number in range(1, 25):
        for _ in range(changes.random.choice((2, 2, 8))):
            changes.make_one()
        since, now = readings[-1].event, latest(client)
        found = (unit for one in events(client, since, now) for unit in units_of(one))
        units = to_read(found, children)
        tables = {unit.database: _tables(client, unit.database) for unit in units if unit.kind == CONTENTS}
        rows, more_children = read(client, list(works_of(units, tables)))
        for parent, referring in more_children.items():
            children.setdefault(parent, set()).update(referring)
        readings.append(Reading(now, units))
        kept += [(number, row) for row in rows]
        rounds = Rounds(readings)
        counting = [row for at, row in kept if rounds.counts(at, row.database, row.table, row.partition)]
        assert len(counting) == len({row[:5] for row in counting}), changes.made
        assert {row[:5]: row.object for row in counting} == whole(client, listed=False), (changes.made[-4:], units)
    assert len(set(changes.made)) > 12, changes.made


def _tables(client, database):
    return client.call("get_all_tables", database)


@pytest.mark.slow
def test_changes_of_parameters_leave_the_partitions_alone(client):
    changes = Changes(client, random.Random(1))
    for _ in range(200):
        made, before = "", latest(client)
        made = changes.make_one()
        kinds = {unit.kind for one in events(client, before, latest(client)) for unit in units_of(one)}
        if made in ("change_table_parameters", "change_table_statistics"):
            assert kinds == {DEFINITION}
        if made in ("change_add_partitions", "change_partition", "change_partition_statistics"):
            assert kinds == {PARTITION}


@pytest.mark.parametrize(
    ("given", "units"),
    [
        (event("CREATE_DATABASE"), {Unit(CONTENTS, "d")}),
        (event("ALTER_DATABASE", "D"), {Unit(DATABASE, "d")}),
        (event("CREATE_TABLE", "d", "T"), {Unit(TABLE, "d", "t")}),
        (event("INSERT", "d", "t"), set()),
        (event("COMMIT_TXN", None), set()),
        (event("CREATE_FUNCTION"), set()),
        (event("ALTER_TABLE", "d", "t", "H4sIAAAA"), {Unit(TABLE, "d", "t")}),
        (event("ADD_PARTITION", "d", "t", "H4sIAAAA"), {Unit(TABLE, "d", "t")}),
        (event("ADD_PARTITION", "d", "t", '{"partitions": []}'), {Unit(TABLE, "d", "t")}),
        (event("ADD_PARTITION", "d", "t", '{"partitions": [{"ds": "a b"}]}'), {Unit(PARTITION, "d", "t", "ds=a b")}),
        (event("OF_THE_FUTURE", "d", "t"), {Unit(TABLE, "d", "t")}),
        (event("OF_THE_FUTURE", "d"), {Unit(CONTENTS, "d")}),
        (event("OF_THE_FUTURE", None), {Unit(CATALOG)}),
    ],
)
def test_units_of_an_event(given, units):
    assert units_of(given) == units


def test_a_round_is_settled_by_changes_of_other_things():
    read = Reading(5, frozenset((Unit(DEFINITION, "d", "t"), Unit(PARTITION, "d", "t", "k=1"))))
    assert is_settled(read, ())
    assert is_settled(read, [Unit(PARTITION, "d", "t", "k=2"), Unit(TABLE, "d", "u"), Unit(DATABASE, "d")])
    assert not is_settled(read, [Unit(PARTITION, "d", "t", "k=1")])
    assert not is_settled(read, [Unit(TABLE, "d", "t")])
    assert not is_settled(read, [Unit(CONTENTS, "d")])
    assert not is_settled(read, [Unit(CATALOG)])
    assert is_settled(Reading(5, frozenset()), [Unit(CATALOG)])
    assert not is_settled(Reading(5, frozenset((Unit(CATALOG),))), [Unit(DATABASE, "d")])


def test_tables_that_refer_to_a_changed_one_are_read_too():
    children = {("d", "t"): {("e", "child")}, ("d", "u"): {("d", "other")}}
    assert to_read([Unit(TABLE, "d", "t")], children) == {Unit(TABLE, "d", "t"), Unit(DEFINITION, "e", "child")}
    assert to_read([Unit(CONTENTS, "d")], children) == {Unit(CONTENTS, "d"), Unit(DEFINITION, "e", "child")}
    assert to_read([Unit(PARTITION, "d", "t", "k=1")], children) == {Unit(PARTITION, "d", "t", "k=1")}


def test_what_is_part_of_another_unit_is_read_with_it():
    table, rest = Unit(TABLE, "d", "t"), {Unit(DATABASE, "e"), Unit(PARTITION, "d", "u", "k=1")}
    parts = {table, Unit(DEFINITION, "d", "t"), Unit(PARTITION, "d", "t", "k=1"), *rest}
    assert to_read(parts, {}) == {table, *rest}
    assert to_read({*parts, Unit(CONTENTS, "d")}, {}) == {Unit(CONTENTS, "d"), Unit(DATABASE, "e")}
    assert to_read({*parts, Unit(CATALOG)}, {}) == {Unit(CATALOG)}


def test_statistics_of_materialized_views_are_read_and_those_of_views_are_none(client):
    for name, kind in (("totals", "MATERIALIZED_VIEW"), ("plain", "VIRTUAL_VIEW")):
        query = {"viewOriginalText": "select id from t", "viewExpandedText": "select id from t"}
        client.call(
            "create_table",
            Table(tableName=name, dbName="default", tableType=kind, sd=descriptor(), parameters={}, **query),
        )
    client.call("update_table_column_statistics", statistics("default", "totals", None, 1))
    assert [key[1:3] for key in whole(client) if key[0] == "statistics"] == [("default", "totals")]
