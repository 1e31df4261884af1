"""Dropping partitions, case by case of semantics §2.10."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import (
    DropPartitionsExpr,
    MetaException,
    NoSuchObjectException,
    RequestPartsSpec,
    ThriftException,
)
from tests.metastore.partition_world import SALES, World, partition_world

MISSING = TableName("shop", "Nothing")
UNEVALUATED = MetaException("The expression that selects partitions to drop cannot be evaluated: send a filter's text")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        yield opened


def refusal(call: Any) -> ThriftException:
    with pytest.raises(ThriftException) as caught:
        call()
    return caught.value


def expressions(*texts: bytes) -> RequestPartsSpec:
    return RequestPartsSpec(exprs=[DropPartitionsExpr(expr=text) for text in texts])


def test_drop_with_data_and_empty_parents(world: World) -> None:
    world.add("a", "1")
    world.add("a", "2")
    world.path("shop.db/sales/ds=a/hr=1/part-0").write_text("data")
    world.calls.drop(TableName("SHOP", "Sales"), ["a", "1"], deletes_data=True)
    assert world.names() == ["ds=a/hr=2"]
    assert [path.name for path in world.path("shop.db/sales/ds=a").iterdir()] == ["hr=2"]
    world.calls.drop_by_name(SALES, "hr=2/ds=a", deletes_data=True)
    assert world.names() == []
    assert list(world.path("shop.db/sales").iterdir()) == []


def test_drop_without_data(world: World) -> None:
    world.add("a", "1")
    world.calls.drop(SALES, ["a", "1"], deletes_data=False)
    assert world.names() == []
    assert world.path("shop.db/sales/ds=a/hr=1").is_dir()


@pytest.mark.parametrize("value", ["TRUE", "true"])
def test_external_tables_keep_their_data(world: World, value: str) -> None:
    world.make_table("foreign", tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": value})
    world.add("a", "1", table="foreign")
    world.calls.drop(TableName("shop", "foreign"), ["a", "1"], deletes_data=True)
    assert world.names("foreign") == []
    assert world.path("shop.db/foreign/ds=a/hr=1").is_dir()


def test_data_that_is_gone_already(world: World) -> None:
    world.add("a", "1")
    world.path("shop.db/sales/ds=a/hr=1").rmdir()
    world.calls.drop(SALES, ["a", "1"], deletes_data=True)
    assert world.names() == []


def test_a_partition_in_the_tables_own_directory_does_not_take_it_along(world: World) -> None:
    world.add("kept", "1")
    world.add("a", "1", sd=world.descriptor(world.location("shop.db/sales")))
    world.add("b", "1", sd=world.descriptor(world.location("shop.db")))
    world.calls.drop(SALES, ["a", "1"], deletes_data=True)
    world.calls.drop(SALES, ["b", "1"], deletes_data=True)
    assert world.path("shop.db/sales/ds=kept/hr=1").is_dir()


def test_an_archived_partition_deletes_where_it_came_from(world: World) -> None:
    world.path("original").mkdir()
    parameters = {"is_archived": "true", "original_location": world.location("original")}
    world.add("a", "1", parameters=parameters)
    world.calls.drop(SALES, ["a", "1"], deletes_data=True)
    assert not world.path("original").exists()
    assert world.path("shop.db/sales/ds=a/hr=1").is_dir()


@pytest.mark.parametrize(
    ("table", "values", "error"),
    [
        (MISSING, ["a", "1"], NoSuchObjectException("partition values=[a, 1]")),
        (SALES, ["a", "1"], NoSuchObjectException("partition values=[a, 1]")),
        (SALES, ["a"], MetaException("Invalid partition key & values; keys [ds, hr, ], values [a, ]")),
        (SALES, None, MetaException("partition values must not be null")),
    ],
)
def test_drop_refused(world: World, table: TableName, values: Any, error: ThriftException) -> None:
    assert refusal(lambda: world.calls.drop(table, values, deletes_data=True)) == error


@pytest.mark.parametrize(
    ("table", "name", "error"),
    [
        (MISSING, "ds=a/hr=1", NoSuchObjectException("shop.Nothing table not found")),
        (SALES, "", MetaException("Partition name is invalid. ")),
        (SALES, "ds=a", NoSuchObjectException("incomplete partition name - missing hr")),
        (SALES, "ds=a/hr=1", NoSuchObjectException("partition values=[a, 1]")),
    ],
)
def test_drop_by_name_refused(world: World, table: TableName, name: str, error: ThriftException) -> None:
    assert refusal(lambda: world.calls.drop_by_name(table, name, deletes_data=True)) == error


def test_drop_many_by_name(world: World) -> None:
    for hour in "123":
        world.add("a", hour)
    names = ["ds=a/hr=2", "ds=a/hr=1"]
    dropped = world.calls.drop_all(SALES, RequestPartsSpec(names=names), ignores_missing=False, deletes_data=True)
    assert [one.values for one in dropped] == [["a", "1"], ["a", "2"]]
    assert world.names() == ["ds=a/hr=3"]
    assert [path.name for path in world.path("shop.db/sales/ds=a").iterdir()] == ["hr=3"]
    assert [event["partitions"] for event in world.events("DROP_PARTITION")] == [
        [{"ds": "a", "hr": "1"}, {"ds": "a", "hr": "2"}]
    ]


def test_missing_names(world: World) -> None:
    world.add("a", "1")
    parts = RequestPartsSpec(names=["ds=a/hr=1", "ds=b/hr=1"])
    error = refusal(lambda: world.calls.drop_all(SALES, parts, ignores_missing=False, deletes_data=True))
    assert error == NoSuchObjectException("Some partitions to drop are missing")
    assert world.names() == ["ds=a/hr=1"]
    assert len(world.calls.drop_all(SALES, parts, ignores_missing=True, deletes_data=True)) == 1


def test_nothing_to_drop_is_no_event(world: World) -> None:
    for parts in (RequestPartsSpec(names=[]), RequestPartsSpec(names=["unknown"]), RequestPartsSpec(exprs=[])):
        assert world.calls.drop_all(SALES, parts, ignores_missing=True, deletes_data=True) == []
    assert world.events("DROP_PARTITION") == []


def test_drop_by_filter_text(world: World) -> None:
    for hour in "1234":
        world.add("a", hour)
    dropped = world.calls.drop_all(
        SALES, expressions(b"hr > 2", b"hr = 4 or hr = 1"), ignores_missing=False, deletes_data=False
    )
    assert [one.values[1] for one in dropped if one.values] == ["1", "3", "4"]
    assert world.names() == ["ds=a/hr=2"]


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        (expressions(b"hr = 1", b"hr = 9"), NoSuchObjectException("Some partitions to drop are missing")),
        (RequestPartsSpec(), MetaException("Partition spec is not set")),
        (None, MetaException("Partition spec is not set")),
        (
            expressions(b"\xac\xed kryo"),
            UNEVALUATED,
        ),
        (
            expressions(b""),
            UNEVALUATED,
        ),
        (expressions(b"note = 1"), MetaException("Specified key <note> is not a partitioning key for the table")),
    ],
)
def test_drop_many_refused(world: World, parts: RequestPartsSpec | None, error: ThriftException) -> None:
    world.add("a", "1")
    assert refusal(lambda: world.calls.drop_all(SALES, parts, ignores_missing=False, deletes_data=True)) == error
    assert world.names() == ["ds=a/hr=1"]


def test_drop_many_from_a_missing_table(world: World) -> None:
    parts = RequestPartsSpec(names=[])
    error = refusal(lambda: world.calls.drop_all(MISSING, parts, ignores_missing=True, deletes_data=True))
    assert error == NoSuchObjectException("shop.Nothing table not found")
