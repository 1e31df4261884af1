"""Methods on the columns of a table."""

from hms_gateway.catalog.arguments import table_in, table_named
from hms_gateway.catalog.tables.fields import FieldService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    EnvironmentContext,
    FieldSchema,
    GetFieldsRequest,
    GetFieldsResponse,
    GetSchemaRequest,
    GetSchemaResponse,
)


class Fields:
    def __init__(self, fields: FieldService) -> None:
        self._fields = fields

    def get_fields(self, call: Call, db_name: str, table_name: str) -> list[FieldSchema]:
        return self._fields.columns(table_named(db_name, table_name))

    def get_fields_with_environment_context(
        self, call: Call, db_name: str, table_name: str, environment_context: EnvironmentContext
    ) -> list[FieldSchema]:
        return self.get_fields(call, db_name, table_name)

    def get_fields_req(self, call: Call, req: GetFieldsRequest) -> GetFieldsResponse:
        request = required(req, "req")
        name = table_in(request.catName, request.dbName, request.tblName)
        return GetFieldsResponse(self._fields.columns(name))

    def get_schema(self, call: Call, db_name: str, table_name: str) -> list[FieldSchema]:
        return self._fields.columns_and_keys(table_named(db_name, table_name))

    def get_schema_with_environment_context(
        self, call: Call, db_name: str, table_name: str, environment_context: EnvironmentContext
    ) -> list[FieldSchema]:
        return self.get_schema(call, db_name, table_name)

    def get_schema_req(self, call: Call, req: GetSchemaRequest) -> GetSchemaResponse:
        request = required(req, "req")
        name = table_in(request.catName, request.dbName, request.tblName)
        return GetSchemaResponse(self._fields.columns_and_keys(name))
