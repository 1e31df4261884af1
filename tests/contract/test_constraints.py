"""Constraints: every kind comes back under the names its tables have now."""

import pytest

from hms_gateway.catalog.constraints import ConstraintColumn, ConstraintKind, ConstraintRows
from hms_gateway.metastore.ports.store import StoredTable, UnstorableText
from hms_gateway.rpc.structs import (
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
)
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create, table

FLAGS = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}
STRUCTS = {
    ConstraintKind.PRIMARY_KEY: SQLPrimaryKey("sales", "orders", "id", 3, "n", **FLAGS),
    ConstraintKind.UNIQUE: SQLUniqueConstraint(None, "sales", "orders", "id", 3, "n", **FLAGS),
    ConstraintKind.NOT_NULL: SQLNotNullConstraint(None, "sales", "orders", "id", "n", **FLAGS),
    ConstraintKind.DEFAULT: SQLDefaultConstraint(None, "sales", "orders", "id", "'\0ä'", "n", **FLAGS),
    ConstraintKind.CHECK: SQLCheckConstraint(None, "sales", "orders", "id", "id > 0", "n", **FLAGS),
}


def column(of: StoredTable, kind: ConstraintKind, extra: Struct, name: str = "n") -> ConstraintColumn:
    return ConstraintColumn(kind, name, of.table_id, "id", 3, extra)


def foreign(child: StoredTable, parent: StoredTable, name: str = "f") -> ConstraintColumn:
    extra = SQLForeignKey(update_rule=1, delete_rule=2, pk_name="p", **FLAGS)
    kind = ConstraintKind.FOREIGN_KEY
    return ConstraintColumn(kind, name, child.table_id, "id", 1, extra, parent.table_id, "name")


@pytest.mark.parametrize("kind", STRUCTS)
def test_each_kind_comes_back(store: SqlStore, kind: ConstraintKind) -> None:
    stored, other = create(store), create(store, table("other"))
    store.write(lambda tx: ConstraintRows(tx).insert([column(stored, kind, STRUCTS[kind])]))
    store.write(lambda tx: ConstraintRows(tx).insert([]))
    assert store.read(lambda snapshot: ConstraintRows(snapshot).of_table(stored.table_id, kind)) == [STRUCTS[kind]]
    assert store.read(lambda snapshot: ConstraintRows(snapshot).of_table(other.table_id, kind)) == []
    assert store.read(lambda snapshot: ConstraintRows(snapshot).names(stored.table_id)) == {"n"}


def test_foreign_keys_follow_both_tables(store: SqlStore) -> None:
    child, parent = create(store), create(store, table("customers"))
    store.write(lambda tx: ConstraintRows(tx).insert([foreign(child, parent)]))
    renamed = table("clients")
    store.write(lambda tx: tx.update_table(parent.table_id, parent.database_id, renamed))
    expected = SQLForeignKey(*("sales", "clients", "name", "sales", "orders", "id", 1, 1, 2, "f", "p"), *FLAGS.values())
    for ends in ((child.table_id, None), (None, parent.table_id), (child.table_id, parent.table_id)):
        assert store.read(lambda snapshot, ends=ends: ConstraintRows(snapshot).foreign_keys(*ends)) == [expected]
    assert store.read(lambda snapshot: ConstraintRows(snapshot).foreign_keys(parent.table_id, None)) == []


def test_deleting_by_name(store: SqlStore) -> None:
    child, parent = create(store), create(store, table("customers"))
    store.write(lambda tx: ConstraintRows(tx).insert([foreign(child, parent, "f"), foreign(child, parent, "g")]))
    assert store.write(lambda tx: ConstraintRows(tx).delete(parent.table_id, "f")) == 1
    assert store.write(lambda tx: ConstraintRows(tx).delete(child.table_id, "g")) == 1
    for name in ("g", "x\0y"):
        assert store.write(lambda tx, name=name: ConstraintRows(tx).delete(child.table_id, name)) == 0


def test_they_go_with_either_table(store: SqlStore) -> None:
    child, parent = create(store), create(store, table("customers"))
    store.write(lambda tx: ConstraintRows(tx).insert([foreign(child, parent)]))
    store.write(lambda tx: tx.delete_table(parent.table_id))
    assert store.read(lambda snapshot: ConstraintRows(snapshot).names(child.table_id)) == set()
    elsewhere = create(store, table("t", "other"))
    store.write(lambda tx: ConstraintRows(tx).insert([foreign(child, elsewhere)]))
    store.write(lambda tx: tx.delete_database(elsewhere.database_id))
    assert store.read(lambda snapshot: ConstraintRows(snapshot).names(child.table_id)) == set()
    store.write(lambda tx: tx.delete_database(child.database_id))


def test_a_key_goes_as_a_whole_with_any_of_its_columns(store: SqlStore) -> None:
    stored = create(store)
    key = [column(stored, ConstraintKind.PRIMARY_KEY, SQLPrimaryKey(), "k")]
    key.append(ConstraintColumn(ConstraintKind.PRIMARY_KEY, "k", stored.table_id, "name", 2, SQLPrimaryKey()))
    check = ConstraintColumn(ConstraintKind.CHECK, "c", stored.table_id, "", 1, SQLCheckConstraint())
    store.write(lambda tx: ConstraintRows(tx).insert([*key, check]))
    store.write(lambda tx: ConstraintRows(tx).keep_columns(stored.table_id, ["id", "name"]))
    assert store.read(lambda snapshot: ConstraintRows(snapshot).names(stored.table_id)) == {"k", "c"}
    store.write(lambda tx: ConstraintRows(tx).keep_columns(stored.table_id, ["id"]))
    assert store.read(lambda snapshot: ConstraintRows(snapshot).names(stored.table_id)) == {"c"}


@pytest.mark.parametrize("name", ["x\0y", "x" * 5000, "\udfff"])
def test_names_nobody_can_index(store: SqlStore, name: str) -> None:
    stored = create(store)
    with pytest.raises(UnstorableText):
        store.write(
            lambda tx: ConstraintRows(tx).insert([column(stored, ConstraintKind.CHECK, SQLCheckConstraint(), name)])
        )
