"""Exceptions that the other scripts do not come by."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    CommitTxnRequest,
    DropPartitionsExpr,
    DropPartitionsRequest,
    HeartbeatRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    Index,
    OpenTxnRequest,
    PartitionValuesRequest,
    PrivilegeBag,
    PrivilegeGrantInfo,
    RequestPartsSpec,
    SetPartitionsStatsRequest,
    ShowLocksRequest,
    SQLForeignKey,
    SQLPrimaryKey,
)
from hms_gateway.rpc.structs import FieldSchema as Column
from tests.comparison.ids import lock, txn
from tests.comparison.objects import SOME_KEYS, database, descriptor, partition, table, view
from tests.comparison.scripts.locking import EXCLUSIVE, UPDATE, component, request
from tests.comparison.scripts.privileges import DATABASE, USER
from tests.comparison.scripts.statistics import statistics
from tests.comparison.servers import Step, call


def steps() -> Iterator[Step]:
    yield call("create_database", database("refusing"))
    yield call("create_table", table("refusing", "t", SOME_KEYS))
    yield call("create_table", table("refusing", "flat"))
    yield call("append_partition", "refusing", "t", ["a", "1"])
    for given in (
        statistics("nosuch", "id", db_name="refusing"),
        statistics("nosuch", "id", db_name="refusing", part_name="ds=a/hr=1"),
        statistics("t", "id", db_name="refusing", part_name="ds=b/hr=1"),
        statistics("t", "nosuch", db_name="refusing", part_name="ds=a/hr=1"),
        statistics("flat", "nosuch", db_name="refusing"),
        statistics("t", "id", db_name="refusing", part_name="nonsense"),
    ):
        yield call("set_aggr_stats_for", SetPartitionsStatsRequest([given]))
        yield call("update_partition_column_statistics", given)
        yield call("update_table_column_statistics", given)
    for parts in (
        RequestPartsSpec(),
        RequestPartsSpec([]),
        RequestPartsSpec(["nonsense"]),
        RequestPartsSpec([""]),
        RequestPartsSpec(exprs=[]),
        RequestPartsSpec(exprs=[DropPartitionsExpr(b"junk")]),
    ):
        for if_exists in (True, False):
            yield call("drop_partitions_req", DropPartitionsRequest("refusing", "t", parts, True, if_exists))
    for tbl_name in ("t", "flat", "nosuch"):
        request = PartitionValuesRequest("refusing", tbl_name, [Column("ds", "string")], filter="nokey = 1")
        yield call("get_partition_values", request)
        yield call("get_partition_values", PartitionValuesRequest("refusing", tbl_name, [Column("nosuch", "string")]))
    yield call("get_partition_values", None)
    yield call("drop_type", "nosuch")
    yield call("drop_type", None)
    for source in ("nosuch", "flat", "t"):
        for target in ("nosuch", "flat", "t"):
            yield call("exchange_partition", {"ds": "a", "hr": "1"}, "refusing", source, "refusing", target)
    yield call("add_partition", partition("refusing", "t", ["a", "1"], sd=None))
    yield call("partition_name_has_valid_characters", None, True)
    for db_name in ("nosuch", "refusing"):
        yield call("get_fields", db_name, "nosuch")
    for method in ("get_partitions", "get_partition_names", "get_partitions_pspec"):
        yield call(method, "refusing", "t", -2)
    for values in ([""], ["", ""], ["x"]):
        yield call("get_partitions_ps", "refusing", "flat", values, -1)
    yield call("create_table", table("refusing", "turned"))
    turned = view("refusing", "turned", location="{elsewhere}/turned")
    yield call("alter_table", "refusing", "turned", turned)
    yield call("append_partition_by_name", "refusing", "turned", "ds=é%2Fx%3D1/hr=01")
    yield call("get_table", "refusing", "turned")
    yield call("set_ugi", None, None)
    yield call("list_roles", "ann", 99)
    yield call("list_privileges", "ann", 99, None)
    yield from _privileges()
    yield from _of_databases()
    yield from _keys()


def _privileges() -> Iterator[Step]:
    """Nothing may follow the last one: Hive has revoked something."""

    def bag(privilege: str, db_name: str = "refusing") -> PrivilegeBag:
        info = PrivilegeGrantInfo(privilege, 0, "admin", USER, True)
        return PrivilegeBag([HiveObjectPrivilege(HiveObjectRef(DATABASE, db_name), "ann", USER, info)])

    yield call("grant_privileges", bag("select", "nosuch"))
    yield call("grant_privileges", bag("select"))
    yield call("revoke_privileges", bag("insert,select"))
    yield call("revoke_privileges", bag("select,insert"))


def _of_databases() -> Iterator[Step]:
    """A transaction that has a whole database for itself."""
    yield call("open_txns", OpenTxnRequest(1, "ann", "somewhere"))
    wanted = component(EXCLUSIVE, "refusing", operationType=UPDATE)
    yield call("lock", request(wanted, txn_id=txn(1)))
    yield call("heartbeat", HeartbeatRequest(lock(1), txn(1)))
    yield call("show_locks", ShowLocksRequest("refusing"))
    yield call("commit_txn", CommitTxnRequest(txn(1)))


def _keys() -> Iterator[Step]:
    key = SQLPrimaryKey("refusing", "t", "ds", 1, "refused_key", True, False, True)
    yield call("add_primary_key", AddPrimaryKeyRequest([key]))
    yield call("create_table", table("refusing", "referring"))
    ends = ("refusing", "flat", "id", "refusing", "referring", "id")
    foreign = SQLForeignKey(*ends, 1, 0, 0, "refused_reference", "any", True, False, False)
    yield call("add_foreign_key", AddForeignKeyRequest([foreign]))
    pairs = (("id", "bigint"), ("name", "string"), ("more", "int"))
    changed = table("refusing", "referring", pairs=pairs, location="{warehouse}/refusing.db/referring")
    yield call("alter_table", "refusing", "referring", changed)
    key = SQLPrimaryKey("refusing", "keyed", "id", 1, "kept_key", True, False, True)
    yield call("create_table_with_constraints", table("refusing", "keyed"), [key], [])
    yield call("drop_table", " refusing ", "keyed", True)
    made = Index("idx", "a.Handler", "refusing", "flat", 0, 0, "idx_table", descriptor(), {}, True)
    yield call("add_index", made, table("refusing", "idx_table", tableType="INDEX_TABLE"))
    yield call("drop_database", "refusing", True, True)
