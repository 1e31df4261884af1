"""Methods that read indexes. None can be created, but Hive 2.3 asks for them (semantics §2.17)."""

from app.handlers.arguments import database_name
from app.metastore.names import display_name
from app.rpc.call import Call
from app.structs import Index, NoSuchObjectException


class Indexes:
    def drop_index_by_name(self, call: Call, db_name: str, tbl_name: str, index_name: str, deleteData: bool) -> bool:
        raise _not_found(db_name, tbl_name, index_name)

    def get_index_by_name(self, call: Call, db_name: str, tbl_name: str, index_name: str) -> Index:
        raise _not_found(db_name, tbl_name, index_name)

    def get_indexes(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[Index]:
        return []

    def get_index_names(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[str]:
        return []


def _not_found(db_name: str, tbl_name: str, index_name: str) -> NoSuchObjectException:
    return NoSuchObjectException(f"{display_name(database_name(db_name), tbl_name)} index={index_name} not found")
