"""Names by a part of them, partitions in pages and in groups: alike on every kind of database."""

import pytest

from hms_gateway.metastore.ports.store import Selection, Snapshot, StoredTable
from hms_gateway.storage import SqlStore
from hms_gateway.structs import Function
from tests.contract.objects import bound, create, get, partition, table

VALUES = [("a", "1"), ("a", "2"), ("a", "10"), ("b", "1"), ("Z", "7"), ("é", "1"), ("%", "1")]


def filled(store: SqlStore) -> StoredTable:
    of = create(store)

    def work(transaction):
        database_id = transaction.database("sales").database_id
        for name in ("big_orders", "orders_old", "ordérs", "o%rders"):
            transaction.insert_table(database_id, table(name))
        transaction.functions.insert(database_id, Function("order_value", "sales", "org.example.F"))
        transaction.insert_partitions(of, [partition(of.table, list(values)) for values in VALUES])

    store.write(work)
    return get(store)


def test_names_for_people(store: SqlStore) -> None:
    of = filled(store)

    def found(db_text: str | None, text: str, limit: int = 100) -> list[str]:
        names = store.read(lambda snapshot: snapshot.search_names(db_text, text, limit))
        return [each.name or each.db_name for each in names]

    def page(selection: Selection, after: str, *, descending: bool = False, limit: int = 3) -> list[str]:
        return store.read(
            lambda snapshot: snapshot.partition_names_from(of, selection, after, descending=descending, limit=limit)
        )

    assert found(None, "orders") == ["orders", "orders_old", "big_orders"]
    assert found(None, "order", 2) == ["orders", "orders_old"]
    assert found("sales", "") == ["big_orders", "o%rders", "order_value", "orders", "orders_old", "ordérs"]
    assert found("nowhere", "order") == []
    assert found("al", "value") == ["order_value"]
    assert found(None, "o%r") == ["o%rders"]
    assert found(None, "SAL".lower()) == ["sales"]
    assert found(None, "dér") == ["ordérs"]

    everything = [
        f"k0={first}/k1={second}" for first, second in sorted((("%25" if k == "%" else k), v) for k, v in VALUES)
    ]
    assert page(Selection(), "", limit=100) == sorted(everything, key=str.encode)
    assert page(Selection(), "k0=a/k1=1") == sorted(everything, key=str.encode)[3:6]
    assert page(Selection(), "k0=a/k1=1", descending=True) == sorted(everything, key=str.encode)[1::-1]
    ones = Selection(filter=bound("k1 = 1", of))
    assert page(ones, "k0=a/k1=1") == ["k0=b/k1=1", "k0=é/k1=1"]

    groups = store.read(lambda snapshot: snapshot.partition_groups(of, Selection(), 1, 100))
    assert [(each.example.partition("/")[0], each.partitions) for each in groups] == [
        ("k0=%25", 1),
        ("k0=Z", 1),
        ("k0=a", 3),
        ("k0=b", 1),
        ("k0=é", 1),
    ]
    both = store.read(lambda snapshot: snapshot.partition_groups(of, ones, 2, 2))
    assert [(each.example, each.partitions) for each in both] == [("k0=%25/k1=1", 1), ("k0=a/k1=1", 1)]


def test_a_page_of_a_filter_is_the_same_wherever_it_is_looked_for(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the next names first, then by the indexes of keys."""
    of = filled(store)
    filters = ("k1 = 1", "k1 > 1", 'k0 > "Z"', 'k0 = "a" or k1 = 7', "k1 = 99")

    def pages() -> list[list[str]]:
        def work(snapshot: Snapshot) -> list[list[str]]:
            names = ["", *snapshot.partition_names(of, Selection())]
            return [
                snapshot.partition_names_from(of, selection, after, descending=descending, limit=limit)
                for selection in (Selection(filter=bound(text, of)) for text in filters)
                for after in names
                for descending in (False, True)
                for limit in (1, 3)
            ]

        return store.read(work)

    found = {}
    for near in (1, 2, 5, 2_000):
        monkeypatch.setattr("hms_gateway.storage.partitions.reads.NEAR_NAMES", near)
        found[near] = pages()
    assert found[1] == found[2] == found[5] == found[2_000]
    assert ["k0=a/k1=1", "k0=b/k1=1", "k0=é/k1=1"] in found[1]


def test_groups_have_values_that_are_not_of_the_type_of_their_key(store: SqlStore) -> None:
    of = filled(store)
    odd = [partition(of.table, list(values)) for values in (("b", "none"), ("b", "nothing"))]
    store.write(lambda transaction: transaction.insert_partitions(of, odd))
    of = get(store)

    def groups(selection: Selection, keys: int, limit: int = 100) -> list[tuple[str, int]]:
        found = store.read(lambda snapshot: snapshot.partition_groups(of, selection, keys, limit))
        return [(each.example, each.partitions) for each in found]

    assert sum(count for _, count in groups(Selection(), 2)) == len(VALUES) + 2
    assert groups(Selection(), 2)[-1] == ("k0=b/k1=none", 2)
    of_b = Selection(filter=bound('k0 = "b"', of))
    assert groups(of_b, 2) == [("k0=b/k1=1", 1), ("k0=b/k1=none", 2)]
    assert [count for _, count in groups(of_b, 1)] == [3]
    assert len(groups(Selection(), 2, 3)) == 3
