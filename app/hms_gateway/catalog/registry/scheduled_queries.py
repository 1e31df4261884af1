"""Scheduled queries (4.x): engines store them, ask which one is due, and report its execution."""

from typing import Final

import msgspec

from hms_gateway.catalog.registry.schedules import InvalidSchedule, parse_schedule
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.registry import Execution, StoredSchedule
from hms_gateway.metastore.ports.store import Store, Transaction
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
)

# An execution without reports has ended (metastore.scheduled.queries.execution.timeout).
_SILENT_SECONDS_MAX: Final = 120
# metastore.scheduled.queries.execution.max.age
_EXECUTION_SECONDS_MAX: Final = 30 * 86_400
_RUNNING: Final = (QueryState.INITED, QueryState.EXECUTING)
_FAILED: Final = (QueryState.FAILED, QueryState.TIMED_OUT)


class ScheduledQueryService:
    """Queries by the namespace of a cluster and their own name. One is executed at most once at a time."""

    def __init__(self, store: Store, clock: Clock, settings: MetastoreSettings) -> None:
        self._store = store
        self._clock = clock
        self._failures_max = settings.scheduled_query_failures_max

    def maintain(self, kind: int | None, query: ScheduledQuery | None) -> None:
        """Create, alter or drop. Raises NoSuchObjectException, AlreadyExistsException, InvalidInputException,
        MetaException.
        """
        given = required(query, "scheduled query")
        _key(given.scheduleKey)
        if kind == ScheduledQueryMaintenanceRequestType.CREATE:
            self._create(given)
        elif kind == ScheduledQueryMaintenanceRequestType.ALTER:
            self._store.write(lambda tx: self._alter(tx, given))
        elif kind == ScheduledQueryMaintenanceRequestType.DROP:
            self._store.write(lambda tx: tx.schedules.delete(_load(tx, given.scheduleKey).schedule_id))
        else:
            raise MetaException(f"{kind} is not a kind of maintenance")

    def get(self, key: ScheduledQueryKey | None) -> ScheduledQuery:
        """Raises NoSuchObjectException, MetaException."""
        namespace, name = _key(key)
        found = self._store.read(lambda snapshot: snapshot.schedules.find(namespace, name))
        if found is None:
            raise NoSuchObjectException(f"There is no scheduled query for: {shown(name)} in {shown(namespace)}")
        return found.query

    def poll(self, namespace: str | None) -> ScheduledQueryPollResponse:
        """A query that is due, handed to this caller alone; nothing when none is. Raises MetaException."""
        cluster = required(namespace, "clusterNamespace")
        now = self._clock.seconds()

        def work(tx: Transaction) -> ScheduledQueryPollResponse:
            found = tx.schedules.due(cluster, now)
            if found is None:
                return ScheduledQueryPollResponse()
            execution_id = tx.schedules.insert_execution(found.schedule_id, QueryState.INITED, now)
            following = msgspec.structs.replace(found.query, nextExecution=_next(found.query.schedule, now))
            tx.schedules.save(msgspec.structs.replace(found, query=following, active=execution_id))
            query = found.query
            return ScheduledQueryPollResponse(query.scheduleKey, execution_id, query.query, query.user)

        return self._store.write(work)

    def progress(self, info: ScheduledQueryProgressInfo | None) -> None:
        """An execution's state, reported by its engine. Raises InvalidOperationException, MetaException."""
        given = required(info, "progress")
        execution_id = required(given.scheduledExecutionId, "id of the execution")
        try:
            state = QueryState(required(given.state, "state"))
        except ValueError:
            raise MetaException(f"{given.state} is not a state of a query") from None
        if state in (QueryState.INITED, QueryState.AUTO_DISABLED):
            raise InvalidOperationException(f"invalid state: {state.name}")
        now = self._clock.seconds()

        def work(tx: Transaction) -> None:
            found = tx.schedules.execution(execution_id)
            if found is None or found.state not in _RUNNING:
                raise InvalidOperationException(f"Execution {execution_id} is not under way")
            reported = msgspec.structs.replace(
                found, state=state, last_update=now, executor_id=given.executorQueryId, error=given.errorMessage
            )
            self._note(tx, reported)

        self._store.write(work)

    def expire(self) -> int:
        """End executions without reports and forget old ones. Returns how many. Harmless on every replica."""
        now = self._clock.seconds()

        def work(tx: Transaction) -> int:
            silent = tx.schedules.silent_executions(_RUNNING, now - _SILENT_SECONDS_MAX)
            for execution in silent:
                ended = msgspec.structs.replace(
                    execution, state=QueryState.TIMED_OUT, last_update=now, error="nothing heard of it"
                )
                self._note(tx, ended)
            return len(silent) + tx.schedules.delete_executions_before(now - _EXECUTION_SECONDS_MAX)

        return self._store.write(work)

    def _create(self, given: ScheduledQuery) -> None:
        required(given.schedule, "schedule")
        new = msgspec.structs.replace(given, enabled=bool(given.enabled), nextExecution=self._first_time(given))
        if not self._store.write(lambda tx: tx.schedules.insert(new)):
            namespace, name = _key(given.scheduleKey)
            raise AlreadyExistsException(
                f"Scheduled query with name: {shown(name)} in {shown(namespace)} already exists"
            )

    def _alter(self, tx: Transaction, given: ScheduledQuery) -> None:
        stored = _load(tx, given.scheduleKey)
        old = stored.query
        changed = ScheduledQuery(
            scheduleKey=old.scheduleKey,
            enabled=old.enabled if given.enabled is None else given.enabled,
            schedule=old.schedule if given.schedule is None else given.schedule,
            user=old.user if given.user is None else given.user,
            query=old.query if given.query is None else given.query,
        )
        time = self._first_time(msgspec.structs.replace(changed, nextExecution=given.nextExecution))
        changed = msgspec.structs.replace(changed, nextExecution=time)
        failures = 0 if given.enabled else stored.failures
        tx.schedules.save(msgspec.structs.replace(stored, query=changed, failures=failures))

    def _note(self, tx: Transaction, execution: Execution) -> None:
        """Store an execution; one that has ended makes room for the next."""
        tx.schedules.save_execution(execution)
        stored = tx.schedules.of_id(execution.schedule_id)
        if execution.state in _RUNNING or stored is None:
            return
        failures = stored.failures + 1 if execution.state in _FAILED else 0
        query = stored.query
        if 0 < self._failures_max <= failures:
            query = msgspec.structs.replace(query, enabled=False)
        tx.schedules.save(StoredSchedule(stored.schedule_id, query, None, failures))

    def _first_time(self, query: ScheduledQuery) -> int | None:
        computed = _next(query.schedule, self._clock.seconds())
        return computed if query.nextExecution is None else query.nextExecution


def _load(tx: Transaction, key: ScheduledQueryKey | None) -> StoredSchedule:
    namespace, name = _key(key)
    found = tx.schedules.find(namespace, name)
    if found is None:
        raise NoSuchObjectException(f"Scheduled query with name: {shown(name)} in {shown(namespace)} doesn't exist")
    return found


def _key(key: ScheduledQueryKey | None) -> tuple[str, str]:
    given = required(key, "key of the scheduled query")
    return required(given.clusterNamespace, "clusterNamespace"), required(given.scheduleName, "scheduleName")


def _next(schedule: str | None, now_seconds: int) -> int | None:
    """Raises InvalidInputException."""
    try:
        return parse_schedule(schedule or "").next_after(now_seconds)
    except InvalidSchedule as error:
        raise InvalidInputException(f"Invalid schedule: {shown(schedule)}: {error}") from error
