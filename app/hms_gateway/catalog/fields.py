"""The columns of a table, as get_fields and get_schema answer them (semantics §2.5)."""

from hms_gateway.catalog.arguments import table_in, table_named
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Store
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    EnvironmentContext,
    FieldSchema,
    GetFieldsRequest,
    GetFieldsResponse,
    GetSchemaRequest,
    GetSchemaResponse,
    NoSuchObjectException,
    Table,
    UnknownTableException,
)


class Fields:
    """Hive asks some serde classes for the columns; here they are always those that are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_fields(self, call: Call, db_name: str, table_name: str) -> list[FieldSchema]:
        return _columns(self._table(table_named(db_name, table_name)))

    def get_fields_with_environment_context(
        self, call: Call, db_name: str, table_name: str, environment_context: EnvironmentContext
    ) -> list[FieldSchema]:
        return self.get_fields(call, db_name, table_name)

    def get_fields_req(self, call: Call, req: GetFieldsRequest) -> GetFieldsResponse:
        request = required(req, "req")
        return GetFieldsResponse(_columns(self._table(table_in(request.catName, request.dbName, request.tblName))))

    def get_schema(self, call: Call, db_name: str, table_name: str) -> list[FieldSchema]:
        """Columns, and partition keys behind them."""
        return _columns_and_keys(self._table(table_named(db_name, table_name)))

    def get_schema_with_environment_context(
        self, call: Call, db_name: str, table_name: str, environment_context: EnvironmentContext
    ) -> list[FieldSchema]:
        return self.get_schema(call, db_name, table_name)

    def get_schema_req(self, call: Call, req: GetSchemaRequest) -> GetSchemaResponse:
        request = required(req, "req")
        table = self._table(table_in(request.catName, request.dbName, request.tblName))
        return GetSchemaResponse(_columns_and_keys(table))

    def _table(self, name: TableName) -> Table:
        # Callers may ask for `table.column`.
        tbl_name = required(name.tbl_name, "table name").partition(".")[0]
        try:
            return self._store.read(TableName(name.db_name, tbl_name).load).table
        except NoSuchObjectException as error:
            raise UnknownTableException(error.message) from error


def _columns(table: Table) -> list[FieldSchema]:
    return (table.sd.cols if table.sd else None) or []


def _columns_and_keys(table: Table) -> list[FieldSchema]:
    return [*_columns(table), *(table.partitionKeys or [])]
