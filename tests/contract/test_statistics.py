"""Column statistics: in and out, replaced in sets, gone with what they are about."""

from typing import Any

import pytest

from hms_gateway.metastore.ports.store import Selection, StoredTable, UnstorableText
from hms_gateway.rpc.structs import (
    ColumnStatisticsData_v4,
    Decimal,
    DecimalColumnStatsData_v4,
    DoubleColumnStatsData_v4,
    FieldSchema,
    LongColumnStatsData_v4,
    StringColumnStatsData_v4,
)
from hms_gateway.storage.catalog.statistics import ColumnFigures, StatisticsRows
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create, descriptor, get, partition, table

VALUES = [["a", "1"], ["a", "2"], ["b", "1"]]
NAMES = ["k0=a/k1=1", "k0=a/k1=2", "k0=b/k1=1"]


def figures(column: str = "id", number: int = 1, column_type: str = "bigint") -> ColumnFigures:
    data = ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(number, number, 0, 1))
    return ColumnFigures(column, column_type, data, 7)


def put(store: SqlStore, of: StoredTable, *given: ColumnFigures, names: list[str] = NAMES) -> None:
    def work(tx: Any) -> None:
        ids = StatisticsRows(tx).partition_ids(of, names)
        StatisticsRows(tx).put_of_partitions(of.table_id, "hive", dict.fromkeys(ids.values(), given))

    store.write(work)


def known(store: SqlStore, of: StoredTable, columns: list[str] | None = None, engine: str = "hive") -> dict[str, Any]:
    return store.read(lambda snapshot: StatisticsRows(snapshot).of_partitions(of, engine, NAMES, columns))


def names_of(store: SqlStore, of: StoredTable) -> dict[str, list[str]]:
    return {name: [one.column for one in of_one] for name, of_one in known(store, of).items()}


def accuracy(store: SqlStore, of: StoredTable) -> list[str | None]:
    found = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    return [(one.partition.parameters or {}).get("COLUMN_STATS_ACCURATE") for one in found]


@pytest.mark.parametrize(
    "data",
    [
        ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(-(2**63), 2**63 - 1, 0, 1, b"\x00\xff", b"h")),
        ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(None, None, 0, 1)),
        ColumnStatisticsData_v4(doubleStats=DoubleColumnStatsData_v4(float("-inf"), 5e-324, 0, 1)),
        ColumnStatisticsData_v4(stringStats=StringColumnStatsData_v4(9, 1.5, 0, 1)),
        ColumnStatisticsData_v4(decimalStats=DecimalColumnStatsData_v4(Decimal(b"\x80\x00", -3), None, 0, 1)),
    ],
)
def test_everything_of_them_comes_back(store: SqlStore, data: ColumnStatisticsData_v4) -> None:
    stored = create(store, values=VALUES)
    given = ColumnFigures("id", "bigint", data, 2**40)
    store.write(lambda tx: StatisticsRows(tx).put_of_table(stored.table_id, "hive", [given]))
    assert store.read(lambda snapshot: StatisticsRows(snapshot).of_table(stored.table_id, "hive")) == [given]
    put(store, stored, given, names=NAMES[:1])
    assert known(store, stored) == {NAMES[0]: [given]}


def test_new_ones_replace_old_ones_column_by_column(store: SqlStore) -> None:
    stored = create(store)

    def write(*given: ColumnFigures) -> None:
        store.write(lambda tx: StatisticsRows(tx).put_of_table(stored.table_id, "hive", given))

    def read(columns: list[str] | None = None) -> list[ColumnFigures]:
        return store.read(lambda snapshot: StatisticsRows(snapshot).of_table(stored.table_id, "hive", columns))

    write(figures("id", 1), figures("name", 1))
    write(figures("name", 2), figures("other", 2))
    assert read() == [figures("id", 1), figures("name", 2), figures("other", 2)]
    assert read(["name", "none", "x\0y"]) == [figures("name", 2)]
    assert read([]) == []
    assert store.write(lambda tx: StatisticsRows(tx).delete_of_table(stored.table_id, "hive", ["id", "none"])) == 1
    assert store.write(lambda tx: StatisticsRows(tx).delete_of_table(stored.table_id, "other")) == 0
    assert store.write(lambda tx: StatisticsRows(tx).delete_of_table(stored.table_id, "hive")) == 2
    assert read() == []


def test_those_of_partitions_in_one_go(store: SqlStore) -> None:
    stored = create(store, values=VALUES)
    put(store, stored, figures("id", 1), names=NAMES[:2])
    put(store, stored, figures("id", 2), figures("name", 2), names=NAMES[1:])
    assert names_of(store, stored) == {NAMES[0]: ["id"], NAMES[1]: ["id", "name"], NAMES[2]: ["id", "name"]}
    assert [one[0].data.longStats.lowValue for one in known(store, stored, ["id"]).values()] == [1, 2, 2]
    assert known(store, stored, engine="impala") == known(store, stored, []) == {}
    assert accuracy(store, stored) == [
        '{"COLUMN_STATS":{"id":"true"}}',
        '{"COLUMN_STATS":{"id":"true","name":"true"}}',
        '{"COLUMN_STATS":{"id":"true","name":"true"}}',
    ]
    ids = store.read(lambda snapshot: StatisticsRows(snapshot).partition_ids(stored, [*NAMES, "none", "x\0y"]))
    assert list(ids) == NAMES or sorted(ids) == NAMES
    gone = store.write(lambda tx: StatisticsRows(tx).delete_of_partitions("hive", list(ids.values()), ["name"]))
    assert (gone, names_of(store, stored)) == (2, {name: ["id"] for name in NAMES})


def test_a_column_nobody_can_index_is_refused(store: SqlStore) -> None:
    stored = create(store)
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(UnstorableText):
            store.write(lambda tx, name=name: StatisticsRows(tx).put_of_table(stored.table_id, "hive", [figures(name)]))


def test_columns_that_are_no_more(store: SqlStore) -> None:
    stored = create(store, values=VALUES)
    every = [figures("id"), figures("name", column_type="STRING"), figures("age", column_type="int")]
    store.write(lambda tx: StatisticsRows(tx).put_of_table(stored.table_id, "hive", every))
    put(store, stored, *every)
    kept = [FieldSchema("ID", "BIGINT"), FieldSchema("name", "string"), FieldSchema("age", "bigint")]
    lost = store.write(lambda tx: StatisticsRows(tx).keep_table_columns(stored.table_id, kept))
    assert lost == ["age"]
    assert store.write(lambda tx: StatisticsRows(tx).keep_table_columns(stored.table_id, kept)) == []
    first = store.read(lambda snapshot: StatisticsRows(snapshot).partition_ids(stored, NAMES[:1]))
    store.write(lambda tx: StatisticsRows(tx).keep_partition_columns(stored.table_id, kept, list(first.values())))
    assert [len(one) for one in names_of(store, stored).values()] == [2, 3, 3]
    store.write(lambda tx: StatisticsRows(tx).keep_partition_columns(stored.table_id, kept))
    assert names_of(store, stored) == {name: ["id", "name"] for name in NAMES}
    assert accuracy(store, stored) == ['{"COLUMN_STATS":{"id":"true","name":"true"}}'] * 3
    store.write(lambda tx: StatisticsRows(tx).keep_partition_columns(stored.table_id, []))
    assert (names_of(store, stored), accuracy(store, stored)) == ({}, [None] * 3)


def test_partitions_below_a_path(store: SqlStore) -> None:
    of = table()
    stored = create(store, of, values=VALUES[:1])
    outside = partition(of, ["a", "2"], sd=descriptor("file:/elsewhere/orders"))
    beside = partition(of, ["b", "1"], sd=descriptor(f"{of.sd.location}_more/x"))
    store.write(lambda tx: tx.insert_partitions(stored, [outside, beside]))
    put(store, stored, figures())
    store.write(lambda tx: StatisticsRows(tx).delete_below(stored.table_id, f"{of.sd.location}/"))
    assert list(names_of(store, stored)) == NAMES[1:]
    store.write(lambda tx: StatisticsRows(tx).delete_below(stored.table_id, "file:/elsewhere"))
    assert list(names_of(store, stored)) == NAMES[2:]


def test_they_go_with_their_partitions_tables_and_databases(store: SqlStore) -> None:
    stored = create(store, values=VALUES)
    put(store, stored, figures())
    store.write(lambda tx: StatisticsRows(tx).put_of_table(stored.table_id, "hive", [figures()]))
    store.write(lambda tx: tx.delete_partitions(stored, NAMES[:1]))
    assert list(names_of(store, stored)) == NAMES[1:]
    store.write(lambda tx: tx.insert_partitions(stored, [partition(stored.table, ["a", "1"])]))
    assert list(names_of(store, stored)) == NAMES[1:]
    store.write(lambda tx: tx.delete_table(stored.table_id))
    other = create(store, values=VALUES)
    assert names_of(store, other) == {}
    put(store, other, figures())
    store.write(lambda tx: tx.delete_database(other.database_id))
    assert store.read(lambda snapshot: snapshot.database("sales")) is None


def test_renamed_partitions_keep_theirs(store: SqlStore) -> None:
    stored = create(store, values=VALUES[:1])
    put(store, stored, figures(), names=NAMES[:1])

    def rename(tx: Any) -> None:
        [one] = tx.partitions(stored, Selection())
        new = partition(stored.table, ["b", "1"])
        tx.update_partitions(stored, [type(one)(one.partition_id, new.name, new.partition)])

    store.write(rename)
    assert list(names_of(store, get(store))) == ["k0=b/k1=1"]


@pytest.mark.slow
def test_thousands_of_partitions_at_once(store: SqlStore) -> None:
    values = [["a", str(number)] for number in range(2_000)]
    stored = create(store, values=values)
    names = [f"k0=a/k1={number}" for number in range(2_000)]
    for number in (1, 2):
        put(store, stored, figures("id", number), figures("name", number), names=names)
    found = store.read(lambda snapshot: StatisticsRows(snapshot).of_partitions(stored, "hive", names))
    assert len(found) == 2_000
    assert {one.data.longStats.lowValue for of_one in found.values() for one in of_one} == {2}
