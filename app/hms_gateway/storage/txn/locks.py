"""Locks as rows, one for each component; only those that may be in a request's way are ever loaded."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    update,
)

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.txn import LOCKS, TXNS
from hms_gateway.storage.sql.filter_sql import has_id_among, is_among
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.lock_list import LockList, read_locks
from hms_gateway.storage.txn.state import TxnStateWrites, client_columns, object_columns, target_of
from hms_gateway.structs import LockType
from hms_gateway.txn.ports.txn import Client, LockFilter, ShownLock
from hms_gateway.txn.rules.locks import NO_TXN, STRENGTH, Lock, LockId, TxnId, weakest_conflicting

_NO_LIMIT: Final = 2**31 - 1
_TYPES: Final = {strength: type for type, strength in STRENGTH.items()}

# A transaction's heartbeat is that of its locks.
LOCK_ROWS: Final = select(
    LOCKS.c.lock_id,
    LOCKS.c.component_number,
    LOCKS.c.txn_id,
    LOCKS.c.db_name,
    LOCKS.c.table_name,
    LOCKS.c.partition_name,
    LOCKS.c.strength,
    LOCKS.c.is_acquired,
    LOCKS.c.shares_writes,
    func.coalesce(TXNS.c.last_heartbeat_ms, LOCKS.c.last_heartbeat_ms),
).select_from(LOCKS.outerjoin(TXNS, TXNS.c.txn_id == LOCKS.c.txn_id))

_SHOWN_ROWS: Final = select(
    LOCKS.c.lock_id,
    LOCKS.c.component_number,
    LOCKS.c.txn_id,
    LOCKS.c.db_name,
    LOCKS.c.table_name,
    LOCKS.c.partition_name,
    LOCKS.c.strength,
    LOCKS.c.is_acquired,
    LOCKS.c.shares_writes,
    LOCKS.c.last_heartbeat_ms,
    LOCKS.c.acquired_ms,
    LOCKS.c.user_name,
    LOCKS.c.host_name,
    LOCKS.c.agent_info,
    LOCKS.c.blocked_by_lock,
    LOCKS.c.blocked_by_component,
)

_REQUEST: Final = LOCK_ROWS.where(LOCKS.c.lock_id == bindparam("the_lock")).order_by(LOCKS.c.component_number)

_OF_OTHERS: Final = and_(
    LOCKS.c.strength >= bindparam("least_strength"),
    LOCKS.c.lock_id != bindparam("own_lock"),
    LOCKS.c.txn_id != bindparam("own_txn"),
)
_IN_DATABASE: Final = LOCKS.c.db_name == bindparam("the_db")
_OVER_TABLE: Final = and_(_IN_DATABASE, LOCKS.c.table_name.in_(["", bindparam("the_table")]))
_OVER_PARTITION: Final = and_(_OVER_TABLE, LOCKS.c.partition_name.in_(["", bindparam("the_partition")]))
_CANDIDATES: Final = tuple(
    LOCK_ROWS.where(overlap, _OF_OTHERS).limit(bindparam("limit_count"))
    for overlap in (_IN_DATABASE, _OVER_TABLE, _OVER_PARTITION)
)

_GRANT: Final = (
    update(LOCKS)
    .where(LOCKS.c.lock_id == bindparam("the_lock"))
    .values(is_acquired=True, acquired_ms=bindparam("now_ms"), blocked_by_lock=None, blocked_by_component=None)
)
_BLOCKER: Final = (
    update(LOCKS)
    .where(LOCKS.c.lock_id == bindparam("the_lock"))
    .values(blocked_by_lock=bindparam("blocker"), blocked_by_component=bindparam("blocker_number"))
)
_HEARTBEAT: Final = (
    update(LOCKS)
    .where(LOCKS.c.lock_id == bindparam("the_lock"), LOCKS.c.txn_id == NO_TXN)
    .values(last_heartbeat_ms=bindparam("now_ms"))
)
_DELETE: Final = delete(LOCKS).where(LOCKS.c.lock_id == bindparam("the_lock"))
_OF_TXN: Final = and_(LOCKS.c.txn_id == bindparam("the_txn"), LOCKS.c.txn_id > 0)
_ANY_OF_TXN: Final = select(LOCKS.c.lock_id).where(_OF_TXN).limit(1)
_HELD_BY_TXN: Final = LOCK_ROWS.where(_OF_TXN, LOCKS.c.is_acquired.is_(True))


class LockReads(Repository):
    def shown_locks(self, filter: LockFilter) -> list[ShownLock]:
        """A transaction's lock shows no heartbeat of its own (semantics §5.7)."""
        statement = _SHOWN_ROWS.where(*_filter_conditions(filter))
        return [_shown(row) for row in self._connection.execute(statement)]

    def lock_list(self, filter: LockFilter, shown_types: Mapping[LockType, LockType]) -> LockList:
        return read_locks(self._connection, list(_filter_conditions(filter)), shown_types)


class LockWrites(LockReads, TxnStateWrites):
    def next_lock_id(self) -> LockId:
        return LockId(self._next_ids("lock", 1))

    def insert_request(self, request: Sequence[Lock], client: Client, blocker: Lock | None) -> None:
        self._connection.execute(insert(LOCKS), lock_insertions(request, client, blocker, self.now_ms(), self._dialect))

    def request(self, lock_id: int) -> list[Lock]:
        return locks_of(self._connection.execute(_REQUEST, {"the_lock": lock_id}))

    def waiting_requests(self, txn_ids: Sequence[TxnId], lock_ids: Sequence[LockId]) -> list[Lock]:
        if not txn_ids and not lock_ids:
            return []
        wanted = or_(
            and_(has_id_among(LOCKS.c.txn_id, txn_ids, self._dialect), LOCKS.c.txn_id > 0),
            has_id_among(LOCKS.c.lock_id, lock_ids, self._dialect),
        )
        statement = LOCK_ROWS.where(wanted, LOCKS.c.is_acquired.is_(False))
        return locks_of(self._connection.execute(statement.order_by(LOCKS.c.lock_id, LOCKS.c.component_number)))

    def has_locks(self, txn_id: TxnId) -> bool:
        return self._connection.execute(_ANY_OF_TXN, {"the_txn": txn_id}).first() is not None

    def held_locks(self, txn_id: TxnId) -> list[Lock]:
        return locks_of(self._connection.execute(_HELD_BY_TXN, {"the_txn": txn_id}))

    def conflict_candidates(self, request: Sequence[Lock], limit: int | None = None) -> list[Lock]:
        first = request[0]
        values = {
            "own_lock": first.lock_id,
            # Locks without a transaction belong to nobody, so nothing is excluded for them.
            "own_txn": first.txn_id or -1,
            "least_strength": min(weakest_conflicting(lock.type) for lock in request),
            "limit_count": limit or _NO_LIMIT,
        }
        if len(request) == 1:
            names = [name for name in first.target if name is not None]
            if not all(is_storable(name) for name in names):
                return []
            named = dict(zip(("the_db", "the_table", "the_partition"), names, strict=False))
            return locks_of(self._connection.execute(_CANDIDATES[len(names) - 1], {**values, **named}))
        statement = LOCK_ROWS.where(self._near(request), _OF_OTHERS).limit(bindparam("limit_count"))
        return locks_of(self._connection.execute(statement, values))

    def grant(self, lock_id: LockId) -> None:
        self._connection.execute(_GRANT, {"the_lock": lock_id, "now_ms": self.now_ms()})

    def set_blocker(self, lock_id: LockId, blocker: Lock) -> None:
        values = {"the_lock": lock_id, "blocker": blocker.lock_id, "blocker_number": blocker.number}
        self._connection.execute(_BLOCKER, values)

    def refresh_lock(self, lock_id: LockId) -> None:
        self._connection.execute(_HEARTBEAT, {"the_lock": lock_id, "now_ms": self.now_ms()})

    def delete_locks(self, lock_ids: Sequence[LockId]) -> None:
        if len(lock_ids) == 1:
            self._connection.execute(_DELETE, {"the_lock": lock_ids[0]})
        else:
            condition = has_id_among(LOCKS.c.lock_id, lock_ids, self._dialect)
            self._connection.execute(delete(LOCKS).where(condition))

    def silent_locks(self, before_ms: int, limit: int) -> list[LockId]:
        statement = (
            select(LOCKS.c.lock_id)
            .where(LOCKS.c.txn_id == NO_TXN, LOCKS.c.last_heartbeat_ms < before_ms)
            .distinct()
            .limit(limit)
        )
        return [LockId(lock_id) for lock_id in self._connection.execute(statement).scalars()]

    def _near(self, request: Sequence[Lock]) -> ColumnElement[bool]:
        """A request of many components, as two lists: some of what it finds lies in other databases' tables."""
        databases = {lock.target.db_name for lock in request}
        condition = is_among(LOCKS.c.db_name, databases, self._dialect)
        if any(lock.target.table_name is None for lock in request):
            return condition
        tables = {"", *(lock.target.table_name or "" for lock in request)}
        return and_(condition, is_among(LOCKS.c.table_name, tables, self._dialect))


def lock_insertions(
    request: Sequence[Lock], client: Client, blocker: Lock | None, now_ms: int, dialect: Dialect
) -> list[dict[str, Any]]:
    """The rows of a request. Raises UnstorableText."""
    shared = {
        **client_columns(client),
        "blocked_by_lock": None if blocker is None else blocker.lock_id,
        "blocked_by_component": None if blocker is None else blocker.number,
    }
    return [
        {
            "lock_id": lock.lock_id,
            "component_number": lock.number,
            "txn_id": lock.txn_id,
            **object_columns(lock.target, dialect),
            "strength": STRENGTH[lock.type],
            "is_acquired": lock.is_acquired,
            "shares_writes": lock.shares_writes,
            "last_heartbeat_ms": 0 if lock.txn_id != NO_TXN else now_ms,
            "acquired_ms": now_ms if lock.is_acquired else None,
            **shared,
        }
        for lock in request
    ]


@cache
def near_places(dialect: Dialect) -> Select[Any]:
    """The parameters are those of `with_bound_pairs` for databases and tables, `least_strength`, and `limit`."""
    rows = LOCK_ROWS.where(LOCKS.c.strength >= bindparam("least_strength"))
    return dialect.with_pairs(rows, LOCKS.c.db_name, LOCKS.c.table_name).limit(bindparam("limit"))


def _filter_conditions(filter: LockFilter) -> Iterable[ColumnElement[bool]]:
    for column, name in (
        (LOCKS.c.db_name, filter.db_name),
        (LOCKS.c.table_name, filter.table_name),
        (LOCKS.c.partition_name, filter.partition_name),
    ):
        if name is not None:
            yield column == name if name and is_storable(name) else false()
    if filter.txn_id is not None:
        yield LOCKS.c.txn_id == filter.txn_id


def locks_of(rows: Iterable[Any]) -> list[Lock]:
    """Of LOCK_ROWS."""
    return [
        Lock(
            LockId(lock_id),
            number,
            TxnId(txn_id),
            target_of(db_name, table_name, partition_name),
            _TYPES[strength],
            is_acquired,
            shares_writes,
            heartbeat_ms,
        )
        for (
            lock_id,
            number,
            txn_id,
            db_name,
            table_name,
            partition_name,
            strength,
            is_acquired,
            shares_writes,
            heartbeat_ms,
        ) in rows
    ]


def _shown(row: Any) -> ShownLock:
    # Unpacked at once: reading a row's columns by name takes most of the time of a long list.
    *of_lock, acquired_ms, user, host, agent_info, blocker_id, blocker_number = row
    (lock,) = locks_of([of_lock])
    blocker = None if blocker_id is None else (LockId(blocker_id), blocker_number)
    return ShownLock(lock, Client(user, host, agent_info), acquired_ms, blocker)
