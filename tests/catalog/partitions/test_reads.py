"""Reading partitions, case by case of semantics §2.9, §3.9 and §4."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import (
    FieldSchema,
    GetPartitionsFilterSpec,
    MetaException,
    NoSuchObjectException,
    PartitionFilterMode,
    PartitionValuesRequest,
    ThriftException,
)
from tests.metastore.partition_world import SALES, World, partition_world, structs, values_of

MISSING = TableName("shop", "Nothing")
NOT_FOUND = NoSuchObjectException("shop.Nothing table not found")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def filled(world: World) -> World:
    """Six partitions: three days of two hours."""
    days = ["2024-01-01", "2024-01-02", "2024-02-01"]
    world.calls.add_to(SALES, [world.partition(day, hour) for day in days for hour in ("2", "10")])
    return world


def refusal(call: Any) -> ThriftException:
    with pytest.raises(ThriftException) as caught:
        call()
    return caught.value


def test_get_one(filled: World) -> None:
    found = filled.calls.get(TableName(" SHOP", "Sales "), ["2024-01-01", "2"])
    assert found.values == ["2024-01-01", "2"]
    assert found == filled.calls.get_by_name(SALES, "hr=2/ds=2024-01-01")


@pytest.mark.parametrize(
    ("table", "values", "error"),
    [
        (MISSING, ["a", "1"], NOT_FOUND),
        (TableName("", "t"), ["a", "1"], NoSuchObjectException(".t table not found")),
        (TableName("nul\0", "t"), ["a", "1"], NoSuchObjectException("nul\0.t table not found")),
        (SALES, ["a", "1"], NoSuchObjectException("partition values=[a, 1]")),
        (SALES, ["2024-01-01", "02"], NoSuchObjectException("partition values=[2024-01-01, 02]")),
        (SALES, ["a"], MetaException("Invalid partition key & values; keys [ds, hr, ], values [a, ]")),
        (SALES, [], MetaException("Invalid partition key & values; keys [ds, hr, ], values []")),
        (SALES, None, MetaException("partition values must not be null")),
        (TableName(None, "t"), ["a", "1"], MetaException("database name must not be null")),
        (TableName("shop", None), ["a", "1"], MetaException("table name must not be null")),
    ],
)
def test_get_refused(filled: World, table: TableName, values: Any, error: ThriftException) -> None:
    assert refusal(lambda: filled.calls.get(table, values)) == error


@pytest.mark.parametrize(
    ("table", "name", "error"),
    [
        (MISSING, "ds=a/hr=1", NOT_FOUND),
        (SALES, "", MetaException("Partition name is invalid. ")),
        (SALES, "ds=a", NoSuchObjectException("incomplete partition name - missing hr")),
        (SALES, "DS=a/hr=1", NoSuchObjectException("incomplete partition name - missing ds")),
        (SALES, "ds=a/hr=1", NoSuchObjectException("partition values=[a, 1]")),
    ],
)
def test_get_by_name_refused(filled: World, table: TableName, name: str, error: ThriftException) -> None:
    assert refusal(lambda: filled.calls.get_by_name(table, name)) == error


@pytest.mark.parametrize(("max_parts", "count"), [(-1, 6), (-7, 6), (0, 0), (1, 1), (4, 4), (100, 6)])
def test_limits(filled: World, max_parts: int, count: int) -> None:
    reads = filled.calls
    names = filled.names()
    assert len(names) == 6
    assert names == sorted(names)
    expected = [[part.partition("=")[2] for part in name.split("/")] for name in names[:count]]
    assert values_of(reads.list_all(SALES, max_parts)) == expected
    assert values_of(reads.list_by_filter(SALES, "", max_parts)) == expected
    assert values_of(reads.list_by_partial_values(SALES, [""], max_parts)) == expected
    assert values_of(reads.list_by_expression(SALES, b"\x80kryo", max_parts)[0]) == expected
    assert reads.names(SALES, max_parts) == names[:count]
    assert reads.names_by_partial_values(SALES, ["", ""], max_parts) == names[:count]
    spec = reads.specs(SALES, max_parts)[0]
    assert spec.partitionList is not None
    assert values_of(spec.partitionList.partitions) == expected  # type: ignore[arg-type]


def test_order_is_that_of_bytes(world: World) -> None:
    for value in ["é", "z", "Z", "a b", "a", "🎈", "\uffee"]:
        world.add(value, "1")
    assert [values[0] for values in values_of(world.calls.list_all(SALES, -1))] == [
        "Z", "a b", "a", "z", "é", "\uffee", "🎈",
    ]  # fmt: skip


def test_a_missing_table(world: World) -> None:
    reads = world.calls
    calls = [
        lambda: reads.list_all(MISSING, -1),
        lambda: reads.list_by_filter(MISSING, "", -1),
        lambda: reads.list_by_partial_values(MISSING, ["a"], -1),
        lambda: reads.list_by_names(MISSING, ["ds=a/hr=1"]),
        lambda: reads.list_by_expression(MISSING, b"x", -1),
        lambda: reads.names(MISSING, -1),
        lambda: reads.names_by_partial_values(MISSING, ["a"], -1),
        lambda: reads.specs(MISSING, -1),
        lambda: reads.specs_by_filter(MISSING, "", -1),
        lambda: reads.projected_specs(MISSING, None),
    ]
    assert [refusal(call) for call in calls] == [NOT_FOUND] * len(calls)
    assert refusal(lambda: reads.count_by_filter(MISSING, "")) == NoSuchObjectException(
        "Specified database/table does not exist : shop.Nothing"
    )
    request = PartitionValuesRequest(partitionKeys=[FieldSchema("ds")])
    assert refusal(lambda: reads.values(MISSING, request)) == MetaException(
        "Error retrieving partition values: shop.Nothing table not found"
    )


def test_an_unpartitioned_table(world: World) -> None:
    world.make_table("flat", keys="")
    flat = TableName("shop", "flat")
    assert values_of(world.calls.list_all(flat, -1)) == []
    assert world.calls.names(flat, -1) == []
    assert refusal(lambda: world.calls.list_by_partial_values(flat, ["a"], -1)) == MetaException(
        "Incorrect number of partition values. numPartKeys=0, part_val=1"
    )
    assert refusal(lambda: world.calls.list_by_filter(flat, "id = 1", -1)) == MetaException(
        "Specified key <id> is not a partitioning key for the table"
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-01-01", ""], ["ds=2024-01-01/hr=10", "ds=2024-01-01/hr=2"]),
        (["2024-01-01"], ["ds=2024-01-01/hr=10", "ds=2024-01-01/hr=2"]),
        (["", "2"], ["ds=2024-01-01/hr=2", "ds=2024-01-02/hr=2", "ds=2024-02-01/hr=2"]),
        (["2024-01-01", "2"], ["ds=2024-01-01/hr=2"]),
        (["2024-01-0", ""], []),
        (["2024.01.01", ""], []),
    ],
)
def test_partial_specs(filled: World, values: list[str], expected: list[str]) -> None:
    assert filled.calls.names_by_partial_values(SALES, values, -1) == expected
    found = values_of(filled.calls.list_by_partial_values(SALES, values, -1))
    assert [f"ds={ds}/hr={hr}" for ds, hr in found] == expected


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "Invalid partition key & values; keys [], values []"),
        (["a", "b", "c"], "Incorrect number of partition values. numPartKeys=2, part_val=3"),
        (None, "partition values must not be null"),
    ],
)
def test_partial_specs_refused(filled: World, values: Any, text: str) -> None:
    assert refusal(lambda: filled.calls.list_by_partial_values(SALES, values, -1)) == MetaException(text)
    assert refusal(lambda: filled.calls.names_by_partial_values(SALES, values, 0)) == MetaException(text)


def test_partial_specs_with_the_default_partition(world: World) -> None:
    world.add("__HIVE_DEFAULT_PARTITION__", "1")
    world.add("x", "1")
    assert world.calls.names_by_partial_values(SALES, ["__HIVE_DEFAULT_PARTITION__"], -1) == [
        "ds=__HIVE_DEFAULT_PARTITION__/hr=1"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('ds = "2024-01-01" and hr = 2', ["2024-01-01/2"]),
        ("ds = '2024-01-01' AND hr = 2", ["2024-01-01/2"]),
        (
            '(hr > 5 or ds >= "2024-01-02")',
            ["2024-01-01/10", "2024-01-02/10", "2024-01-02/2", "2024-02-01/10", "2024-02-01/2"],
        ),
        ('ds like "2024.*" and (hr) in (1, 2)', ["2024-01-01/2", "2024-01-02/2", "2024-02-01/2"]),
        ('(ds) not in ("2024-01-01", "b")', ["2024-01-02/10", "2024-01-02/2", "2024-02-01/10", "2024-02-01/2"]),
        ("(hr) in (1, 2, 3) and hr != 2 and (hr < 100 or hr > 200)", []),
        ('(ds like ".*1" or ds like "a.*") and hr = 10', ["2024-01-01/10", "2024-02-01/10"]),
        ('ds like ".*-01-.*" and hr = 2', ["2024-01-01/2", "2024-01-02/2"]),
        ('"2024-02-01" = ds', ["2024-02-01/10", "2024-02-01/2"]),
        ('DS = "2024-02-01" and HR = 02', ["2024-02-01/2"]),
        ("ds = date '2024-02-01' and hr < 5", ["2024-02-01/2"]),
        ("hr between 3 and 10 and ds < '2024-01-02'", ["2024-01-01/10"]),
        ("ds = 'none'", []),
    ],
)
def test_filters(filled: World, text: str, expected: list[str]) -> None:
    reads = filled.calls
    assert ["/".join(values) for values in values_of(reads.list_by_filter(SALES, text, -1))] == expected
    assert reads.count_by_filter(SALES, text) == len(expected)
    found, is_unsure = reads.list_by_expression(SALES, text.encode(), -1)
    assert (["/".join(values) for values in values_of(found)], is_unsure) == (expected, False)
    spec = reads.specs_by_filter(SALES, text, -1)[0]
    assert spec.partitionList is not None
    assert len(structs(spec.partitionList.partitions)) == len(expected)  # type: ignore[arg-type]


def test_filters_on_a_date_key_and_quotes(world: World) -> None:
    world.make_table("days", keys="d:date,p:string")
    for values in (["2024-01-31", '"quoted"'], ["2024-02-02", "o'q"], ["2024-03-01", "a/b=c %:é"], ["none", "x"]):
        world.add(*values, table="days")
    days = TableName("shop", "days")

    def selected(text: str) -> list[str]:
        return [values[0] for values in values_of(world.calls.list_by_filter(days, text, -1))]

    assert selected('d > "2024-02-01"') == ["2024-02-02", "2024-03-01"]
    assert selected("p = '\"quoted\"'") == ["2024-01-31"]
    assert selected('p = "o\'q"') == ["2024-02-02"]
    assert selected('p = "a/b=c %:é"') == ["2024-03-01"]
    assert selected('d != "2024-02-02"') == ["2024-01-31", "2024-03-01"]


@pytest.mark.parametrize(
    "text", ["ds == 'a'", "ds = ", "nonsense", "ds is null", "   ", "ds = 'a' hr = 2", "(" * 5000 + "hr = 1", "hr = ;"]
)
def test_filters_that_cannot_be_parsed(filled: World, text: str) -> None:
    error = refusal(lambda: filled.calls.list_by_filter(SALES, text, -1))
    assert isinstance(error, MetaException)
    assert (error.message or "").startswith("Error parsing partition filter")


def test_filters_on_what_is_no_key(filled: World) -> None:
    error = MetaException("Specified key <note> is not a partitioning key for the table")
    assert refusal(lambda: filled.calls.list_by_filter(SALES, "note = 'x'", 0)) == error
    assert refusal(lambda: filled.calls.list_by_expression(SALES, b"note = 'x'", -1)) == error


@pytest.mark.parametrize("expression", [b"", None, b"\xac\xed\x00\x05sr", b"not a filter", b"\xff\xfe"])
def test_unreadable_expressions_select_everything_and_say_so(filled: World, expression: bytes | None) -> None:
    found, is_unsure = filled.calls.list_by_expression(SALES, expression, -1)
    assert (len(structs(found)), is_unsure) == (6, True)
    specs, is_unsure = filled.calls.specs_by_expression(SALES, expression, -1)
    assert (len(specs), is_unsure) == (1, True)
    assert filled.calls.names_by_expression(SALES, expression, -1) == filled.names()
    structs(specs[0].partitionList.partitions)  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["ds=2024-02-01/hr=2", "ds=2024-01-01/hr=2"], [["2024-01-01", "2"], ["2024-02-01", "2"]]),
        (["ds=2024-01-01/hr=2"] * 3 + ["unknown", "", "ds=2024-01-01"], [["2024-01-01", "2"]]),
        (["DS=2024-01-01/hr=2"], []),
        ([], []),
    ],
)
def test_by_names(filled: World, names: list[str], expected: list[list[str]]) -> None:
    assert values_of(filled.calls.list_by_names(SALES, names)) == expected


def test_by_names_without_names(filled: World) -> None:
    assert isinstance(refusal(lambda: filled.calls.list_by_names(SALES, None)), MetaException)


@pytest.mark.parametrize(
    ("request_fields", "rows"),
    [
        ({"partitionKeys": [FieldSchema("hr")]}, [["10"], ["2"]]),
        ({"partitionKeys": [FieldSchema("DS")], "maxParts": 2}, [["2024-01-01"], ["2024-01-02"]]),
        ({"partitionKeys": [FieldSchema("hr")], "applyDistinct": False}, [["10"], ["2"]] * 3),
        (
            {"partitionKeys": [FieldSchema("ds")], "filter": "hr = 2", "ascending": False, "maxParts": 1},
            [["2024-02-01"]],
        ),
        (
            {
                "partitionKeys": [FieldSchema("hr"), FieldSchema("ds")],
                "partitionOrder": [FieldSchema("hr")],
                "maxParts": 2,
            },
            [["10", "2024-01-01"], ["10", "2024-01-02"]],
        ),
    ],
)
def test_partition_values(filled: World, request_fields: dict[str, Any], rows: list[list[str]]) -> None:
    request = PartitionValuesRequest(dbName="shop", tblName="sales", **request_fields)
    assert filled.calls.values(SALES, request) == rows


def test_partition_values_stay_escaped(world: World) -> None:
    world.add("a/b", "1")
    request = PartitionValuesRequest(partitionKeys=[FieldSchema("ds")])
    assert world.calls.values(SALES, request) == [["a%2Fb"]]


def test_partition_values_of_what_is_no_key(world: World) -> None:
    request = PartitionValuesRequest(partitionKeys=[FieldSchema("note")])
    assert refusal(lambda: world.calls.values(SALES, request)) == MetaException(
        "Error retrieving partition values: note is not a partition key of the table"
    )


@pytest.mark.parametrize("keys", [None, []])
def test_partition_values_of_no_key(world: World, keys: list[FieldSchema] | None) -> None:
    request = PartitionValuesRequest(partitionKeys=keys)
    assert refusal(lambda: world.calls.values(SALES, request)) == MetaException(
        "partitionKeys is empty; name at least one partition key"
    )


def test_request_limit(filled: World) -> None:
    limited = filled.with_settings(limit_partition_request=3).calls
    text = (
        "Number of partitions scanned (={}) on table 'sales' exceeds limit (=3)."
        " This is controlled on the metastore server by hive.metastore.limit.partition.request."
    )
    assert refusal(lambda: limited.list_all(SALES, -1)) == MetaException(text.format(6))
    assert refusal(lambda: limited.list_all(SALES, 4)) == MetaException(text.format(4))
    assert refusal(lambda: limited.list_by_filter(SALES, "hr >= 2", -1)) == MetaException(text.format(6))
    assert refusal(lambda: limited.list_by_expression(SALES, b"?", -1)) == MetaException(text.format(6))
    assert len(structs(limited.list_by_partial_values(SALES, [""], -1))) == 6
    of_newer = lambda: limited.list_by_partial_values_of_newer(SALES, [""], -1)  # noqa: E731
    assert refusal(of_newer) == MetaException(text.format(6))
    assert refusal(lambda: limited.specs(SALES, -1)) == MetaException(text.format(6))
    assert refusal(lambda: limited.specs_by_filter(SALES, "hr = 2", 4)) == MetaException(text.format(4))
    assert refusal(lambda: limited.specs_by_expression(SALES, b"?", -1)) == MetaException(text.format(6))
    assert len(structs(limited.list_all(SALES, 3))) == 3
    assert len(structs(limited.list_by_filter(SALES, "hr = 2", -1))) == 3
    assert len(limited.names(SALES, -1)) == 6
    assert len(structs(limited.list_by_partial_values(SALES, [""], 3))) == 3
    assert len(structs(limited.list_by_partial_values(SALES, ["2024-01-01"], -1))) <= 3
    assert len(structs(limited.list_by_names(SALES, filled.names()))) == 6


@pytest.mark.parametrize(
    ("mode", "filters", "names"),
    [
        (PartitionFilterMode.BY_NAMES, ["ds=2024-01-01/hr=2", "unknown"], ["2024-01-01/2"]),
        (PartitionFilterMode.BY_VALUES, ["2024-01-01"], ["2024-01-01/10", "2024-01-01/2"]),
        (PartitionFilterMode.BY_EXPR, ["hr = 2", "ds = '2024-01-01' or hr = 10"], ["2024-01-01/2"]),
        (None, None, None),
    ],
)
def test_projected_specs(filled: World, mode: int | None, filters: list[str] | None, names: list[str] | None) -> None:
    conditions = GetPartitionsFilterSpec(filterMode=mode, filters=filters)
    spec = filled.calls.projected_specs(SALES, conditions, "values", "sd.location")[0]
    assert spec.rootPath == filled.location("shop.db/sales")
    assert spec.partitionList is not None
    found = structs(spec.partitionList.partitions)  # type: ignore[arg-type]
    assert ["/".join(one.values) for one in found] == (
        names or [name.replace("ds=", "").replace("hr=", "") for name in filled.names()]
    )
    assert all(one.sd.location and one.sd.cols is None and one.createTime is None for one in found)


@pytest.mark.parametrize("mode", list(PartitionFilterMode))
@pytest.mark.parametrize("filters", [None, []])
def test_projected_specs_without_filters(filled: World, mode: PartitionFilterMode, filters: list[str] | None) -> None:
    conditions = GetPartitionsFilterSpec(filterMode=mode, filters=filters)
    error = refusal(lambda: filled.calls.projected_specs(SALES, conditions))
    assert error == MetaException("Invalid filter expressions in the filter spec")


def test_projected_specs_with_an_unknown_mode(filled: World) -> None:
    conditions = GetPartitionsFilterSpec(filterMode=9, filters=["a"])
    error = refusal(lambda: filled.calls.projected_specs(SALES, conditions))
    assert error == MetaException("No such partition filter mode: 9")


def test_grouped_specs(world: World) -> None:
    grouping = {"hive.hcatalog.partition.spec.grouping.enabled": "TRUE"}
    world.make_table("grouped", parameters=grouping)
    other = world.descriptor(world.location("elsewhere"))
    wider = world.descriptor()
    wider.cols = [*(wider.cols or []), FieldSchema("extra", "int")]
    for values, sd in ((["a", "1"], world.descriptor()), (["b", "1"], other), (["c", "1"], wider)):
        world.add(*values, table="grouped", sd=sd)
    root = world.location("shop.db/grouped")
    one, two, rest = world.calls.specs(TableName("shop", "grouped"), -1)
    assert (one.rootPath, one.dbName, one.tableName) == (root, "shop", "grouped")
    assert one.sharedSDPartitionSpec is not None
    assert one.sharedSDPartitionSpec.sd is not None
    assert one.sharedSDPartitionSpec.sd.location == root
    bare = (one.sharedSDPartitionSpec.partitions or [])[0]
    assert (bare.values, bare.relativePath) == (["a", "1"], "/ds=a/hr=1")
    assert two.sharedSDPartitionSpec is not None
    assert rest.partitionList is not None
    assert values_of(rest.partitionList.partitions or []) == [["b", "1"]]


def test_grouped_specs_of_an_empty_table(world: World) -> None:
    world.make_table("grouped", parameters={"hive.hcatalog.partition.spec.grouping.enabled": "true"})
    (spec,) = world.calls.specs(TableName("shop", "grouped"), -1)
    assert spec.partitionList is not None
    assert spec.partitionList.partitions == []
