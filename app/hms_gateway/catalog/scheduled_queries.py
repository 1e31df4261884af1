"""Scheduled queries (4.x): engines store them, ask which one is due, and report its execution."""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NewType

import msgspec
from sqlalchemy import ColumnElement, Row, delete, insert, select, update

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Store, Transaction
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollRequest,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.schema.catalog import SCHEDULED_EXECUTIONS, SCHEDULED_QUERIES
from hms_gateway.storage.sql.fragments import decode_struct, decode_texts, encode_struct, encode_texts, text_hash
from hms_gateway.storage.sql.repository import AggregateRows

# An execution without reports has ended (metastore.scheduled.queries.execution.timeout).
_SILENT_SECONDS_MAX: Final = 120
# metastore.scheduled.queries.execution.max.age
_EXECUTION_SECONDS_MAX: Final = 30 * 86_400
_RUNNING: Final = (QueryState.INITED, QueryState.EXECUTING)

ScheduleId = NewType("ScheduleId", int)
ExecutionId = NewType("ExecutionId", int)


class StoredSchedule(msgspec.Struct, frozen=True):
    """A scheduled query, and the execution that is under way."""

    schedule_id: ScheduleId
    query: ScheduledQuery
    active: ExecutionId | None


class Execution(msgspec.Struct, frozen=True):
    """One execution of a scheduled query; `state` is a QueryState, times in seconds."""

    execution_id: ExecutionId
    schedule_id: ScheduleId
    state: int
    start_time: int
    last_update: int
    executor_id: str | None = None
    error: str | None = None


class ScheduleRows(AggregateRows):
    def find(self, namespace: str, name: str) -> StoredSchedule | None:
        return self._first(
            (SCHEDULED_QUERIES.c.namespace_hash == text_hash(namespace))
            & (SCHEDULED_QUERIES.c.name_hash == text_hash(name))
        )

    def of_id(self, schedule_id: ScheduleId) -> StoredSchedule | None:
        return self._first(SCHEDULED_QUERIES.c.query_id == schedule_id)

    def due(self, namespace: str, now_seconds: int) -> StoredSchedule | None:
        """The enabled query whose time came first, of those not being executed."""
        return self._first(
            (SCHEDULED_QUERIES.c.namespace_hash == text_hash(namespace))
            & (SCHEDULED_QUERIES.c.next_execution <= now_seconds)
            & SCHEDULED_QUERIES.c.is_enabled.is_(True)
            & SCHEDULED_QUERIES.c.active_execution.is_(None)
        )

    def insert(self, query: ScheduledQuery) -> bool:
        """False when there is one of its key."""
        namespace, name = _key_of(query)
        if self.find(namespace, name) is not None:
            return False
        row = {
            "namespace_hash": text_hash(namespace),
            "name_hash": text_hash(name),
            "active_execution": None,
            # Not counted, since no query is turned off for its failures.
            "failures": 0,
            **_columns(query),
        }
        self._connection.execute(insert(SCHEDULED_QUERIES).values(row))
        return True

    def save(self, stored: StoredSchedule) -> None:
        """Replace everything but the key."""
        row = {"active_execution": stored.active, **_columns(stored.query)}
        is_it = SCHEDULED_QUERIES.c.query_id == stored.schedule_id
        self._connection.execute(update(SCHEDULED_QUERIES).where(is_it).values(row))

    def delete(self, schedule_id: ScheduleId) -> None:
        """Delete the query with its executions."""
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
        """Executions in one of the states whose last update is older."""
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


class ScheduledQueries:
    """Methods on queries by the namespace of a cluster and their own name. One is executed at most once at a time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def scheduled_query_poll(self, call: Call, request: ScheduledQueryPollRequest) -> ScheduledQueryPollResponse:
        """A query that is due, handed to this caller alone; nothing when none is."""
        cluster = required(required(request, "request").clusterNamespace, "clusterNamespace")
        now = self._clock.seconds()

        def work(tx: Transaction) -> ScheduledQueryPollResponse:
            rows = ScheduleRows(tx)
            found = rows.due(cluster, now)
            if found is None:
                return ScheduledQueryPollResponse()
            execution_id = rows.insert_execution(found.schedule_id, QueryState.INITED, now)
            following = msgspec.structs.replace(found.query, nextExecution=_next(found.query.schedule, now))
            rows.save(msgspec.structs.replace(found, query=following, active=execution_id))
            query = found.query
            return ScheduledQueryPollResponse(query.scheduleKey, execution_id, query.query, query.user)

        return self._store.write(work)

    def scheduled_query_maintenance(self, call: Call, request: ScheduledQueryMaintenanceRequest) -> None:
        """Create, alter or drop."""
        kind = required(request, "request").type
        given = required(request.scheduledQuery, "scheduled query")
        _key(given.scheduleKey)
        if kind == ScheduledQueryMaintenanceRequestType.CREATE:
            self._create(given)
        elif kind == ScheduledQueryMaintenanceRequestType.ALTER:
            self._store.write(lambda tx: self._alter(ScheduleRows(tx), given))
        elif kind == ScheduledQueryMaintenanceRequestType.DROP:
            self._store.write(lambda tx: _drop(ScheduleRows(tx), given.scheduleKey))
        else:
            raise MetaException(f"{kind} is not a kind of maintenance")

    def scheduled_query_progress(self, call: Call, info: ScheduledQueryProgressInfo) -> None:
        """An execution's state, reported by its engine."""
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
            rows = ScheduleRows(tx)
            found = rows.execution(execution_id)
            if found is None or found.state not in _RUNNING:
                raise InvalidOperationException(f"Execution {execution_id} is not under way")
            reported = msgspec.structs.replace(
                found, state=state, last_update=now, executor_id=given.executorQueryId, error=given.errorMessage
            )
            _note(rows, reported)

        self._store.write(work)

    def get_scheduled_query(self, call: Call, scheduleKey: ScheduledQueryKey) -> ScheduledQuery:
        namespace, name = _key(scheduleKey)
        found = self._store.read(lambda snapshot: ScheduleRows(snapshot).find(namespace, name))
        if found is None:
            raise NoSuchObjectException(f"There is no scheduled query for: {shown(name)} in {shown(namespace)}")
        return found.query

    def _create(self, given: ScheduledQuery) -> None:
        required(given.schedule, "schedule")
        new = msgspec.structs.replace(given, enabled=bool(given.enabled), nextExecution=self._first_time(given))
        if not self._store.write(lambda tx: ScheduleRows(tx).insert(new)):
            namespace, name = _key(given.scheduleKey)
            raise AlreadyExistsException(
                f"Scheduled query with name: {shown(name)} in {shown(namespace)} already exists"
            )

    def _alter(self, rows: ScheduleRows, given: ScheduledQuery) -> None:
        stored = _load(rows, given.scheduleKey)
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
        rows.save(msgspec.structs.replace(stored, query=changed))

    def _first_time(self, query: ScheduledQuery) -> int | None:
        computed = _next(query.schedule, self._clock.seconds())
        return computed if query.nextExecution is None else query.nextExecution


def expire_executions(store: Store, clock: Clock) -> int:
    """End executions without reports and forget old ones. Returns how many. Harmless on every replica."""
    now = clock.seconds()

    def work(tx: Transaction) -> int:
        rows = ScheduleRows(tx)
        silent = rows.silent_executions(_RUNNING, now - _SILENT_SECONDS_MAX)
        for execution in silent:
            ended = msgspec.structs.replace(
                execution, state=QueryState.TIMED_OUT, last_update=now, error="nothing heard of it"
            )
            _note(rows, ended)
        return len(silent) + rows.delete_executions_before(now - _EXECUTION_SECONDS_MAX)

    return store.write(work)


def _note(rows: ScheduleRows, execution: Execution) -> None:
    """Store an execution; one that has ended makes room for the next."""
    rows.save_execution(execution)
    stored = rows.of_id(execution.schedule_id)
    if execution.state not in _RUNNING and stored is not None:
        rows.save(msgspec.structs.replace(stored, active=None))


def _drop(rows: ScheduleRows, key: ScheduledQueryKey | None) -> None:
    rows.delete(_load(rows, key).schedule_id)


def _load(rows: ScheduleRows, key: ScheduledQueryKey | None) -> StoredSchedule:
    namespace, name = _key(key)
    found = rows.find(namespace, name)
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


def _key_of(query: ScheduledQuery) -> tuple[str, str]:
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
    return StoredSchedule(ScheduleId(row.query_id), whole, active)


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


_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_YEARS: Final = (1970, 2099)
_CHARACTERS_MAX: Final = 500


class InvalidSchedule(ValueError):
    """A text is not a cron expression; the message says why."""


class Schedule(msgspec.Struct, frozen=True):
    """A cron expression in Quartz's form, as scheduled queries have it.

    Six or seven fields: seconds, minutes, hours, day of month, month, day of week, and perhaps the year. A field is
    `*`, or a list of values, ranges and steps (`1,5-9,0/15`); months and days have names. One of the two day fields is
    `?`, or both hold. Days of month also know `L` (the last), `L-3`, `15W` (the nearest weekday) and `LW`; days of week
    count from 1, Sunday, and know `6L` (the last Friday) and `6#3` (the third one). Times are UTC.
    """

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: str
    months: frozenset[int]
    weekdays: str
    years: frozenset[int]

    def next_after(self, seconds: int) -> int | None:
        """The first time after `seconds`, both since the epoch; None when there is none up to 2099."""
        start = datetime.fromtimestamp(seconds, UTC) + timedelta(seconds=1)
        day, earliest = start.date(), (start.hour, start.minute, start.second)
        while day.year <= _YEARS[1]:
            if day.year not in self.years:
                day = date(day.year + 1, 1, 1)
            elif day.month not in self.months:
                day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
            else:
                found = self._time_of_day(earliest) if self._is_on(day) else None
                if found is not None:
                    return int(datetime(day.year, day.month, day.day, *found, tzinfo=UTC).timestamp())
                day += timedelta(days=1)
            earliest = (0, 0, 0)
        return None

    def _is_on(self, day: date) -> bool:
        return _is_day_of_month(self.days, day) and _is_weekday(self.weekdays, day)

    def _time_of_day(self, earliest: tuple[int, int, int]) -> tuple[int, int, int] | None:
        times = ((hour, minute, second) for hour in self.hours for minute in self.minutes for second in self.seconds)
        if earliest == (0, 0, 0):
            return next(times)
        return next((time for time in times if time >= earliest), None)


def parse_schedule(text: str) -> Schedule:
    """Raises InvalidSchedule."""
    fields = text.upper().split()
    if len(fields) not in (6, 7) or len(text) > _CHARACTERS_MAX:
        raise InvalidSchedule("a schedule has six or seven fields")
    seconds, minutes, hours, days, months, weekdays = fields[:6]
    if days == "?" and weekdays == "?":
        raise InvalidSchedule("only one of the two day fields may be ?")
    schedule = Schedule(
        _sorted(seconds, 0, 59),
        _sorted(minutes, 0, 59),
        _sorted(hours, 0, 23),
        days,
        frozenset(_numbers(months, 1, 12, _MONTHS)),
        weekdays,
        frozenset(_numbers(fields[6] if len(fields) == 7 else "*", *_YEARS)),
    )
    # Both are evaluated day by day: whatever is wrong with them shows here.
    for day in (date(2024, 2, 1), date(2024, 3, 1)):
        _is_day_of_month(days, day)
        _is_weekday(weekdays, day)
    return schedule


def _sorted(field: str, low: int, high: int) -> tuple[int, ...]:
    return tuple(sorted(set(_numbers(field, low, high))))


def _numbers(field: str, low: int, high: int, names: tuple[str, ...] = ()) -> Iterator[int]:
    for part in field.split(","):
        whole, slash, step_text = part.partition("/")
        first_text, dash, last_text = whole.partition("-")
        if whole in ("*", "?"):
            first, last = low, high
        else:
            first = _number(first_text, low, high, names)
            last = _number(last_text, low, high, names) if dash else high if slash else first
        step = _number(step_text, 1, high, ()) if slash else 1
        # A range may go past the end: 22-2 is 22, 23, 0, 1, 2.
        size = high - low + 1
        for offset in range(0, (last - first) % size + 1, step):
            yield (first - low + offset) % size + low


def _number(text: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + low
    if not (text.isascii() and text.isdigit()) or len(text) > 4 or not low <= int(text) <= high:
        raise InvalidSchedule(f"{text[:20]!r} is not between {low} and {high}")
    return int(text)


def _is_day_of_month(field: str, day: date) -> bool:
    last = monthrange(day.year, day.month)[1]
    for part in field.split(","):
        if part in ("*", "?"):
            return True
        if part == "L":
            found = {last}
        elif part == "LW":
            found = {_nearest_weekday(day, last)}
        elif part.startswith("L-"):
            found = {last - _number(part[2:], 0, 30, ())}
        elif part.endswith("W"):
            found = {_nearest_weekday(day, min(_number(part[:-1], 1, 31, ()), last))}
        else:
            found = set(_numbers(part, 1, 31))
        if day.day in found:
            return True
    return False


def _nearest_weekday(day: date, wanted: int) -> int:
    """The weekday of the month that is nearest to a day of it."""
    last = monthrange(day.year, day.month)[1]
    weekday = day.replace(day=wanted).weekday()
    if weekday == 5:
        return wanted - 1 if wanted > 1 else wanted + 2
    if weekday == 6:
        return wanted + 1 if wanted < last else wanted - 2
    return wanted


def _is_weekday(field: str, day: date) -> bool:
    number = day.isoweekday() % 7 + 1
    last = monthrange(day.year, day.month)[1]
    for part in field.split(","):
        if part in ("*", "?"):
            return True
        if part == "L":
            is_on = number == 7
        elif part.endswith("L"):
            is_on = number == _number(part[:-1], 1, 7, _DAYS) and day.day > last - 7
        elif "#" in part:
            weekday, _, which = part.partition("#")
            is_on = number == _number(weekday, 1, 7, _DAYS) and (day.day + 6) // 7 == _number(which, 1, 5, ())
        else:
            is_on = number in _numbers(part, 1, 7, _DAYS)
        if is_on:
            return True
    return False
