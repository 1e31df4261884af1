"""Catalogs of 3.1, and databases, tables, partitions, constraints, functions, grants and events in two of them."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    AddPrimaryKeyRequest,
    AlterCatalogRequest,
    Catalog,
    CreateCatalogRequest,
    DropCatalogRequest,
    DropConstraintRequest,
    Function,
    GetCatalogRequest,
    GetTableRequest,
    GetTablesRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    NotificationEventRequest,
    PrimaryKeysRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SQLPrimaryKey,
)
from tests.comparison.objects import SOME_KEYS, database, partition, table
from tests.comparison.servers import Step, call

PLACE = "{warehouse}/spark"


def steps() -> Iterator[Step]:
    yield from _create()
    yield from _databases()
    yield from _tables()
    yield from _partitions()
    yield from _other_objects()
    yield from _moves()
    yield from _change()
    yield from _drop()
    yield call("get_next_notification", NotificationEventRequest(0, 100))


def _create() -> Iterator[Step]:
    yield call("get_catalogs")
    for name in ("spark", "SPARK", "hive", "Hive", "a b", "a-b", "", "sp#ark", "@spark"):
        yield call("create_catalog", CreateCatalogRequest(Catalog(name, "words", PLACE)))
    yield call("create_catalog", CreateCatalogRequest(Catalog("nowhere", "words")))
    yield call("create_catalog", CreateCatalogRequest(Catalog("Mixed", None, "{elsewhere}/mixed")))
    yield call("get_catalogs")
    for name in ("spark", " Spark ", "mixed", "hive", "missing", ""):
        yield call("get_catalog", GetCatalogRequest(name))
    for name in ("@spark#default", "@mixed#default", "default", "@missing#default", "@spark", "@#default"):
        yield call("get_database", name)


def _databases() -> Iterator[Step]:
    yield call("create_database", database("sales", catalogName="spark", parameters={"k": "v"}))
    yield call("create_database", database("Sales", catalogName="SPARK"))
    yield call("create_database", database("sales", description="of hive"))
    yield call("create_database", database("placed", catalogName="spark", locationUri="{elsewhere}/placed"))
    for name in ("a#b", "@spark#b", "a b", ""):
        yield call("create_database", database(name, catalogName="spark"))
    yield call("create_database", database("sales", catalogName="missing"))
    for name in (
        "@spark#sales",
        "@SPARK#SALES",
        "@hive#sales",
        "sales",
        "@spark#placed",
        "@spark#missing",
        "spark#sales",
    ):
        yield call("get_database", name)
    for pattern in ("@spark#", "@spark#*", "@spark#!", "@spark#s*|d*", "@mixed#*", "@missing#*", "@hive#", "*", "s*"):
        yield call("get_databases", pattern)
    for pattern in ("@spark#x|sales", "sales|@spark#*", ".spark#*", "*#*", "@spark#@spark#*"):
        yield call("get_databases", pattern)
    yield call("get_all_databases")
    yield call(
        "alter_database", "@spark#sales", database("sales", parameters={"k2": "v2"}, ownerName="bob", ownerType=1)
    )
    yield call("get_database", "@spark#sales")
    yield call("get_database", "sales")


def _tables() -> Iterator[Step]:
    yield call("create_table", table("sales", "orders", SOME_KEYS, catName="spark"))
    yield call("create_table", table("SALES", "Orders", SOME_KEYS, catName="Spark"))
    yield call("create_table", table("missing", "orders", catName="spark"))
    yield call("create_table", table("sales", "orders", catName="missing"))
    for name in ("@spark#sales", "@hive#sales", "sales", "@missing#sales", "@spark#missing", "spark#sales"):
        yield call("get_table", name, "orders")
        yield call("get_all_tables", name)
        yield call("get_tables", name, "o*")
    for catalog in ("spark", "hive", "missing", None):
        yield call("get_table_req", GetTableRequest("sales", "orders", catName=catalog))
        yield call("get_table_objects_by_name_req", GetTablesRequest("sales", ["orders"], catName=catalog))
    for pattern in ("@spark#*", "@spark#s*", "@hive#*", "*", "@missing#*"):
        yield call("get_table_meta", pattern, "*", [])


def _partitions() -> Iterator[Step]:
    yield call("add_partition", partition("sales", "orders", ["a", "1"], catName="spark"))
    yield call("add_partition", partition("sales", "orders", ["a", "1"], catName="hive"))
    yield call("add_partition", partition("sales", "orders", ["a", "1"], catName="spark"))
    for name in ("@spark#sales", "sales"):
        yield call("get_partition", name, "orders", ["a", "1"])
        yield call("get_partition_by_name", name, "orders", "ds=a/hr=1")
        yield call("get_partitions", name, "orders", -1)
        yield call("get_partition_names", name, "orders", -1)
        yield call("get_partitions_by_names", name, "orders", ["ds=a/hr=1"])
        yield call("drop_partition", name, "orders", ["b", "1"], False)


def _other_objects() -> Iterator[Step]:
    yield call(
        "add_primary_key", AddPrimaryKeyRequest([SQLPrimaryKey("sales", "orders", "id", 1, "pk", catName="spark")])
    )
    for catalog in ("spark", "hive"):
        yield call("get_primary_keys", PrimaryKeysRequest("sales", "orders", catName=catalog))
    yield call("drop_constraint", DropConstraintRequest("sales", "orders", "pk", catName="spark"))
    yield call("get_primary_keys", PrimaryKeysRequest("sales", "orders", catName="spark"))
    yield call("create_function", Function("f", "sales", "x.Y", "bob", 1, 0, 1, [], catName="spark"))
    for name in ("@spark#sales", "sales"):
        yield call("get_function", name, "f")
        yield call("get_functions", name, "*")
    yield call("get_all_functions")
    yield call("drop_function", "@spark#sales", "f")
    yield call("grant_privileges", PrivilegeBag([_granted("spark")]))
    for catalog in ("spark", "hive"):
        ref = HiveObjectRef(HiveObjectType.TABLE, "sales", "orders", catName=catalog)
        yield call("get_privilege_set", ref, "bob", [])
        yield call("list_privileges", "bob", PrincipalType.USER, ref)
    yield call("revoke_privileges", PrivilegeBag([_granted("spark")]))


def _granted(catalog: str) -> HiveObjectPrivilege:
    ref = HiveObjectRef(HiveObjectType.TABLE, "sales", "orders", catName=catalog)
    info = PrivilegeGrantInfo("SELECT", 0, "ann", PrincipalType.USER, False)
    return HiveObjectPrivilege(ref, "bob", PrincipalType.USER, info, "SQL")


def _moves() -> Iterator[Step]:
    """A table keeps its catalog, also where the new one does not say it."""
    here = f"{PLACE}/sales.db/orders"
    yield call("alter_table", "@spark#sales", "orders", table("sales", "orders", SOME_KEYS, location=here))
    yield call("alter_table", "@spark#sales", "orders", table("sales", "sold", SOME_KEYS, location=here))
    for catalog in ("hive", "mixed"):
        moved = table("sales", "sold", SOME_KEYS, location=here, catName=catalog)
        yield call("alter_table", "@spark#sales", "sold", moved)
    yield call("get_all_tables", "@spark#sales")
    yield call("get_all_tables", "sales")
    yield call("drop_table", "@spark#sales", "sold", True)
    yield call("get_all_tables", "@spark#sales")


def _change() -> Iterator[Step]:
    for new in (
        Catalog("spark", "other words", PLACE),
        Catalog("spark"),
        Catalog("SPARK", "words", PLACE),
        Catalog("other", "words", PLACE),
        Catalog("spark", None, "{warehouse}/later"),
    ):
        yield call("alter_catalog", AlterCatalogRequest("spark", new))
        yield call("get_catalog", GetCatalogRequest("spark"))
    yield call("alter_catalog", AlterCatalogRequest("missing", Catalog("missing", "words", PLACE)))
    yield call("create_database", database("late", catalogName="spark"))
    yield call("get_database", "@spark#late")


def _drop() -> Iterator[Step]:
    for name in ("missing", "hive", "HIVE", "spark"):
        yield call("drop_catalog", DropCatalogRequest(name))
    yield call("create_table", table("default", "t", catName="mixed"))
    yield call("drop_catalog", DropCatalogRequest("mixed"))
    yield call("drop_table", "@mixed#default", "t", True)
    yield call("drop_catalog", DropCatalogRequest("Mixed"))
    for name in ("sales", "placed", "late"):
        yield call("drop_database", f"@spark#{name}", True, False)
    yield call("drop_database", "@spark#default", True, False)
    yield call("get_databases", "@spark#")
    yield call("drop_catalog", DropCatalogRequest("spark"))
    yield call("get_catalogs")
    yield call("get_all_databases")
