"""What 3.1 and later keep beside the catalog: what goes in comes out, on every database."""

from typing import Any

from hms_gateway.catalog.materialized_views import ChangeCounts, ViewRows
from hms_gateway.catalog.resource_plans import ResourcePlanRows
from hms_gateway.catalog.runtime_records import RuntimeRecordRows
from hms_gateway.catalog.scheduled_queries import Execution, ScheduleRows
from hms_gateway.catalog.schemas import RegistryRows
from hms_gateway.rpc.structs import (
    Database,
    FieldSchema,
    ISchema,
    QueryState,
    ReplicationMetrics,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    SchemaVersion,
    SerDeInfo,
    Table,
    WMFullResourcePlan,
    WMPool,
    WMResourcePlan,
    WriteEventInfo,
)
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create
from tests.support.manual_clock import ManualClock

ODD = '\0"\\☃'
LONG = "n" * 10_000


def test_serdes_schemas_and_versions(store: SqlStore) -> None:
    database_id = store.write(lambda tx: tx.insert_database(Database("d", None, "file:/d")))
    for name in (ODD, LONG, "a", "A"):
        assert store.write(lambda tx, name=name: RegistryRows(tx).insert_serde(SerDeInfo(name, ODD)))
        assert store.read(lambda snapshot, name=name: RegistryRows(snapshot).serde(name)) == SerDeInfo(name, ODD)
    assert not store.write(lambda tx: RegistryRows(tx).insert_serde(SerDeInfo("a")))
    for name in (ODD, LONG):
        assert store.write(lambda tx, name=name: RegistryRows(tx).insert_schema(database_id, ISchema(name=name)))
        assert not store.write(lambda tx, name=name: RegistryRows(tx).insert_schema(database_id, ISchema(name=name)))
    found = store.read(lambda snapshot: RegistryRows(snapshot).schema("d", ODD))
    assert found is not None
    version = SchemaVersion(None, 3, 5, [FieldSchema(LONG, ODD, ODD)], schemaText=ODD)
    assert store.write(lambda tx: RegistryRows(tx).insert_version(found.schema_id, version))
    assert store.read(lambda snapshot: RegistryRows(snapshot).versions(found.schema_id)) == [version]
    [named] = store.read(lambda snapshot: RegistryRows(snapshot).versions_with_column(LONG, ODD, ODD))
    assert (named.schema.dbName, named.schema.schemaName, named.version) == ("d", ODD, 3)
    store.write(lambda tx: RegistryRows(tx).delete_schema(found.schema_id))
    assert store.read(lambda snapshot: RegistryRows(snapshot).versions_with_column(LONG, None, None)) == []


def test_resource_plans(store: SqlStore) -> None:
    def plan(name: str) -> WMFullResourcePlan:
        return WMFullResourcePlan(WMResourcePlan(name), [WMPool(name, ODD, 0.5)])

    for name in ("b", "a"):
        assert store.write(lambda tx, name=name: ResourcePlanRows(tx).insert("ns", plan(name)))
    assert not store.write(lambda tx: ResourcePlanRows(tx).insert("ns", plan("a")))
    assert store.write(lambda tx: ResourcePlanRows(tx).insert(ODD, plan("a")))
    first, second = store.read(lambda snapshot: ResourcePlanRows(snapshot).all("ns"))
    assert (first.plan, second.plan) == (plan("a"), plan("b"))
    assert not store.write(lambda tx: ResourcePlanRows(tx).update(first.plan_id, plan("b")))
    assert store.write(lambda tx: ResourcePlanRows(tx).update(first.plan_id, plan("c")))
    store.write(lambda tx: ResourcePlanRows(tx).delete(second.plan_id))
    assert store.read(lambda snapshot: [one.plan for one in ResourcePlanRows(snapshot).all("ns")]) == [plan("c")]


def test_runtime_statistics_are_told_until_they_weigh_enough(store: SqlStore) -> None:
    for seconds, weight in ((10, 2), (30, 3), (20, 4), (20, 5)):
        payload = bytes([weight])
        store.write(
            lambda tx, seconds=seconds, weight=weight, payload=payload: RuntimeRecordRows(tx).insert_runtime_statistic(
                seconds, weight, payload
            )
        )

    def weights(*arguments: Any) -> list[int | None]:
        found: list[RuntimeStat] = store.read(
            lambda snapshot: RuntimeRecordRows(snapshot).runtime_statistics(*arguments)
        )
        assert all(one.payload == bytes([one.weight or 0]) for one in found)
        return [one.weight for one in found]

    assert weights(None, None) == [3, 5, 4, 2]
    assert weights(20, None) == [5, 4, 2]
    assert weights(None, 8) == [3, 5]
    assert weights(5, 1) == []
    assert store.write(lambda tx: RuntimeRecordRows(tx).delete_notes_before(20, 0, 0)) == 1
    assert weights(None, None) == [3, 5, 4]


def test_replication_metrics_and_write_events(store: SqlStore) -> None:
    for execution, dump in ((1, 7), (2, 7), (3, 8)):
        metrics = ReplicationMetrics(execution, ODD, dump, LONG)
        store.write(lambda tx, metrics=metrics: RuntimeRecordRows(tx).put_metrics(metrics, 100))
    store.write(lambda tx: RuntimeRecordRows(tx).put_metrics(ReplicationMetrics(3, ODD, 9, "new"), 200))

    def executions(dump: int | None = None) -> list[int | None]:
        found = store.read(lambda snapshot: RuntimeRecordRows(snapshot).metrics_of_policy(ODD, dump))
        return [one.scheduledExecutionId for one in found]

    assert (executions(), executions(7), executions(8)) == ([3, 2, 1], [2, 1], [])
    for partition, files in ((None, "a"), ("p=1", "b"), (None, "c")):
        event = WriteEventInfo(1, "d", ODD, files, partition)
        store.write(lambda tx, event=event: RuntimeRecordRows(tx).put_write_event(5, event, 100))
    assert [one.files for one in store.read(lambda snapshot: RuntimeRecordRows(snapshot).write_events(5))] == ["c", "b"]
    assert store.write(lambda tx: RuntimeRecordRows(tx).delete_notes_before(0, 101, 101)) == 5
    assert executions() == []


def test_scheduled_queries_and_executions(store: SqlStore) -> None:
    def query(name: str, time: int | None, enabled: bool = True) -> ScheduledQuery:
        return ScheduledQuery(ScheduledQueryKey(name, ODD), enabled, "s", "u", LONG, time)

    for name, time, enabled in (("late", 50, True), ("early", 20, True), ("off", 1, False), ("never", None, True)):
        new = query(name, time, enabled)
        assert store.write(lambda tx, new=new: ScheduleRows(tx).insert(new))
        assert not store.write(lambda tx, new=new: ScheduleRows(tx).insert(new))

    def due(now: int) -> str | None:
        found = store.write(lambda tx: ScheduleRows(tx).due(ODD, now))
        return found and found.query.scheduleKey.scheduleName

    assert (due(10), due(20), due(60)) == (None, "early", "early")
    early = store.read(lambda snapshot: ScheduleRows(snapshot).find(ODD, "early"))
    assert early is not None
    assert early.query == query("early", 20)
    started = store.write(lambda tx: ScheduleRows(tx).insert_execution(early.schedule_id, QueryState.INITED, 20))
    ended = Execution(started, early.schedule_id, QueryState.FAILED, 20, 25, "e", ODD)
    store.write(lambda tx: ScheduleRows(tx).save_execution(ended))
    assert store.write(lambda tx: ScheduleRows(tx).execution(started)) == ended
    assert store.write(lambda tx: ScheduleRows(tx).silent_executions([QueryState.FAILED], 26)) == [ended]
    store.write(lambda tx: ScheduleRows(tx).delete(early.schedule_id))
    assert (store.write(lambda tx: ScheduleRows(tx).execution(started)), due(60)) == (None, "late")


def test_sources_of_views(store: SqlStore, clock: ManualClock) -> None:
    source = create(store)
    view = store.write(lambda tx: tx.insert_table(source.database_id, Table("v", source.table.dbName)))
    store.write(lambda tx: ViewRows(tx).set_sources(view, {source.table_id: ChangeCounts(1, 2, 3)}))
    for counts in (ChangeCounts(1, 0, 0), ChangeCounts(2**63 - 1, 0, 2)):
        changed = store.write(lambda tx, counts=counts: ViewRows(tx).add_changes(source.table_id, counts))
        assert changed == [(source.table.dbName, "v")]
    [found] = store.read(lambda snapshot: ViewRows(snapshot).sources(view))
    assert found.counts == ChangeCounts(2**63 - 1, 2, 5)
    store.write(lambda tx: tx.delete_table(source.table_id))
    assert store.read(lambda snapshot: ViewRows(snapshot).sources(view)) == []
