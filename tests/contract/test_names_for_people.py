"""Names by a part of them, partitions in pages and in groups: alike on every kind of database."""

import random
import re

import pytest

from hms_gateway.catalog.functions import FunctionRows
from hms_gateway.metastore.ports.store import Selection, Snapshot, StoredTable, Transaction
from hms_gateway.rpc.structs import Database, Function
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import bound, create, get, partition, table
from tests.support.sample import sample

# What Hive does not know (-1) Spark may.
COUNTED = {
    "orders_old": {"numRows": "-1", "spark.sql.statistics.numRows": "7", "spark.sql.statistics.totalSize": "70"},
    "big_orders": {"numRows": "8", "totalSize": "80", "spark.sql.statistics.numRows": "9"},
}
VALUES = [("a", "1"), ("a", "2"), ("a", "10"), ("b", "1"), ("Z", "7"), ("é", "1"), ("%", "1")]


def filled(store: SqlStore) -> StoredTable:
    of = create(store)

    def work(transaction):
        database_id = transaction.database("sales").database_id
        for name in ("big_orders", "orders_old", "ordérs", "o%rders"):
            transaction.insert_table(database_id, table(name, parameters=COUNTED.get(name, {})))
        FunctionRows(transaction).insert(database_id, Function("order_value", "sales", "org.example.F"))
        transaction.insert_partitions(of, [partition(of.table, list(values)) for values in VALUES])

    store.write(work)
    return get(store)


@pytest.mark.slow
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
    detailed = store.read(lambda snapshot: snapshot.search_names("sales", "orders", 1, True))
    assert [(each.name, each.partitions) for each in detailed] == [("orders", 7)]
    detailed = store.read(lambda snapshot: snapshot.search_names("sales", "orders", 3, True))
    assert [(each.rows, each.bytes) for each in detailed] == [(None, None), (7, 70), (8, 80)]
    (counts,) = store.read(lambda snapshot: snapshot.count_objects("sales", True))
    assert (counts.tables, counts.views, counts.functions, counts.partitions) == (5, 0, 1, 7)
    assert [
        each.tables for each in store.read(lambda snapshot: snapshot.count_objects(None)) if each.db_name == "sales"
    ] == [5]

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


# What SQL and patterns take for more than a character, the ends of what texts can hold.
ODD = (
    "a",
    "b",
    "%",
    "_",
    "*",
    "[",
    "?",
    "!",
    "\\",
    "'",
    ".",
    "\u00e9",
    "\u65e5",
    "\ud7ff",
    "\ue000",
    "\U0001f600",
    "\U0010ffff",
)
SOUGHT = (
    "",
    "a",
    "ab",
    "b",
    "%",
    "_",
    "a_",
    "[",
    "?",
    "!",
    "\\",
    "'",
    "a*b",
    "*",
    "**a",
    "\u00e9",
    "\ud7ff",
    "\U0010ffff",
    "a\U0010ffff",
)


LIMITS = (1_000, 3, 20, 1)
EVERY = sample(len(LIMITS), of=1)
# Of the texts that are sought in each choice of databases.
EVERY_TEXT = sample(3, of=1)


@pytest.mark.slow
def test_a_search_finds_what_looking_at_every_name_finds(store: SqlStore) -> None:
    chosen = random.Random(18)
    some = sorted({"".join(chosen.choices(ODD, k=chosen.randint(1, 4))) for _ in range(300)} - {"*"})
    held: list[tuple[str, int, str]] = []

    def work(transaction: Transaction) -> None:
        # One after the other by name: of the same name, the one of the first database is the first.
        for database in ("a", "a_b", "axb"):
            database_id = transaction.insert_database(Database(database, None, f"file:/{database}", {}))
            held.append((database, 0, ""))
            for name in chosen.sample(some, len(some) // 2):
                transaction.insert_table(database_id, table(name))
                held.append((database, 1, name))
            for name in chosen.sample(some, 20):
                FunctionRows(transaction).insert(database_id, Function(name, database, "org.example.F"))
                held.append((database, 2, name))

    store.write(work)
    kinds = {"DATABASE": 0, "FUNCTION": 2}

    def looked_at(db_text: str | None, text: str) -> list[tuple[str, int, str]]:
        wanted = re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
        of = db_text if db_text in ("a", "a_b", "axb") else None

        def is_found(database: str, kind: int, name: str) -> bool:
            if db_text is not None and (kind == 0 or (database != of if of else db_text not in database)):
                return False
            return wanted.search(name or database) is not None

        def rank(each: tuple[str, int, str]) -> tuple[bool, int, str, str, int]:
            database, kind, name = each
            name = name or database
            return "*" in text or not name.startswith(text), len(name) if text else 0, name, database, kind

        return sorted((each for each in held if is_found(*each)), key=rank)

    for shift, db_text in enumerate((None, "", "a", "a_", "x")):
        texts = (*SOUGHT, *chosen.sample(some, 20))
        for number, text in enumerate(texts[shift % EVERY_TEXT :: EVERY_TEXT]):
            expected = looked_at(db_text, text)
            for limit in LIMITS[number % EVERY :: EVERY]:
                names = store.read(lambda snapshot, d=db_text, t=text, n=limit: snapshot.search_names(d, t, n))  # type: ignore[misc]
                found = [(each.db_name, kinds.get(str(each.kind), 1), each.name or "") for each in names]
                assert found == expected[:limit], (db_text, text, limit)


@pytest.mark.slow
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
