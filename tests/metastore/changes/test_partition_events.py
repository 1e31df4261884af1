"""The messages of partition events: keys, order and contents (semantics §2.20)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import RequestPartsSpec
from hms_gateway.rpc.wire import tjson_codec as tjson
from tests.metastore.partition_world import NOW, SALES, World, partition_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        yield opened


HEAD = ["server", "servicePrincipal", "db", "table", "tableType", "tableObjJson", "timestamp"]


def test_add(world: World) -> None:
    world.calls.add_to(SALES, [world.partition("a/b", "1"), world.partition("c", "2")])
    (event,) = world.events("ADD_PARTITION")
    assert list(event) == [*HEAD, "partitions", "partitionListJson", "partitionFiles"]
    assert [event[key] for key in ("server", "servicePrincipal", "db", "table", "tableType", "timestamp")] == [
        "", "", "shop", "sales", "MANAGED_TABLE", NOW,
    ]  # fmt: skip
    assert event["partitions"] == [{"ds": "a/b", "hr": "1"}, {"ds": "c", "hr": "2"}]
    assert event["partitionFiles"] == [
        {"partitionName": "ds=a%2Fb/hr=1", "files": []},
        {"partitionName": "ds=c/hr=2", "files": []},
    ]
    table = tjson.decode_value(StructType("Table"), event["tableObjJson"].encode())
    assert (table.tableName, [key.name for key in table.partitionKeys]) == ("sales", ["ds", "hr"])
    listed = [tjson.decode_value(StructType("Partition"), text.encode()) for text in event["partitionListJson"]]
    assert listed == [world.calls.get(SALES, values) for values in (["a/b", "1"], ["c", "2"])]


def test_alter(world: World) -> None:
    before = world.add("a", "1")
    changed = world.calls.get(SALES, ["a", "1"])
    changed.parameters = {"k": "v"}
    world.calls.alter(SALES, changed)
    (event,) = world.events("ALTER_PARTITION")
    assert list(event) == [*HEAD, "keyValues", "partitionObjBeforeJson", "partitionObjAfterJson"]
    assert event["keyValues"] == {"ds": "a", "hr": "1"}
    decoded = [
        tjson.decode_value(StructType("Partition"), event[f"partitionObj{state}Json"].encode())
        for state in ("Before", "After")
    ]
    assert decoded == [before, world.calls.get(SALES, ["a", "1"])]


def test_drop(world: World) -> None:
    world.calls.add_to(SALES, [world.partition("a", "1"), world.partition("b", "2")])
    world.calls.drop(SALES, ["a", "1"], deletes_data=True)
    parts = RequestPartsSpec(names=["ds=b/hr=2"])
    world.calls.drop_all(SALES, parts, ignores_missing=False, deletes_data=True)
    one, other = world.events("DROP_PARTITION")
    assert list(one) == [*HEAD, "partitions"]
    assert (one["partitions"], other["partitions"]) == ([{"ds": "a", "hr": "1"}], [{"ds": "b", "hr": "2"}])


def test_names_are_those_under_which_objects_are_stored(world: World) -> None:
    world.calls.add(world.partition("a", "1", dbName="SHOP", tableName="Sales"))
    stored = world.store.read(lambda snapshot: snapshot.events_after(0))[-1].event  # type: ignore[arg-type]
    assert (stored.event_type, stored.db_name, stored.table_name) == ("ADD_PARTITION", "shop", "sales")
