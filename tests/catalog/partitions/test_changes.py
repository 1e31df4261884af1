"""Altering and renaming partitions, case by case of semantics §2.11 and §3.6."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.rpc.structs import (
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    Partition,
    SkewedInfo,
    ThriftException,
)
from tests.metastore.partition_world import NOW, SALES, World, partition_world

MISSING = TableName("shop", "Nothing")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        yield opened


def refusal(call: Any) -> ThriftException:
    with pytest.raises(ThriftException) as caught:
        call()
    return caught.value


def changed(world: World, *values: str, **changes: Any) -> Partition:
    """What a client sends back after reading a partition and changing some fields."""
    partition = world.calls.get(SALES, values)
    for field, value in changes.items():
        setattr(partition, field, value)
    return partition


def relocated(world: World, location: str | None, *values: str) -> Partition:
    partition = world.calls.get(SALES, values)
    assert partition.sd is not None
    partition.sd.location = location
    return partition


def test_alter_takes_everything_that_was_sent(world: World) -> None:
    world.add("a", "1")
    sent = changed(world, "a", "1", createTime=5, lastAccessTime=6, parameters={"k": "v", "transient_lastDdlTime": "7"})
    assert sent.sd is not None
    sent.sd.location = world.location("elsewhere//x/")
    sent.sd.cols = [FieldSchema("Other", "string")]
    world.calls.alter(TableName(" Shop", "SALES"), sent)
    stored = world.calls.get(SALES, ["a", "1"])
    assert (stored.createTime, stored.lastAccessTime) == (5, 6)
    assert stored.parameters == {"k": "v", "transient_lastDdlTime": "7", "numFiles": "0", "totalSize": "0"}
    assert stored.sd is not None
    assert stored.sd.location == world.location("elsewhere/x")
    assert stored.sd.cols == [FieldSchema("other", "string")]
    assert not world.path("elsewhere").exists()


@pytest.mark.parametrize("create_time", [0, None])
def test_the_time_of_creation_is_not_reset(world: World, create_time: int | None) -> None:
    world.add("a", "1")
    world.calls.alter(SALES, changed(world, "a", "1", createTime=create_time, lastAccessTime=None))
    stored = world.calls.get(SALES, ["a", "1"])
    assert (stored.createTime, stored.lastAccessTime) == (NOW, 0)


@pytest.mark.parametrize(("given", "stored"), [(None, str(NOW + 60)), ("0", str(NOW + 60)), ("12", "12")])
def test_ddl_time(world: World, given: str | None, stored: str) -> None:
    world.add("a", "1")
    world.clock.advance(60)
    parameters = {} if given is None else {"transient_lastDdlTime": given}
    world.calls.alter(SALES, changed(world, "a", "1", parameters=parameters))
    assert (world.calls.get(SALES, ["a", "1"]).parameters or {})["transient_lastDdlTime"] == stored


def test_absent_parameters(world: World) -> None:
    world.add("a", "1")
    world.calls.alter(SALES, changed(world, "a", "1", parameters=None))
    assert set(world.calls.get(SALES, ["a", "1"]).parameters or {}) == {
        "transient_lastDdlTime", "numFiles", "totalSize",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"values": ["z", "1"]}, InvalidOperationException("alter is not possible")),
        ({"values": ["a"]}, MetaException("Invalid partition key & values; keys [ds, hr, ], values [a, ]")),
        ({"values": None}, MetaException("partition values must not be null")),
        ({"sd": None}, MetaException("storage descriptor must not be null")),
        ({"dbName": "other"}, MetaException("The transaction for alter partition did not commit successfully.")),
        ({"tableName": "other"}, MetaException("The transaction for alter partition did not commit successfully.")),
        (
            {"parameters": {"transient_lastDdlTime": "soon"}},
            MetaException('java.lang.NumberFormatException: For input string: "soon"'),
        ),
    ],
)
def test_alter_refused(world: World, changes: dict[str, Any], error: ThriftException) -> None:
    world.add("a", "1")
    before = world.calls.get(SALES, ["a", "1"])
    assert refusal(lambda: world.calls.alter(SALES, changed(world, "a", "1", **changes))) == error
    assert world.calls.get(SALES, ["a", "1"]) == before
    assert world.events("ALTER_PARTITION") == []


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (None, "java.lang.IllegalArgumentException: Can not create a Path from a null string"),
        ("", "java.lang.IllegalArgumentException: Can not create a Path from an empty string"),
    ],
)
def test_alter_needs_a_location(world: World, location: str | None, text: str) -> None:
    world.add("a", "1")
    assert refusal(lambda: world.calls.alter(SALES, relocated(world, location, "a", "1"))) == MetaException(text)


def test_alter_in_a_missing_table(world: World) -> None:
    error = InvalidOperationException("Unable to alter partition because table or database does not exist.")
    assert refusal(lambda: world.calls.alter(MISSING, world.partition("a", "1"))) == error
    error = InvalidOperationException("Unable to alter partitions because table or database does not exist.")
    assert refusal(lambda: world.calls.alter_all(MISSING, [])) == error


def test_alter_nothing(world: World) -> None:
    assert isinstance(refusal(lambda: world.calls.alter(SALES, None)), MetaException)
    assert isinstance(refusal(lambda: world.calls.alter_all(SALES, None)), MetaException)
    world.calls.alter_all(SALES, [])
    assert world.events("ALTER_PARTITION") == []


def test_alter_many_is_all_or_nothing(world: World) -> None:
    for hour in "12":
        world.add("a", hour)
    sent = [changed(world, "a", hour, parameters={"k": hour}) for hour in "12"]
    world.calls.alter_all(SALES, sent, EnvironmentContext())
    assert [(world.calls.get(SALES, ["a", hour]).parameters or {})["k"] for hour in "12"] == ["1", "2"]
    assert [event["keyValues"] for event in world.events("ALTER_PARTITION")] == [
        {"ds": "a", "hr": "1"},
        {"ds": "a", "hr": "2"},
    ]
    sent[0].parameters = {"k": "changed"}
    sent[1].values = ["a", "3"]
    assert refusal(lambda: world.calls.alter_all(SALES, sent)) == InvalidOperationException(
        "Alter partition operation failed: NoSuchObjectException(message:partition values=[a, 3])"
    )
    assert (world.calls.get(SALES, ["a", "1"]).parameters or {})["k"] == "1"


def test_the_last_of_two_changes_counts(world: World) -> None:
    world.add("a", "1")
    sent = [changed(world, "a", "1", parameters={"k": value}) for value in ("first", "last")]
    world.calls.alter_all(SALES, sent)
    assert (world.calls.get(SALES, ["a", "1"]).parameters or {})["k"] == "last"


FRESH = {"numFiles": "1", "totalSize": "4"}


@pytest.mark.parametrize(
    ("environment", "sent", "stored"),
    [
        ({}, {}, FRESH),
        ({"DO_NOT_UPDATE_STATS": "true"}, {}, {}),
        ({"DO_NOT_UPDATE_STATS": "true"}, {"numFiles": "9", "totalSize": "9"}, {"numFiles": "9", "totalSize": "9"}),
        ({}, {"numFiles": "9", "totalSize": "9"}, FRESH),
        ({}, {"numFiles": "0", "totalSize": "0", "COLUMN_STATS_ACCURATE": "{}"}, "as sent"),
        ({}, {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}, FRESH),
        (
            {"STATS_GENERATED": "TASK"},
            {"numFiles": "0", "totalSize": "0"},
            FRESH | {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'},
        ),
    ],
)
def test_quick_statistics(world: World, environment: dict[str, str], sent: dict[str, str], stored: Any) -> None:
    world.add("a", "1", parameters={"numFiles": "0", "totalSize": "0"})
    world.path("shop.db/sales/ds=a/hr=1/part-0").write_text("data")
    ddl_time = {"transient_lastDdlTime": "1"}
    changing = changed(world, "a", "1", parameters=sent | ddl_time)
    world.calls.alter(SALES, changing, EnvironmentContext(environment))
    expected = (sent if stored == "as sent" else stored) | ddl_time
    assert world.calls.get(SALES, ["a", "1"]).parameters == expected


def test_partitions_of_views_keep_what_they_have(world: World) -> None:
    world.make_table("seen", tableType="VIRTUAL_VIEW", sd=world.descriptor())
    seen = TableName("shop", "seen")
    world.add("a", "1", table="seen", sd=None)
    world.calls.alter(seen, world.partition("a", "1", table="seen", parameters={"k": "v"}))
    stored = world.calls.get(seen, ["a", "1"])
    assert (stored.parameters or {})["k"] == "v"
    assert "numFiles" not in (stored.parameters or {})


def test_skewed_locations_survive_clients_that_cannot_see_them(world: World) -> None:
    sd = world.descriptor()
    sd.skewedInfo = SkewedInfo(["id"], [["1"]], {("1",): world.location("skewed")})
    world.add("a", "1", sd=sd)
    sent = changed(world, "a", "1")
    assert sent.sd is not None
    sent.sd.skewedInfo = SkewedInfo(["id"], [["1"]], {})
    world.calls.alter(SALES, sent)
    stored = world.calls.get(SALES, ["a", "1"]).sd
    assert stored is not None
    assert stored.skewedInfo == sd.skewedInfo


def test_rename_moves_the_directory(world: World) -> None:
    world.add("a", "1", parameters={"old": "1"})
    world.path("shop.db/sales/ds=a/hr=1/part-0").write_text("data")
    sent = changed(world, "a", "1", values=["b/c", "2"], parameters={"new": "1"}, createTime=0)
    world.calls.rename(SALES, ["a", "1"], sent)
    assert world.names() == ["ds=b%2Fc/hr=2"]
    renamed = world.calls.get(SALES, ["b/c", "2"])
    assert renamed.sd is not None
    assert renamed.sd.location == world.location("shop.db/sales/ds=b%2Fc/hr=2")
    assert world.path("shop.db/sales/ds=b%2Fc/hr=2/part-0").read_text() == "data"
    assert not world.path("shop.db/sales/ds=a/hr=1").exists()
    assert renamed.createTime == NOW
    assert renamed.parameters == {
        "new": "1", "transient_lastDdlTime": str(NOW), "numFiles": "1", "totalSize": "4",
    }  # fmt: skip
    (event,) = world.events("ALTER_PARTITION")
    assert event["keyValues"] == {"ds": "a", "hr": "1"}
    assert json.loads(event["partitionObjAfterJson"])["1"] == {"lst": ["str", 2, "b/c", "2"]}
    assert world.store.read(lambda snapshot: snapshot.pending_moves()) == []


@pytest.mark.parametrize("values", [[], None])
def test_rename_without_old_values_alters(world: World, values: Any) -> None:
    world.add("a", "1")
    world.calls.rename(SALES, values, changed(world, "a", "1", parameters={"k": "v"}))
    assert (world.calls.get(SALES, ["a", "1"]).parameters or {})["k"] == "v"
    sent = changed(world, "a", "1", values=["b", "1"])
    error = refusal(lambda: world.calls.rename(SALES, values, sent))
    assert error == InvalidOperationException("alter is not possible")


@pytest.mark.parametrize(
    ("table", "old", "changes", "error"),
    [
        (
            MISSING,
            ["a", "1"],
            {},
            InvalidOperationException("Unable to alter partition because table or database does not exist."),
        ),
        (
            SALES,
            ["z", "1"],
            {},
            InvalidOperationException("Unable to rename partition because old partition does not exist"),
        ),
        (
            SALES,
            ["a", "1"],
            {"values": ["b", "1"]},
            InvalidOperationException("Partition already exists:shop.sales.[b, 1]"),
        ),
        (
            SALES,
            ["a", "1"],
            {"values": ["a", "1"]},
            InvalidOperationException("Partition already exists:shop.sales.[a, 1]"),
        ),
        (SALES, ["a"], {}, MetaException("Invalid partition key & values; keys [ds, hr, ], values [a, ]")),
        (
            SALES,
            ["a", "1"],
            {"values": ["c"]},
            MetaException("Invalid partition key & values; keys [ds, hr, ], values [c, ]"),
        ),
        (SALES, ["a", "1"], {"sd": None}, MetaException("storage descriptor must not be null")),
        (SALES, ["a", "1"], {"values": None}, MetaException("partition values must not be null")),
    ],
)
def test_rename_refused(
    world: World, table: TableName, old: list[str], changes: dict[str, Any], error: ThriftException
) -> None:
    for day in "ab":
        world.add(day, "1")
    sent = changed(world, "a", "1", **({"values": ["c", "1"]} | changes))
    assert refusal(lambda: world.calls.rename(table, old, sent)) == error
    assert world.names() == ["ds=a/hr=1", "ds=b/hr=1"]
    assert world.path("shop.db/sales/ds=a/hr=1").is_dir()


def test_rename_needs_a_location(world: World) -> None:
    world.add("a", "1")
    sent = relocated(world, None, "a", "1")
    sent.values = ["b", "1"]
    assert isinstance(refusal(lambda: world.calls.rename(SALES, ["a", "1"], sent)), MetaException)


def test_rename_onto_an_existing_directory(world: World) -> None:
    world.add("a", "1")
    world.path("shop.db/sales/ds=b/hr=1").mkdir(parents=True)
    sent = changed(world, "a", "1", values=["b", "1"])
    assert refusal(lambda: world.calls.rename(SALES, ["a", "1"], sent)) == InvalidOperationException(
        f"New location for this table shop.sales already exists : {world.location('shop.db/sales/ds=b/hr=1')}"
    )
    assert world.names() == ["ds=a/hr=1"]


def test_rename_to_another_file_system(world: World) -> None:
    world.add("a", "1")
    sent = relocated(world, "hdfs://nn/x", "a", "1")
    sent.values = ["b", "1"]
    error = refusal(lambda: world.calls.rename(SALES, ["a", "1"], sent))
    assert isinstance(error, InvalidOperationException)
    assert "is on a different file system than the old location" in (error.message or "")


def test_rename_with_the_directory_gone(world: World) -> None:
    world.add("a", "1")
    world.path("shop.db/sales/ds=a/hr=1").rmdir()
    world.calls.rename(SALES, ["a", "1"], changed(world, "a", "1", values=["b", "1"]))
    renamed = world.calls.get(SALES, ["b", "1"])
    assert renamed.sd is not None
    assert renamed.sd.location == world.location("shop.db/sales/ds=b/hr=1")


def test_partitions_of_external_tables_stay_where_they_are(world: World) -> None:
    world.make_table("foreign", tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    foreign = TableName("shop", "foreign")
    world.add("a", "1", table="foreign")
    sent = world.calls.get(foreign, ["a", "1"])
    assert sent.sd is not None
    for number, location in enumerate((sent.sd.location, "", "file:/elsewhere"), start=1):
        sent.values, sent.sd.location = ["b", str(number)], location
        world.calls.rename(foreign, ["a", "1"] if number == 1 else ["b", str(number - 1)], sent)
        renamed = world.calls.get(foreign, ["b", str(number)])
        assert renamed.sd is not None
        assert renamed.sd.location == world.location("shop.db/foreign/ds=a/hr=1")


def test_partitions_on_unmanaged_file_systems_stay_where_they_are(world: World) -> None:
    world.add("a", "1", sd=world.descriptor("hdfs://nn/data/a"))
    world.calls.rename(SALES, ["a", "1"], changed(world, "a", "1", values=["b", "1"]))
    renamed = world.calls.get(SALES, ["b", "1"])
    assert renamed.sd is not None
    assert renamed.sd.location == "hdfs://nn/data/a"


def test_a_move_that_fails_changes_nothing(world: World) -> None:
    class StuckFiles:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.files, name)

        def move_directory(self, source: str, target: str) -> None:
            raise FileSystemError("permission denied")

    world.add("a", "1")
    before = world.calls.get(SALES, ["a", "1"])
    stuck = World(world.store, StuckFiles(), world.clock, world.settings, world.root)  # type: ignore[arg-type]
    sent = changed(world, "a", "1", values=["b", "1"])
    assert refusal(lambda: stuck.calls.rename(SALES, ["a", "1"], sent)) == InvalidOperationException(
        f"Unable to access old location {world.location('shop.db/sales/ds=a/hr=1')} for partition shop.sales [a, 1]"
    )
    assert world.calls.get(SALES, ["a", "1"]) == before
    assert world.names() == ["ds=a/hr=1"]
    assert world.store.read(lambda snapshot: snapshot.pending_moves()) == []


def test_a_commit_that_fails_moves_the_directory_back(world: World) -> None:
    class FailingStore:
        read = staticmethod(world.store.read)

        def write(self, work: Any) -> Any:
            def work_and_fail(transaction: Any) -> Any:
                result = work(transaction)
                if world.path("shop.db/sales/ds=b").exists() and transaction.pending_moves() == []:
                    raise RuntimeError("disk full")
                return result

            return world.store.write(work_and_fail)

    world.add("a", "1")
    failing = World(FailingStore(), world.files, world.clock, world.settings, world.root)  # type: ignore[arg-type]
    sent = changed(world, "a", "1", values=["b", "1"])
    with pytest.raises(RuntimeError, match="disk full"):
        failing.calls.rename(SALES, ["a", "1"], sent)
    assert world.names() == ["ds=a/hr=1"]
    assert world.path("shop.db/sales/ds=a/hr=1").is_dir()
    assert not world.path("shop.db/sales/ds=b/hr=1").exists()


def test_a_partition_changed_meanwhile_is_looked_at_again(world: World) -> None:
    world.add("a", "1")
    interruptions = []

    class InterruptedStore:
        read = staticmethod(world.store.read)

        def write(self, work: Any) -> Any:
            if not interruptions:
                interruptions.append(1)
                world.calls.alter(SALES, changed(world, "a", "1", createTime=77))
            return world.store.write(work)

    other = World(InterruptedStore(), world.files, world.clock, world.settings, world.root)  # type: ignore[arg-type]
    other.calls.alter(SALES, changed(world, "a", "1", createTime=0, parameters={"k": "v"}))
    stored = world.calls.get(SALES, ["a", "1"])
    assert (stored.createTime, (stored.parameters or {})["k"]) == (77, "v")
