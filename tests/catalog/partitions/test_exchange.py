"""Exchanging partitions, case by case of semantics §2.11."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.rpc.structs import FieldSchema, MetaException, ThriftException
from tests.metastore.partition_world import SALES, World, partition_world

TARGET = TableName("shop", "target")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        yield opened


def refusal(call: Any) -> ThriftException:
    with pytest.raises(ThriftException) as caught:
        call()
    return caught.value


@pytest.fixture
def two_tables(world: World) -> World:
    """`sales` with two days of two hours, with a file in each, and `target` without partitions."""
    world.make_table("target")
    for day in ("d1", "d2"):
        for hour in ("1", "2"):
            world.add(day, hour)
            world.path(f"shop.db/sales/ds={day}/hr={hour}/part-0").write_text(day + hour)
    return world


def test_one_partition(two_tables: World) -> None:
    moved = two_tables.calls.exchange({"ds": "d1", "hr": "1"}, SALES, TARGET)
    assert [(one.values, one.tableName) for one in moved] == [(["d1", "1"], "target")]
    assert two_tables.names() == ["ds=d1/hr=2", "ds=d2/hr=1", "ds=d2/hr=2"]
    assert two_tables.names("target") == ["ds=d1/hr=1"]
    stored = two_tables.calls.get(TARGET, ["d1", "1"])
    assert stored.sd is not None
    assert stored.sd.location == two_tables.location("shop.db/target/ds=d1/hr=1")
    assert two_tables.path("shop.db/target/ds=d1/hr=1/part-0").read_text() == "d11"
    assert two_tables.store.read(lambda snapshot: snapshot.pending_moves()) == []


@pytest.mark.parametrize("spec", [{"ds": "d1"}, {"DS": "d1", "hr": ""}, {"ds": "d1", "unknown": "x"}])
def test_a_partial_spec_moves_the_common_directory(two_tables: World, spec: dict[str, str]) -> None:
    two_tables.path("shop.db/sales/ds=d1/_notes").write_text("moves along")
    moved = two_tables.calls.exchange(spec, SALES, TARGET)
    assert [one.values for one in moved] == [["d1", "1"], ["d1", "2"]]
    assert two_tables.names() == ["ds=d2/hr=1", "ds=d2/hr=2"]
    assert two_tables.names("target") == ["ds=d1/hr=1", "ds=d1/hr=2"]
    assert two_tables.path("shop.db/target/ds=d1/_notes").is_file()
    assert not two_tables.path("shop.db/sales/ds=d1").exists()
    assert (two_tables.table().partition_count, two_tables.table("target").partition_count) == (2, 2)


def test_events_of_both_tables(two_tables: World) -> None:
    two_tables.calls.exchange({"ds": "d2"}, SALES, TARGET)
    added, dropped = two_tables.events("ADD_PARTITION")[-1], two_tables.events("DROP_PARTITION")[-1]
    keys = [{"ds": "d2", "hr": "1"}, {"ds": "d2", "hr": "2"}]
    assert (added["table"], added["partitions"]) == ("target", keys)
    assert (dropped["table"], dropped["partitions"]) == ("sales", keys)


def test_a_partition_that_lies_elsewhere_stays_there(two_tables: World) -> None:
    two_tables.add("d1", "3", sd=two_tables.descriptor(two_tables.location("elsewhere")))
    two_tables.calls.exchange({"ds": "d1"}, SALES, TARGET)
    stored = two_tables.calls.get(TARGET, ["d1", "3"])
    assert stored.sd is not None
    assert stored.sd.location == two_tables.location("elsewhere")
    assert two_tables.path("elsewhere").is_dir()


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "Invalid partition key & values; keys [], values []"),
        (None, "Invalid partition key & values; keys [], values []"),
        ({"ds": "", "hr": ""}, "Invalid partition key & values; keys [], values []"),
        ({"unknown": "x"}, "Invalid partition key & values; keys [], values []"),
        ({"ds": "d9"}, "Got exception: java.io.FileNotFoundException File {}/ds=d9 does not exist"),
        ({"hr": "1"}, "Got exception: java.io.FileNotFoundException File {}/hr=1 does not exist"),
    ],
)
def test_useless_specs(two_tables: World, spec: Any, text: str) -> None:
    error = refusal(lambda: two_tables.calls.exchange(spec, SALES, TARGET))
    assert error == MetaException(text.format(two_tables.location("shop.db/sales")))
    assert len(two_tables.names()) == 4


def test_missing_tables(two_tables: World) -> None:
    missing = TableName("shop", "Nothing")
    exchange = two_tables.calls.exchange
    assert refusal(lambda: exchange({"ds": "d1"}, missing, TARGET)) == MetaException(
        "The source table shop.Nothing not found"
    )
    assert refusal(lambda: exchange({"ds": "d1"}, SALES, missing)) == MetaException(
        "The destination table shop.Nothing not found"
    )


@pytest.mark.parametrize("keys", ["ds:string", "hr:int,ds:string", "ds:string,hr:bigint"])
def test_different_keys(two_tables: World, keys: str) -> None:
    two_tables.make_table("other", keys=keys)
    error = refusal(lambda: two_tables.calls.exchange({"ds": "d1"}, SALES, TableName("shop", "other")))
    assert error == MetaException("The tables have different schemas. Their partitions cannot be exchanged.")


def test_different_columns_but_for_comments(two_tables: World) -> None:
    commented = two_tables.descriptor(two_tables.location("shop.db/commented"))
    commented.cols = [FieldSchema("id", "bigint", "another comment"), FieldSchema("note", "string")]
    two_tables.make_table("commented", sd=commented)
    assert two_tables.calls.exchange({"ds": "d1"}, SALES, TableName("shop", "commented"))
    typed = two_tables.descriptor(two_tables.location("shop.db/typed"))
    typed.cols = [FieldSchema("id", "int"), FieldSchema("note", "string")]
    two_tables.make_table("typed", sd=typed)
    error = refusal(lambda: two_tables.calls.exchange({"ds": "d2"}, SALES, TableName("shop", "typed")))
    assert error == MetaException("The tables have different schemas. Their partitions cannot be exchanged.")


def test_the_target_directory_exists(two_tables: World) -> None:
    two_tables.path("shop.db/target/ds=d1").mkdir()
    assert refusal(lambda: two_tables.calls.exchange({"ds": "d1"}, SALES, TARGET)) == MetaException(
        "Got exception: java.io.IOException Cannot rename the source path. The destination path already exists."
    )
    assert two_tables.names("target") == []


def test_the_target_directory_is_looked_at_first(two_tables: World) -> None:
    two_tables.path("shop.db/target/ds=d9").mkdir()
    assert refusal(lambda: two_tables.calls.exchange({"ds": "d9"}, SALES, TARGET)) == MetaException(
        "Got exception: java.io.IOException Cannot rename the source path. The destination path already exists."
    )


def test_the_target_partition_exists(two_tables: World) -> None:
    two_tables.add("d1", "2", table="target", sd=two_tables.descriptor(two_tables.location("elsewhere")))
    assert refusal(lambda: two_tables.calls.exchange({"ds": "d1"}, SALES, TARGET)) == MetaException(
        "Partition already exists:shop.target.[d1, 2]"
    )
    assert len(two_tables.names()) == 4


def test_a_move_that_fails_changes_nothing(two_tables: World) -> None:
    class StuckFiles:
        def __getattr__(self, name: str) -> Any:
            return getattr(two_tables.files, name)

        def move_directory(self, source: str, target: str) -> None:
            raise FileSystemError("permission denied")

    stuck = World(
        two_tables.store,
        StuckFiles(),  # type: ignore[arg-type]
        two_tables.clock,
        two_tables.settings,
        two_tables.root,
    )
    error = refusal(lambda: stuck.calls.exchange({"ds": "d1"}, SALES, TARGET))
    assert error == MetaException("Got exception: java.io.IOException permission denied")
    assert (len(two_tables.names()), two_tables.names("target")) == (4, [])
    assert two_tables.store.read(lambda snapshot: snapshot.pending_moves()) == []


def test_unmanaged_file_systems_change_metadata_only(world: World) -> None:
    for name in ("far", "near"):
        world.make_table(name, sd=world.descriptor(f"hdfs://nn/shop.db/{name}"))
    world.add("d1", "1", table="far")
    far, near = TableName("shop", "far"), TableName("shop", "near")
    (moved,) = world.calls.exchange({"ds": "d1"}, far, near)
    assert moved.sd is not None
    assert moved.sd.location == "hdfs://nn/shop.db/far/ds=d1/hr=1"
    assert isinstance(refusal(lambda: world.calls.exchange({"ds": "d1"}, far, near)), MetaException)
