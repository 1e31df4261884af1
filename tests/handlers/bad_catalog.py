"""The catalog that bad calls find: one of everything, under the names that `bad_values` puts into good calls."""

from typing import Any

from app.main import Metastore
from app.rpc import Call
from app.rpc.call import Dialect
from app.rpc.dialects import methods_of
from app.structs import (
    AddPrimaryKeyRequest,
    AllocateTableWriteIdsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreationMetadata,
    Function,
    FunctionType,
    Index,
    ISchema,
    ISchemaName,
    LongColumnStatsData,
    OpenTxnRequest,
    Partition,
    PrincipalType,
    ReplicationMetricList,
    ReplicationMetrics,
    Role,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    SchemaVersion,
    SerDeInfo,
    SQLPrimaryKey,
    Type,
    WMCreateResourcePlanRequest,
    WMCreateTriggerRequest,
    WMResourcePlan,
    WMTrigger,
)
from app.wire import MessageType
from tests.catalog import columns, new_table

# The name of what is asked for must not be taken by what new calls make.
FILLED: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("create_table", (new_table("t", keys=columns("ds string"), location="file:/warehouse/t"),)),
    ("create_table", (new_table("other", keys=columns("ds string")),)),
    ("add_partition", (Partition(["1"], "default", "t", sd=new_table().sd),)),
    ("create_function", (Function("f", "default", "a.B", "ann", PrincipalType.USER, 1, FunctionType.JAVA, []),)),
    ("create_type", (Type("x", "a", "b", columns("a int")),)),
    ("create_role", (Role("r", 5, "ann"),)),
    ("add_index", (Index("i", "a.B", "default", "t", 0, 0, "t_i", new_table().sd, {}, False), None)),
    ("add_primary_key", (AddPrimaryKeyRequest([SQLPrimaryKey("default", "t", "a", 1, "k", True, True, True)]),)),
    (
        "update_table_column_statistics",
        (
            ColumnStatistics(
                ColumnStatisticsDesc(True, "default", "t"),
                [ColumnStatisticsObj("a", "int", ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 3, 4)))],
            ),
        ),
    ),
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
    ("create_wm_trigger", (WMCreateTriggerRequest(WMTrigger("plan", "trigger", "a > 1", "KILL")),)),
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
)


def fill(metastore: Metastore) -> None:
    codec = metastore.codecs.tjson
    for name, values in FILLED:
        before, after = codec.envelope(name, MessageType.CALL, 1)
        payload = codec.encode(methods_of(Dialect.HIVE_2_3)[name].arguments(*values))
        assert isinstance(payload, bytes)
        reply = metastore.processor.process(codec, codec.read_message(before + payload + after), Call("ann"))
        assert reply.outcome == "ok", (name, reply)
