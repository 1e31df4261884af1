"""Partitions: what goes in comes out, counts are exact, sets change as sets, locations follow their tables."""

import msgspec
import pytest

from hms_gateway.metastore.ports.store import DuplicateKey, NewPartition, Selection, StoredPartition, UnstorableText
from hms_gateway.rpc.structs import (
    FieldSchema,
    FileMetadata,
    Partition,
    PrincipalPrivilegeSet,
    SkewedInfo,
    StorageDescriptor,
)
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import (
    TABLE_LOCATION,
    bound,
    create,
    descriptor,
    get,
    keys,
    locations,
    names,
    partition,
    read_structs,
    read_tjson,
    table,
)

NINE_KEYS = table(partitionKeys=keys(*["string"] * 8, "int", "string"))


def described(**fields: object) -> Partition:
    stored = partition(table(), ["a", "1"], **fields).partition
    return stored


@pytest.mark.parametrize(
    "stored",
    [
        described(),
        described(sd=None),
        described(sd=StorageDescriptor()),
        described(sd=StorageDescriptor(location=TABLE_LOCATION + "/k0=a/k1=1")),
        described(sd=StorageDescriptor(inputFormat="x", location="hdfs://elsewhere/a")),
        described(sd=descriptor(None)),
        described(sd=descriptor("")),
        described(sd=descriptor(TABLE_LOCATION)),
        described(sd=descriptor(TABLE_LOCATION + "/")),
        described(sd=descriptor(TABLE_LOCATION + '/odd "quoted" \\ \x01 ☃')),
        described(sd=descriptor(TABLE_LOCATION + "s/k0=a/k1=1")),
        described(sd=descriptor(cols=None)),
        described(sd=descriptor(cols=[FieldSchema("a", "int", ""), FieldSchema("b")])),
        described(parameters={}),
        described(parameters={"a": '{"b":"\x00☃"}', "": ""}),
        described(writeId=-1, isStatsCompliant=False, fileMetadata=FileMetadata(1, 1, [b"\xff"])),
    ],
)
def test_everything_of_a_partition_comes_back(store: SqlStore, stored: Partition) -> None:
    of = create(store)
    new = NewPartition("k0=a/k1=1", stored)
    store.write(lambda transaction: transaction.insert_partitions(of, [new]))
    found = store.read(lambda snapshot: snapshot.partition(of, "k0=a/k1=1"))
    assert found is not None
    assert (found.name, found.partition) == ("k0=a/k1=1", stored)
    assert read_structs(store.read(lambda snapshot: snapshot.partition_list(of, Selection()))) == [stored]
    assert read_tjson(store.read(lambda snapshot: snapshot.partition_list(of, Selection()))) == [stored]


def test_list_keyed_skew_locations_are_kept_but_not_written_as_tjson(store: SqlStore) -> None:
    skewed = SkewedInfo(["a"], [["1"]], {("1",): "file:/x/a=1"})
    of = create(store)
    stored = described(sd=descriptor(skewedInfo=skewed))
    store.write(lambda transaction: transaction.insert_partitions(of, [NewPartition("k0=a/k1=1", stored)]))
    (struct,) = read_structs(store.read(lambda snapshot: snapshot.partition_list(of, Selection())))
    assert struct == stored
    (written,) = read_tjson(store.read(lambda snapshot: snapshot.partition_list(of, Selection())))
    assert written.sd.skewedInfo == SkewedInfo(["a"], [["1"]], {})


def test_privileges_are_left_out_and_times_are_always_there(store: SqlStore) -> None:
    of = create(store)
    new = partition(of.table, ["a", "1"], privileges=PrincipalPrivilegeSet(), createTime=None, lastAccessTime=None)
    store.write(lambda transaction: transaction.insert_partitions(of, [new]))
    found = store.read(lambda snapshot: snapshot.partition(of, new.name))
    assert found is not None
    assert found.partition == described(createTime=0, lastAccessTime=0)


def test_odd_values_come_back_as_given(store: SqlStore) -> None:
    of = create(store, table(partitionKeys=keys("string")))
    values = ["", "a/b=c %:é", "☃😀", "'\"\\", " ", "\x01\n", "%2F", "D1", "d1"]
    new = [partition(of.table, [value]) for value in values]
    store.write(lambda transaction: transaction.insert_partitions(of, new))
    expected = sorted((one.name, one.partition) for one in new)
    found = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    assert [(one.name, one.partition) for one in found] == expected
    lists = [store.read(lambda snapshot: snapshot.partition_list(of, Selection())) for _ in range(2)]
    assert read_tjson(lists[0]) == read_structs(lists[1]) == [stored for _, stored in expected]
    assert store.read(lambda snapshot: snapshot.partition_values(of, Selection())) == [
        stored.values for _, stored in expected
    ]


@pytest.mark.parametrize("name", ["k0=b/k1=1", "", "k0=A/k1=1", "k0=a\0/k1=1", "\ud800"])
def test_an_unknown_name_finds_nothing(store: SqlStore, name: str) -> None:
    of = create(store, values=[["a", "1"]])
    assert store.read(lambda snapshot: snapshot.partition(of, name)) is None
    assert names(store, of, Selection(names=[name, "k0=a/k1=1", name])) == ["k0=a/k1=1"]


def test_a_taken_name_is_refused_and_nothing_is_added(store: SqlStore) -> None:
    of = create(store, values=[["b", "1"]])
    new = [partition(of.table, [value, "1"]) for value in "abc"]
    with pytest.raises(DuplicateKey, match="k0=b/k1=1 exists already"):
        store.write(lambda transaction: transaction.insert_partitions(of, new))
    with pytest.raises(DuplicateKey, match="k0=a/k1=1 exists already"):
        store.write(lambda transaction: transaction.insert_partitions(of, [new[0], new[2], new[0]]))
    assert names(store, of) == ["k0=b/k1=1"]
    assert get(store).partition_count == 1


@pytest.mark.parametrize("value", ["a\0b", "\udc00", "v" * 3000])
def test_values_no_database_can_hold_are_refused(store: SqlStore, value: str) -> None:
    of = create(store)
    with pytest.raises(UnstorableText, match="partition"):
        store.write(lambda transaction: transaction.insert_partitions(of, [partition(of.table, [value, "1"])]))
    bad_location = partition(of.table, ["a", "1"], sd=descriptor("file:/a\0"))
    with pytest.raises(UnstorableText, match="location"):
        store.write(lambda transaction: transaction.insert_partitions(of, [bad_location]))


def test_counts_are_exact(store: SqlStore) -> None:
    of = create(store, values=[["a", str(number)] for number in range(7)])
    assert get(store).partition_count == 7
    store.write(lambda transaction: transaction.delete_partitions(of, ["k0=a/k1=1", "nope", "k0=a/k1=1", "k0=a/k1=2"]))
    assert get(store).partition_count == 5
    store.write(lambda transaction: transaction.delete_partitions(of, ["nope"]))
    store.write(lambda transaction: transaction.delete_partitions(of, []))
    store.write(lambda transaction: transaction.insert_partitions(of, []))
    assert get(store).partition_count == 5
    assert store.read(lambda snapshot: snapshot.count_partitions(of, Selection())) == 5
    assert store.read(lambda snapshot: snapshot.count_partitions(of, Selection(limit=3))) == 3
    selected = Selection(filter=bound("k1 > 3", of))
    assert store.read(lambda snapshot: snapshot.count_partitions(of, selected)) == 3
    store.write(lambda transaction: transaction.delete_partitions(of, names(store, of)))
    assert get(store).partition_count == 0


def test_descriptors_are_shared_and_go_with_their_last_partition(store: SqlStore) -> None:
    of = create(store, values=[["a", str(number)] for number in range(20)])
    odd = partition(of.table, ["b", "1"], sd=descriptor(TABLE_LOCATION + "/k0=b/k1=1", numBuckets=5))
    store.write(lambda transaction: transaction.insert_partitions(of, [odd]))
    assert descriptor_counts(store) == [20, 1]
    store.write(lambda transaction: transaction.delete_partitions(of, [odd.name, "k0=a/k1=3"]))
    assert descriptor_counts(store) == [19]
    (last,) = store.read(lambda snapshot: snapshot.partitions(of, Selection(names=["k0=a/k1=4"])))
    changed = StoredPartition(last.partition_id, last.name, odd_one(last.partition))
    store.write(lambda transaction: transaction.update_partitions(of, [changed]))
    assert descriptor_counts(store) == [18, 1]


def odd_one(stored: Partition) -> Partition:
    assert stored.sd is not None
    return msgspec.structs.replace(stored, sd=msgspec.structs.replace(stored.sd, compressed=True))


def descriptor_counts(store: SqlStore) -> list[int]:
    with store._reading.connect() as connection:
        rows = connection.exec_driver_sql("SELECT partition_count FROM descriptors ORDER BY descriptor_id")
        return [row[0] for row in rows]


def test_update_replaces_what_is_stored_under_the_ids(store: SqlStore) -> None:
    of = create(store, values=[["a", str(number)] for number in range(3)])
    first, second, third = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    changed = odd_one(first.partition)
    changed.parameters = {"new": "value"}
    changed.createTime, changed.lastAccessTime, changed.writeId = 7, 8, 9
    moved = partition(of.table, ["z", "99"])
    store.write(
        lambda transaction: transaction.update_partitions(
            of,
            [
                StoredPartition(first.partition_id, first.name, changed),
                StoredPartition(third.partition_id, moved.name, moved.partition),
            ],
        )
    )
    assert store.read(lambda snapshot: snapshot.partitions(of, Selection())) == [
        StoredPartition(first.partition_id, first.name, changed),
        second,
        StoredPartition(third.partition_id, moved.name, moved.partition),
    ]
    assert names(store, of, Selection(filter=bound("k1 >= 99", of))) == [moved.name]
    assert get(store).partition_count == 3


def test_names_may_change_places_but_not_be_taken(store: SqlStore) -> None:
    of = create(store, values=[["a", "1"], ["b", "1"], ["c", "1"]])
    first, second, third = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    swapped = [
        StoredPartition(first.partition_id, second.name, second.partition),
        StoredPartition(second.partition_id, first.name, first.partition),
    ]
    store.write(lambda transaction: transaction.update_partitions(of, swapped))
    found = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    assert [one.partition_id for one in found] == [second.partition_id, first.partition_id, third.partition_id]
    taken = StoredPartition(first.partition_id, third.name, third.partition)
    with pytest.raises(DuplicateKey, match="k0=c/k1=1"):
        store.write(lambda transaction: transaction.update_partitions(of, [taken]))
    assert store.read(lambda snapshot: snapshot.partitions(of, Selection())) == found


def test_keys_beyond_those_with_columns_work_alike(store: SqlStore) -> None:
    of = create(store, NINE_KEYS, [[*"abcdefgh", str(number), "x" * number] for number in range(12)])
    nine = Selection(filter=bound("k8 > 9 and k0 = 'a'", of))
    assert [name.split("/")[8] for name in names(store, of, nine)] == ["k8=10", "k8=11"]
    assert len(names(store, of, Selection(partial_values=[*[None] * 8, "3"]))) == 1
    assert len(names(store, of, Selection(filter=bound("k9 like 'xx.*'", of)))) == 10
    (found,) = store.read(lambda snapshot: snapshot.partitions(of, Selection(filter=bound("k8 = 3", of))))
    moved = partition(of.table, [*"abcdefgh", "77", "y"])
    changed = StoredPartition(found.partition_id, moved.name, moved.partition)
    store.write(lambda transaction: transaction.update_partitions(of, [changed]))
    assert names(store, of, Selection(filter=bound("k8 = 77", of))) == [moved.name]
    assert names(store, of, Selection(filter=bound("k8 = 3", of))) == []
    store.write(lambda transaction: transaction.delete_partitions(of, names(store, of)))
    store.write(lambda transaction: transaction.insert_partitions(of, [moved]))
    assert names(store, of, Selection(filter=bound("k8 = 77", of))) == [moved.name]
    changed_type = table(partitionKeys=keys(*["string"] * 10))
    store.write(lambda transaction: transaction.update_table(of.table_id, of.database_id, changed_type))
    assert names(store, of, Selection(filter=bound("k8 < '8'", get(store)))) == [moved.name]
    store.write(lambda transaction: transaction.delete_table(of.table_id))


def test_columns_are_replaced_in_every_partition(store: SqlStore) -> None:
    of = create(store, values=[["a", "1"], ["b", "1"]])
    bare = partition(of.table, ["c", "1"], sd=None)
    store.write(lambda transaction: transaction.insert_partitions(of, [bare]))
    columns = [FieldSchema("id", "string"), FieldSchema("new", "int", "words")]
    store.write(lambda transaction: transaction.replace_partition_columns(of.table_id, columns))
    found = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    assert [one.partition.sd and one.partition.sd.cols for one in found] == [columns, columns, None]
    same = partition(of.table, ["d", "1"], sd=descriptor(f"{TABLE_LOCATION}/k0=d/k1=1", cols=columns))
    store.write(lambda transaction: transaction.insert_partitions(of, [same]))
    assert descriptor_counts(store) == [3]


PLACES = [
    TABLE_LOCATION + "/k0=a/k1=0",
    TABLE_LOCATION,
    TABLE_LOCATION + "/sub/x",
    TABLE_LOCATION + "/sub",
    TABLE_LOCATION + "/subway",
    TABLE_LOCATION + "s/x",
    "hdfs://elsewhere/orders/x",
    None,
]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TABLE_LOCATION, "file:/warehouse/sales.db/renamed"),
        (TABLE_LOCATION + "/", "file:/elsewhere/"),
        (TABLE_LOCATION + "/sub", "file:/elsewhere"),
        (TABLE_LOCATION + "/k0=a", "file:/elsewhere/☃"),
        ("hdfs://elsewhere/orders", "hdfs://elsewhere/renamed"),
        ("file:/warehouse", "file:/attic"),
        ("file:/nowhere", "file:/elsewhere"),
        (TABLE_LOCATION, TABLE_LOCATION + "/deeper"),
        (TABLE_LOCATION + "/sub", TABLE_LOCATION + "/sub/deeper"),
        ("hdfs://elsewhere", "hdfs://elsewhere/orders"),
    ],
)
def test_locations_under_a_moved_directory_move_along(store: SqlStore, old: str, new: str) -> None:
    of = create(store)
    new_ones = [partition(of.table, ["a", str(number)], sd=descriptor(place)) for number, place in enumerate(PLACES)]
    store.write(lambda transaction: transaction.insert_partitions(of, new_ones))
    store.write(lambda transaction: transaction.move_partition_locations(of.table_id, old, new))

    def moved(place: str | None) -> str | None:
        path = old.rstrip("/")
        if place is None or not (place == path or place.startswith(path + "/")):
            return place
        return new.rstrip("/") + place[len(path) :]

    assert locations(store, of) == [moved(place) for place in PLACES]
    store.write(lambda transaction: transaction.delete_partitions(of, names(store, of)))
    assert descriptor_counts(store) == []


def test_locations_in_a_bucket_move_along_by_each_scheme(store: SqlStore) -> None:
    of = create(store)
    places = ["s3a://lake/t/k0=a/k1=0", "s3://lake/t/x", "s3n://lake/t", "s3://lake/t2", "s3://other/t/x"]
    new_ones = [partition(of.table, ["a", str(number)], sd=descriptor(place)) for number, place in enumerate(places)]
    store.write(lambda transaction: transaction.insert_partitions(of, new_ones))
    store.write(lambda transaction: transaction.move_partition_locations(of.table_id, "s3a://lake/t", "s3a://lake/u"))
    moved = ["s3a://lake/u/k0=a/k1=0", "s3a://lake/u/x", "s3a://lake/u"]
    assert locations(store, of) == [*moved, *places[3:]]


def test_locations_outside_the_table_are_found(store: SqlStore) -> None:
    of = create(store)
    new_ones = [
        partition(of.table, ["a", str(number)], sd=descriptor(place))
        for number, place in enumerate([*PLACES, PLACES[5]])
    ]
    store.write(lambda transaction: transaction.insert_partitions(of, new_ones))
    outside = [TABLE_LOCATION + "s/x", "hdfs://elsewhere/orders/x"]
    assert store.read(lambda snapshot: snapshot.outside_locations(of)) == outside
    one = Selection(names=["k0=a/k1=6", "k0=a/k1=1"])
    assert store.read(lambda snapshot: snapshot.outside_locations(of, one)) == outside[1:]
    changed = table(sd=descriptor("file:/elsewhere"))
    store.write(lambda transaction: transaction.update_table(of.table_id, of.database_id, changed))
    everywhere = store.read(lambda snapshot: snapshot.outside_locations(get(store)))
    assert sorted(everywhere) == sorted(place for place in PLACES if place)
