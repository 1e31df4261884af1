"""As `changing_calls`, the calls of 3.1 and later that query engines make beside the catalog."""

from typing import Any

from hms_gateway.rpc.structs import (
    AlterISchemaRequest,
    CreationMetadata,
    FieldSchema,
    ISchema,
    ISchemaName,
    MapSchemaVersionToSerdeRequest,
    QueryState,
    ReplicationMetricList,
    ReplicationMetrics,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollRequest,
    ScheduledQueryProgressInfo,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SerDeInfo,
    SetSchemaVersionStateRequest,
    UpdateTransactionalStatsRequest,
    WMAlterPoolRequest,
    WMAlterResourcePlanRequest,
    WMAlterTriggerRequest,
    WMCreateOrDropTriggerToPoolMappingRequest,
    WMCreateOrUpdateMappingRequest,
    WMCreatePoolRequest,
    WMCreateResourcePlanRequest,
    WMCreateTriggerRequest,
    WMDropMappingRequest,
    WMDropPoolRequest,
    WMDropResourcePlanRequest,
    WMDropTriggerRequest,
    WMMapping,
    WMNullablePool,
    WMNullableResourcePlan,
    WMPool,
    WMResourcePlan,
    WMTrigger,
)
from tests.comparison.objects import table

_CREATE = ScheduledQueryMaintenanceRequestType.CREATE
# Long past, so it is due at once.
_EVERY_DAY = "0 0 0 * * ?"


def _plan(world: Any) -> Any:
    """A plan with a pool `etl`, a trigger `slow` and a mapping of ann."""
    client, name = world.client, world.db
    client.create_resource_plan(WMCreateResourcePlanRequest(WMResourcePlan(name)))
    client.create_wm_pool(WMCreatePoolRequest(WMPool(name, "etl", 0.5, 2)))
    client.create_wm_trigger(WMCreateTriggerRequest(WMTrigger(name, "slow", "ELAPSED_TIME > 10", "KILL")))
    client.create_or_update_wm_mapping(WMCreateOrUpdateMappingRequest(WMMapping(name, "USER", "ann", "etl"), False))
    return name


def _with_plan(request: Any) -> Any:
    return lambda world: (request(_plan(world)),)


def _schema(world: Any) -> ISchemaName:
    world.client.create_ischema(ISchema(name="s", catName="hive", dbName=world.db, canEvolve=True))
    return ISchemaName("hive", world.db, "s")


def _version(world: Any) -> SchemaVersionDescriptor:
    name = _schema(world)
    world.client.add_schema_version(SchemaVersion(name, 1, 5, [FieldSchema("a", "int")]))
    return SchemaVersionDescriptor(name, 1)


def _mapped_to_serde(world: Any) -> Any:
    world.client.add_serde(SerDeInfo(world.db, "org.example.S"))
    return (MapSchemaVersionToSerdeRequest(_version(world), world.db),)


def _query(world: Any) -> ScheduledQuery:
    return ScheduledQuery(ScheduledQueryKey("q", world.db), True, _EVERY_DAY, "ann", "SELECT 1", 1)


def _make_query(world: Any) -> None:
    world.client.scheduled_query_maintenance(ScheduledQueryMaintenanceRequest(_CREATE, _query(world)))


def _polled(world: Any) -> Any:
    _make_query(world)
    return (ScheduledQueryPollRequest(world.db),)


def _executing(world: Any) -> Any:
    _make_query(world)
    execution = world.client.scheduled_query_poll(ScheduledQueryPollRequest(world.db)).executionId
    return (ScheduledQueryProgressInfo(execution, QueryState.FINISHED, "e1"),)


def _view(world: Any) -> CreationMetadata:
    view = table(world.db, "v")
    view.tableType = "MATERIALIZED_VIEW"
    view.creationMetadata = CreationMetadata("hive", world.db, "v", {f"{world.db}.t"})
    world.client.create_table(view)
    metadata: CreationMetadata = view.creationMetadata
    return metadata


def _changes_of_source(world: Any) -> Any:
    _view(world)
    return (UpdateTransactionalStatsRequest(world.client.get_table(f"@hive#{world.db}", "t").id, 1, 2, 3),)


ENGINE_ROWS: dict[str, Any] = {
    "add_serde": lambda w: (SerDeInfo(w.db, "org.example.S"),),
    "create_ischema": lambda w: (ISchema(name="s", catName="hive", dbName=w.db),),
    "alter_ischema": lambda w: (AlterISchemaRequest(_schema(w), ISchema(description="changed")),),
    "drop_ischema": lambda w: (_schema(w),),
    "add_schema_version": lambda w: (SchemaVersion(_schema(w), 1, 5, [FieldSchema("a", "int")]),),
    "drop_schema_version": lambda w: (_version(w),),
    "map_schema_version_to_serde": _mapped_to_serde,
    "set_schema_version_state": lambda w: (SetSchemaVersionStateRequest(_version(w), SchemaVersionState.ENABLED),),
    "create_resource_plan": lambda w: (WMCreateResourcePlanRequest(WMResourcePlan(w.db)),),
    "alter_resource_plan": _with_plan(
        lambda name: WMAlterResourcePlanRequest(name, WMNullableResourcePlan(f"{name}_new"))
    ),
    "drop_resource_plan": _with_plan(lambda name: WMDropResourcePlanRequest(name)),
    "create_wm_trigger": _with_plan(lambda name: WMCreateTriggerRequest(WMTrigger(name, "new", "a > 1", "KILL"))),
    "alter_wm_trigger": _with_plan(lambda name: WMAlterTriggerRequest(WMTrigger(name, "slow", "a > 2", "KILL"))),
    "drop_wm_trigger": _with_plan(lambda name: WMDropTriggerRequest(name, "slow")),
    "create_wm_pool": _with_plan(lambda name: WMCreatePoolRequest(WMPool(name, "etl.new", 0.1, 1))),
    "alter_wm_pool": _with_plan(lambda name: WMAlterPoolRequest(WMNullablePool(name, "moved"), "etl")),
    "drop_wm_pool": _with_plan(lambda name: WMDropPoolRequest(name, "etl")),
    "create_or_update_wm_mapping": _with_plan(
        lambda name: WMCreateOrUpdateMappingRequest(WMMapping(name, "GROUP", "staff", "etl"), False)
    ),
    "drop_wm_mapping": _with_plan(lambda name: WMDropMappingRequest(WMMapping(name, "USER", "ann"))),
    "create_or_drop_wm_trigger_to_pool_mapping": _with_plan(
        lambda name: WMCreateOrDropTriggerToPoolMappingRequest(name, "slow", "etl", False)
    ),
    "add_runtime_stats": lambda w: (RuntimeStat(None, 1, b"\x01"),),
    "scheduled_query_maintenance": lambda w: (ScheduledQueryMaintenanceRequest(_CREATE, _query(w)),),
    "scheduled_query_poll": _polled,
    "scheduled_query_progress": _executing,
    "add_replication_metrics": lambda w: (ReplicationMetricList([ReplicationMetrics(1, w.db, 2, "m", "p")]),),
    "update_creation_metadata": lambda w: (None, w.db, "v", _view(w)),
    "update_transaction_statistics": _changes_of_source,
}
