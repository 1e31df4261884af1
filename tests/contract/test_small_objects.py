"""Types, marks of partitions, tokens, master keys and properties: what goes in comes out."""

import pytest

from hms_gateway.catalog.partition_marks import PartitionMarkRows
from hms_gateway.catalog.properties import PropertyRows
from hms_gateway.catalog.tokens import TokenRows
from hms_gateway.catalog.types import TypeRows
from hms_gateway.metastore.ports.store import DuplicateKey, UnstorableText
from hms_gateway.rpc.structs import FieldSchema, Type
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create

ODD = '\0"\\☃\ud800'
LONG = "n" * 10_000


def test_a_type_comes_back_until_it_is_deleted(store: SqlStore) -> None:
    whole = Type("T1", "a", ODD.replace("\ud800", ""), [FieldSchema("f", "int", "c")])
    for new in (whole, Type("t1")):
        store.write(lambda transaction, new=new: TypeRows(transaction).insert(new))
    assert store.read(lambda snapshot: TypeRows(snapshot).find("T1")) == whole
    assert store.read(lambda snapshot: TypeRows(snapshot).find("t1")) == Type("t1")
    with pytest.raises(DuplicateKey):
        store.write(lambda transaction: TypeRows(transaction).insert(Type("T1")))
    for name in ("T1", "missing", "a\0"):
        store.write(lambda transaction, name=name: TypeRows(transaction).delete(name))
        assert store.read(lambda snapshot, name=name: TypeRows(snapshot).find(name)) is None
    for name in ("a\0", LONG):
        with pytest.raises(UnstorableText):
            store.write(lambda transaction, name=name: TypeRows(transaction).insert(Type(name)))


def test_a_mark_holds_for_its_table_values_and_event(store: SqlStore) -> None:
    table_id = create(store).table_id

    def is_marked(values: list[str], event_type: int = 1, of: int = table_id) -> bool:
        return store.read(lambda snapshot: PartitionMarkRows(snapshot).has(of, values, event_type))

    for values in (["a,b", "c"], ["a,b", "c"], [ODD.replace("\ud800", ""), LONG]):
        store.write(lambda transaction, values=values: PartitionMarkRows(transaction).insert(table_id, values, 1, 100))
        assert is_marked(values)
    assert not is_marked(["a", "b,c"])
    assert not is_marked(["a,b", "c"], event_type=2)
    assert not is_marked(["a,b", "c"], of=table_id + 1)
    store.write(lambda transaction: transaction.delete_table(table_id))
    assert not is_marked(["a,b", "c"])


def test_tokens(store: SqlStore) -> None:
    for identifier in ("b", "a", "", "\0☃", LONG):
        assert store.write(
            lambda tx, identifier=identifier: TokenRows(tx).insert_token(identifier, f"token {identifier}")
        )
        assert store.read(lambda snapshot, identifier=identifier: TokenRows(snapshot).token(identifier)) == (
            f"token {identifier}"
        )
    assert store.read(lambda snapshot: TokenRows(snapshot).identifiers()) == ["", "\0☃", "a", "b", LONG]
    assert store.read(lambda snapshot: TokenRows(snapshot).tokens())["\0☃"] == "token \0☃"
    assert not store.write(lambda transaction: TokenRows(transaction).insert_token("a", "other"))
    assert store.read(lambda snapshot: TokenRows(snapshot).token("a")) == "token a"
    assert store.read(lambda snapshot: TokenRows(snapshot).token("A")) is None
    for name, is_there in (("a", True), ("A", False)):
        assert store.write(lambda tx, name=name: TokenRows(tx).update_token(name, "other")) is is_there
    assert store.read(lambda snapshot: TokenRows(snapshot).token("a")) == "other"
    assert [store.write(lambda transaction: TokenRows(transaction).delete_token("a")) for _ in range(2)] == [
        True,
        False,
    ]
    assert store.read(lambda snapshot: TokenRows(snapshot).token("a")) is None


def test_numbers_of_master_keys_are_never_given_twice(store: SqlStore) -> None:
    assert [store.write(lambda tx, key=key: TokenRows(tx).insert_master_key(key)) for key in ("k1", "\0k2")] == [1, 2]
    assert store.write(lambda transaction: TokenRows(transaction).delete_master_key(2))
    assert not store.write(lambda transaction: TokenRows(transaction).delete_master_key(2))
    assert store.write(lambda transaction: TokenRows(transaction).insert_master_key("k3")) == 3
    assert store.write(lambda transaction: TokenRows(transaction).update_master_key(1, "new"))
    assert not store.write(lambda transaction: TokenRows(transaction).update_master_key(2, "new"))
    assert store.read(lambda snapshot: TokenRows(snapshot).master_keys()) == {1: "new", 3: "k3"}


def test_properties(store: SqlStore) -> None:
    long_path = f"db.{LONG}"
    for path, value in (("db.t.b", "1"), ("db.t.a", "2"), ("d", "3"), (long_path, "4"), ("db.t.b", "5")):
        store.write(lambda tx, path=path, value=value: PropertyRows(tx).put("ns", path, value))
    store.write(lambda transaction: PropertyRows(transaction).put("other", "db.t.b", "6"))
    assert store.read(lambda snapshot: PropertyRows(snapshot).get("ns", "db.t.b")) == "5"
    assert store.read(lambda snapshot: PropertyRows(snapshot).get("ns", "db.t.c")) is None
    found = store.read(lambda snapshot: PropertyRows(snapshot).under("ns", "db."))
    assert list(found.items()) == [(long_path, "4"), ("db.t.a", "2"), ("db.t.b", "5")]
    for _ in range(2):
        store.write(lambda transaction: PropertyRows(transaction).delete("ns", "db.t.b"))
    assert list(store.read(lambda snapshot: PropertyRows(snapshot).under("ns", ""))) == ["d", long_path, "db.t.a"]
    assert store.read(lambda snapshot: PropertyRows(snapshot).under("a\0", "")) == {}
    with pytest.raises(UnstorableText):
        store.write(lambda transaction: PropertyRows(transaction).put("ns", "a\0", "v"))
