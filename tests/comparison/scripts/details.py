"""Details of single calls: what descriptors, functions and keys lack, and parts of answers that few clients read."""

from collections.abc import Iterator
from typing import Any

from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    DropConstraintRequest,
    EnvironmentContext,
    ForeignKeysRequest,
    Function,
    FunctionType,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionValuesRequest,
    PrimaryKeysRequest,
    PrincipalType,
    ResourceType,
    ResourceUri,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.structs import FieldSchema as Column
from tests.comparison.objects import SOME_KEYS, Columns, database, descriptor, external, partition, table, view
from tests.comparison.servers import Step, call

DB = "details"
HERE = f"{{warehouse}}/{DB}.db"
ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"
PARAMETER = "hive_filter_field_params__"
ADDED_BY = {
    "add_partition": "new",
    "add_partition_with_environment_context": "new_too",
    "add_partitions": "of_many",
    "add_partitions_req": "of_request",
    "add_partitions_pspec": "of_spec",
}
OWNER = "hive_filter_field_owner__"


def steps() -> Iterator[Step]:
    yield call("create_database", database(DB))
    yield from _incomplete_partitions()
    yield from _partitions_of_views()
    yield from _marked_partitions()
    yield from _functions()
    yield from _renamed_partitions()
    yield from _values_of_no_keys()
    yield from _names_of_keys()
    yield from _columns_of_keys()
    yield from _alternatives()
    yield from _privileges()
    yield from _refused_tables()
    yield from _left_directories()


def _incomplete_partitions() -> Iterator[Step]:
    yield call("create_table", table(DB, "parts", SOME_KEYS))
    yield call("append_partition", DB, "parts", ["there", "1"])
    for sd in (
        descriptor([(None, "string")]),
        descriptor([("id", None)]),
        descriptor([("id", "bigint"), (None, None)]),
        descriptor(serdeInfo=None),
        descriptor([(None, "string")], serdeInfo=None),
    ):
        yield from _added("parts", sd)
        yield call("get_partition_names", DB, "parts", -1)
        sd.location = f"{HERE}/parts/ds=there/hr=1"
        there, gone = (partition(DB, "parts", [value, "1"], sd=sd) for value in ("there", "gone"))
        yield call("alter_partition", DB, "parts", there)
        yield call("alter_partitions", DB, "parts", [there])
        yield call("rename_partition", DB, "parts", ["there", "1"], gone)
        yield call("get_partition", DB, "parts", ["there", "1"])
    for sd in (descriptor([("", "")]), descriptor(cols=None), descriptor(compressed=None, numBuckets=None)):
        yield from _added("parts", sd)
        for value in ADDED_BY.values():
            yield call("get_partition", DB, "parts", [value, "1"])
            yield call("drop_partition", DB, "parts", [value, "1"], True)


def _added(tbl_name: str, sd: StorageDescriptor | None, values_after: tuple[str, ...] = ("1",)) -> Iterator[Step]:
    """By every call that adds partitions, each another one."""
    new = {name: partition(DB, tbl_name, [value, *values_after], sd=sd) for name, value in ADDED_BY.items()}
    yield call("add_partition", new["add_partition"])
    context = EnvironmentContext({"by": "test"})
    yield call("add_partition_with_environment_context", new["add_partition_with_environment_context"], context)
    yield call("add_partitions", [new["add_partitions"]])
    yield call("add_partitions_req", AddPartitionsRequest(DB, tbl_name, [new["add_partitions_req"]], True, True))
    listed = PartitionListComposingSpec([new["add_partitions_pspec"]])
    yield call("add_partitions_pspec", [PartitionSpec(DB, tbl_name, partitionList=listed)])


def _partitions_of_views() -> Iterator[Step]:
    yield call("create_table", view(DB, "looking", partitionKeys=[Column("ds", "string")]))
    for sd in (descriptor(location="{elsewhere}/a"), descriptor(serdeInfo=None), descriptor([(None, "int")])):
        yield from _added("looking", sd, ())
    yield call("get_partitions", DB, "looking", -1)
    yield from _added("looking", descriptor(compressed=None), ())
    for value in ADDED_BY.values():
        yield call("get_partition", DB, "looking", [value])


def _marked_partitions() -> Iterator[Step]:
    """The mark that keeps a table's statistics does nothing in a partition."""
    yield call("create_table", table(DB, "marked", SOME_KEYS))
    for mark in ("true", "false"):
        marked = partition(DB, "marked", [mark, "1"], parameters={"DO_NOT_UPDATE_STATS": mark})
        yield call("add_partition", marked)
        yield call("get_partition", DB, "marked", [mark, "1"])
        yield call("drop_partition", DB, "marked", [mark, "1"], False)
        yield call("add_partition", marked)
        yield call("get_partition", DB, "marked", [mark, "1"])
        marked.sd.location = f"{HERE}/marked/ds={mark}/hr=1"
        yield call("alter_partition", DB, "marked", marked)
        yield call("get_partition", DB, "marked", [mark, "1"])


def _functions() -> Iterator[Step]:
    def function(name: str, **fields: Any) -> Function:
        complete = {
            "functionName": name,
            "dbName": DB,
            "className": "a.Class",
            "ownerName": "somebody",
            "ownerType": PrincipalType.ROLE,
            "createTime": 1,
            "functionType": FunctionType.JAVA,
            "resourceUris": [ResourceUri(ResourceType.JAR, "file:/a.jar")],
        }
        return Function(**{**complete, **fields})

    yield call("create_function", function("one"))
    yield call("create_function", function("two"))
    yield call("alter_function", DB, "one", function("two"))
    yield call("alter_function", DB, "one", function("one", ownerType=None))
    yield call("alter_function", DB, "one", function("one", functionType=None))
    for name in ("one", "two"):
        yield call("get_function", DB, name)
    yield call("create_function", function("no_owner_type", ownerType=None))
    yield call("create_function", function("no_type", functionType=None))


def _renamed_partitions() -> Iterator[Step]:
    for number, names in enumerate(
        ((DB, None), (None, "renamed_1"), (None, None), ("", ""), (DB.upper(), "Renamed_4"))
    ):
        yield call("create_table", table(DB, f"renamed_{number}", SOME_KEYS))
        yield call("append_partition", DB, f"renamed_{number}", ["old", "1"])
        new = partition(*names, ["new", "1"], location=f"{HERE}/renamed_{number}/ds=old/hr=1")
        yield call("rename_partition", DB, f"renamed_{number}", ["old", "1"], new)


def _values_of_no_keys() -> Iterator[Step]:
    for tbl_name in ("parts", "nosuch"):
        yield call("get_partition_values", PartitionValuesRequest(DB, tbl_name, []))


def _names_of_keys() -> Iterator[Step]:
    for name in ("parent", "unkeyed", "child"):
        yield call("create_table", table(DB, name))
    yield call("add_primary_key", AddPrimaryKeyRequest([SQLPrimaryKey("Details", "PARENT", "ID", 1, "The_Key")]))
    yield call("get_primary_keys", PrimaryKeysRequest(DB, "parent"))
    for name, parent, pk_name in (
        ("To_Parent", "Parent", None),
        ("second", "parent", "made_up"),
        ("third", "unkeyed", "x"),
    ):
        key = SQLForeignKey("Details", parent, "Id", "DETAILS", "Child", "ID", 1, 0, 0, name, pk_name, True, True, True)
        yield call("add_foreign_key", AddForeignKeyRequest([key]))
        yield call("get_foreign_keys", ForeignKeysRequest(DB, parent.lower(), DB, "child"))
    yield call("get_foreign_keys", ForeignKeysRequest(None, None, DB, "child"))
    yield call("drop_constraint", DropConstraintRequest(DB, "child", "to_parent"))


def _columns_of_keys() -> Iterator[Step]:
    def keyed(number: int, pairs: Columns) -> Table:
        return table(DB, f"keyed_{number}", (), pairs, location=f"{HERE}/keyed_{number}")

    before = (("id", "bigint"), ("name", "string"))
    for number, after in enumerate(((*before, ("more", "int")), before, (("key", "bigint"), before[1]), before[:1])):
        yield call("create_table", table(DB, f"keyed_{number}"))
        columns = (("id", 1), ("name", 2))
        key = [SQLPrimaryKey(DB, f"keyed_{number}", name, place, f"key_{number}") for name, place in columns]
        yield call("add_primary_key", AddPrimaryKeyRequest(key))
        yield call("alter_table", DB, f"keyed_{number}", keyed(number, after))


def _alternatives() -> Iterator[Step]:
    yield call("create_database", database("filtered"))
    for name, parameters in (("none", ""), ("a", "a"), ("b", "b"), ("both", "ab")):
        yield call("create_table", table("filtered", name, parameters=dict.fromkeys(parameters, "1")))
    for text in (
        f'{PARAMETER}a = "1" and {PARAMETER}b = "1"',
        f'{PARAMETER}a = "1" or {PARAMETER}b = "1"',
        f'{PARAMETER}a = "2" or {PARAMETER}b != "2"',
        f'{PARAMETER}a like "1" or {OWNER} = "somebody"',
        f'({PARAMETER}a = "1" or {PARAMETER}b = "1") and {OWNER} = "somebody"',
    ):
        yield call("get_table_names_by_filter", "filtered", text, -1)


def _privileges() -> Iterator[Step]:
    guarded = table(DB, "guarded", SOME_KEYS, parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"})
    yield call("create_table", guarded)
    yield call("append_partition", DB, "guarded", ["a", "1"])
    yield call("append_partition", DB, "guarded", ["b", "1"])
    for limit in (0, 1, -1):
        yield call("get_partitions_with_auth", DB, "guarded", limit, "somebody", [])
        yield call("get_partitions_ps_with_auth", DB, "guarded", ["a", "1"], limit, "somebody", [])
    users = (
        (None, None),
        (None, []),
        (None, ["some"]),
        ("", []),
        ("", None),
        ("somebody", None),
        ("somebody", ["some"]),
    )
    for user, groups in users:
        yield call("get_partition_with_auth", DB, "guarded", ["a", "1"], user, groups)
        yield call("get_partitions_with_auth", DB, "guarded", -1, user, groups)
        yield call("get_partitions_ps_with_auth", DB, "guarded", ["a"], -1, user, groups)
        yield call("get_partition_with_auth", DB, "parts", ["there", "1"], user, groups)


def _refused_tables() -> Iterator[Step]:
    def acid(name: str, location: str | None, **parameters: str) -> Table:
        sd = descriptor(location=location, inputFormat=f"{ORC}InputFormat", outputFormat=f"{ORC}OutputFormat")
        sd.bucketCols, sd.numBuckets = ["id"], 2
        return table(DB, name, sd=sd, parameters={"transactional": "true", **parameters})

    yield call("create_table", acid("acid", None))
    yield call("create_table", acid("acid_default", None, transactional_properties="default"))
    for value in ("default", "Default", "insert_only", "", "nonsense"):
        for name in ("acid", "acid_default"):
            yield call("alter_table", DB, name, acid(name, f"{HERE}/{name}", transactional_properties=value))
    yield call("alter_table", DB, "acid_default", acid("acid_default", f"{HERE}/acid_default"))
    yield call("get_table", DB, "acid_default")
    yield call("create_table", table(DB, "flat"))
    for name in ("flat", "other"):
        yield call("alter_table", DB, "flat", table("nosuch", name, location=f"{HERE}/flat"))
    renamed = table(DB, "flat", (), [("key", "bigint"), ("name", "string")], location=f"{HERE}/flat")
    renamed.sd.bucketCols, renamed.sd.numBuckets = ["ID"], 2
    yield call("alter_table", DB, "flat", renamed)
    yield call("get_table", DB, "flat")
    typed = table(DB, "typed", ownerType=PrincipalType.ROLE)
    yield call("create_table", typed)
    yield call("get_table", DB, "typed")


def _left_directories() -> Iterator[Step]:
    """What is external stays when its database goes, also where the database's directory is around it."""
    yield call("create_database", database("leaving"))
    yield call("create_table", external("leaving", "outer"))
    yield call("drop_database", "leaving", True, True)
    yield call("create_database", database("leaving"))
    yield call("create_table", table("leaving", "outer"))
    yield call("get_table", "leaving", "outer")
