"""The IDL's methods that change partitions: each reaches the service with what it was given."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    AddPartitionsResult,
    AlterPartitionsRequest,
    AlterPartitionsResponse,
    AppendPartitionsRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    DropPartitionsResult,
    EnvironmentContext,
    FieldSchema,
    NoSuchObjectException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    RenamePartitionRequest,
    RenamePartitionResponse,
    RequestPartsSpec,
)
from hms_gateway.runtime.call_keys import CallKey, answering
from tests.metastore.partition_world import SALES, World, partition_world
from tests.support.partition_calls import PartitionCalls

CALL = Call("nobody")
CONTEXT = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def handlers(world: World) -> PartitionCalls:
    return world.calls


def test_add(world: World, handlers: PartitionCalls) -> None:
    world.path("shop.db/sales/ds=b/hr=1").mkdir(parents=True)
    assert handlers.additions.add_partition(CALL, world.partition("a", "1")).values == ["a", "1"]
    added = handlers.additions.add_partition_with_environment_context(CALL, world.partition("b", "1"), CONTEXT)
    assert "numFiles" not in (added.parameters or {})
    assert handlers.additions.add_partition_with_environment_context(CALL, world.partition("c", "1"), None).values == [
        "c",
        "1",
    ]
    assert handlers.additions.add_partitions(CALL, [world.partition("d", "1")]) == 1
    spec = PartitionSpec(
        dbName="shop", tableName="sales", partitionList=PartitionListComposingSpec([world.partition("e", "1")])
    )
    assert handlers.additions.add_partitions_pspec(CALL, [spec]) == 1
    assert world.names() == [f"ds={value}/hr=1" for value in "abcde"]


def test_add_by_request_as_spark_sends_it(world: World, handlers: PartitionCalls) -> None:
    world.add("a", "1")
    parts = [world.partition("a", "1"), world.partition("b", "1")]
    request = AddPartitionsRequest(dbName="shop", tblName="sales", parts=parts, ifNotExists=True, needResult=True)
    result = handlers.additions.add_partitions_req(CALL, request)
    assert [one.values for one in result.partitions or []] == [["b", "1"]]
    assert handlers.additions.add_partitions_req(CALL, request) == AddPartitionsResult(partitions=[])


@pytest.mark.parametrize(("need_result", "has_result"), [(None, True), (True, True), (False, False)])
def test_the_result_of_an_add_is_optional(
    world: World, handlers: PartitionCalls, need_result: bool | None, has_result: bool
) -> None:
    request = AddPartitionsRequest(
        dbName="shop", tblName="sales", parts=[world.partition("a", "1")], ifNotExists=False, needResult=need_result
    )
    assert (handlers.additions.add_partitions_req(CALL, request).partitions is not None) is has_result
    assert world.names() == ["ds=a/hr=1"]


@pytest.mark.parametrize(("need_result", "kept"), [(True, [["a", "1"]]), (False, [])])
def test_what_a_call_with_a_key_does_not_answer_is_not_kept(
    world: World, handlers: PartitionCalls, need_result: bool, kept: list[list[str]]
) -> None:
    request = AddPartitionsRequest(
        dbName="shop", tblName="sales", parts=[world.partition("a", "1")], ifNotExists=False, needResult=need_result
    )
    answers = []
    for _ in range(2):
        found = world.store.find("nobody", "k")
        recalled = found.value if found else None
        key = CallKey("nobody", "k", "add_partitions_req", b"hash", keeps_value=True, recalled=recalled)
        with answering(key):
            answers.append(handlers.additions.add_partitions_req(CALL, request))
    assert answers[0] == answers[1]
    assert recalled is not None
    assert isinstance(recalled.value, list)
    assert [one.values for one in recalled.value] == kept


NEWER = Call("nobody", dialect=Dialect.HIVE_4)


@pytest.mark.parametrize(("call", "catalog"), [(CALL, None), (NEWER, "hive")])
def test_newer_callers_see_the_catalog(world: World, handlers: PartitionCalls, call: Call, catalog: str | None) -> None:
    added = [
        handlers.additions.add_partition(call, world.partition("a", "1")),
        handlers.additions.add_partition_with_environment_context(call, world.partition("b", "1"), None),
        handlers.additions.append_partition(call, "shop", "sales", ["c", "1"]),
        handlers.additions.append_partition_with_environment_context(call, "shop", "sales", ["d", "1"], None),
        handlers.additions.append_partition_by_name(call, "shop", "sales", "ds=e/hr=1"),
        handlers.additions.append_partition_by_name_with_environment_context(call, "shop", "sales", "ds=f/hr=1", None),
    ]
    request = AddPartitionsRequest(dbName="shop", tblName="sales", parts=[world.partition("g", "1")], ifNotExists=False)
    added += handlers.additions.add_partitions_req(call, request).partitions or []
    parts = RequestPartsSpec(names=["ds=g/hr=1"])
    drop = DropPartitionsRequest(dbName="shop", tblName="sales", parts=parts)
    added += handlers.drops.drop_partitions_req(call, drop).partitions or []
    assert [one.catName for one in added] == [catalog] * 8


def test_a_request_that_names_the_catalog_is_answered_with_it(world: World, handlers: PartitionCalls) -> None:
    assert handlers.additions.add_partition(CALL, world.partition("a", "1", catName="hive")).catName == "hive"
    assert handlers.additions.append_partition(CALL, "@hive#shop", "sales", ["b", "1"]).catName == "hive"


def test_columns_sent_once_for_all_partitions(world: World, handlers: PartitionCalls) -> None:
    columns = [FieldSchema("id", "int")]
    partition = world.partition("a", "1")
    assert partition.sd is not None
    partition.sd.cols = None
    handlers.additions.add_partitions_req(
        CALL,
        AddPartitionsRequest(
            dbName="shop",
            tblName="sales",
            parts=[partition],
            ifNotExists=False,
            skipColumnSchemaForPartition=True,
            partitionColSchema=columns,
        ),
    )
    stored = world.calls.get(SALES, ["a", "1"])
    assert stored.sd is not None
    assert stored.sd.cols == columns
    stored.sd.cols = None
    wider = [*columns, FieldSchema("more", "int")]
    handlers.changes.alter_partitions_req(
        CALL,
        AlterPartitionsRequest(
            dbName="shop",
            tableName="sales",
            partitions=[stored],
            skipColumnSchemaForPartition=True,
            partitionColSchema=wider,
        ),
    )
    altered = world.calls.get(SALES, ["a", "1"])
    assert altered.sd is not None
    assert altered.sd.cols == wider


def test_append(world: World, handlers: PartitionCalls) -> None:
    handlers.additions.append_partition(CALL, "@hive#shop", "sales", ["a", "1"])
    handlers.additions.append_partition_with_environment_context(CALL, "shop", "sales", ["b", "1"], CONTEXT)
    handlers.additions.append_partition_by_name(CALL, "shop", "sales", "ds=c/hr=1")
    handlers.additions.append_partition_by_name_with_environment_context(CALL, "shop", "sales", "ds=d/hr=1", None)
    handlers.additions.append_partition_req(
        CALL, AppendPartitionsRequest(dbName="shop", tableName="sales", partVals=["e", "1"])
    )
    handlers.additions.append_partition_req(
        CALL, AppendPartitionsRequest(dbName="shop", tableName="sales", name="ds=f/hr=1")
    )
    assert world.names() == [f"ds={value}/hr=1" for value in "abcdef"]


def test_drop(world: World, handlers: PartitionCalls) -> None:
    for value in "abcdef":
        world.add(value, "1")
    assert handlers.drops.drop_partition(CALL, "shop", "sales", ["a", "1"], True)
    assert handlers.drops.drop_partition_with_environment_context(CALL, "shop", "sales", ["b", "1"], False, CONTEXT)
    assert handlers.drops.drop_partition_by_name(CALL, "shop", "sales", "ds=c/hr=1", True)
    assert handlers.drops.drop_partition_by_name_with_environment_context(
        CALL, "shop", "sales", "ds=d/hr=1", True, None
    )
    by_values = DropPartitionRequest(dbName="shop", tblName="sales", partVals=["e", "1"], deleteData=True)
    by_name = DropPartitionRequest(dbName="shop", tblName="sales", partName="ds=f/hr=1")
    assert handlers.drops.drop_partition_req(CALL, by_values)
    assert handlers.drops.drop_partition_req(CALL, by_name)
    assert world.names() == []
    assert sorted(path.name for path in world.path("shop.db/sales").iterdir()) == ["ds=b", "ds=f"]


@pytest.mark.parametrize(("if_exists", "is_refused"), [(None, True), (False, True), (True, False)])
def test_missing_ones_count_unless_the_flag_was_sent(
    world: World, handlers: PartitionCalls, if_exists: bool | None, is_refused: bool
) -> None:
    world.add("a", "1")
    names = RequestPartsSpec(names=["ds=a/hr=1", "ds=b/hr=1"])
    request = DropPartitionsRequest(dbName="shop", tblName="sales", parts=names, ifExists=if_exists)
    if is_refused:
        with pytest.raises(NoSuchObjectException, match="Some partitions to drop are missing"):
            handlers.drops.drop_partitions_req(CALL, request)
    else:
        assert [one.values for one in handlers.drops.drop_partitions_req(CALL, request).partitions or []] == [
            ["a", "1"]
        ]


def test_the_result_of_a_drop_is_optional(world: World, handlers: PartitionCalls) -> None:
    world.add("a", "1")
    request = DropPartitionsRequest(
        dbName="shop", tblName="sales", parts=RequestPartsSpec(names=["ds=a/hr=1"]), needResult=False
    )
    assert handlers.drops.drop_partitions_req(CALL, request) == DropPartitionsResult()


def test_alter(world: World, handlers: PartitionCalls) -> None:
    world.add("a", "1")

    def sent(value: str) -> Partition:
        partition = world.calls.get(SALES, ["a", "1"])
        partition.parameters = {"k": value}
        return partition

    def stored() -> str:
        return (world.calls.get(SALES, ["a", "1"]).parameters or {})["k"]

    handlers.changes.alter_partition(CALL, "shop", "sales", sent("1"))
    assert stored() == "1"
    handlers.changes.alter_partitions(CALL, "shop", "sales", [sent("2")])
    assert stored() == "2"
    handlers.changes.alter_partition_with_environment_context(CALL, "shop", "sales", sent("3"), CONTEXT)
    assert stored() == "3"
    handlers.changes.alter_partitions_with_environment_context(CALL, "shop", "sales", [sent("4")], None)
    assert stored() == "4"
    request = AlterPartitionsRequest(dbName="shop", tableName="sales", partitions=[sent("5")])
    assert handlers.changes.alter_partitions_req(CALL, request) == AlterPartitionsResponse()
    assert stored() == "5"


def test_rename(world: World, handlers: PartitionCalls) -> None:
    renamed = world.add("a", "1")
    renamed.values = ["b", "1"]
    handlers.changes.rename_partition(CALL, "shop", "sales", ["a", "1"], renamed)
    assert world.names() == ["ds=b/hr=1"]
    renamed.values = ["c", "1"]
    request = RenamePartitionRequest(dbName="shop", tableName="sales", partVals=["b", "1"], newPart=renamed)
    assert handlers.changes.rename_partition_req(CALL, request) == RenamePartitionResponse()
    assert world.names() == ["ds=c/hr=1"]


def test_exchange(world: World, handlers: PartitionCalls) -> None:
    world.make_table("target")
    for value in "ab":
        world.add(value, "1")
    spec: Any = {"ds": "a"}
    answer = handlers.exchanges.exchange_partition(CALL, spec, "shop", "sales", "@hive#shop", "target")
    assert answer == Partition(createTime=0, lastAccessTime=0)
    moved = handlers.exchanges.exchange_partitions(CALL, {"ds": "b"}, "shop", "sales", "shop", "target")
    assert [one.values for one in moved] == [["b", "1"]]
    assert world.names("target") == ["ds=a/hr=1", "ds=b/hr=1"]
