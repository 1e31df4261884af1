"""The catalog that bad calls find: one of everything, under the names that `bad_values` puts into good calls."""

from collections.abc import Iterable, Mapping
from typing import Any

from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AddPrimaryKeyRequest,
    AllocateTableWriteIdsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CompactionRequest,
    CreationMetadata,
    Database,
    FieldSchema,
    Function,
    FunctionType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    Index,
    ISchema,
    ISchemaName,
    LeaseObject,
    LockComponent,
    LockRequest,
    LongColumnStatsData,
    OpenTxnRequest,
    Partition,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ReplicationMetricList,
    ReplicationMetrics,
    Role,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryPollRequest,
    SchemaVersion,
    SerDeInfo,
    SQLPrimaryKey,
    Type,
    WMCreateOrUpdateMappingRequest,
    WMCreatePoolRequest,
    WMCreateResourcePlanRequest,
    WMCreateTriggerRequest,
    WMMapping,
    WMPool,
    WMResourcePlan,
    WMTrigger,
)
from hms_gateway.rpc.wire import MessageType
from tests.support.catalog import columns, new_table


def statistics(part_name: str | None) -> ColumnStatistics:
    figures = ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 3, 4))
    described = ColumnStatisticsDesc(part_name is None, "default", "t", part_name)
    return ColumnStatistics(described, [ColumnStatisticsObj("a", "int", figures)])


GRANT = HiveObjectPrivilege(
    HiveObjectRef(HiveObjectType.TABLE, "default", "t"),
    "x",
    PrincipalType.USER,
    PrivilegeGrantInfo("SELECT", 0, "ann", PrincipalType.USER, False),
    "x",
)

# The name of what is asked for must not be taken by what new calls make.
FILLED: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("create_table", (new_table("t", keys=columns("ds string"), location="file:/warehouse/t"),)),
    ("create_table", (new_table("other", keys=columns("ds string")),)),
    ("add_partition", (Partition(["1"], "default", "t", sd=new_table().sd),)),
    ("create_database", (Database("empty", None, "file:/warehouse/empty"),)),
    ("create_function", (Function("f", "default", "a.B", "ann", PrincipalType.USER, 1, FunctionType.JAVA, []),)),
    ("create_type", (Type("x", "a", "b", columns("a int")),)),
    ("create_role", (Role("r", 5, "ann"),)),
    ("add_index", (Index("i", "a.B", "default", "t", 0, 0, "t_i", new_table().sd, {}, False), new_table("t_i"))),
    ("add_primary_key", (AddPrimaryKeyRequest([SQLPrimaryKey("default", "t", "a", 1, "k", True, True, True)]),)),
    ("update_table_column_statistics", (statistics(None),)),
    (
        "create_table",
        (
            new_table(
                "v",
                table_type="MATERIALIZED_VIEW",
                rewriteEnabled=True,
                creationMetadata=CreationMetadata("hive", "default", "v", {"default.t"}),
            ),
        ),
    ),
    ("open_txns", (OpenTxnRequest(2, "ann", "host"),)),
    ("allocate_table_write_ids", (AllocateTableWriteIdsRequest("default", "t", [1]),)),
    ("add_token", ("x", "token")),
    ("add_master_key", ("key",)),
    ("add_serde", (SerDeInfo("serde", "a.B"),)),
    ("create_ischema", (ISchema(name="s", catName="hive", dbName="default"),)),
    ("add_schema_version", (SchemaVersion(ISchemaName("hive", "default", "s"), 1, 1, columns("a int")),)),
    ("create_resource_plan", (WMCreateResourcePlanRequest(WMResourcePlan("plan")),)),
    ("create_wm_pool", (WMCreatePoolRequest(WMPool("plan", "spare", 0.0, 1)),)),
    ("create_ischema", (ISchema(name="unused", dbName="default"),)),
    ("create_wm_trigger", (WMCreateTriggerRequest(WMTrigger("plan", "trigger", "a > 1", "KILL")),)),
    ("create_or_update_wm_mapping", (WMCreateOrUpdateMappingRequest(WMMapping("plan", "USER", "ann"), False),)),
    ("update_partition_column_statistics", (statistics("ds=1"),)),
    ("lock", (LockRequest([LockComponent(1, 2, "default", "t")], None, "ann", "host"),)),
    ("grab_lease", ([LeaseObject("elsewhere")], 1000, 0)),
    ("compact", (CompactionRequest("default", "other", None, 1),)),
    ("find_next_compact", ("x",)),
    ("grant_privileges", (PrivilegeBag([GRANT]),)),
    ("add_runtime_stats", (RuntimeStat(None, 1, b"x"),)),
    ("add_replication_metrics", (ReplicationMetricList([ReplicationMetrics(1, "x", 1)]),)),
    (
        "scheduled_query_maintenance",
        (
            ScheduledQueryMaintenanceRequest(
                1, ScheduledQuery(ScheduledQueryKey("q", "cluster"), True, "0 0 0 * * ?", "ann", "SELECT 1", 1)
            ),
        ),
    ),
    ("scheduled_query_poll", (ScheduledQueryPollRequest("cluster"),)),
)

_NEW_TABLE = {"tableName": "new", "skewedInfo": None, "partitionKeys": [FieldSchema("ds", "string")]}
_NEW_PARTITION = {"values": ["2"], "part_vals": ["2"], "partVals": ["2"], "part_name": "ds=2", "name": None}
_DATABASE = {"name": "default"}


def _each(names: Iterable[str], values: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return dict.fromkeys(names, values)


# What calls have to say so that they get through.
MEANT: dict[str, Mapping[str, Any]] = {
    **_each(
        (
            *("create_table", "create_table_with_environment_context", "create_table_with_constraints"),
            *("create_table_req", "translate_table_dryrun"),
        ),
        _NEW_TABLE | {"table_name": "new", "pktable_name": "t"},
    ),
    **_each(("get_database", "get_database_req", "alter_database", "alter_database_req"), _DATABASE),
    "create_database_req": {"databaseName": "new"},
    **_each(("drop_database", "drop_database_req"), {"name": "empty"}),
    **_each(("drop_table", "drop_table_with_environment_context"), {"name": "t"}),
    **_each(("getMetaConf", "setMetaConf"), {"key": "hive.metastore.try.direct.sql"}),
    "get_config_value": {"name": "hive.stats.autogather"},
    "get_properties": {"mapPredicate": None},
    "get_partitions_with_specs": {"fieldList": ["values"], "filters": ["1"]},
    "translate_condition": {"condition": "ds = '1'"},
    "create_type": {"name": "new"},
    "create_function": {"functionName": "new"},
    "create_role": {"roleName": "new"},
    "create_resource_plan": {"copyFrom": "plan", "name": "new"},
    "create_wm_trigger": {"triggerName": "new"},
    "drop_wm_pool": {"poolPath": "spare"},
    "update_creation_metadata": {"tbl_name": "v"},
    "get_table_names_by_filter": {"filter": 'hive_filter_field_owner__ = "ann"'},
    "drop_constraint": {"constraintname": "k"},
    "add_schema_version": {"version": 2},
    "drop_ischema": {"schemaName": "unused"},
    "scheduled_query_progress": {"scheduledExecutionId": 1},
    **_each(
        (
            *("add_partition", "add_partition_with_environment_context", "add_partitions", "add_partitions_pspec"),
            *("add_partitions_req", "append_partition", "append_partition_with_environment_context"),
            *("append_partition_req", "append_partition_by_name"),
            "append_partition_by_name_with_environment_context",
        ),
        _NEW_PARTITION,
    ),
    **_each(("rename_partition", "rename_partition_req"), {"values": ["2"]}),
    **_each(("exchange_partition", "exchange_partitions"), {"partitionSpecs": {"ds": "1"}, "dest_table_name": "other"}),
    **_each(("markPartitionForEvent", "isPartitionMarkedForEvent"), {"part_vals": {"ds": "1"}}),
    **_each(
        ("alter_table", "alter_table_with_environment_context", "alter_table_with_cascade", "alter_table_req"),
        {"partitionKeys": [FieldSchema("ds", "string")], "expectedParameterKey": None, "tableType": "MANAGED_TABLE"},
    ),
    "get_partition_values": {"partitionKeys": [FieldSchema("ds", "string")], "partitionOrder": None},
    "add_index": {"indexName": "new", "indexTableName": "new_i", "tableName": "new_i", "skewedInfo": None},
    "add_primary_key": {"table_name": "other"},
    "revoke_privileges": {"privilege": "SELECT", "objectType": 3},
    **_each(("get_partition_column_statistics", "delete_partition_column_statistics"), {"engine": "hive"}),
    "delete_table_column_statistics": {"engine": "hive"},
    **_each(("heartbeat", "check_lock"), {"txnid": None, "lockid": 1}),
    "seed_txn_id": {"seedTxnId": 50},
    "seed_write_id": {"tableName": "other"},
    "create_wm_pool": {"poolPath": "new", "schedulingPolicy": "fair"},
    "alter_wm_pool": {"schedulingPolicy": "fair"},
    "alter_resource_plan": {"status": 2, "queryParallelism": 9},
    "drop_wm_mapping": {"entityName": "ann"},
    "scheduled_query_maintenance": {"scheduleName": "new"},
    "explain_right": {"action": "see"},
    "extend_lease": {"objs": []},
    "create_catalog": {"name": "hive"},
}
# What no call gets through, whatever it says: the only catalog is `hive`, there is no Kerberos, the files are
# not managed, Hive has never made it, or it reads back what the tests undo.
REFUSED = frozenset(
    {
        *("create_catalog", "alter_catalog", "drop_catalog", "truncate_table", "truncate_table_req", "get_type_all"),
        *("get_delegation_token", "renew_delegation_token", "cancel_delegation_token"),
        # No table is Iceberg's here.
        *("add_index", "get_iceberg_history"),
    }
)


def fill(metastore: Metastore) -> None:
    codec = metastore.codecs.tjson
    for name, values in FILLED:
        before, after = codec.envelope(name, MessageType.CALL, 1)
        payload = codec.encode(methods_of(Dialect.HIVE_2_3)[name].arguments(*values))
        assert isinstance(payload, bytes)
        reply = metastore.processor.process(codec, codec.read_message(before + payload + after), Call("ann"))
        assert reply.outcome == "ok", (name, reply)
