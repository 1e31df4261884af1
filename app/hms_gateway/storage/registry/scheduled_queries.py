"""Scheduled queries and their executions, as rows."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, delete, insert, select, update

from hms_gateway.metastore.ports.registry import Execution, ExecutionId, ScheduleId, StoredSchedule
from hms_gateway.storage.schema.catalog import SCHEDULED_EXECUTIONS, SCHEDULED_QUERIES
from hms_gateway.storage.sql.fragments import decode_struct, decode_texts, encode_struct, encode_texts, text_hash
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.structs import ScheduledQuery, ScheduledQueryKey


class ScheduleRepository(Repository):
    """`registry_ports.ScheduleWrites`."""

    def find(self, namespace: str, name: str) -> StoredSchedule | None:
        return self._first(
            (SCHEDULED_QUERIES.c.namespace_hash == text_hash(namespace))
            & (SCHEDULED_QUERIES.c.name_hash == text_hash(name))
        )

    def of_id(self, schedule_id: ScheduleId) -> StoredSchedule | None:
        return self._first(SCHEDULED_QUERIES.c.query_id == schedule_id)

    def due(self, namespace: str, now_seconds: int) -> StoredSchedule | None:
        return self._first(
            (SCHEDULED_QUERIES.c.namespace_hash == text_hash(namespace))
            & (SCHEDULED_QUERIES.c.next_execution <= now_seconds)
            & SCHEDULED_QUERIES.c.is_enabled.is_(True)
            & SCHEDULED_QUERIES.c.active_execution.is_(None)
        )

    def insert(self, query: ScheduledQuery) -> bool:
        namespace, name = _key(query)
        if self.find(namespace, name) is not None:
            return False
        row = {
            "namespace_hash": text_hash(namespace),
            "name_hash": text_hash(name),
            "active_execution": None,
            "failures": 0,
            **_columns(query),
        }
        self._connection.execute(insert(SCHEDULED_QUERIES).values(row))
        return True

    def save(self, stored: StoredSchedule) -> None:
        row = {"active_execution": stored.active, "failures": stored.failures, **_columns(stored.query)}
        is_it = SCHEDULED_QUERIES.c.query_id == stored.schedule_id
        self._connection.execute(update(SCHEDULED_QUERIES).where(is_it).values(row))

    def delete(self, schedule_id: ScheduleId) -> None:
        for table in (SCHEDULED_EXECUTIONS, SCHEDULED_QUERIES):
            self._connection.execute(delete(table).where(table.c.query_id == schedule_id))

    def execution(self, execution_id: int) -> Execution | None:
        is_it = SCHEDULED_EXECUTIONS.c.execution_id == execution_id
        row = self._connection.execute(select(SCHEDULED_EXECUTIONS).where(is_it)).first()
        return None if row is None else _execution(row)

    def insert_execution(self, schedule_id: ScheduleId, state: int, now_seconds: int) -> ExecutionId:
        row = {"query_id": schedule_id, "state": state, "start_time": now_seconds, "last_update": now_seconds}
        return ExecutionId(self._inserted_id(insert(SCHEDULED_EXECUTIONS).values(row)))

    def save_execution(self, execution: Execution) -> None:
        row = {
            "state": execution.state,
            "last_update": execution.last_update,
            "content": encode_texts([execution.executor_id or "", execution.error or ""]),
        }
        is_it = SCHEDULED_EXECUTIONS.c.execution_id == execution.execution_id
        self._connection.execute(update(SCHEDULED_EXECUTIONS).where(is_it).values(row))

    def silent_executions(self, states: Sequence[int], before_seconds: int) -> list[Execution]:
        statement = select(SCHEDULED_EXECUTIONS).where(
            SCHEDULED_EXECUTIONS.c.state.in_(states), SCHEDULED_EXECUTIONS.c.last_update < before_seconds
        )
        return [_execution(row) for row in self._connection.execute(statement)]

    def delete_executions_before(self, seconds: int) -> int:
        is_old = SCHEDULED_EXECUTIONS.c.last_update < seconds
        return self._connection.execute(delete(SCHEDULED_EXECUTIONS).where(is_old)).rowcount

    def _first(self, condition: ColumnElement[bool]) -> StoredSchedule | None:
        statement = select(SCHEDULED_QUERIES).where(condition)
        ordered = statement.order_by(SCHEDULED_QUERIES.c.next_execution, SCHEDULED_QUERIES.c.query_id).limit(1)
        row = self._connection.execute(ordered).first()
        return None if row is None else _stored(row)


def _key(query: ScheduledQuery) -> tuple[str, str]:
    key = query.scheduleKey or ScheduledQueryKey()
    return key.clusterNamespace or "", key.scheduleName or ""


def _columns(query: ScheduledQuery) -> dict[str, Any]:
    content = msgspec.structs.replace(query, enabled=None, nextExecution=None)
    return {
        "is_enabled": bool(query.enabled),
        "next_execution": query.nextExecution,
        "content": encode_struct(content),
    }


def _stored(row: Row[Any]) -> StoredSchedule:
    query = decode_struct(ScheduledQuery, row.content)
    whole = msgspec.structs.replace(query, enabled=row.is_enabled, nextExecution=row.next_execution)
    active = None if row.active_execution is None else ExecutionId(row.active_execution)
    return StoredSchedule(ScheduleId(row.query_id), whole, active, row.failures)


def _execution(row: Row[Any]) -> Execution:
    executor_id, error = decode_texts(row.content) if row.content else ("", "")
    return Execution(
        ExecutionId(row.execution_id),
        ScheduleId(row.query_id),
        row.state,
        row.start_time,
        row.last_update,
        executor_id or None,
        error or None,
    )
