"""Adding and appending partitions, case by case of semantics §2.8, §3.6 and §3.8."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import FileSystemError, Reach
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    EnvironmentContext,
    FieldSchema,
    InvalidObjectException,
    MetaException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    PrincipalPrivilegeSet,
    ThriftException,
)
from tests.metastore.partition_world import NOW, SALES, World, partition_world, structs, values_of

DEFAULT = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        yield opened


def refusal(call: Any) -> ThriftException:
    with pytest.raises(ThriftException) as caught:
        call()
    return caught.value


def test_a_partition_gets_place_times_and_directory(world: World) -> None:
    added = world.add("2024-01-01", "7")
    assert added.createTime == NOW
    assert added.parameters == {"transient_lastDdlTime": str(NOW)}
    assert added.sd is not None
    assert added.sd.location == world.location("shop.db/sales/ds=2024-01-01/hr=7")
    assert world.path("shop.db/sales/ds=2024-01-01/hr=7").is_dir()
    assert world.calls.get(SALES, ["2024-01-01", "7"]) == added


def test_the_answer_is_the_struct_that_was_sent(world: World) -> None:
    sent = world.partition("a", "1", dbName="SHOP", tableName="Sales")
    sent.sd.skewedInfo = None  # type: ignore[union-attr]
    added = world.calls.add(sent)
    assert (added.dbName, added.tableName) == ("SHOP", "Sales")
    assert added.sd is not None
    assert added.sd.skewedInfo is None
    stored = world.calls.get(SALES, ["a", "1"])
    assert (stored.dbName, stored.tableName) == ("shop", "sales")
    assert stored.sd is not None
    assert stored.sd.skewedInfo is not None


def test_what_belongs_to_the_call_is_not_stored(world: World) -> None:
    sent = world.partition("a", "1", catName="hive", writeId=7, privileges=PrincipalPrivilegeSet(userPrivileges={}))
    assert world.calls.add(sent).catName == "hive"
    stored = world.calls.get(SALES, ["a", "1"])
    assert (stored.catName, stored.writeId, stored.privileges) == (None, None, None)
    world.calls.alter(SALES, sent_back(stored, catName="hive", writeId=8))
    stored = world.calls.get(SALES, ["a", "1"])
    assert (stored.catName, stored.writeId) == (None, None)


def sent_back(partition: Partition, **changes: Any) -> Partition:
    for field, value in changes.items():
        setattr(partition, field, value)
    return partition


def test_what_was_sent_is_left_untouched(world: World) -> None:
    sent = world.partition("a", "1")
    world.calls.add(sent)
    assert sent == world.partition("a", "1")


def test_times_sent_by_clients(world: World) -> None:
    sent = world.partition("a", "1", createTime=5, lastAccessTime=6, parameters={"transient_lastDdlTime": "9"})
    added = world.calls.add(sent)
    assert (added.createTime, added.lastAccessTime) == (NOW, 6)
    assert added.parameters == {"transient_lastDdlTime": "9"}


def test_absent_parameters_and_columns(world: World) -> None:
    sent = world.partition("a", "1", parameters=None)
    sent.sd.cols = None  # type: ignore[union-attr]
    assert world.calls.add(sent).parameters == {"transient_lastDdlTime": str(NOW)}


def test_column_names_are_stored_in_lower_case(world: World) -> None:
    sent = world.partition("a", "1")
    sent.sd.cols = [FieldSchema("Id", "BIGINT", "Key")]  # type: ignore[union-attr]
    world.calls.add(sent)
    stored = world.calls.get(SALES, ["a", "1"])
    assert stored.sd is not None
    assert stored.sd.cols == [FieldSchema("id", "BIGINT", "Key")]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (["a/b=c %:é", "1"], "ds=a%2Fb%3Dc %25%3Aé/hr=1"),
        (['"quoted"', "2"], "ds=%22quoted%22/hr=2"),
        (["a\\b", "3"], "ds=a%5Cb/hr=3"),
        (["tab\there", "4"], "ds=tab%09here/hr=4"),
        ([DEFAULT, "5"], f"ds={DEFAULT}/hr=5"),
        (["x} <>|&$@+,;~`!().-_", "6"], "ds=x} <>|&$@+,;~`!().-_/hr=6"),
        (["%2F", "7"], "ds=%252F/hr=7"),
        (["日本 🎈", "8"], "ds=日本 🎈/hr=8"),
    ],
)
def test_special_characters(world: World, values: list[str], name: str) -> None:
    world.add(*values)
    assert world.names() == [name]
    assert world.calls.get(SALES, values).values == values
    assert world.calls.get_by_name(SALES, name).values == values
    assert world.path("shop.db/sales", name).is_dir()


def test_empty_value_and_default_partition_are_one_partition(world: World) -> None:
    world.add("", "1")
    assert world.names() == [f"ds={DEFAULT}/hr=1"]
    assert isinstance(refusal(lambda: world.add(DEFAULT, "1")), AlreadyExistsException)
    for value in ("", DEFAULT):
        assert structs(world.calls.list_by_filter(SALES, f'ds = "{value}"', -1))


def test_values_differ_by_case_and_leading_zeros(world: World) -> None:
    for values in (["d", "1"], ["D", "1"], ["d", "01"]):
        world.add(*values)
    assert world.names() == ["ds=D/hr=1", "ds=d/hr=01", "ds=d/hr=1"]


def test_missing_table(world: World) -> None:
    error = refusal(lambda: world.add("a", "1", table="nothing"))
    assert error == InvalidObjectException("Unable to add partition because table or database do not exist")


def test_existing_partition(world: World) -> None:
    world.add("a", "1")
    error = refusal(lambda: world.add("a", "1"))
    assert isinstance(error, AlreadyExistsException)
    assert (error.message or "").startswith(
        "Partition already exists: Partition(values:[a, 1], dbName:shop, tableName:sales, createTime:0,"
        " lastAccessTime:0, sd:StorageDescriptor(cols:[FieldSchema(name:id, type:bigint, comment:null),"
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["a"], "Invalid partition key & values; keys [ds, hr, ], values [a, ]"),
        (["a", "b", "c"], "Invalid partition key & values; keys [ds, hr, ], values [a, b, c, ]"),
        ([], "Invalid partition key & values; keys [ds, hr, ], values []"),
    ],
)
def test_wrong_number_of_values(world: World, values: list[str], text: str) -> None:
    assert refusal(lambda: world.add(*values)) == MetaException(text)


@pytest.mark.parametrize(
    "changes", [{"values": None}, {"sd": None}, {"dbName": None}, {"tableName": None}, {"values": ["a", None]}]
)
def test_missing_parts_are_meta_exceptions(world: World, changes: dict[str, Any]) -> None:
    assert isinstance(refusal(lambda: world.add("a", "1", **changes)), MetaException)


def test_no_partition_at_all(world: World) -> None:
    assert isinstance(refusal(lambda: world.calls.add(None)), MetaException)
    assert isinstance(refusal(lambda: world.calls.add_all(None)), MetaException)


def test_a_location_of_its_own(world: World) -> None:
    sent = world.partition("a", "1")
    sent.sd.location = f"file://{world.root}//elsewhere/x/"  # type: ignore[union-attr]
    added = world.calls.add(sent)
    assert added.sd is not None
    assert added.sd.location == world.location("elsewhere/x")
    assert world.path("elsewhere/x").is_dir()


def test_a_location_may_not_climb(world: World) -> None:
    sent = world.partition("a", "1")
    sent.sd.location = world.location("shop.db/../../outside")  # type: ignore[union-attr]
    error = refusal(lambda: world.calls.add(sent))
    assert isinstance(error, MetaException)
    assert "must not contain '..'" in (error.message or "")
    assert world.names() == []


def test_a_file_in_the_way(world: World) -> None:
    world.path("shop.db/sales/ds=a").write_text("no directory")
    error = refusal(lambda: world.add("a", "1"))
    assert error == MetaException(
        f"{world.location('shop.db/sales/ds=a/hr=1')} is not a directory or unable to create one"
    )
    assert world.names() == []


def test_an_unmanaged_scheme_is_left_alone(world: World) -> None:
    sent = world.partition("a", "1")
    sent.sd.location = "hdfs://nn:8020/data/a"  # type: ignore[union-attr]
    added = world.calls.add(sent)
    assert added.sd is not None
    assert added.sd.location == "hdfs://nn:8020/data/a"
    assert added.parameters == {"transient_lastDdlTime": str(NOW)}


def test_views_have_partitions_without_descriptor(world: World) -> None:
    world.make_table("seen", tableType="VIRTUAL_VIEW", sd=world.descriptor())
    world.add("a", "1", table="seen", sd=None)
    sent = world.partition("b", "1", table="seen")
    sent.sd.location = world.location("x")  # type: ignore[union-attr]
    error = refusal(lambda: world.calls.add(sent))
    assert error == MetaException("Cannot specify location for a view partition")
    error = refusal(lambda: world.calls.add_to(TableName("shop", "seen"), [sent]))
    assert error == MetaException("java.io.IOException: Cannot specify location for a view partition")
    error = refusal(lambda: world.calls.append(TableName("shop", "seen"), ["c", "1"]))
    assert error == MetaException("Cannot append a partition to a view")
    assert world.names("seen") == ["ds=a/hr=1"]


def test_table_properties_are_not_inherited(world: World) -> None:
    world.make_table("owned", parameters={"team": "red", "cost": "7"})
    assert world.add("a", "1", table="owned").parameters == {"transient_lastDdlTime": str(NOW)}


def test_files_found_are_counted(world: World) -> None:
    directory = world.path("shop.db/sales/ds=a/hr=1")
    directory.mkdir(parents=True)
    directory.joinpath("part-0").write_text("12345")
    directory.joinpath("_SUCCESS").write_text("hidden")
    added = world.add("a", "1")
    assert added.parameters == {"transient_lastDdlTime": str(NOW), "numFiles": "1", "totalSize": "5"}


@pytest.mark.parametrize(
    ("environment", "parameters"),
    [({"DO_NOT_UPDATE_STATS": "true"}, {}), ({}, {"numFiles": "8", "totalSize": "9"})],
)
def test_files_are_not_counted(world: World, environment: dict[str, str], parameters: dict[str, str]) -> None:
    world.path("shop.db/sales/ds=a/hr=1").mkdir(parents=True)
    sent = world.partition("a", "1", parameters=parameters)
    added = world.calls.add(sent, EnvironmentContext(environment))
    assert added.parameters == {"transient_lastDdlTime": str(NOW), **parameters}


@pytest.mark.parametrize(
    ("environment", "counted"),
    [
        ({"DO_NOT_UPDATE_STATS": "true"}, {}),
        ({"DO_NOT_UPDATE_STATS": "false"}, {"numFiles": "1", "totalSize": "5"}),
        (
            {"STATS_GENERATED": "TASK"},
            {"numFiles": "1", "totalSize": "5", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'},
        ),
    ],
)
def test_the_environment_of_an_added_partition_counts(
    world: World, environment: dict[str, str], counted: dict[str, str]
) -> None:
    for hour in ("1", "2"):
        world.path(f"shop.db/sales/ds=a/hr={hour}").mkdir(parents=True)
        world.path(f"shop.db/sales/ds=a/hr={hour}/part-0").write_text("12345")
    context = EnvironmentContext(environment)
    added = world.calls.add(world.partition("a", "1"), context)
    appended = world.calls.append(TableName("shop", "sales"), ["a", "2"], context)
    for one in (added, appended):
        assert one.parameters == {"transient_lastDdlTime": str(NOW), **counted}


def test_a_list(world: World) -> None:
    assert world.calls.add_all([world.partition("a", "1"), world.partition("b", "2")]) == 2
    assert world.calls.add_all([]) == 0
    assert world.names() == ["ds=a/hr=1", "ds=b/hr=2"]


def test_a_list_for_a_missing_table(world: World) -> None:
    error = refusal(lambda: world.calls.add_all([world.partition("a", "1", table="Nothing")]))
    assert error == InvalidObjectException(
        "Unable to add partitions because database or table shop.Nothing does not exist"
    )


@pytest.mark.parametrize("changes", [{"tableName": "other"}, {"tableName": "Sales"}, {"dbName": "SHOP"}])
def test_a_list_names_its_table_exactly(world: World, changes: dict[str, str]) -> None:
    partitions = [world.partition("a", "1"), world.partition("b", "2", **changes)]
    error = refusal(lambda: world.calls.add_all(partitions))
    assert isinstance(error, MetaException)
    assert (error.message or "").startswith("Partition does not belong to target table shop.sales: Partition(values:[b")
    assert world.names() == []


def test_a_list_with_an_existing_partition_adds_nothing(world: World) -> None:
    world.add("b", "2")
    partitions = [world.partition("a", "1"), world.partition("b", "2")]
    assert isinstance(refusal(lambda: world.calls.add_all(partitions)), AlreadyExistsException)
    assert world.names() == ["ds=b/hr=2"]
    assert not world.path("shop.db/sales/ds=a").exists()


def test_a_list_with_the_same_partition_twice(world: World) -> None:
    partitions = [world.partition("a", "1"), world.partition("a", "1")]
    error = refusal(lambda: world.calls.add_all(partitions))
    assert isinstance(error, MetaException)
    assert (error.message or "").startswith(
        "java.io.IOException: Duplicate partitions in the list: Partition(values:[a"
    )


def test_existing_ones_are_skipped_when_asked(world: World) -> None:
    world.add("b", "2")
    partitions = [world.partition("a", "1"), world.partition("b", "2")]
    added = world.calls.add_to(SALES, partitions, skips_existing=True)
    assert [partition.values for partition in added] == [["a", "1"]]
    assert world.calls.add_to(SALES, partitions, skips_existing=True) == []
    assert len(world.events("ADD_PARTITION")) == 2


def test_an_empty_request_does_not_even_look_up_the_table(world: World) -> None:
    assert world.calls.add_to(TableName("no", "table"), []) == []


def shared_spec(world: World, location: str | None, *bare: PartitionWithoutSD, **fields: Any) -> PartitionSpec:
    shared = PartitionSpecWithSharedSD(partitions=list(bare), sd=world.descriptor(location))
    return PartitionSpec(dbName="shop", tableName="sales", sharedSDPartitionSpec=shared, **fields)


def stored_places(world: World) -> list[tuple[list[str] | None, str | None]]:
    return [(one.values, one.sd and one.sd.location) for one in structs(world.calls.list_all(SALES, -1))]


def test_specs(world: World) -> None:
    shared = shared_spec(
        world,
        world.location("shared"),
        PartitionWithoutSD(values=["a", "1"], relativePath="/x/1", parameters={"k": "v"}, createTime=0),
        PartitionWithoutSD(values=["a", "2"], createTime=0),
        PartitionWithoutSD(values=["a", "3"], relativePath=""),
        # Hive stores …/sharedy.
        PartitionWithoutSD(values=["a", "4"], relativePath="y"),
        rootPath=world.location("does/not/count"),
    )
    listed = PartitionListComposingSpec(partitions=[world.partition("b", "1")])
    specs = [shared, PartitionSpec(dbName="ignored", tableName="ignored", partitionList=listed)]
    assert world.calls.add_specs(specs) == 5
    assert stored_places(world) == [
        (["a", "1"], world.location("shared/x/1")),
        (["a", "2"], world.location("shop.db/sales/ds=a/hr=2")),
        (["a", "3"], world.location("shared")),
        (["a", "4"], world.location("shared/y")),
        (["b", "1"], world.location("shop.db/sales/ds=b/hr=1")),
    ]
    # Hive leaves the time of creation at 0 here.
    assert {one.createTime for one in structs(world.calls.list_all(SALES, -1))} == {NOW}


@pytest.mark.parametrize("location", [None, "", "file:", "file://", "s3:", "x", "file:x", "1:"])
def test_nothing_is_relative_to_a_shared_location_that_is_none(world: World, location: str | None) -> None:
    spec = shared_spec(world, location, PartitionWithoutSD(values=["a", "1"], relativePath="/y"))
    assert isinstance(refusal(lambda: world.calls.add_specs([spec])), MetaException)
    assert stored_places(world) == []


@pytest.mark.parametrize("relative_path", [None, ""])
def test_a_shared_location_must_be_given(world: World, relative_path: str | None) -> None:
    spec = shared_spec(world, None, PartitionWithoutSD(values=["a", "1"], relativePath=relative_path))
    error = refusal(lambda: world.calls.add_specs([spec]))
    assert error == MetaException("location of the shared storage descriptor must not be null")


def test_an_empty_shared_location_is_the_default_one(world: World) -> None:
    bare = [PartitionWithoutSD(values=["a", str(hour)], relativePath=path) for hour, path in ((1, ""), (2, None))]
    assert world.calls.add_specs([shared_spec(world, "", *bare)]) == 2
    root = world.location("shop.db/sales/ds=a")
    assert stored_places(world) == [(["a", "1"], f"{root}/hr=1"), (["a", "2"], f"{root}/hr=2")]


def test_of_a_spec_with_list_and_shared_descriptor_the_list_counts(world: World) -> None:
    listed = PartitionListComposingSpec(partitions=[world.partition("b", "1")])
    shared = PartitionWithoutSD(values=["a", "1"], relativePath="/x")
    spec = shared_spec(world, world.location("shared"), shared, partitionList=listed)
    assert world.calls.add_specs([spec]) == 1
    assert stored_places(world) == [(["b", "1"], world.location("shop.db/sales/ds=b/hr=1"))]


@pytest.mark.parametrize("specs", [None, [PartitionSpec(dbName="shop", tableName="sales")], [None]])
def test_useless_specs(world: World, specs: Any) -> None:
    assert isinstance(refusal(lambda: world.calls.add_specs(specs)), MetaException)


def test_append_copies_the_table(world: World) -> None:
    added = world.calls.append(TableName("SHOP", " Sales "), ["a", "1"])
    assert (added.dbName, added.tableName, added.createTime) == ("shop", "sales", NOW)
    assert added.sd == world.descriptor(world.location("shop.db/sales/ds=a/hr=1"))
    assert added == world.calls.get(SALES, ["a", "1"])


def test_append_of_an_existing_partition(world: World) -> None:
    world.add("a", "1")
    error = refusal(lambda: world.calls.append(SALES, ["a", "1"]))
    assert isinstance(error, AlreadyExistsException)
    assert (error.message or "").startswith("Partition already exists:Partition(values:[a, 1],")


@pytest.mark.parametrize("values", [[], ["a"], None])
def test_append_with_wrong_values(world: World, values: Any) -> None:
    assert isinstance(refusal(lambda: world.calls.append(SALES, values)), MetaException)


def test_append_to_a_missing_table(world: World) -> None:
    error = refusal(lambda: world.calls.append(TableName("shop", "nothing"), ["a", "1"]))
    assert error == InvalidObjectException("Unable to add partition because table or database do not exist")


@pytest.mark.parametrize("name", ["ds=a%2Fb/hr=1", "hr=1/ds=a%2Fb", "ds=a%2Fb/hr=1/more=x"])
def test_append_by_name(world: World, name: str) -> None:
    assert world.calls.append_by_name(SALES, name).values == ["a/b", "1"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("", MetaException("Partition name is invalid. ")),
        (None, MetaException("Partition name is invalid. null")),
        ("ds=a", InvalidObjectException("incomplete partition name - missing hr")),
        ("DS=a/HR=1", InvalidObjectException("incomplete partition name - missing ds")),
        ("ds=/hr=1", InvalidObjectException("incomplete partition name - missing ds")),
        ("nonsense", InvalidObjectException("incomplete partition name - missing ds")),
    ],
)
def test_append_by_a_wrong_name(world: World, name: str | None, error: ThriftException) -> None:
    assert refusal(lambda: world.calls.append_by_name(SALES, name)) == error


def test_eight_threads_adding_the_same_partition(world: World) -> None:
    outcomes: list[object] = []
    start = threading.Barrier(8)

    def add() -> None:
        start.wait()
        try:
            outcomes.append(world.add("a", "1"))
        except ThriftException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AlreadyExistsException"] * 7 + ["Partition"]
    assert world.names() == ["ds=a/hr=1"]
    assert world.path("shop.db/sales/ds=a/hr=1").is_dir()
    assert len(world.events("ADD_PARTITION")) == 1


def test_eight_threads_adding_overlapping_lists(world: World) -> None:
    start = threading.Barrier(8)
    added: list[int] = []

    def add(first: int) -> None:
        start.wait()
        partitions = [world.partition("a", str(number)) for number in range(first, first + 10)]
        added.append(len(world.calls.add_to(SALES, partitions, skips_existing=True)))

    threads = [threading.Thread(target=add, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(added) == len(world.names()) == 17
    assert all(world.path(f"shop.db/sales/ds=a/hr={number}").is_dir() for number in range(17))


@pytest.mark.slow
def test_five_thousand_at_once_are_one_unit_of_work(world: World) -> None:
    writes = 0

    class CountingStore:
        read = staticmethod(world.store.read)

        def write(self, work: Any) -> Any:
            nonlocal writes
            writes += 1
            return world.store.write(work)

    counting = World(CountingStore(), world.files, world.clock, world.settings, world.root)  # type: ignore[arg-type]
    partitions = [world.partition(f"d{number // 24}", str(number % 24)) for number in range(5000)]
    assert len(counting.calls.add_to(SALES, partitions)) == 5000
    assert writes == 1
    assert world.table().partition_count == 5000
    assert len(world.events("ADD_PARTITION")) == 1


def test_directories_are_taken_back_when_one_cannot_be_made(world: World) -> None:
    world.path("shop.db/sales/ds=z").write_text("in the way")
    partitions = [world.partition(day, str(hour)) for day in "abz" for hour in range(10)]
    assert isinstance(refusal(lambda: world.calls.add_to(SALES, partitions)), MetaException)
    assert [path.name for path in world.path("shop.db/sales").iterdir()] == ["ds=z"]


def test_directories_are_taken_back_when_the_write_fails(world: World) -> None:
    class BrokenStore:
        read = staticmethod(world.store.read)

        def write(self, work: Any) -> Any:
            raise RuntimeError("disk full")

    broken = World(BrokenStore(), world.files, world.clock, world.settings, world.root)  # type: ignore[arg-type]
    world.path("shop.db/sales/ds=kept/hr=1").mkdir(parents=True)
    with pytest.raises(RuntimeError, match="disk full"):
        broken.calls.add_to(SALES, [world.partition("kept", "1"), world.partition("new", "1")])
    assert [path.name for path in world.path("shop.db/sales").iterdir()] == ["ds=kept"]


def test_a_directory_somebody_else_took_away_is_made_again(world: World) -> None:
    """Another server that failed to add the same partition takes back the directory it made."""

    class InterruptedStore:
        read = staticmethod(world.store.read)

        def write(self, work: Any) -> Any:
            world.path("shop.db/sales/ds=a/hr=1").rmdir()
            return world.store.write(work)

    world.path("shop.db/sales/ds=a/hr=1").mkdir(parents=True)
    slow = World(InterruptedStore(), world.files, world.clock, world.settings, world.root)  # type: ignore[arg-type]
    slow.add("a", "1")
    assert world.path("shop.db/sales/ds=a/hr=1").is_dir()


def test_a_table_altered_meanwhile_is_looked_at_again(world: World) -> None:
    new_root = world.location("moved")
    interruptions = []

    class InterruptedStore:
        read = staticmethod(world.store.read)

        def write(self, work: Any) -> Any:
            if not interruptions:
                interruptions.append(1)
                stored = world.table()
                stored.table.sd.location = new_root  # type: ignore[union-attr]
                world.store.write(lambda tx: tx.update_table(stored.table_id, stored.database_id, stored.table))
            return world.store.write(work)

    other = World(InterruptedStore(), world.files, world.clock, world.settings, world.root)  # type: ignore[arg-type]
    added = other.add("a", "1")
    assert added.sd is not None
    assert added.sd.location == f"{new_root}/ds=a/hr=1"
    assert not world.path("shop.db/sales/ds=a/hr=1").exists()


def test_unreachable_files_fail_the_call_and_nothing_else(world: World) -> None:
    class BrokenFiles:
        def reach(self, location: str) -> Reach:
            return Reach.MANAGED

        def directory_maker(self) -> Callable[[str], bool | None]:
            raise FileSystemError('No FileSystem for scheme "x"')

    broken = World(world.store, BrokenFiles(), world.clock, world.settings, world.root)  # type: ignore[arg-type]
    assert refusal(lambda: broken.add("a", "1")) == MetaException('No FileSystem for scheme "x"')
    assert values_of(world.calls.list_all(SALES, -1)) == []


def test_names_that_no_database_can_store(world: World) -> None:
    assert isinstance(refusal(lambda: world.add("a", "1", tableName="t\0")), InvalidObjectException)
    error = refusal(lambda: world.add("a\0b", "1"))
    assert isinstance(error, MetaException)
    error = refusal(lambda: world.add("a\ud800b", "1"))
    assert isinstance(error, MetaException)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"cols": [FieldSchema(None, "int")]}, "column name must not be null"),
        ({"cols": [FieldSchema("a", None)]}, "column type must not be null"),
        ({"serdeInfo": None}, "Invalid SerDeInfo object"),
    ],
)
def test_a_descriptor_that_lacks_a_part_is_refused_and_leaves_nothing(
    world: World, fields: dict[str, Any], text: str
) -> None:
    whole, lacking = world.partition("a", "1"), world.partition("b", "1")
    for name, value in fields.items():
        setattr(lacking.sd, name, value)
    spec = PartitionSpec("shop", "sales", partitionList=PartitionListComposingSpec([whole, lacking]))
    additions = world.calls
    for add in (
        lambda: additions.add(lacking),
        lambda: additions.add_all([whole, lacking]),
        lambda: additions.add_to(SALES, [whole, lacking]),
        lambda: additions.add_specs([spec]),
    ):
        assert refusal(add) == MetaException(text)
    assert world.names() == []
    assert list(world.path("shop.db/sales").iterdir()) == []
    there = world.add("there", "1")
    lacking.values, lacking.sd.location = ["there", "1"], there.sd.location  # type: ignore[union-attr]
    changes = world.calls
    for change in (
        lambda: changes.alter(SALES, lacking),
        lambda: changes.alter_all(SALES, [lacking]),
        lambda: changes.rename(SALES, ["there", "1"], _with_values(lacking, ["gone", "1"])),
    ):
        assert refusal(change) == MetaException(text)
    assert world.names() == ["ds=there/hr=1"]


def _with_values(partition: Partition, values: list[str]) -> Partition:
    return Partition(**{name: getattr(partition, name) for name in ("dbName", "tableName", "sd")}, values=values)


def test_the_answer_has_what_java_cannot_leave_unset(world: World) -> None:
    sent = world.partition("a", "1")
    assert sent.sd is not None
    sent.sd.compressed = sent.sd.numBuckets = None
    added = world.calls.add(sent)
    assert added.sd is not None
    assert (added.sd.compressed, added.sd.numBuckets, added.lastAccessTime) == (False, 0, 0)
    assert (sent.sd.compressed, sent.sd.numBuckets) == (None, None)


def test_the_mark_of_tables_means_nothing_in_a_partition(world: World) -> None:
    world.path("shop.db/sales/ds=a/hr=1").mkdir(parents=True)
    mark = {"DO_NOT_UPDATE_STATS": "true"}
    world.add("a", "1", parameters=mark)
    stored = world.calls.get(SALES, ["a", "1"]).parameters or {}
    assert {name: stored.get(name) for name in ("DO_NOT_UPDATE_STATS", "numFiles")} == mark | {"numFiles": "0"}
