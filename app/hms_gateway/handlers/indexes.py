"""Methods on indexes, which Hive 2.3 has (semantics §2.17)."""

from hms_gateway.catalog.arguments import database_name, with_fields
from hms_gateway.catalog.tables.indexes import IndexService
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call
from hms_gateway.structs import Index, Table


class Indexes:
    """The largest number of indexes that callers name makes no difference, as in Hive."""

    def __init__(self, indexes: IndexService) -> None:
        self._indexes = indexes

    def add_index(self, call: Call, new_index: Index, index_table: Table) -> Index:
        if new_index is not None and new_index.dbName is not None:
            new_index = with_fields(new_index, dbName=database_name(new_index.dbName))
        return self._indexes.add(new_index, index_table)

    def alter_index(self, call: Call, dbname: str, base_tbl_name: str, idx_name: str, new_idx: Index) -> None:
        self._indexes.alter(_table(dbname, base_tbl_name), idx_name, new_idx)

    def drop_index_by_name(self, call: Call, db_name: str, tbl_name: str, index_name: str, deleteData: bool) -> bool:
        self._indexes.drop(_table(db_name, tbl_name), index_name, bool(deleteData))
        return True

    def get_index_by_name(self, call: Call, db_name: str, tbl_name: str, index_name: str) -> Index:
        return self._indexes.get(_table(db_name, tbl_name), index_name)

    def get_indexes(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[Index]:
        return self._indexes.of_table(_table(db_name, tbl_name))

    def get_index_names(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[str]:
        return [index.indexName or "" for index in self._indexes.of_table(_table(db_name, tbl_name))]


def _table(db_name: str | None, tbl_name: str | None) -> TableName:
    return TableName(database_name(db_name), tbl_name)
