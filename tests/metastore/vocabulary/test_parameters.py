import pytest

from hms_gateway.metastore.vocabulary.parameters import (
    COLUMN_STATS_ACCURATE,
    DDL_TIME,
    ParameterConflict,
    StatisticsAccuracy,
    add_partition_counts_files,
    alter_partition_counts_files,
    alter_table_counts_files,
    check_expected,
    create_counts_files,
    parse_accuracy,
    render_accuracy,
    says_true,
    take_do_not_update,
    with_accurate_columns,
    with_ddl_time,
    with_fast_statistics,
    with_new_ddl_time,
    with_partition_ddl_time,
    without_nulls,
)

STATISTICS = {"numFiles": "2", "totalSize": "30"}
NO_UPDATE = {"DO_NOT_UPDATE_STATS": "true"}
NO_UPDATE_IN_CAPITALS = {"DO_NOT_UPDATE_STATS": "TRUE"}


def test_the_ddl_time_is_set_where_it_is_missing() -> None:
    assert with_ddl_time({"a": "b"}, 7) == {"a": "b", DDL_TIME: "7"}
    assert with_ddl_time({DDL_TIME: "0"}, 7) == {DDL_TIME: "0"}
    assert with_new_ddl_time({DDL_TIME: "5"}, 7) == {DDL_TIME: "7"}


@pytest.mark.parametrize(("given", "stored"), [({}, "7"), ({DDL_TIME: "0"}, "7"), ({DDL_TIME: "5"}, "5")])
def test_the_ddl_time_of_a_partition_is_set_where_it_is_missing_or_zero(given: dict[str, str], stored: str) -> None:
    assert with_partition_ddl_time(given, 7) == {DDL_TIME: stored}


@pytest.mark.parametrize("given", ["", "soon", "1.5", "²"])
def test_the_ddl_time_of_a_partition_must_be_a_number(given: str) -> None:
    with pytest.raises(ValueError, match=r"^java\.lang\.NumberFormatException: For input string: "):
        with_partition_ddl_time({DDL_TIME: given}, 7)


def test_null_values_are_dropped() -> None:
    assert without_nulls({"a": "b", "c": None}) == {"a": "b"}
    assert without_nulls(None) == {}


def test_compare_and_set_compares_one_parameter() -> None:
    check_expected({"metadata_location": "m1"}, "metadata_location", "m1")


@pytest.mark.parametrize(("stored", "shown"), [({"metadata_location": "m1"}, "m1"), ({}, "null")])
def test_compare_and_set_refuses_another_value(stored: dict[str, str], shown: str) -> None:
    with pytest.raises(ParameterConflict) as refused:
        check_expected(stored, "metadata_location", "m2")
    assert str(refused.value) == (
        f"The table has been modified. The parameter value for key 'metadata_location' is '{shown}'."
        " The expected was value was 'm2'"
    )


@pytest.mark.parametrize(
    ("text", "accuracy"),
    [
        (None, StatisticsAccuracy()),
        ("", StatisticsAccuracy()),
        ("true", StatisticsAccuracy(basic=True)),
        ("false", StatisticsAccuracy()),
        ('{"BASIC_STATS":"true"}', StatisticsAccuracy(basic=True)),
        ('{"BASIC_STATS":"false"}', StatisticsAccuracy()),
        ('{"BASIC_STATS":"true","COLUMN_STATS":{"b":"true","a":"true"}}', StatisticsAccuracy(True, ("b", "a"))),
        ('{"COLUMN_STATS":{"a":"false","b":"true"}}', StatisticsAccuracy(False, ("b",))),
        ("[1]", StatisticsAccuracy()),
        ('{"COLUMN_STATS":3}', StatisticsAccuracy()),
        ("{", StatisticsAccuracy()),
        ("[" * 100_000, StatisticsAccuracy()),
    ],
)
def test_accuracy_is_read_leniently(text: str | None, accuracy: StatisticsAccuracy) -> None:
    assert parse_accuracy(text) == accuracy


@pytest.mark.parametrize(
    ("accuracy", "text"),
    [
        (StatisticsAccuracy(), None),
        (StatisticsAccuracy(basic=True), '{"BASIC_STATS":"true"}'),
        (StatisticsAccuracy(columns=("é",)), '{"COLUMN_STATS":{"é":"true"}}'),
        (StatisticsAccuracy(True, ("a", "b")), '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'),
    ],
)
def test_accuracy_is_written_with_its_sections_in_order(accuracy: StatisticsAccuracy, text: str | None) -> None:
    assert render_accuracy(accuracy) == text
    assert parse_accuracy(text) == accuracy


def test_accurate_columns_are_written_in_order() -> None:
    assert render_accuracy(StatisticsAccuracy(columns=("b", "a"))) == '{"COLUMN_STATS":{"a":"true","b":"true"}}'


def test_stored_column_statistics_add_accurate_columns() -> None:
    first = with_accurate_columns({"x": "y", COLUMN_STATS_ACCURATE: "true"}, ["a"])
    assert first == {"x": "y", COLUMN_STATS_ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'}
    assert with_accurate_columns(first, ["a", "b"])[COLUMN_STATS_ACCURATE] == (
        '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'
    )


def test_counting_files_takes_accuracy_away_unless_a_task_counted() -> None:
    before = {"x": "y", COLUMN_STATS_ACCURATE: '{"COLUMN_STATS":{"a":"true"}}'}
    assert with_fast_statistics(before, 2, 30) == {"x": "y", **STATISTICS}
    assert with_fast_statistics(before, 2, 30, {"STATS_GENERATED": "USER"}) == {"x": "y", **STATISTICS}
    assert with_fast_statistics(before, 2, 30, {"STATS_GENERATED": "TASK"}) == {
        "x": "y",
        **STATISTICS,
        COLUMN_STATS_ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}',
    }


def test_the_request_not_to_count_is_consumed() -> None:
    assert take_do_not_update({"a": "b", **NO_UPDATE}) == ({"a": "b"}, True)
    assert take_do_not_update({"DO_NOT_UPDATE_STATS": "false"}) == ({}, False)
    assert take_do_not_update({"a": "b"}) == ({"a": "b"}, False)


def test_flags_are_true_in_any_case() -> None:
    assert says_true({"ifPurge": "TRUE"}, "ifPurge")
    assert not says_true({"ifPurge": "1"}, "ifPurge")
    assert not says_true(None, "ifPurge")


@pytest.mark.parametrize(
    ("table_type", "parameters", "is_partitioned", "directory_existed", "counts"),
    [
        ("MANAGED_TABLE", {}, False, True, True),
        ("MANAGED_TABLE", {"numFiles": "1"}, False, True, True),
        ("MANAGED_TABLE", STATISTICS, False, True, False),
        ("MANAGED_TABLE", {}, True, True, False),
        ("MANAGED_TABLE", {}, False, False, False),
        ("VIRTUAL_VIEW", {}, False, True, False),
    ],
)
def test_creating_a_table_counts_files_that_were_there(
    table_type: str, parameters: dict[str, str], is_partitioned: bool, directory_existed: bool, counts: bool
) -> None:
    decided = create_counts_files(
        table_type, parameters, is_partitioned=is_partitioned, directory_existed=directory_existed
    )
    assert decided is counts


def test_adding_a_partition_counts_files_that_were_there() -> None:
    assert add_partition_counts_files("EXTERNAL_TABLE", None)
    assert not add_partition_counts_files("EXTERNAL_TABLE", NO_UPDATE_IN_CAPITALS)
    assert not add_partition_counts_files("VIRTUAL_VIEW", None)


def test_altering_an_unpartitioned_table_counts_files_unless_told_not_to() -> None:
    assert alter_table_counts_files("MANAGED_TABLE", {}, is_partitioned=False)
    assert not alter_table_counts_files("MANAGED_TABLE", NO_UPDATE, is_partitioned=False)
    assert alter_table_counts_files("MANAGED_TABLE", NO_UPDATE_IN_CAPITALS, is_partitioned=False)
    assert not alter_table_counts_files("MANAGED_TABLE", {}, is_partitioned=True)
    assert not alter_table_counts_files("VIRTUAL_VIEW", {}, is_partitioned=False)


@pytest.mark.parametrize(
    ("new", "environment", "counts"),
    [
        (STATISTICS, None, False),
        ({}, None, True),
        (STATISTICS | {"totalSize": "31"}, None, True),
        (STATISTICS, {"STATS_GENERATED": "TASK"}, True),
        (STATISTICS, {"STATS_GENERATED": "USER"}, True),
        ({}, NO_UPDATE, False),
        ({}, NO_UPDATE_IN_CAPITALS, True),
    ],
)
def test_altering_a_partition_counts_files_unless_the_statistics_are_those_stored(
    new: dict[str, str], environment: dict[str, str] | None, counts: bool
) -> None:
    assert alter_partition_counts_files("MANAGED_TABLE", STATISTICS, new, environment) is counts
