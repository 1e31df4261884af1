"""Databases: what goes in comes out, names are unique, deleting takes everything along."""

import pytest

from hms_gateway.metastore.ports.store import (
    DuplicateKey,
    Event,
    EventId,
    EventSelection,
    Selection,
    Transaction,
    UnstorableText,
)
from hms_gateway.metastore.vocabulary.patterns import parse_pattern
from hms_gateway.rpc.structs import Database, PrincipalType
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create, database, names, table


def test_everything_of_a_database_comes_back(store: SqlStore) -> None:
    stored = Database(
        name="sales",
        description='Größe ☃ "quoted" \\',
        locationUri="file:/warehouse/sales.db",
        parameters={"a": "b", "": "\x01"},
        ownerName="nobody",
        ownerType=PrincipalType.ROLE,
        catalogName="hive",
        createTime=5,
        managedLocationUri="file:/managed",
    )
    database_id = store.write(lambda transaction: transaction.insert_database(stored))
    found = store.read(lambda snapshot: snapshot.database("sales"))
    assert found is not None
    assert (found.database_id, found.database) == (database_id, stored)


def test_absent_fields_stay_absent(store: SqlStore) -> None:
    store.write(lambda transaction: transaction.insert_database(Database(name="bare")))
    found = store.read(lambda snapshot: snapshot.database("bare"))
    assert found is not None
    assert found.database == Database(name="bare")


@pytest.mark.parametrize("name", ["missing", "", "a\0b", "\ud800", "SALES", "sales "])
def test_an_unknown_name_finds_nothing(store: SqlStore, name: str) -> None:
    store.write(lambda transaction: transaction.insert_database(database()))
    assert store.read(lambda snapshot: snapshot.database(name)) is None


def test_a_taken_name_is_refused(store: SqlStore) -> None:
    store.write(lambda transaction: transaction.insert_database(database()))
    with pytest.raises(DuplicateKey, match="sales exists already"):
        store.write(lambda transaction: transaction.insert_database(database()))


def test_update_replaces_everything(store: SqlStore) -> None:
    database_id = store.write(lambda transaction: transaction.insert_database(database(description="old")))
    changed = Database(name="sales", parameters={"x": "y"})
    store.write(lambda transaction: transaction.update_database(database_id, changed))
    found = store.read(lambda snapshot: snapshot.database("sales"))
    assert found is not None
    assert found.database == changed


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_no_database_can_hold_is_refused_by_name(store: SqlStore, text: str) -> None:
    with pytest.raises(UnstorableText, match="sales"):
        store.write(lambda transaction: transaction.insert_database(database(description=text)))
    with pytest.raises(UnstorableText, match="database"):
        store.write(lambda transaction: transaction.insert_database(database(text)))
    with pytest.raises(UnstorableText, match="longer than"):
        store.write(lambda transaction: transaction.insert_database(database("n" * 3000)))


def test_each_catalog_has_its_own_names(store: SqlStore) -> None:
    keys = ("sales", "a@b", "@spark#sales", "@spark#Ä", "@spark2#sales", "@#x", "?sales", "A")

    def work(transaction: Transaction) -> None:
        for key in keys:
            transaction.insert_database(database(key))
            transaction.append_event(Event("CREATE_DATABASE", key, None, "{}"))

    store.write(work)

    def found(prefix: str | None, pattern: str | None = None) -> list[str]:
        parsed = None if pattern is None else parse_pattern(pattern)
        return store.read(lambda snapshot: snapshot.database_names(parsed, prefix))

    assert found(None) == sorted(keys, key=str.encode)
    assert found("") == ["?sales", "A", "a@b", "sales"]
    assert found("", "*sales|@spark#*") == ["?sales", "sales"]
    assert found("@spark#") == ["@spark#sales", "@spark#Ä"]
    assert found("@spark#", "s*|x") == found("@spark#", "no|sales") == ["@spark#sales"]
    assert found("@spar_#") == found("@spark\0") == found("@spark%") == []
    for prefix, count in ((None, 8), ("", 4), ("@spark#", 2), ("@\ud800#", 0)):
        selection = EventSelection(EventId(0), prefix=prefix)
        assert len(store.read(lambda snapshot, one=selection: snapshot.events(one))) == count


def test_names_are_sorted_by_bytes_and_match_patterns(store: SqlStore) -> None:
    for name in ("b", "a_c", "abc", "a-c", "z", "ab", "a%c", "ä"):
        store.write(lambda transaction, name=name: transaction.insert_database(database(name)))

    def matching(text: str) -> list[str]:
        return store.read(lambda snapshot: snapshot.database_names(parse_pattern(text)))

    everything = ["a%c", "a-c", "a_c", "ab", "abc", "b", "z", "ä"]
    assert store.read(lambda snapshot: snapshot.database_names()) == everything
    for text in ("*", "", "a_c", "A_C", "a.c", "a%c", "a*", "*c", "ab|z*|ab", ".*", "[ab]*", "x?", "\\", "(", "'", "|"):
        expected = [name for name in everything if parse_pattern(text).matches(name)]
        assert matching(text) == expected, text


def test_deleting_takes_tables_and_partitions_along(store: SqlStore) -> None:
    stored = create(store, values=[["a", "1"], ["b", "2"]])
    create(store, table("kept", "other"), values=[["a", "1"]])
    store.write(lambda transaction: transaction.delete_database(stored.database_id))
    assert store.read(lambda snapshot: snapshot.database("sales")) is None
    assert store.read(lambda snapshot: snapshot.table("sales", "orders")) is None
    assert store.read(lambda snapshot: snapshot.partition_names(stored, Selection())) == []
    kept = store.read(lambda snapshot: snapshot.table("other", "kept"))
    assert kept is not None
    assert names(store, kept) == ["k0=a/k1=1"]
