"""Indexes of tables as rows (semantics §2.17)."""

from typing import Any, Final

from sqlalchemy import Row, bindparam, delete, insert, select, update

from hms_gateway.metastore.ports.objects import StoredIndex
from hms_gateway.metastore.ports.store import DuplicateKey
from hms_gateway.metastore.vocabulary.names import DatabaseId, IndexId, TableId
from hms_gateway.storage.schema.catalog import DATABASES, TABLE_INDEXES, TABLES
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import check_name, check_text, is_storable
from hms_gateway.structs import Index

_EXTRA: Final = names_except(Index, "indexName", "dbName", "origTableName", "indexTableName")

# Database and table are named as they are named now, whatever they were when the index was made.
_ROWS = (
    select(TABLE_INDEXES, TABLES.c.name.label("tbl_name"), DATABASES.c.name.label("db_name"))
    .join(TABLES, TABLES.c.table_id == TABLE_INDEXES.c.table_id)
    .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
)
_OF_DATABASE = _ROWS.where(TABLES.c.database_id == bindparam("database_id"))
_OF_TABLE = _ROWS.where(TABLE_INDEXES.c.table_id == bindparam("table_id")).order_by(TABLE_INDEXES.c.name)
_BY_NAME = _OF_TABLE.where(TABLE_INDEXES.c.name == bindparam("name"))


class IndexRepository(Repository):
    """`object_ports.IndexWrites`."""

    def find(self, table_id: TableId, name: str) -> StoredIndex | None:
        if not is_storable(name):
            return None
        row = self._connection.execute(_BY_NAME, {"table_id": table_id, "name": name}).first()
        return None if row is None else _stored_index(row)

    def of_table(self, table_id: TableId) -> list[StoredIndex]:
        return [_stored_index(row) for row in self._connection.execute(_OF_TABLE, {"table_id": table_id})]

    def of_database(self, database_id: DatabaseId) -> list[StoredIndex]:
        return [_stored_index(row) for row in self._connection.execute(_OF_DATABASE, {"database_id": database_id})]

    def insert(self, table_id: TableId, index: Index) -> None:
        name = index.indexName or ""
        check_name("index", name, self._dialect)
        if self.find(table_id, name) is not None:
            raise DuplicateKey(name)
        self._connection.execute(insert(TABLE_INDEXES).values({**_row(index), "table_id": table_id, "name": name}))

    def update(self, index_id: IndexId, index: Index) -> None:
        self._connection.execute(update(TABLE_INDEXES).where(TABLE_INDEXES.c.index_id == index_id).values(_row(index)))

    def delete(self, index_id: IndexId) -> None:
        self._connection.execute(delete(TABLE_INDEXES).where(TABLE_INDEXES.c.index_id == index_id))


def _row(index: Index) -> dict[str, Any]:
    check_text("index table", index.indexTableName)
    return {"index_table_name": index.indexTableName, "extra": encode_extra(index, _EXTRA)}


def _stored_index(row: Row[Any]) -> StoredIndex:
    index = decode_extra(Index, row.extra)
    index.indexName = row.name
    index.dbName = row.db_name
    index.origTableName = row.tbl_name
    index.indexTableName = row.index_table_name
    return StoredIndex(IndexId(row.index_id), index)
