"""Functions: what goes in comes out, names are unique in a database, a dropped database takes them along."""

import pytest

from hms_gateway.catalog.functions import FunctionRows
from hms_gateway.metastore.ports.store import DatabaseId, DuplicateKey, UnstorableText
from hms_gateway.metastore.vocabulary.patterns import parse_pattern
from hms_gateway.rpc.structs import Function, FunctionType, PrincipalType, ResourceType, ResourceUri
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import database

WHOLE = Function(
    "f1", "sales", 'org."\\\0☃', "nobody", PrincipalType.ROLE, 5, FunctionType.JAVA,
    [ResourceUri(ResourceType.JAR, "file:/a"), ResourceUri(ResourceType.FILE, "")],
)  # fmt: skip


def stored_database(store: SqlStore, name: str = "sales") -> DatabaseId:
    return store.write(lambda transaction: transaction.insert_database(database(name)))


def insert(store: SqlStore, database_id: DatabaseId, *functions: Function) -> None:
    store.write(lambda transaction: [FunctionRows(transaction).insert(database_id, one) for one in functions])


def test_everything_of_a_function_comes_back(store: SqlStore) -> None:
    database_id = stored_database(store)
    insert(store, database_id, WHOLE, Function("bare", "sales"))
    found = store.read(lambda snapshot: FunctionRows(snapshot).find("sales", "f1"))
    assert found is not None
    assert found.function == WHOLE
    assert store.read(lambda snapshot: FunctionRows(snapshot).objects("sales")) == [
        Function("bare", "sales"),
        WHOLE,
    ]


@pytest.mark.parametrize(("db_name", "name"), [("sales", "F1"), ("other", "f1"), ("sales", "a\0"), ("\ud800", "f1")])
def test_an_unknown_name_finds_nothing(store: SqlStore, db_name: str, name: str) -> None:
    insert(store, stored_database(store), WHOLE)
    assert store.read(lambda snapshot: FunctionRows(snapshot).find(db_name, name)) is None
    assert store.read(lambda snapshot: FunctionRows(snapshot).names(db_name, parse_pattern(name[1:]))) == []


def test_a_taken_name_is_refused(store: SqlStore) -> None:
    database_id = stored_database(store)
    insert(store, database_id, WHOLE, Function("f2", "sales"))
    with pytest.raises(DuplicateKey, match="f1 exists already"):
        insert(store, database_id, WHOLE)
    found = store.read(lambda snapshot: FunctionRows(snapshot).find("sales", "f2"))
    assert found is not None
    with pytest.raises(DuplicateKey):
        store.write(lambda transaction: FunctionRows(transaction).update(found.function_id, database_id, WHOLE))
    insert(store, stored_database(store, "other"), WHOLE)


def test_names_no_database_can_hold_are_refused(store: SqlStore) -> None:
    database_id = stored_database(store)
    for name in ("a\0b", "n" * 3000):
        with pytest.raises(UnstorableText):
            insert(store, database_id, Function(name, "sales"))


def test_update_replaces_everything_and_may_move_it(store: SqlStore) -> None:
    insert(store, stored_database(store), WHOLE)
    other_id = stored_database(store, "other")
    found = store.read(lambda snapshot: FunctionRows(snapshot).find("sales", "f1"))
    assert found is not None
    changed = Function("f2", "other", "x")
    store.write(lambda transaction: FunctionRows(transaction).update(found.function_id, other_id, changed))
    assert store.read(lambda snapshot: FunctionRows(snapshot).objects()) == [changed]


def test_names_are_sorted_by_bytes_and_match_patterns(store: SqlStore) -> None:
    everything = ["a_c", "ab", "abc", "z", "ä"]
    insert(store, stored_database(store), *(Function(name, "sales") for name in reversed(everything)))
    insert(store, stored_database(store, "a"), Function("elsewhere", "a"))
    for text in ("*", "", "a_c", "A.C", "a*", "ab|z*|ab", "%", "("):
        pattern = parse_pattern(text)
        expected = [name for name in everything if pattern.matches(name)]
        assert store.read(lambda snapshot, pattern=pattern: FunctionRows(snapshot).names("sales", pattern)) == expected
        found = store.read(lambda snapshot, pattern=pattern: FunctionRows(snapshot).objects("sales", pattern))
        assert [function.functionName for function in found] == expected
    assert [one.functionName for one in store.read(lambda snapshot: FunctionRows(snapshot).objects())] == [
        "elsewhere", *everything,
    ]  # fmt: skip


def test_functions_go_alone_or_with_their_database(store: SqlStore) -> None:
    database_id = stored_database(store)
    insert(store, database_id, WHOLE, Function("f2", "sales"))
    insert(store, stored_database(store, "other"), Function("f3", "other"))
    found = store.read(lambda snapshot: FunctionRows(snapshot).find("sales", "f1"))
    assert found is not None
    store.write(lambda transaction: FunctionRows(transaction).delete(found.function_id))
    assert store.read(lambda snapshot: FunctionRows(snapshot).names("sales")) == ["f2"]
    store.write(lambda transaction: transaction.delete_database(database_id))
    assert store.read(lambda snapshot: FunctionRows(snapshot).objects()) == [Function("f3", "other")]
