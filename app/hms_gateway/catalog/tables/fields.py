"""The columns of a table, as get_fields and get_schema answer them (semantics §2.5)."""

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Store
from hms_gateway.structs import FieldSchema, NoSuchObjectException, Table, UnknownTableException


class FieldService:
    """Hive asks some serde classes for the columns; here they are always those that are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def columns(self, name: TableName) -> list[FieldSchema]:
        """Without partition keys. Raises UnknownTableException `db.t table not found`, MetaException."""
        table = self._table(name)
        return (table.sd.cols if table.sd else None) or []

    def columns_and_keys(self, name: TableName) -> list[FieldSchema]:
        """With partition keys, last. Raises as `columns`."""
        table = self._table(name)
        return [*((table.sd.cols if table.sd else None) or []), *(table.partitionKeys or [])]

    def _table(self, name: TableName) -> Table:
        # Callers may ask for `table.column`.
        tbl_name = required(name.tbl_name, "table name").partition(".")[0]
        try:
            return self._store.read(TableName(name.db_name, tbl_name).load).table
        except NoSuchObjectException as error:
            raise UnknownTableException(error.message) from error
