"""Each method with each of its texts in turn null, empty, unknown, in capitals, with odd characters, and too long."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    DropConstraintRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    FieldSchema,
    ForeignKeysRequest,
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GetTableRequest,
    GetTablesRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    Index,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    PrivilegeBag,
    PrivilegeGrantInfo,
    RequestPartsSpec,
    Role,
    SetPartitionsStatsRequest,
    SQLForeignKey,
    SQLPrimaryKey,
    TableStatsRequest,
    Type,
)
from tests.comparison.objects import SOME_KEYS, database, descriptor, partition, table
from tests.comparison.scripts.functions import function
from tests.comparison.scripts.privileges import TABLE, USER
from tests.comparison.scripts.service import LOAD_DONE
from tests.comparison.scripts.statistics import statistics
from tests.comparison.servers import Step, call

OVERLONG = "n" * 800
DEPTH = 2
PART, FLAT = ("odd", "part"), ("odd", "flat")
HERE = EnvironmentContext({"a": "b"})


def steps() -> Iterator[Step]:
    yield from _catalog()
    for example in _reading():
        yield from varied(example)
    for example in _changing():
        yield from varied(example)
        yield from _catalog()
    yield call("drop_database", "odd", True, True)


def varied(example: Step) -> Iterator[Step]:
    """The call as it is, then with one text of it replaced at a time."""
    yield example
    # A function that was renamed to what Hive refuses could not be renamed back.
    overlong = () if example.method == "alter_function" else (f"{OVERLONG}{example.method}",)
    for path in _places(example.request):
        for replacement in _replacements(_at(example.request, path), overlong):
            yield Step(example.method, _replaced(example.request, path, replacement))
            yield from _again(example.method)


def _again(method: str) -> Iterator[Step]:
    """What a variation may have renamed."""
    if method.startswith("alter_table"):
        yield call("create_table", table(*FLAT))
    if method == "alter_function":
        for name in ("g", "no_such"):
            yield call("drop_function", "odd", name)
        yield call("create_function", function("g", dbName="odd"))


def _places(request: Mapping[str, Any], prefix: tuple[Any, ...] = (), depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """Where in a request there are structs, lists and texts, two structs deep; of a list its first element."""
    for number, tagged in request.items():
        ((tag, value),) = tagged.items()
        if tag in ("str", "lst", "map", "rec"):
            yield (*prefix, number)
        if tag == "rec" and depth < DEPTH:
            yield from _places(value, (*prefix, number, "rec"), depth + 1)
        if tag == "lst" and len(value) > 2 and value[0] == "str":
            yield (*prefix, number, "lst", 2)
        if tag == "lst" and len(value) > 2 and value[0] == "rec" and depth < DEPTH:
            yield from _places(value[2], (*prefix, number, "lst", 2), depth + 1)


def _replacements(value: Any, overlong: tuple[str, ...]) -> Iterator[Any]:
    """None leaves the field out; an element of a list cannot be."""
    if isinstance(value, dict):
        yield None
        if "str" in value:
            yield from ({"str": text} for text in (*_texts(value["str"]), *overlong))
        if "lst" in value:
            yield {"lst": [value["lst"][0], 0]}
    else:
        yield from (*_texts(value), *overlong)


def _texts(text: str) -> tuple[str, ...]:
    return ("", "no_such", text.upper(), f" {text} ", "ünï😀", "tab\tbed")


def _at(request: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        request = request[key]
    return request


def _replaced(request: Mapping[str, Any], path: tuple[Any, ...], replacement: Any) -> dict[str, Any]:
    changed = deepcopy(dict(request))
    inner = _at(changed, path[:-1])
    if replacement is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = replacement
    return changed


def _catalog() -> Iterator[Step]:
    """What the examples are about, made again where they took it away."""
    yield call("create_database", database("odd"))
    yield call("create_table", table(*PART, SOME_KEYS))
    yield call("create_table", table(*FLAT))
    yield call("append_partition", *PART, ["a", "1"])
    yield call("create_function", function("f", dbName="odd"))
    yield call("create_role", Role("odd_role", 0, "somebody"))


def _bag() -> PrivilegeBag:
    grant = PrivilegeGrantInfo("select", 0, "admin", USER, True)
    return PrivilegeBag([HiveObjectPrivilege(HiveObjectRef(TABLE, *FLAT), "ann", USER, grant)])


def _reading() -> Iterator[Step]:
    for method in ("getMetaConf", "get_config_value", "getOption", "getCounter"):
        yield call(method, "hive.metastore.try.direct.sql", *(["default"] if method == "get_config_value" else []))
    yield call("get_database", "odd")
    yield call("get_databases", "od*")
    yield call("get_type", "pair")
    yield call("get_type_all", "pair")
    for method in ("get_fields", "get_schema"):
        yield call(method, *FLAT)
        yield call(f"{method}_with_environment_context", *FLAT, HERE)
    yield call("get_tables", "odd", "fl*")
    yield call("get_tables_by_type", "odd", "fl*", "MANAGED_TABLE")
    yield call("get_table_meta", "od*", "fl*", ["MANAGED_TABLE"])
    yield call("get_all_tables", "odd")
    yield call("get_table", *FLAT)
    yield call("get_table_req", GetTableRequest(*FLAT))
    yield call("get_table_objects_by_name", "odd", ["flat"])
    yield call("get_table_objects_by_name_req", GetTablesRequest("odd", ["flat"]))
    yield call("get_table_names_by_filter", "odd", 'hive_filter_field_owner__ = "somebody"', -1)
    yield from _reading_partitions()
    yield call("partition_name_has_valid_characters", ["a", "b"], True)
    yield call("partition_name_to_vals", "ds=a/hr=1")
    yield call("partition_name_to_spec", "ds=a/hr=1")
    yield call("isPartitionMarkedForEvent", *PART, {"ds": "a", "hr": "1"}, LOAD_DONE)
    for method in ("get_indexes", "get_index_names"):
        yield call(method, *FLAT, -1)
    yield call("get_index_by_name", *FLAT, "idx")
    yield call("get_primary_keys", PrimaryKeysRequest(*FLAT))
    yield call("get_foreign_keys", ForeignKeysRequest(*FLAT, *FLAT))
    yield from _reading_statistics()
    yield call("get_functions", "odd", "f*")
    yield call("get_function", "odd", "f")
    yield call("list_roles", "ann", USER)
    yield call("get_principals_in_role", GetPrincipalsInRoleRequest("odd_role"))
    yield call("get_role_grants_for_principal", GetRoleGrantsForPrincipalRequest("ann", USER))
    yield call("get_privilege_set", HiveObjectRef(TABLE, *FLAT), "ann", ["staff"])
    yield call("list_privileges", "ann", USER, HiveObjectRef(TABLE, *FLAT))
    yield call("get_token", "odd")


def _reading_partitions() -> Iterator[Step]:
    who = ("ann", ["staff"])
    yield call("get_partition", *PART, ["a", "1"])
    yield call("get_partition_with_auth", *PART, ["a", "1"], *who)
    yield call("get_partition_by_name", *PART, "ds=a/hr=1")
    for method in ("get_partitions", "get_partitions_pspec", "get_partition_names"):
        yield call(method, *PART, -1)
    yield call("get_partitions_with_auth", *PART, -1, *who)
    yield call("get_partitions_ps", *PART, ["a"], -1)
    yield call("get_partitions_ps_with_auth", *PART, ["a"], -1, *who)
    yield call("get_partition_names_ps", *PART, ["a"], -1)
    yield call("get_partitions_by_filter", *PART, "ds = 'a'", -1)
    yield call("get_part_specs_by_filter", *PART, "ds = 'a'", -1)
    yield call("get_num_partitions_by_filter", *PART, "ds = 'a'")
    yield call("get_partitions_by_names", *PART, ["ds=a/hr=1"])


def _reading_statistics() -> Iterator[Step]:
    yield call("get_table_column_statistics", *FLAT, "id")
    yield call("get_partition_column_statistics", *PART, "ds=a/hr=1", "id")
    yield call("get_table_statistics_req", TableStatsRequest(*FLAT, ["id"]))
    yield call("get_partitions_statistics_req", PartitionsStatsRequest(*PART, ["id"], ["ds=a/hr=1"]))
    yield call("get_aggr_stats_for", PartitionsStatsRequest(*PART, ["id"], ["ds=a/hr=1"]))


def _changing() -> Iterator[Step]:
    key = SQLPrimaryKey(*FLAT, "id", 1, "pk_of_flat", True, False, True)
    yield call("add_primary_key", AddPrimaryKeyRequest([key]))
    yield call("drop_constraint", DropConstraintRequest(*FLAT, "pk_of_flat"))
    yield call("alter_database", "odd", database("odd", description="a", parameters={"a": "b"}, ownerName="ann"))
    yield call("create_type", Type("made", fields=[FieldSchema("a", "int", None)]))
    yield call("drop_type", "made")
    moved = table("odd", "flat", location="{warehouse}/odd.db/flat", parameters={"a": "c"})
    yield call("alter_table", *FLAT, moved)
    yield call("alter_table_with_environment_context", *FLAT, moved, HERE)
    yield call("alter_table_with_cascade", *FLAT, moved, True)
    yield from _changing_partitions()
    yield from _changing_small_objects()
    for method in ("create_table", "create_table_with_environment_context"):
        context = [HERE] if method.endswith("context") else []
        yield call(method, table("odd", f"by_{method}", viewOriginalText="", viewExpandedText=""), *context)
    keys = [SQLPrimaryKey("odd", "keyed", "id", 1, "pk_of_keyed", True, False, True)]
    yield call("create_table_with_constraints", table("odd", "keyed"), keys, [])
    for method in ("drop_table", "drop_table_with_environment_context"):
        yield call(method, *FLAT, True, *([HERE] if method.endswith("context") else []))
    yield call("drop_database", "odd", True, True)
    yield call("create_database", database("made", description="a", locationUri="{elsewhere}/made", ownerName="ann"))


def _changing_partitions() -> Iterator[Step]:
    yield call("add_partition", partition(*PART, ["b", "1"]))
    yield call("add_partition_with_environment_context", partition(*PART, ["c", "1"]), HERE)
    yield call("add_partitions", [partition(*PART, ["d", "1"])])
    composed = PartitionListComposingSpec([partition(*PART, ["e", "1"], location="{warehouse}/odd.db/part/ds=e/hr=1")])
    spec = PartitionSpec(*PART, "{warehouse}/odd.db/part", partitionList=composed)
    yield call("add_partitions_pspec", [spec])
    yield call("add_partitions_req", AddPartitionsRequest(*PART, [partition(*PART, ["f", "1"])], False))
    yield call("append_partition", *PART, ["g", "1"])
    yield call("append_partition_with_environment_context", *PART, ["h", "1"], HERE)
    yield call("append_partition_by_name", *PART, "ds=i/hr=1")
    yield call("append_partition_by_name_with_environment_context", *PART, "ds=j/hr=1", HERE)
    placed = partition(*PART, ["a", "1"], location="{warehouse}/odd.db/part/ds=a/hr=1", parameters={"a": "b"})
    yield call("alter_partition", *PART, placed)
    yield call("alter_partition_with_environment_context", *PART, placed, HERE)
    yield call("alter_partitions", *PART, [placed])
    yield call("alter_partitions_with_environment_context", *PART, [placed], HERE)
    yield call("rename_partition", *PART, ["a", "1"], partition(*PART, ["k", "1"]))
    yield call("markPartitionForEvent", *PART, {"ds": "a", "hr": "1"}, LOAD_DONE)
    for method in ("exchange_partition", "exchange_partitions"):
        yield call(method, {"ds": "a", "hr": "1"}, *PART, "odd", "flat")
    yield call("drop_partition", *PART, ["b", "1"], True)
    yield call("drop_partition_with_environment_context", *PART, ["c", "1"], True, HERE)
    yield call("drop_partition_by_name", *PART, "ds=d/hr=1", True)
    yield call("drop_partition_by_name_with_environment_context", *PART, "ds=e/hr=1", True, HERE)
    yield call("drop_partitions_req", DropPartitionsRequest(*PART, RequestPartsSpec(["ds=f/hr=1"]), True, True))


def _changing_small_objects() -> Iterator[Step]:
    made = Index("idx", "a.Handler", *FLAT, 0, 0, "idx_table", descriptor(), {"a": "b"}, True)
    yield call("add_index", made, table("odd", "idx_table", tableType="INDEX_TABLE"))
    yield call("alter_index", *FLAT, "idx", made)
    yield call("drop_index_by_name", *FLAT, "idx", True)
    key = SQLPrimaryKey(*FLAT, "id", 1, "pk", True, False, True)
    yield call("add_primary_key", AddPrimaryKeyRequest([key]))
    foreign = SQLForeignKey(*FLAT, "id", *FLAT, "id", 1, 0, 0, "fk", "pk", True, False, False)
    yield call("add_foreign_key", AddForeignKeyRequest([foreign]))
    yield call("update_table_column_statistics", statistics("flat", "id", db_name="odd"))
    yield call("update_partition_column_statistics", statistics("part", "id", part_name="ds=a/hr=1", db_name="odd"))
    of_partition = statistics("part", "id", part_name="ds=a/hr=1", db_name="odd")
    yield call("set_aggr_stats_for", SetPartitionsStatsRequest([of_partition]))
    yield call("delete_partition_column_statistics", *PART, "ds=a/hr=1", "id")
    yield call("delete_table_column_statistics", *FLAT, "id")
    yield call("create_function", function("g", dbName="odd"))
    yield call("alter_function", "odd", "g", function("g", dbName="odd", className="c.D"))
    yield call("drop_function", "odd", "f")
    yield call("create_role", Role("made", 0, "somebody"))
    yield call("grant_role", "odd_role", "ann", USER, "admin", USER, True)
    yield call("revoke_role", "odd_role", "ann", USER)
    yield call("grant_revoke_role", GrantRevokeRoleRequest(1, "odd_role", "ben", USER, "admin", USER, False))
    yield call("drop_role", "made")
    yield call("grant_privileges", _bag())
    yield call("revoke_privileges", _bag())
    yield call("grant_revoke_privileges", GrantRevokePrivilegeRequest(1, _bag()))
    yield call("add_token", "odd", "token")
    yield call("remove_token", "odd")
