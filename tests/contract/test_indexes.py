"""Indexes of tables: what goes in comes out, under the names the table has now."""

import pytest

from hms_gateway.catalog.indexes import IndexRows
from hms_gateway.metastore.ports.store import DuplicateKey, TableId, UnstorableText
from hms_gateway.rpc.structs import Index
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create, descriptor, get, table

WHOLE = Index("i1", "a.Handler", "sales", "orders", 5, 6, "sales__orders_i1__", descriptor(), {"k": '\0"'}, True)


def insert(store: SqlStore, table_id: TableId, *indexes: Index) -> None:
    store.write(lambda transaction: [IndexRows(transaction).insert(table_id, one) for one in indexes])


def all_of(store: SqlStore, table_id: TableId) -> list[Index]:
    return [stored.index for stored in store.read(lambda snapshot: IndexRows(snapshot).of_table(table_id))]


def test_everything_of_an_index_comes_back_ordered_by_name(store: SqlStore) -> None:
    table_id = create(store).table_id
    insert(store, table_id, WHOLE, Index("bare", dbName="sales", origTableName="orders"))
    assert all_of(store, table_id) == [Index("bare", dbName="sales", origTableName="orders"), WHOLE]
    found = store.read(lambda snapshot: IndexRows(snapshot).find(table_id, "i1"))
    assert found is not None
    assert found.index == WHOLE


@pytest.mark.parametrize("name", ["I1", "", "a\0", "\ud800"])
def test_an_unknown_name_finds_nothing(store: SqlStore, name: str) -> None:
    table_id = create(store).table_id
    insert(store, table_id, WHOLE)
    assert store.read(lambda snapshot: IndexRows(snapshot).find(table_id, name)) is None
    assert store.read(lambda snapshot: IndexRows(snapshot).find(TableId(table_id + 1), "i1")) is None


def test_what_cannot_be_stored(store: SqlStore) -> None:
    table_id = create(store).table_id
    insert(store, table_id, WHOLE)
    with pytest.raises(DuplicateKey, match="i1 exists already"):
        insert(store, table_id, WHOLE)
    for index in (Index("a\0"), Index("n" * 3000), Index("i2", indexTableName="a\0")):
        with pytest.raises(UnstorableText):
            insert(store, table_id, index)


def test_names_follow_the_table(store: SqlStore) -> None:
    stored = create(store)
    insert(store, stored.table_id, WHOLE)
    renamed = table("renamed")
    store.write(lambda transaction: transaction.update_table(stored.table_id, stored.database_id, renamed))
    assert [index.origTableName for index in all_of(store, stored.table_id)] == ["renamed"]


def test_update_keeps_the_name(store: SqlStore) -> None:
    table_id = create(store).table_id
    insert(store, table_id, WHOLE)
    found = store.read(lambda snapshot: IndexRows(snapshot).find(table_id, "i1"))
    assert found is not None
    store.write(lambda transaction: IndexRows(transaction).update(found.index_id, Index("other", createTime=9)))
    assert all_of(store, table_id) == [Index("i1", dbName="sales", origTableName="orders", createTime=9)]


def test_indexes_go_alone_with_their_table_or_with_the_database(store: SqlStore) -> None:
    stored = create(store)
    insert(store, stored.table_id, WHOLE, Index("i2"))
    found = store.read(lambda snapshot: IndexRows(snapshot).find(stored.table_id, "i1"))
    assert found is not None
    store.write(lambda transaction: IndexRows(transaction).delete(found.index_id))
    assert [index.indexName for index in all_of(store, stored.table_id)] == ["i2"]
    found_all = store.read(lambda snapshot: IndexRows(snapshot).of_database(stored.database_id))
    assert [one.index.indexName for one in found_all] == ["i2"]
    store.write(lambda transaction: transaction.delete_table(stored.table_id))
    assert all_of(store, stored.table_id) == []

    create(store)
    again = get(store)
    insert(store, again.table_id, WHOLE)
    store.write(lambda transaction: transaction.delete_database(again.database_id))
    assert all_of(store, again.table_id) == []
