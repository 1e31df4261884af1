"""Column statistics as the service keeps them, with the texts of semantics §2.16."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import (
    ColumnStatisticsData_v4,
    ColumnStatisticsObj_v4,
    Decimal,
    DecimalColumnStatsData_v4,
    EnvironmentContext,
    InvalidInputException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
    SetPartitionsStatsRequest_v4,
)
from tests.metastore.statistics_world import (
    P,
    T,
    add_partitions,
    longs,
    make_service,
    partitions,
    refusal,
    statistics,
    strings,
)
from tests.support.catalog import NOW, Catalog, columns, new_table, open_catalog
from tests.support.statistics_calls import CALL, StatisticsCalls

KEEP = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as opened:
        yield opened


@pytest.fixture
def service(catalog: Catalog) -> StatisticsCalls:
    return make_service(catalog)


def accuracy(catalog: Catalog, table: TableName = T) -> Any:
    text = catalog.tables.get(table).parameters.get("COLUMN_STATS_ACCURATE")
    return None if text is None else json.loads(text)


def partition_accuracy(catalog: Catalog, *values: str) -> Any:
    text = partitions(catalog).get(P, list(values)).parameters.get("COLUMN_STATS_ACCURATE")
    return None if text is None else json.loads(text)


def found(service: StatisticsCalls, table: TableName = T) -> dict[str, Any]:
    return {one.colName: one.statsData for one in service.of_table(table, None)}


def found_of(service: StatisticsCalls, *part_names: str) -> dict[str, dict[str, Any]]:
    known = service.of_partitions(P, part_names, None)
    return {name: {one.colName: one.statsData for one in of} for name, of in known.items()}


# -- tables


def test_what_was_stored_is_read_in_the_order_asked_for(service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2), b=strings(9, 4.5)))
    assert service.of_table(T, ["B", " a ", "b", "none"]) == [
        ColumnStatisticsObj_v4("b", "string", strings(9, 4.5)),
        ColumnStatisticsObj_v4("a", "int", longs(1, 2)),
    ]
    assert service.of_table(TableName("DEFAULT", " T "), ["a"])[0].statsData == longs(1, 2)
    assert service.of_table(T, []) == []


def test_one_column_with_its_description(service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2)))
    one = service.get_of_table(T, "A")
    assert (one.statsDesc.isTblLevel, one.statsDesc.dbName, one.statsDesc.tableName) == (True, "default", "t")
    assert (one.statsDesc.partName, one.statsDesc.lastAnalyzed, one.engine) == (None, NOW, "hive")
    service.update_table(statistics(a=longs(1, 2), analyzed=77))
    assert service.get_of_table(T, "a").statsDesc.lastAnalyzed == 77


def test_an_update_keeps_what_it_leaves_out_and_the_stored_type(service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2, 3, 4)))
    service.update_table(statistics(a=longs(None, 9, 5, 6)))
    assert found(service) == {"a": longs(1, 9, 5, 6)}
    service.update_table(statistics(a=strings(5, 2.5, 7, 8)))
    assert service.of_table(T, ["a"]) == [ColumnStatisticsObj_v4("a", "int", longs(1, 9, 7, 8))]


def test_of_a_column_given_twice_the_last_counts(service: StatisticsCalls) -> None:
    given = statistics(a=longs(1, 2))
    given.statsObj.append(ColumnStatisticsObj_v4("A ", "INT", longs(5, 6)))
    service.update_table(given)
    assert service.of_table(T, ["a"]) == [ColumnStatisticsObj_v4("a", "int", longs(5, 6))]


def test_stored_columns_are_accurate_and_basic_statistics_stay(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_table(statistics(b=strings(1, 1.0)))
    assert accuracy(catalog) == {"COLUMN_STATS": {"b": "true"}}
    parameters = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    catalog.alterations.alter(T, new_table(parameters=parameters), KEEP)
    service.update_table(statistics(a=longs(1, 2)))
    assert accuracy(catalog) == {"BASIC_STATS": "true", "COLUMN_STATS": {"a": "true"}}


def test_engines_have_statistics_of_their_own(service: StatisticsCalls) -> None:
    given = statistics(a=longs(1, 2))
    given.engine = "impala"
    service.update_table(given)
    assert service.of_table(T, ["a"]) == []
    assert service.of_table(T, ["a"], "impala")[0].statsData == longs(1, 2)
    assert isinstance(refusal(lambda: service.delete_of_table(T, None)), NoSuchObjectException)
    service.delete_of_table(T, None, "impala")
    assert service.of_table(T, ["a"], "impala") == []


@pytest.mark.parametrize("name", ["missing", "", "MISSING ", "t\0t", "\udfff", "täble", "x" * 5000])
def test_a_missing_table(service: StatisticsCalls, name: str) -> None:
    table = TableName("default", name)
    error = NoSuchObjectException(f"Specified database/table does not exist : default.{name}")
    assert refusal(lambda: service.update_table(statistics(table, a=longs(1, 2)))) == error
    of_partition = InvalidObjectException(f"default.{name} table not found")
    assert refusal(lambda: service.update_partitions([statistics(table, "ds=a/hr=1", a=longs(1, 2))])) == of_partition
    assert refusal(lambda: service.of_table(table, ["a"])) == error
    assert refusal(lambda: service.of_partitions(table, [], [])) == error
    assert refusal(lambda: service.aggregated(table, [], [])) == error
    assert refusal(lambda: service.get_of_table(table, "a")) == error
    assert refusal(lambda: service.delete_of_table(table, "a")) == NoSuchObjectException(
        f"Table {name}  for which stats deletion is requested doesn't exist"
    )
    assert refusal(lambda: service.delete(table, None, None, table_level=True)) == error


@pytest.mark.parametrize("column", ["c", "", "ds", "ä", "a\0b", "\udfff", "x" * 5000])
def test_an_unknown_column(service: StatisticsCalls, column: str) -> None:
    for given, store in (
        (statistics(P, **{column: longs(1, 2)}), service.update_table),
        (statistics(P, "ds=a/hr=1", **{column: longs(1, 2)}), lambda one: service.update_partitions([one])),
    ):
        text = f"Column {column} doesn't exist in table p in database default"
        assert refusal(lambda store=store, given=given: store(given)) == MetaException(text)
    assert service.of_table(T, [column]) == []
    assert service.of_partitions(P, ["ds=a/hr=1"], [column]) == {}
    assert isinstance(refusal(lambda: service.get_of_table(T, column)), NoSuchObjectException)


def test_what_is_missing_in_a_request(service: StatisticsCalls) -> None:
    without_data, without_description = statistics(a=longs(1, 2)), statistics(a=longs(1, 2))
    without_data.statsObj[0].statsData = None
    without_description.statsDesc = None
    empty = statistics(a=longs(1, 2))
    empty.statsObj[0].statsData = ColumnStatisticsData_v4()
    for given in (None, without_data, without_description, empty):
        assert isinstance(refusal(lambda given=given: service.update_table(given)), MetaException)
    for table in (TableName(None, "t"), TableName("default", None)):
        assert isinstance(refusal(lambda table=table: service.of_table(table, ["a"])), MetaException)
    assert isinstance(refusal(lambda: service.get_of_table(T, None)), MetaException)
    assert isinstance(refusal(lambda: service.of_table(T, [None])), MetaException)
    assert isinstance(refusal(lambda: service.of_table(T, ["a"], "x" * 65)), MetaException)
    assert isinstance(refusal(lambda: service.of_table(T, ["a"], "\0")), MetaException)


@pytest.mark.parametrize("unscaled", [b"", b"\x01" * 65])
def test_decimals_nobody_can_compute_with(service: StatisticsCalls, unscaled: bytes) -> None:
    data = DecimalColumnStatsData_v4(Decimal(unscaled, 1), None, 0, 1)
    given = statistics(a=longs(1, 2))
    given.statsObj[0].statsData = ColumnStatisticsData_v4(decimalStats=data)
    assert isinstance(refusal(lambda: service.update_table(given)), MetaException)


def test_no_statistics_of_a_column(service: StatisticsCalls) -> None:
    assert refusal(lambda: service.get_of_table(T, "a")) == NoSuchObjectException(
        "Statistics for db=default table=t col=a not found"
    )
    assert refusal(lambda: service.get_of_partition(P, "ds=a/hr=1", "a")) == NoSuchObjectException(
        "Statistics for db=default table=p partition=ds=a/hr=1 col=a not found"
    )


def test_deleting_one_column_or_all(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2), b=strings(1, 1.0)))
    service.delete_of_table(T, "A")
    assert list(found(service)) == ["b"]
    assert refusal(lambda: service.delete_of_table(T, "a")) == NoSuchObjectException(
        "Column stats doesn't exist for db=default table=t col=a"
    )
    assert refusal(lambda: service.delete_of_table(T, "")) == NoSuchObjectException(
        "Column stats doesn't exist for db=default table=t col="
    )
    service.delete_of_table(T, None)
    assert found(service) == {}
    assert refusal(lambda: service.delete_of_table(T, None)) == NoSuchObjectException(
        "Column stats doesn't exist for db=default table=t col=null"
    )
    # As in Hive the parameter is left alone (semantics §3.6).
    assert accuracy(catalog) == {"COLUMN_STATS": {"a": "true", "b": "true"}}


# -- partitions


def test_statistics_of_partitions(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_partitions([statistics(P, "ds=a/hr=1", a=longs(1, 2)), statistics(P, "ds=a/hr=2", b=strings(1, 1))])
    assert found_of(service, "ds=a/hr=1", "DS=a/HR=2", "ds=b/hr=1", "nonsense") == {
        "ds=a/hr=1": {"a": longs(1, 2)},
        "ds=a/hr=2": {"b": strings(1, 1)},
    }
    assert refusal(lambda: found_of(service, "")) == MetaException("Partition name is invalid. ")
    assert partition_accuracy(catalog, "a", "1") == {"BASIC_STATS": "true", "COLUMN_STATS": {"a": "true"}}
    assert partition_accuracy(catalog, "b", "1") == {"BASIC_STATS": "true"}
    assert accuracy(catalog, P) is None
    one = service.get_of_partition(P, "DS=a/HR=1", "a")
    assert (one.statsDesc.isTblLevel, one.statsDesc.partName) == (False, "ds=a/hr=1")


def test_a_partition_given_twice_has_both_and_the_last_counts(service: StatisticsCalls) -> None:
    service.set_aggregated(
        [
            statistics(P, "ds=a/hr=1", a=longs(1, 2)),
            statistics(P, "hr=1/DS=a", a=longs(5, 6)),
            statistics(TableName("DEFAULT", "P"), "ds=a/hr=1", b=strings(1, 1)),
        ]
    )
    assert found_of(service, "ds=a/hr=1") == {"ds=a/hr=1": {"a": longs(5, 6), "b": strings(1, 1)}}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (None, MetaException("Partition name is invalid. null")),
        ("", MetaException("Partition name is invalid. ")),
        ("ds=a", InvalidObjectException("incomplete partition name - missing hr")),
        ("nonsense", InvalidObjectException("incomplete partition name - missing ds")),
    ],
)
def test_names_that_name_no_partition(service: StatisticsCalls, name: str | None, error: Exception) -> None:
    given = statistics(P, "x", a=longs(1, 2))
    given.statsDesc.partName = name
    assert refusal(lambda: service.update_partitions([given])) == error
    assert refusal(lambda: service.delete_of_partition(P, name, "a")) == error


@pytest.mark.parametrize("value", ["c", "ä", "x\0", "A", "x" * 5000])
def test_a_missing_partition(service: StatisticsCalls, value: str) -> None:
    name = f"ds={value}/hr=1"
    assert refusal(
        lambda: service.update_partitions(
            [statistics(P, "ds=a/hr=1", a=longs(1, 2)), statistics(P, name, a=longs(1, 2))]
        )
    ) == NoSuchObjectException("Partition for which stats is gathered doesn't exist.")
    assert found_of(service, "ds=a/hr=1") == {}
    assert refusal(lambda: service.delete_of_partition(P, name, "a")) == NoSuchObjectException(
        f"Partition {name} for which stats deletion is requested doesn't exist"
    )
    assert isinstance(refusal(lambda: service.get_of_partition(P, name, "a")), NoSuchObjectException)


def test_deleting_of_a_partition(service: StatisticsCalls) -> None:
    service.update_partitions([statistics(P, "ds=a/hr=1", a=longs(1, 2), b=strings(1, 1))])
    service.delete_of_partition(P, "DS=a/hr=1", "a")
    assert found_of(service, "ds=a/hr=1") == {"ds=a/hr=1": {"b": strings(1, 1)}}
    assert refusal(lambda: service.delete_of_partition(P, "ds=a/hr=1", "a")) == NoSuchObjectException(
        "Column stats doesn't exist for db=default table=p partition=ds=a/hr=1 col=a"
    )
    service.delete_of_partition(P, "ds=a/hr=1", None)
    assert found_of(service, "ds=a/hr=1") == {}


def test_deleting_by_request(service: StatisticsCalls) -> None:
    service.update_table(statistics(P, a=longs(1, 2)))
    each = [statistics(P, name, a=longs(1, 2), b=strings(1, 1)) for name in ("ds=a/hr=1", "ds=a/hr=2", "ds=b/hr=1")]
    service.update_partitions(each)
    service.delete(P, ["ds=a/hr=1"], ["A"], table_level=False)
    service.delete(P, ["ds=a/hr=2"], [], table_level=False)
    assert {name: list(of) for name, of in found_of(service, "ds=a/hr=1", "ds=a/hr=2", "ds=b/hr=1").items()} == {
        "ds=a/hr=1": ["b"],
        "ds=b/hr=1": ["a", "b"],
    }
    assert list(found(service, P)) == ["a"]
    service.delete(P, None, None, table_level=True)
    assert found(service, P) == {}
    service.delete(P, None, None, table_level=False)
    assert found_of(service, "ds=a/hr=1", "ds=b/hr=1") == {}


def test_aggregation(service: StatisticsCalls) -> None:
    service.update_partitions(
        [statistics(P, "ds=a/hr=1", a=longs(1, 9, 2, 3)), statistics(P, "ds=b/hr=1", a=longs(-4, 5, 1, 6))]
    )
    every = service.aggregated(P, ["ds=a/hr=1", "DS=b/hr=1", "ds=a/hr=1"], ["A", "b"])
    assert [(one.colName, one.statsData) for one in every.colStats] == [("a", longs(-4, 9, 3, 6))]
    assert every.partsFound == 0
    assert service.aggregated(P, ["ds=a/hr=1", "ds=b/hr=1"], ["a"]).partsFound == 2
    for part_names, names in (([], ["a"]), (["ds=a/hr=1"], []), (["nonsense"], ["a"])):
        nothing = service.aggregated(P, part_names, names)
        assert (nothing.colStats, nothing.partsFound) == ([], 0)


def test_setting_aggregated_statistics(service: StatisticsCalls) -> None:
    service.set_aggregated([])
    service.set_aggregated([statistics(a=longs(1, 5, 1, 3))])
    service.set_aggregated([statistics(a=longs(0, 3, 2, 9), b=strings(1, 1))], merges=True)
    assert found(service) == {"a": longs(0, 5, 3, 9), "b": strings(1, 1)}
    assert refusal(lambda: service.set_aggregated([statistics(a=longs(1, 2))] * 2)) == MetaException(
        "Expecting only 1 ColumnStatistics for table's column stats, but find 2"
    )
    service.set_aggregated([statistics(P, "ds=a/hr=1", a=longs(1, 5, 1, 3))], merges=True)
    service.set_aggregated([statistics(P, "ds=a/hr=1", a=longs(0, 3, 2, 9))], merges=True)
    assert found_of(service, "ds=a/hr=1") == {"ds=a/hr=1": {"a": longs(0, 5, 3, 9)}}
    mixed = refusal(lambda: service.set_aggregated([statistics(a=strings(1, 1))], merges=True))
    assert mixed == MetaException(
        "The statistics of column a cannot be merged: stringStats cannot be merged with longStats"
    )


def test_requests_of_one_table_only_and_without_merging(service: StatisticsCalls) -> None:
    request = SetPartitionsStatsRequest_v4([])
    assert isinstance(refusal(lambda: service.methods.update_table_column_statistics_req(CALL, request)), MetaException)
    request = SetPartitionsStatsRequest_v4([statistics()], needMerge=True)
    for method in ("update_table_column_statistics_req", "update_partition_column_statistics_req"):
        error = refusal(lambda method=method: getattr(service.methods, method)(CALL, request))
        assert error == InvalidInputException("Merge is not supported for non-aggregate stats")


def test_partitions_that_carry_their_statistics(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_partitions([statistics(P, "ds=a/hr=1", a=longs(1, 2))])
    bare = [partitions(catalog).get(P, values) for values in (["a", "1"], ["b", "1"])]
    with_them, without = service.with_statistics(P, bare)
    assert with_them.colStats.statsObj == [ColumnStatisticsObj_v4("a", "int", longs(1, 2))]
    assert without == bare[1]


# -- what else happens to tables and partitions


def test_changed_columns_lose_their_statistics(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2), b=strings(1, 1)))
    stored = catalog.tables.get(T).parameters
    catalog.alterations.alter(T, new_table(cols=columns("a bigint", "b string", "c int"), parameters=stored), KEEP)
    assert list(found(service)) == ["b"]
    assert accuracy(catalog) == {"COLUMN_STATS": {"b": "true"}}
    catalog.alterations.alter(T, new_table(cols=columns("a bigint", "B string"), parameters=stored), KEEP)
    assert list(found(service)) == ["b"]


def test_statistics_stay_while_columns_stay(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2)))
    catalog.alterations.alter(T, new_table(parameters={"k": "v"}))
    assert list(found(service)) == ["a"]


def test_a_rename_takes_the_statistics_along(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2)))
    catalog.alterations.alter(T, new_table("renamed", location=""))
    assert list(found(service, TableName("default", "renamed"))) == ["a"]


def test_partitions_that_a_rename_moves_lose_theirs(catalog: Catalog, service: StatisticsCalls) -> None:
    elsewhere = partitions(catalog).get(P, ["b", "1"])
    elsewhere.sd.location = f"file:{catalog.warehouse}/elsewhere"
    partitions(catalog).alter(P, elsewhere)
    service.update_partitions([statistics(P, name, a=longs(1, 2)) for name in ("ds=a/hr=1", "ds=b/hr=1")])
    renamed = new_table("q", keys=columns("ds string", "hr int"), location="")
    catalog.alterations.alter(P, renamed)
    assert list(service.of_partitions(TableName("default", "q"), ["ds=a/hr=1", "ds=b/hr=1"], None)) == ["ds=b/hr=1"]


def test_cascading_columns_to_partitions(catalog: Catalog, service: StatisticsCalls) -> None:
    each = [statistics(P, name, a=longs(1, 2), b=strings(1, 1)) for name in ("ds=a/hr=1", "ds=b/hr=1")]
    service.update_partitions(each)
    keys = columns("ds string", "hr int")
    catalog.alterations.alter(P, new_table("p", cols=columns("a bigint", "b string"), keys=keys))
    assert list(found_of(service, "ds=a/hr=1")["ds=a/hr=1"]) == ["a", "b"]
    catalog.alterations.alter(P, new_table("p", cols=columns("a bigint", "b string", "c int"), keys=keys), cascade=True)
    assert {name: list(of) for name, of in found_of(service, "ds=a/hr=1", "ds=b/hr=1").items()} == {
        "ds=a/hr=1": ["b"],
        "ds=b/hr=1": ["b"],
    }
    assert partition_accuracy(catalog, "a", "1") == {"BASIC_STATS": "true", "COLUMN_STATS": {"b": "true"}}


def test_a_partition_whose_columns_change(catalog: Catalog, service: StatisticsCalls) -> None:
    names = ("ds=a/hr=1", "ds=b/hr=1")
    service.update_partitions([statistics(P, name, a=longs(1, 2), b=strings(1, 1)) for name in names])
    one = partitions(catalog).get(P, ["a", "1"])
    one.sd.cols = columns("b string")
    partitions(catalog).alter(P, one, KEEP)
    assert {name: list(of) for name, of in found_of(service, *names).items()} == {
        "ds=a/hr=1": ["b"],
        "ds=b/hr=1": ["a", "b"],
    }
    assert partition_accuracy(catalog, "a", "1") == {"BASIC_STATS": "true", "COLUMN_STATS": {"b": "true"}}


def test_a_renamed_partition_keeps_its_statistics(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_partitions([statistics(P, "ds=a/hr=1", a=longs(1, 2))])
    new: Partition = partitions(catalog).get(P, ["a", "1"])
    new.values = ["c", "3"]
    partitions(catalog).rename(P, ["a", "1"], new)
    assert found_of(service, "ds=a/hr=1", "ds=c/hr=3") == {"ds=c/hr=3": {"a": longs(1, 2)}}


def test_what_is_dropped_and_made_again_has_none(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2)))
    service.update_partitions([statistics(P, "ds=b/hr=1", a=longs(1, 2))])
    partitions(catalog).drop(P, ["b", "1"], deletes_data=False)
    add_partitions(catalog, ["b", "1"])
    assert found_of(service, "ds=b/hr=1") == {}
    for table in (T, P):
        catalog.tables.drop(table, False)
    catalog.tables.create(new_table())
    assert found(service) == {}


def test_a_database_goes_with_its_statistics(catalog: Catalog, service: StatisticsCalls) -> None:
    from hms_gateway.rpc.structs import Database

    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("t", "d"))
    service.update_table(statistics(TableName("d", "t"), a=longs(1, 2)))
    catalog.databases.drop("d", True, True)
    assert catalog.databases.names() == ["default"]


# -- events


def test_events_of_tables(catalog: Catalog, service: StatisticsCalls) -> None:
    service.update_table(statistics(a=longs(1, 2)))
    kind, db_name, table_name, message = catalog.last_event()
    assert (kind, db_name, table_name) == ("UPDATE_TBL_COL_STAT_EVENT", "default", "t")
    assert list(message) == [
        *("server", "servicePrincipal", "database", "table"),
        *("colStatsJson", "parameters", "tableObjJson", "timestamp"),
    ]
    assert message["parameters"]["COLUMN_STATS_ACCURATE"] == '{"COLUMN_STATS":{"a":"true"}}'
    service.delete_of_table(T, "a")
    kind, _, table_name, message = catalog.last_event()
    assert (kind, table_name, message["colName"]) == ("DELETE_TBL_COL_STAT_EVENT", "t", "a")


def test_events_of_partitions(catalog: Catalog, service: StatisticsCalls) -> None:
    before = len(catalog.events())
    service.update_partitions([statistics(P, name, a=longs(1, 2)) for name in ("ds=a/hr=1", "ds=b/hr=1")])
    new = [(stored.event.event_type, json.loads(stored.event.message)) for stored in catalog.events()[before:]]
    assert [(kind, message["partVals"]) for kind, message in new] == [
        ("UPDATE_PART_COL_STAT_EVENT", ["a", "1"]),
        ("UPDATE_PART_COL_STAT_EVENT", ["b", "1"]),
    ]
    service.delete_of_partition(P, "ds=a/hr=1", None)
    kind, _, _, message = catalog.last_event()
    assert (kind, message["partName"], message["colName"]) == ("DELETE_PART_COL_STAT_EVENT", "ds=a/hr=1", None)


def test_what_is_refused_leaves_no_event(catalog: Catalog, service: StatisticsCalls) -> None:
    before = len(catalog.events())
    refusal(lambda: service.update_table(statistics(a=longs(1, 2), x=longs(1, 2))))
    refusal(lambda: service.delete_of_table(T, "a"))
    assert len(catalog.events()) == before
    assert found(service) == {}
