"""Which databases and tables a call names."""

import pytest

from hms_gateway.rpc.objects import OBJECTS_MAX, objects_of
from hms_gateway.rpc.structs import (
    METHODS,
    AddForeignKeyRequest,
    CompactionInfoStruct,
    Database,
    DropDatabaseRequest,
    EnvironmentContext,
    Function,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    LeaseObject,
    LockComponent,
    LockRequest,
    NotificationEventRequest,
    Partition,
    PrivilegeBag,
    ShowLocksRequest,
    SQLForeignKey,
    StorageDescriptor,
    Table,
)

TABLE = Table(dbName="Sales", tableName="Orders", sd=StorageDescriptor(), parameters={"dbName": "x"})
REFERENCE = HiveObjectRef(dbName="A", objectName="b")
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
    ("get_next_notification", {"rqst": NotificationEventRequest(1, dbName="a", tableNames=["b"])}, ("a.b",)),
    ("show_locks", {"rqst": ShowLocksRequest(dbname="A", tablename="b")}, ("a.b",)),
    ("grab_lease", {"objs": [LeaseObject(db_name="a", table_name="b")]}, ("a.b",)),
    ("mark_failed", {"cr": CompactionInfoStruct(dbname="a", tablename="b")}, ("a.b",)),
    ("alter_table", {"dbname": "a", "tbl_name": "b", "new_tbl": Table(tableName="c")}, ("a.b", "a.c")),
    ("get_fields", {"db_name": "a", "table_name": "b.column"}, ("a.b",)),
    ("add_write_ids_to_min_history", {"txnId": 1, "writeIds": {"a.b": 1}}, ("a.b",)),
    ("grant_privileges", {"privileges": PrivilegeBag([HiveObjectPrivilege(REFERENCE)])}, ("a.b",)),
    ("list_privileges", {"hiveObject": REFERENCE}, ("a.b",)),
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
        ("c.d", "a.b"),
    ),
    (
        "drop_table_with_environment_context",
        {"dbname": "a", "name": "b", "environment_context": EnvironmentContext(properties={"db": "x"})},
        ("a.b",),
    ),
]


@pytest.mark.parametrize(("method", "arguments", "objects"), CASES)
def test_objects_are_found_in_arguments_and_in_what_is_inside_of_them(method, arguments, objects):
    assert objects_of(method, METHODS[method].arguments(**arguments)) == objects


def test_a_call_about_very_many_names_the_first_ones():
    names = [f"t{number}" for number in range(1_000)]
    arguments = METHODS["get_table_objects_by_name"].arguments(dbname="a", tbl_names=names)
    assert objects_of("get_table_objects_by_name", arguments) == tuple(f"a.{name}" for name in names[:OBJECTS_MAX])


def test_arguments_of_every_method_can_be_looked_through():
    for method in METHODS.values():
        assert objects_of(method.name, method.arguments()) == ()
