"""Runtime statistics, replication metrics and what transactions wrote, as rows."""

from sqlalchemy import delete, insert, select, update

from hms_gateway.storage.schema.catalog import REPLICATION_METRICS, RUNTIME_STATISTICS, WRITE_EVENTS
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.sql.fragments import decode_struct, encode_struct, encode_texts, text_hash
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.structs import ReplicationMetrics, RuntimeStat, WriteEventInfo


class RuntimeRecordRepository(Repository):
    """`registry_ports.RuntimeRecordWrites`."""

    def runtime_statistics(self, up_to_time: int | None, weight_max: int | None) -> list[RuntimeStat]:
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
        statement = (
            select(WRITE_EVENTS.c.content).where(WRITE_EVENTS.c.txn_id == txn_id).order_by(WRITE_EVENTS.c.event_id)
        )
        return [decode_struct(WriteEventInfo, content) for content in self._connection.execute(statement).scalars()]

    def write_event(self, txn_id: int, event: WriteEventInfo) -> WriteEventInfo | None:
        is_it = (WRITE_EVENTS.c.txn_id == txn_id) & (WRITE_EVENTS.c.object_hash == _object_hash(event))
        content = self._connection.execute(select(WRITE_EVENTS.c.content).where(is_it)).scalar()
        return None if content is None else decode_struct(WriteEventInfo, content)

    def put_write_event(self, txn_id: int, event: WriteEventInfo, now_seconds: int) -> None:
        hashed = _object_hash(event)
        is_it = (WRITE_EVENTS.c.txn_id == txn_id) & (WRITE_EVENTS.c.object_hash == hashed)
        row = {"event_time": now_seconds, "content": encode_struct(event)}
        if not self._connection.execute(update(WRITE_EVENTS).where(is_it).values(row)).rowcount:
            new = {**row, "txn_id": txn_id, "object_hash": hashed}
            self._connection.execute(insert(WRITE_EVENTS).values(new))

    def delete_notes_before(self, statistics: int, metrics: int, write_events: int) -> int:
        old = (
            (RUNTIME_STATISTICS, RUNTIME_STATISTICS.c.create_time, statistics),
            (REPLICATION_METRICS, REPLICATION_METRICS.c.start_time, metrics),
            (WRITE_EVENTS, WRITE_EVENTS.c.event_time, write_events),
        )
        return sum(
            self._connection.execute(delete(table).where(column < seconds)).rowcount for table, column, seconds in old
        )


def _object_hash(event: WriteEventInfo) -> str:
    names = [event.database or "", event.table or "", *([event.partition] if event.partition is not None else [])]
    return text_hash(encode_texts(names))
