"""Lists that are read while they are sent: equal to the plain ones, of one state, and closed again."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pytest
from sqlalchemy import event

from hms_gateway.metastore.ports.store import NewPartition, Selection, StoredTable, StoreUnavailable, Transaction
from hms_gateway.rpc.structs import EncodedList
from hms_gateway.rpc.structs.base import EncodedTexts, items_of
from hms_gateway.storage.writing.store import READ_CONNECTIONS_MAX, SqlStore
from tests.contract.objects import bound, create, descriptor, get, names, partition, read_structs, read_tjson, table

LONG = 1_250


@pytest.fixture
def long_table(store: SqlStore) -> StoredTable:
    """Partitions of three descriptors, some of them elsewhere."""
    of = create(store)
    new = [partition(of.table, ["a", str(number)]) for number in range(LONG)]
    for number in range(0, LONG, 100):
        new[number] = partition(of.table, ["a", str(number)], sd=descriptor(f"hdfs://elsewhere/{number}"))
        new[number + 1] = partition(of.table, ["a", str(number + 1)], sd=descriptor(f"hdfs://x/{number}", numBuckets=3))
    store.write(lambda transaction: transaction.insert_partitions(of, new))
    return get(store)


def listed(store: SqlStore, of: StoredTable, selection: Selection | None = None) -> EncodedList:
    return store.read(lambda snapshot: snapshot.partition_list(of, selection or Selection()))


def connections_in_use(store: SqlStore) -> int:
    return store.connections_in_use


def test_long_lists_equal_the_plain_ones(store: SqlStore, long_table: StoredTable) -> None:
    plain = [found.partition for found in store.read(lambda snapshot: snapshot.partitions(long_table, Selection()))]
    assert len(listed(store, long_table)) == LONG
    assert read_tjson(listed(store, long_table)) == plain
    assert read_structs(listed(store, long_table)) == plain


@pytest.mark.parametrize(
    "selection",
    [
        Selection(limit=1_000),
        Selection(limit=1_001),
        Selection(limit=1_100),
        Selection(names=[f"k0=a/k1={number}" for number in range(1_200)]),
        Selection(partial_values=["a"]),
        Selection(partial_values=["a"], limit=1_200),
        Selection(names=[]),
        Selection(limit=0),
    ],
)
def test_long_selections_have_their_exact_length(
    store: SqlStore, long_table: StoredTable, selection: Selection
) -> None:
    found = listed(store, long_table, selection)
    length = len(found)
    structs = read_structs(found)
    assert length == len(structs) == len(names(store, long_table, selection))
    filtered = Selection(names=selection.names, limit=selection.limit, filter=bound("k1 >= 100", long_table))
    found = listed(store, long_table, filtered)
    length = len(found)
    assert [f"k0=a/k1={one.values[1]}" for one in read_structs(found)] == names(store, long_table, filtered)
    assert length == len(names(store, long_table, filtered))


def test_chunks_are_small_and_never_empty(store: SqlStore, long_table: StoredTable) -> None:
    assert [len(chunk) for chunk in listed(store, long_table).struct_chunks()] == [100] * 10 + [1] + [100] * 2 + [49]
    assert list(listed(store, long_table, Selection(limit=0)).tjson_chunks()) == []


@pytest.mark.slow
def test_a_long_list_shows_the_state_of_its_beginning(store: SqlStore, long_table: StoredTable) -> None:
    found = listed(store, long_table)
    chunks = found.struct_chunks()
    first = next(chunks)

    def drop_and_add(transaction: Transaction) -> None:
        transaction.delete_partitions(long_table, transaction.partition_names(long_table, Selection()))
        transaction.insert_partitions(long_table, [partition(long_table.table, ["z", "1"])])

    store.write(drop_and_add)
    assert names(store, long_table) == ["k0=z/k1=1"]
    assert len(first) + sum(len(chunk) for chunk in chunks) == LONG


@pytest.mark.slow
def test_lists_give_their_connection_back(store: SqlStore, long_table: StoredTable) -> None:
    found = listed(store, long_table)
    assert connections_in_use(store) == 1
    next(found.tjson_chunks())
    found.close()
    found.close()
    assert connections_in_use(store) == 0
    read_tjson(listed(store, long_table))
    assert connections_in_use(store) == 0
    assert listed(store, long_table, Selection(limit=10)) is not None
    assert connections_in_use(store) == 0


def test_an_abandoned_iteration_gives_the_connection_back(store: SqlStore, long_table: StoredTable) -> None:
    chunks = listed(store, long_table).tjson_chunks()
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert connections_in_use(store) == 0


def test_work_that_raises_closes_the_lists_it_opened(store: SqlStore, long_table: StoredTable) -> None:
    def work(snapshot: object) -> None:
        snapshot.partition_list(long_table, Selection())  # type: ignore[attr-defined]
        raise LookupError

    with pytest.raises(LookupError):
        store.read(work)
    assert connections_in_use(store) == 0


def test_two_lists_of_one_snapshot(store: SqlStore, long_table: StoredTable) -> None:
    first, second = store.read(
        lambda snapshot: (
            snapshot.partition_list(long_table, Selection()),
            snapshot.partition_list(long_table, Selection()),
        )
    )
    pairs = zip(first.tjson_chunks(), second.tjson_chunks(), strict=True)
    assert all(one == other for one, other in pairs)
    assert connections_in_use(store) == 0


def test_a_list_inside_a_unit_of_work_outlives_it(store: SqlStore, long_table: StoredTable) -> None:
    def work(transaction: Transaction) -> EncodedList:
        found = transaction.partition_list(long_table, Selection())
        transaction.delete_partitions(long_table, [f"k0=a/k1={number}" for number in range(LONG)])
        return found

    assert len(read_structs(store.write(work))) == LONG


@pytest.mark.slow
def test_partitions_with_descriptors_of_their_own_work_too(store: SqlStore) -> None:
    of = create(store)
    new = [
        partition(of.table, ["a", str(number)], sd=descriptor(None, parameters={"number": str(number)}))
        for number in range(2_200)
    ]
    store.write(lambda transaction: transaction.insert_partitions(of, new))
    expected = [new_one.partition for new_one in sorted(new, key=lambda one: one.name)]
    assert read_structs(listed(store, get(store))) == expected
    assert read_tjson(listed(store, get(store))) == expected


@pytest.mark.slow
def test_readers_that_take_every_connection_are_told(
    store: SqlStore, long_table: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store._pool, "wait_seconds_max", 0.05)
    held = [listed(store, long_table) for _ in range(READ_CONNECTIONS_MAX)]
    with pytest.raises(StoreUnavailable, match="connections for reading are in use"):
        listed(store, long_table)
    for found in held:
        found.close()
    assert names(store, long_table, Selection(limit=1)) == ["k0=a/k1=0"]


@contextmanager
def statements(store: SqlStore) -> Iterator[list[str]]:
    """Collects the statements that reach the database, executions of many as one."""
    seen: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        seen.append(statement)

    engines = (store._reading, store._writing)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield seen
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


def every_operation(store: SqlStore, of: StoredTable, new: Sequence[NewPartition]) -> None:
    wanted = [one.name for one in new]
    store.write(lambda transaction: transaction.insert_partitions(of, new))
    for selection in (Selection(), Selection(names=wanted), Selection(filter=bound("k1 >= 0", of))):
        for method in ("partitions", "partition_names", "partition_values", "count_partitions", "outside_locations"):
            store.read(lambda snapshot, call=method, one=selection: getattr(snapshot, call)(of, one))
        read_tjson(listed(store, of, selection))
        read_structs(listed(store, of, selection))
    found = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    store.write(lambda transaction: transaction.update_partitions(of, found))
    store.write(lambda transaction: transaction.replace_partition_columns(of.table_id, []))
    store.write(lambda transaction: transaction.move_partition_locations(of.table_id, "file:/warehouse", "file:/x"))
    store.write(lambda transaction: transaction.delete_partitions(of, wanted))


@pytest.mark.slow
def test_the_number_of_statements_does_not_grow_with_the_number_of_partitions(store: SqlStore) -> None:
    of = create(store)
    counts = []
    for count in (10, 1_000):
        new = [partition(of.table, ["a", str(number)]) for number in range(count)]
        with statements(store) as seen:
            every_operation(store, of, new)
        counts.append(len(seen))
    # Few names bring their descriptors along, also known ones: where statements go one by one that is one more.
    assert counts[1] <= counts[0]


def test_renaming_and_cascading_touch_no_partition_row(store: SqlStore) -> None:
    of = create(store, values=[["a", str(number)] for number in range(500)])
    with statements(store) as seen:
        renamed = table("renamed", sd=descriptor("file:/warehouse/sales.db/renamed"))
        store.write(lambda transaction: transaction.update_table(of.table_id, of.database_id, renamed))
        old, new = "file:/warehouse/sales.db/orders", "file:/warehouse/sales.db/renamed"
        store.write(lambda transaction: transaction.move_partition_locations(of.table_id, old, new))
        store.write(lambda transaction: transaction.replace_partition_columns(of.table_id, []))
    assert not [statement for statement in seen if "partitions" in statement and "UPDATE partitions" in statement]
    found = read_structs(listed(store, get(store, tbl_name="renamed")))
    assert {one.sd.location.rpartition("/k0=")[0] for one in found} == {new}
    assert all(one.sd.cols == [] and one.tableName == "renamed" for one in found)


@pytest.fixture
def long_names(monkeypatch: pytest.MonkeyPatch, long_table: StoredTable) -> StoredTable:
    """The table with as many partitions as make a list of names a long one."""
    monkeypatch.setattr("hms_gateway.storage.partitions.reads.NAMES_AT_ONCE", 1_000)
    return long_table


def listed_names(store: SqlStore, of: StoredTable, selection: Selection | None = None) -> EncodedTexts | list[str]:
    return store.read(lambda snapshot: snapshot.partition_name_list(of, selection or Selection()))


def test_long_lists_of_names_equal_the_plain_ones(store: SqlStore, long_names: StoredTable) -> None:
    plain = names(store, long_names)
    found = listed_names(store, long_names)
    assert isinstance(found, EncodedTexts)
    assert len(found) == LONG
    assert msgspec.json.decode(b"[" + b",".join(found.tjson_chunks()) + b"]") == plain
    assert items_of(listed_names(store, long_names)) == plain
    assert connections_in_use(store) == 0


def test_long_lists_of_names_have_their_exact_length(store: SqlStore, long_names: StoredTable) -> None:
    chosen = Selection(filter=bound("k1 >= 100", long_names))
    found = listed_names(store, long_names, chosen)
    assert isinstance(found, EncodedTexts)
    assert len(found) == LONG - 100
    assert items_of(found) == names(store, long_names, chosen)
    for short in (Selection(limit=1_000), Selection(filter=bound("k1 >= 1000", long_names)), Selection(names=[])):
        assert listed_names(store, long_names, short) == names(store, long_names, short)
    assert connections_in_use(store) == 0


def test_names_show_the_state_of_their_beginning_and_give_their_connection_back(
    store: SqlStore, long_names: StoredTable
) -> None:
    found = listed_names(store, long_names)
    assert isinstance(found, EncodedTexts)
    store.write(lambda transaction: transaction.delete_partitions(long_names, names(store, long_names)))
    assert connections_in_use(store) == 1
    assert len(items_of(found)) == LONG
    assert connections_in_use(store) == 0
    found.close()
    assert names(store, long_names) == []
