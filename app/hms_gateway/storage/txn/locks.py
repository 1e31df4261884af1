"""Locks as rows, one for each component; only those that may be in a request's way are ever loaded."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    false,
    func,
    select,
)

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.txn import LOCKS, TXNS
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.lock_list import LockList, read_locks
from hms_gateway.storage.txn.state import TxnStateWrites, client_columns, object_columns, target_of
from hms_gateway.structs import LockType
from hms_gateway.txn.ports.txn import Client, LockFilter, ShownLock
from hms_gateway.txn.rules.locks import NO_TXN, STRENGTH, Lock, LockId, TxnId

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


class LockReads(Repository):
    def shown_locks(self, filter: LockFilter) -> list[ShownLock]:
        """A transaction's lock shows no heartbeat of its own (semantics §5.7)."""
        statement = _SHOWN_ROWS.where(*_filter_conditions(filter))
        return [_shown(row) for row in self._connection.execute(statement)]

    def lock_list(self, filter: LockFilter, shown_types: Mapping[LockType, LockType]) -> LockList:
        return read_locks(self._connection, list(_filter_conditions(filter)), shown_types)


class LockWrites(LockReads, TxnStateWrites):
    def silent_locks(self, before_ms: int, limit: int) -> list[LockId]:
        statement = (
            select(LOCKS.c.lock_id)
            .where(LOCKS.c.txn_id == NO_TXN, LOCKS.c.last_heartbeat_ms < before_ms)
            .distinct()
            .limit(limit)
        )
        return [LockId(lock_id) for lock_id in self._connection.execute(statement).scalars()]


def lock_insertions(
    request: Sequence[Lock], client: Client, blocker: Lock | None, now_ms: int, dialect: Dialect
) -> list[dict[str, Any]]:
    """The rows of a request. Raises UnstorableText."""
    shared = {
        **client_columns(client),
        "blocked_by_lock": None if blocker is None else blocker.lock_id,
        "blocked_by_component": None if blocker is None else blocker.number,
        "principal": client.principal,
        "client_address": client.address,
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
            "acquired_ms": now_ms,
            **shared,
        }
        for lock in request
    ]


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
