"""Which databases and tables a call names."""

import pytest

from hms_gateway.rpc.call_objects import OBJECTS_MAX, objects_of
from hms_gateway.structs import (
    METHODS,
    AddForeignKeyRequest,
    Database,
    DropDatabaseRequest,
    EnvironmentContext,
    Function,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    LockComponent,
    LockRequest,
    Partition,
    SQLForeignKey,
    StorageDescriptor,
    Table,
)

TABLE = Table(dbName="Sales", tableName="Orders", sd=StorageDescriptor(), parameters={"dbName": "x"})
CASES = [
    ("get_table", {"dbname": "Sales", "tbl_name": "Orders"}, ("sales.orders",)),
    ("get_table", {"dbname": "@hive#sales", "tbl_name": "orders"}, ("sales.orders",)),
    ("get_table", {}, ()),
    ("get_all_tables", {"db_name": "sales"}, ("sales",)),
    ("get_database", {"name": "Sales"}, ("sales",)),
    ("drop_database_req", {"req": DropDatabaseRequest(name="sales")}, ("sales",)),
    ("get_type", {"name": "sales"}, ()),
    ("create_database", {"database": Database(name="sales")}, ("sales",)),
    ("create_table", {"tbl": TABLE}, ("sales.orders",)),
    ("alter_table", {"dbname": "old", "tbl_name": "name", "new_tbl": TABLE}, ("old.name", "sales.orders")),
    ("add_partitions", {"new_parts": [Partition(dbName="a", tableName="b")] * 3}, ("a.b",)),
    (
        "exchange_partition",
        {"source_db": "a", "source_table_name": "b", "dest_db": "c", "dest_table_name": "d"},
        ("a.b", "c.d"),
    ),
    ("get_table_objects_by_name", {"dbname": "a", "tbl_names": ["B", "c"]}, ("a.b", "a.c")),
    ("get_table_objects_by_name_req", {"req": GetTablesRequest(dbName="a", tblNames=["b"])}, ("a.b",)),
    ("get_valid_write_ids", {"rqst": GetValidWriteIdsRequest(fullTableNames=["A.b"])}, ("a.b",)),
    ("create_function", {"func": Function(dbName="a", functionName="F")}, ("a.f",)),
    (
        "lock",
        {"rqst": LockRequest(component=[LockComponent(dbname="a", tablename="b"), LockComponent(dbname="c")])},
        ("a.b", "c"),
    ),
    (
        "add_foreign_key",
        {
            "req": AddForeignKeyRequest(
                foreignKeyCols=[SQLForeignKey(pktable_db="a", pktable_name="b", fktable_db="c", fktable_name="d")]
            )
        },
        ("a.b", "c.d"),
    ),
    (
        "drop_table_with_environment_context",
        {"dbname": "a", "name": "b", "environment_context": EnvironmentContext(properties={"db": "x"})},
        ("a.b",),
    ),
]


@pytest.mark.parametrize(("method", "arguments", "objects"), CASES)
def test_objects_are_found_in_arguments_and_in_what_is_inside_of_them(method, arguments, objects):
    assert objects_of(METHODS[method].arguments(**arguments)) == objects


def test_a_call_about_very_many_names_the_first_ones():
    names = [f"t{number}" for number in range(1_000)]
    arguments = METHODS["get_table_objects_by_name"].arguments(dbname="a", tbl_names=names)
    assert objects_of(arguments) == tuple(f"a.{name}" for name in names[:OBJECTS_MAX])


def test_arguments_of_every_method_can_be_looked_through():
    for method in METHODS.values():
        assert objects_of(method.arguments()) == ()
