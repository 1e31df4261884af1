"""What the rules of the things that 3.1 and later keep beside the catalog need from storage.

Each is an attribute of the units of work in `ports`. Names may have any characters and any length.
"""

from collections.abc import Mapping, Sequence
from typing import NewType, Protocol

import msgspec

from hms_gateway.metastore.vocabulary.names import DatabaseId, TableId
from hms_gateway.structs import (
    ISchema,
    ReplicationMetrics,
    RuntimeStat,
    ScheduledQuery,
    SchemaVersion,
    SchemaVersionDescriptor,
    SerDeInfo,
    WMFullResourcePlan,
    WriteEventInfo,
)

SchemaId = NewType("SchemaId", int)
PlanId = NewType("PlanId", int)
ScheduleId = NewType("ScheduleId", int)
ExecutionId = NewType("ExecutionId", int)


class StoredSchema(msgspec.Struct, frozen=True):
    schema_id: SchemaId
    schema: ISchema


class StoredPlan(msgspec.Struct, frozen=True):
    """A resource plan with all that is in it. Its namespace is said by the plan itself."""

    plan_id: PlanId
    plan: WMFullResourcePlan


class StoredSchedule(msgspec.Struct, frozen=True):
    """A scheduled query, the execution that is under way, and how many before it failed in a row."""

    schedule_id: ScheduleId
    query: ScheduledQuery
    active: ExecutionId | None
    failures: int


class Execution(msgspec.Struct, frozen=True):
    """One execution of a scheduled query; `state` is a QueryState, times in seconds."""

    execution_id: ExecutionId
    schedule_id: ScheduleId
    state: int
    start_time: int
    last_update: int
    executor_id: str | None = None
    error: str | None = None


class ChangeCounts(msgspec.Struct, frozen=True):
    """How many rows were inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class ViewSource(msgspec.Struct, frozen=True):
    """A table that a materialized view reads, by its present name, and what has changed in it."""

    source_id: TableId
    db_name: str
    tbl_name: str
    counts: ChangeCounts


class RegistryReads(Protocol):
    """Serdes, schemas and their versions. Names are normalised by the caller where they are to be."""

    def serde(self, name: str) -> SerDeInfo | None: ...

    def schema(self, db_name: str, name: str) -> StoredSchema | None: ...

    def version(self, schema_id: SchemaId, version: int) -> SchemaVersion | None:
        """Without the name of its schema, as all versions here."""

    def latest_version(self, schema_id: SchemaId) -> SchemaVersion | None: ...

    def versions(self, schema_id: SchemaId) -> list[SchemaVersion]:
        """In order of their numbers."""

    def versions_with_column(
        self, name: str | None, namespace: str | None, type: str | None
    ) -> list[SchemaVersionDescriptor]:
        """The versions with a column for which all that is given holds; names of columns without regard to case."""


class RegistryWrites(RegistryReads, Protocol):
    def insert_serde(self, serde: SerDeInfo) -> bool:
        """False when there is one of its name; then nothing changes."""

    def insert_schema(self, database_id: DatabaseId, schema: ISchema) -> bool:
        """False when the database has one of its name."""

    def update_schema(self, schema_id: SchemaId, schema: ISchema) -> None: ...

    def delete_schema(self, schema_id: SchemaId) -> None:
        """With its versions."""

    def insert_version(self, schema_id: SchemaId, version: SchemaVersion) -> bool:
        """False when the schema has it already."""

    def update_version(self, schema_id: SchemaId, version: SchemaVersion) -> None:
        """Its columns stay as they are."""

    def delete_version(self, schema_id: SchemaId, version: int) -> bool:
        """Whether it was there."""


class ResourcePlanReads(Protocol):
    def find(self, namespace: str, name: str) -> StoredPlan | None: ...

    def all(self, namespace: str) -> list[StoredPlan]:
        """Ordered by name."""


class ResourcePlanWrites(ResourcePlanReads, Protocol):
    def insert(self, namespace: str, plan: WMFullResourcePlan) -> bool:
        """False when the namespace has one of its name."""

    def update(self, plan_id: PlanId, plan: WMFullResourcePlan) -> bool:
        """False when another plan of its namespace has its new name."""

    def delete(self, plan_id: PlanId) -> None: ...


class RuntimeRecordReads(Protocol):
    """Runtime statistics, replication metrics, and what transactions have written."""

    def runtime_statistics(self, up_to_time: int | None, weight_max: int | None) -> list[RuntimeStat]:
        """The newest first, until their weights reach the most."""

    def metrics(self, execution_id: int) -> ReplicationMetrics | None: ...

    def metrics_of_policy(self, policy: str, dump_id: int | None = None) -> list[ReplicationMetrics]:
        """The newest execution first."""

    def write_events(self, txn_id: int) -> list[WriteEventInfo]:
        """In the order in which they were first noted."""


class RuntimeRecordWrites(RuntimeRecordReads, Protocol):
    def insert_runtime_statistic(self, now_seconds: int, weight: int, payload: bytes) -> None: ...

    def put_metrics(self, metrics: ReplicationMetrics, now_seconds: int) -> None:
        """Insert or replace those of the execution."""

    def put_write_event(self, txn_id: int, event: WriteEventInfo, now_seconds: int) -> None:
        """Insert, or replace that of the same transaction, table and partition."""

    def write_event(self, txn_id: int, event: WriteEventInfo) -> WriteEventInfo | None:
        """What is stored of the same transaction, table and partition."""

    def delete_notes_before(self, statistics: int, metrics: int, write_events: int) -> int:
        """Forget what is older, each in seconds; how many."""


class ScheduleReads(Protocol):
    def find(self, namespace: str, name: str) -> StoredSchedule | None: ...


class ScheduleWrites(ScheduleReads, Protocol):
    def of_id(self, schedule_id: ScheduleId) -> StoredSchedule | None: ...

    def due(self, namespace: str, now_seconds: int) -> StoredSchedule | None:
        """The enabled query whose time came first, of those not being executed."""

    def insert(self, query: ScheduledQuery) -> bool:
        """False when there is one of its key."""

    def save(self, stored: StoredSchedule) -> None:
        """Replace everything but the key."""

    def delete(self, schedule_id: ScheduleId) -> None:
        """With its executions."""

    def execution(self, execution_id: int) -> Execution | None: ...

    def insert_execution(self, schedule_id: ScheduleId, state: int, now_seconds: int) -> ExecutionId: ...

    def save_execution(self, execution: Execution) -> None: ...

    def silent_executions(self, states: Sequence[int], before_seconds: int) -> list[Execution]:
        """Those in one of the states whose last update is older."""

    def delete_executions_before(self, seconds: int) -> int: ...


class ViewReads(Protocol):
    """The tables that materialized views were built from."""

    def sources(self, view_id: TableId) -> list[ViewSource]:
        """Ordered by name; those that are gone are left out."""


class ViewWrites(ViewReads, Protocol):
    def set_sources(self, view_id: TableId, sources: Mapping[TableId, ChangeCounts]) -> None:
        """Instead of those there were."""

    def add_changes(self, source_id: TableId, counts: ChangeCounts) -> list[tuple[str, str]]:
        """Add to the counts of every view that reads the table; database and name of these views."""
