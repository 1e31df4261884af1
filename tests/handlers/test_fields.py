"""The Thrift methods on columns: all spellings give the same answer."""

from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import FieldSchema, GetFieldsRequest, GetSchemaRequest
from tests.support.catalog import Catalog, columns, new_table

CALL = Call("tester")


def test_all_ways_to_ask(catalog: Catalog) -> None:
    catalog.tables.create(new_table(cols=columns("a int"), keys=columns("p string")))
    fields = catalog.fields
    data, all_columns = [FieldSchema("a", "int")], [FieldSchema("a", "int"), FieldSchema("p", "string")]
    assert fields.get_fields(CALL, "@hive#default", "t") == data
    assert fields.get_fields_with_environment_context(CALL, "default", "t", None) == data
    assert fields.get_fields_req(CALL, GetFieldsRequest("hive", "default", "t")).fields == data
    assert fields.get_schema(CALL, "default", "t") == all_columns
    assert fields.get_schema_with_environment_context(CALL, "default", "t", None) == all_columns
    assert fields.get_schema_req(CALL, GetSchemaRequest(None, "default", "t")).fields == all_columns
