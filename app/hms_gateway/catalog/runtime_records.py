"""Notes of query engines: runtime statistics, replication metrics, and what transactions wrote."""

from typing import Final

import msgspec
from sqlalchemy import delete, insert, select, update

from hms_gateway.catalog.arguments import database_name
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Store, Transaction
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    GetAllWriteEventInfoRequest,
    GetReplicationMetricsRequest,
    GetRuntimeStatsRequest,
    ReplicationMetricList,
    ReplicationMetrics,
    RuntimeStat,
    WriteEventInfo,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.schema.catalog import REPLICATION_METRICS, RUNTIME_STATISTICS, WRITE_EVENTS
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.sql.fragments import decode_struct, encode_struct, encode_texts, text_hash
from hms_gateway.storage.sql.repository import AggregateRows

# hive.metastore.runtime.stats.max.age
_STATISTICS_SECONDS_MAX: Final = 3 * 86_400
# hive.metastore.replication.metrics.maxage
_METRICS_SECONDS_MAX: Final = 7 * 86_400


class RuntimeRecordRows(AggregateRows):
    def runtime_statistics(self, up_to_time: int | None, weight_max: int | None) -> list[RuntimeStat]:
        """The newest first, until their weights reach the most."""
        table = RUNTIME_STATISTICS
        statement = select(table.c.statistic_id, table.c.weight).order_by(
            table.c.create_time.desc(), table.c.statistic_id.desc()
        )
        if up_to_time is not None:
            statement = statement.where(table.c.create_time <= up_to_time)
        ids, weight = [], 0
        for statistic_id, one in self._connection.execute(statement):
            ids.append(statistic_id)
            weight += one
            if weight_max is not None and weight >= weight_max:
                break
        rows = self._connection.execute(select(table).where(has_id_among(table.c.statistic_id, ids, self._dialect)))
        found = {row.statistic_id: RuntimeStat(row.create_time, row.weight, row.payload) for row in rows}
        return [found[statistic_id] for statistic_id in ids]

    def insert_runtime_statistic(self, now_seconds: int, weight: int, payload: bytes) -> None:
        row = {"create_time": now_seconds, "weight": weight, "payload": payload}
        self._connection.execute(insert(RUNTIME_STATISTICS).values(row))

    def metrics(self, execution_id: int) -> ReplicationMetrics | None:
        statement = select(REPLICATION_METRICS.c.content).where(REPLICATION_METRICS.c.execution_id == execution_id)
        content = self._connection.execute(statement).scalar()
        return None if content is None else decode_struct(ReplicationMetrics, content)

    def metrics_of_policy(self, policy: str, dump_id: int | None = None) -> list[ReplicationMetrics]:
        """The newest execution first."""
        statement = (
            select(REPLICATION_METRICS.c.content)
            .where(REPLICATION_METRICS.c.policy_hash == text_hash(policy))
            .order_by(REPLICATION_METRICS.c.execution_id.desc())
        )
        if dump_id is not None:
            statement = statement.where(REPLICATION_METRICS.c.dump_id == dump_id)
        contents = self._connection.execute(statement).scalars()
        return [decode_struct(ReplicationMetrics, content) for content in contents]

    def put_metrics(self, metrics: ReplicationMetrics, now_seconds: int) -> None:
        """Insert or replace those of the execution."""
        row = {
            "policy_hash": text_hash(metrics.policy or ""),
            "dump_id": metrics.dumpExecutionId,
            "content": encode_struct(metrics),
        }
        execution_id = metrics.scheduledExecutionId
        is_it = REPLICATION_METRICS.c.execution_id == execution_id
        if not self._connection.execute(update(REPLICATION_METRICS).where(is_it).values(row)).rowcount:
            new = {**row, "execution_id": execution_id, "start_time": now_seconds}
            self._connection.execute(insert(REPLICATION_METRICS).values(new))

    def write_events(self, txn_id: int) -> list[WriteEventInfo]:
        """In the order in which they were first noted."""
        statement = (
            select(WRITE_EVENTS.c.content).where(WRITE_EVENTS.c.txn_id == txn_id).order_by(WRITE_EVENTS.c.event_id)
        )
        return [decode_struct(WriteEventInfo, content) for content in self._connection.execute(statement).scalars()]

    def write_event(self, txn_id: int, event: WriteEventInfo) -> WriteEventInfo | None:
        """Event stored for the same transaction, table and partition."""
        is_it = (WRITE_EVENTS.c.txn_id == txn_id) & (WRITE_EVENTS.c.object_hash == _object_hash(event))
        content = self._connection.execute(select(WRITE_EVENTS.c.content).where(is_it)).scalar()
        return None if content is None else decode_struct(WriteEventInfo, content)

    def put_write_event(self, txn_id: int, event: WriteEventInfo, now_seconds: int) -> None:
        """Insert, or replace that of the same transaction, table and partition."""
        hashed = _object_hash(event)
        is_it = (WRITE_EVENTS.c.txn_id == txn_id) & (WRITE_EVENTS.c.object_hash == hashed)
        row = {"event_time": now_seconds, "content": encode_struct(event)}
        if not self._connection.execute(update(WRITE_EVENTS).where(is_it).values(row)).rowcount:
            new = {**row, "txn_id": txn_id, "object_hash": hashed}
            self._connection.execute(insert(WRITE_EVENTS).values(new))

    def delete_notes_before(self, statistics: int, metrics: int, write_events: int) -> int:
        """Forget what is older, each in seconds; how many."""
        old = (
            (RUNTIME_STATISTICS, RUNTIME_STATISTICS.c.create_time, statistics),
            (REPLICATION_METRICS, REPLICATION_METRICS.c.start_time, metrics),
            (WRITE_EVENTS, WRITE_EVENTS.c.event_time, write_events),
        )
        return sum(
            self._connection.execute(delete(table).where(column < seconds)).rowcount for table, column, seconds in old
        )


class RuntimeRecords:
    """Methods on notes of query engines: runtime statistics, replication metrics, and what transactions wrote.

    Notes are not part of the catalog: they have no events, and go by themselves when they are old.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add_runtime_stats(self, call: Call, stat: RuntimeStat) -> None:
        given = required(stat, "runtime statistics")
        weight, payload = required(given.weight, "weight"), required(given.payload, "payload")
        now = self._clock.seconds()
        self._store.write(lambda tx: RuntimeRecordRows(tx).insert_runtime_statistic(now, weight, payload))

    def get_runtime_stats(self, call: Call, rqst: GetRuntimeStatsRequest) -> list[RuntimeStat]:
        """The newest first, as many as weigh `maxWeight` together; numbers that are not positive set no bound."""
        request = required(rqst, "rqst")
        weight_max, up_to = _bound(request.maxWeight), _bound(request.maxCreateTime)
        return self._store.read(lambda snapshot: RuntimeRecordRows(snapshot).runtime_statistics(up_to, weight_max))

    def add_replication_metrics(self, call: Call, replicationMetricList: ReplicationMetricList) -> None:
        """Note the state of executions; what a later note leaves out stays as it was."""
        metrics = required(replicationMetricList, "replicationMetricList").replicationMetricList
        given = [required(one, "replication metrics") for one in required(metrics, "list of replication metrics")]
        now = self._clock.seconds()

        def work(tx: Transaction) -> None:
            rows = RuntimeRecordRows(tx)
            for one in given:
                before = rows.metrics(required(one.scheduledExecutionId, "id of the execution"))
                rows.put_metrics(_updated(before, one), now)

        self._store.write(work)

    def get_replication_metrics(self, call: Call, rqst: GetReplicationMetricsRequest) -> ReplicationMetricList:
        """Metrics of a policy, or of one of its dumps; without a policy those of one execution."""
        request = required(rqst, "rqst")
        policy, dump_id = request.policy, request.dumpExecutionId
        if policy is not None:
            return ReplicationMetricList(
                self._store.read(lambda snapshot: RuntimeRecordRows(snapshot).metrics_of_policy(policy, dump_id))
            )
        wanted = required(request.scheduledExecutionId, "policy and id of the execution")
        found = self._store.read(lambda snapshot: RuntimeRecordRows(snapshot).metrics(wanted))
        return ReplicationMetricList([] if found is None else [found])

    def get_all_write_event_info(self, call: Call, request: GetAllWriteEventInfoRequest) -> list[WriteEventInfo]:
        """Writes that a transaction noted, in a database or table if one is named."""
        given = required(request, "request")
        db_name = database_name(given.dbName)
        wanted = required(given.txnId, "transaction")
        database = None if db_name is None else normalize(db_name)
        table = None if given.tableName is None else normalize(given.tableName)
        found = self._store.read(lambda snapshot: RuntimeRecordRows(snapshot).write_events(wanted))
        return [
            one
            for one in found
            if (database is None or one.database == database) and (table is None or one.table == table)
        ]


def expire_notes(store: Store, clock: Clock, settings: MetastoreSettings) -> int:
    """Forget what is old; how many. Any replica may do it at any time."""
    now = clock.seconds()
    return store.write(
        lambda tx: RuntimeRecordRows(tx).delete_notes_before(
            now - _STATISTICS_SECONDS_MAX, now - _METRICS_SECONDS_MAX, now - settings.event_seconds_max
        )
    )


def _bound(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None


def _updated(before: ReplicationMetrics | None, given: ReplicationMetrics) -> ReplicationMetrics:
    if before is None:
        required(given.policy, "policy")
        required(given.dumpExecutionId, "id of the dump")
        return given
    reported = {
        field.name: value for field in given.definition.fields if (value := getattr(given, field.name)) is not None
    }
    return msgspec.structs.replace(before, **reported)


def _object_hash(event: WriteEventInfo) -> str:
    names = [event.database or "", event.table or "", *([event.partition] if event.partition is not None else [])]
    return text_hash(encode_texts(names))
