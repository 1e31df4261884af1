"""Statements that batches of units of work send: what they ask for, what they have changed, and the rows of events.

Transactions' rows follow the objects they name: gone with what is dropped, renamed with what is renamed. Locks stay as
they are (semantics §3.7): they are on names, whatever is behind them.
"""

import zlib
from collections.abc import Container, Iterable, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Executable,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from hms_gateway.metastore.ports.store import Event
from hms_gateway.runtime.presented import Actor
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import DATABASE_NOW, Statement, Values
from hms_gateway.storage.schema.catalog import CATALOG, NOTIFICATIONS, OUTCOMES
from hms_gateway.storage.schema.txn import (
    COMPACTIONS,
    COMPLETED_COMPONENTS,
    LOCKS,
    REBUILDS,
    TABLE_WRITE_IDS,
    TXN_COMPONENTS,
    TXN_COUNTERS,
    TXN_WRITE_IDS,
    TXNS,
    WRITE_SETS,
)
from hms_gateway.storage.sql.repository import check_text, is_storable
from hms_gateway.storage.txn.locks import LOCK_ROWS
from hms_gateway.storage.txn.state import COMPONENT_COLUMNS, WRITE_SET_COLUMNS
from hms_gateway.txn.rules.locks import LockId, TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnStatus

OF_PARTITIONS: Final = (TXN_COMPONENTS, COMPLETED_COMPONENTS, COMPACTIONS)
# A table that is made again begins with its first write id.
WRITE_IDS: Final = (TXN_WRITE_IDS, TABLE_WRITE_IDS)
PURGED: Final = (*OF_PARTITIONS, *WRITE_IDS)
RENAMED: Final = (*PURGED, WRITE_SETS, REBUILDS)
RENAMED_PARTITIONS: Final = (*OF_PARTITIONS, WRITE_SETS)


# PostgreSQL keeps longer values in a table of their own: 100 messages of 4.5 kB take it 3.2 ms, compressed 1.0 ms and
# 0.8 ms here. The message about 10,000 new partitions: 19 MB that are written in 40 ms, or in 25 ms as 0.26 MB.
COMPRESSED_FROM_CHARACTERS: Final = 2_000
_COMPRESSION_LEVEL: Final = 1
# zlib's tables of 256 KiB are memory that the kernel gives anew for each message: 60 to 150 µs.
# With tables of a few KiB a message of 2 to 5 kB takes 20 to 40 µs, and becomes as short.
_SHORT_BYTES: Final = 8 * 1024
_SHORT_WINDOW_BITS: Final = 13
_SHORT_MEMORY_LEVEL: Final = 5


def event_row(event: Event, event_id: int, seconds: int, actor: Actor | None = None) -> dict[str, object]:
    """Row of an event, and of who made the change. Raises UnstorableText."""
    old_db, old_table = event.renamed_from or (None, None)
    for text in (event.event_type, event.db_name, event.table_name, event.message):
        check_text("notification event", text)
    return {
        "event_id": event_id,
        "event_time": seconds,
        "event_type": event.event_type,
        "db_name": event.db_name,
        "table_name": event.table_name,
        "renamed_from_db": old_db,
        "renamed_from_table": old_table,
        **_message_columns(event.message),
        **_actor_columns(actor),
    }


def _actor_columns(actor: Actor | None) -> dict[str, object]:
    if actor is None or not is_storable(actor.user):
        return {"principal": None, "actor": None}
    text = msgspec.json.encode(actor).decode()
    return {"principal": actor.user, "actor": text if is_storable(text) else None}


def _message_columns(message: str) -> dict[str, object]:
    if len(message) < COMPRESSED_FROM_CHARACTERS:
        return {"message": message, "compressed_message": None}
    return {"message": "", "compressed_message": _compressed(message.encode())}


def _compressed(message: bytes) -> bytes:
    if len(message) > _SHORT_BYTES:
        return zlib.compress(message, _COMPRESSION_LEVEL)
    compressor = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, _SHORT_WINDOW_BITS, _SHORT_MEMORY_LEVEL)
    return compressor.compress(message) + compressor.flush()


# Where SQLite does not see to it, this lets one writer change the catalog at a time.
LOCK_CATALOG: Final = select(CATALOG.c.last_event_id).with_for_update()
COUNTERS: Final = select(TXN_COUNTERS.c.name, TXN_COUNTERS.c.last_id)
COUNTERS_AND_NOW: Final = COUNTERS.add_columns(DATABASE_NOW.scalar_subquery())
_EVENT_COLUMNS: Final = ("event_id", "event_type", "db_name", "table_name", "renamed_from_db", "renamed_from_table")
EVENTS_AFTER: Final = (
    select(*(NOTIFICATIONS.c[name] for name in _EVENT_COLUMNS))
    .where(NOTIFICATIONS.c.event_id > bindparam("after"))
    .order_by(NOTIFICATIONS.c.event_id)
    .limit(bindparam("limit"))
)
OPEN_IDS: Final = (
    select(TXNS.c.txn_id).where(TXNS.c.state == TxnStatus.OPEN.value).order_by(TXNS.c.txn_id).limit(bindparam("limit"))
)
COUNT_OPEN: Final = select(func.count()).select_from(TXNS).where(TXNS.c.state == TxnStatus.OPEN.value)
TXN_OF_REFUSED_LOCK: Final = select(TXNS).where(TXNS.c.refused_lock == bindparam("the_lock"))
NEW_COUNTER: Final = insert(TXN_COUNTERS)
NEW_TXN: Final = insert(TXNS)
NEW_WRITE: Final = insert(TXN_COMPONENTS)
NEW_WRITE_SET: Final = insert(WRITE_SETS)
NEW_LOCK: Final = insert(LOCKS)
NEW_OUTCOME: Final = insert(OUTCOMES)
NEW_EVENT: Final = insert(NOTIFICATIONS)
SET_VERSION: Final = update(CATALOG).values(last_event_id=bindparam("newest"))
SET_COUNTER: Final = (
    update(TXN_COUNTERS).where(TXN_COUNTERS.c.name == bindparam("the_name")).values(last_id=bindparam("last_id"))
)
SET_BLOCKER: Final = (
    update(LOCKS)
    .where(LOCKS.c.lock_id == bindparam("the_lock"), LOCKS.c.is_acquired.is_(False))
    .values(blocked_by_lock=bindparam("blocker"), blocked_by_component=bindparam("number"))
)

# Locks that may be in the way of a request on a database, and below a partition's name.
_STRONG_ENOUGH: Final = and_(LOCKS.c.strength >= bindparam("least_strength"), LOCKS.c.db_name == bindparam("the_db"))
IN_DATABASE: Final = LOCK_ROWS.where(_STRONG_ENOUGH).limit(bindparam("limit"))
_ON_TABLE: Final = and_(_STRONG_ENOUGH, LOCKS.c.table_name.in_(["", bindparam("the_table")]))
BELOW_PARTITION: Final = LOCK_ROWS.where(
    _ON_TABLE, func.substr(LOCKS.c.partition_name, 1, bindparam("characters")) == bindparam("below")
)


class BatchStatements:
    """For one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        def among(column: ColumnElement[Any]) -> ColumnElement[bool]:
            return dialect.is_in_list(column, "ids")

        now_ms: ColumnElement[Any] = bindparam("now_ms")
        open_txns = update(TXNS).where(among(TXNS.c.txn_id), TXNS.c.state == TxnStatus.OPEN.value)
        components = select(*(TXN_COMPONENTS.c[name] for name in COMPONENT_COLUMNS))
        of_txns = among(TXN_COMPONENTS.c.txn_id)
        self.txns = dialect.with_ids(select(TXNS), TXNS.c.txn_id)
        self.components = dialect.with_ids(components, TXN_COMPONENTS.c.txn_id)
        write_ids = select(*(TXN_WRITE_IDS.c[name] for name in ("txn_id", "db_name", "table_name", "write_id")))
        self.write_ids = dialect.with_ids(write_ids, TXN_WRITE_IDS.c.txn_id)
        self.requests = dialect.with_ids(LOCK_ROWS, LOCKS.c.lock_id)
        self.lock_users = dialect.with_ids(select(LOCKS.c.lock_id, LOCKS.c.user_name), LOCKS.c.lock_id)
        self.commit = open_txns.values(state=TxnStatus.COMMITTED.value, ended_ms=now_ms)
        self.abort = open_txns.values(
            state=TxnStatus.ABORTED.value,
            ended_ms=now_ms,
            reason=bindparam("the_reason"),
            refused_lock=bindparam("the_refused_lock"),
        )
        self.refresh_txns = open_txns.values(last_heartbeat_ms=now_ms)
        self.complete = insert(COMPLETED_COMPONENTS).from_select(list(COMPONENT_COLUMNS), components.where(of_txns))
        self.delete_components = delete(TXN_COMPONENTS).where(of_txns)
        # Not as a parameter, so that the index over locks with a transaction is known to have them all.
        has_txn = LOCKS.c.txn_id > literal_column("0")
        self.locks_of_txns = dialect.with_ids(LOCK_ROWS.where(has_txn), LOCKS.c.txn_id)
        self.delete_locks_of_txns = delete(LOCKS).where(among(LOCKS.c.txn_id), has_txn)
        # On tables; the parameters are those of `Dialect.with_pairs`, `least_strength` and `limit`.
        strong_enough = LOCK_ROWS.where(LOCKS.c.strength >= bindparam("least_strength"))
        in_places = dialect.with_pairs(strong_enough, LOCKS.c.db_name, LOCKS.c.table_name)
        self.candidates = in_places.limit(bindparam("limit"))
        self.delete_locks = delete(LOCKS).where(among(LOCKS.c.lock_id))
        self.refresh_locks = (
            update(LOCKS).where(among(LOCKS.c.lock_id), LOCKS.c.txn_id == 0).values(last_heartbeat_ms=now_ms)
        )
        outcomes = select(OUTCOMES.c.principal, OUTCOMES.c.call_key)
        self.outcomes = dialect.with_pairs(outcomes, OUTCOMES.c.principal, OUTCOMES.c.call_key)
        self.grant = (
            update(LOCKS)
            .where(among(LOCKS.c.lock_id))
            .values(is_acquired=True, acquired_ms=now_ms, blocked_by_lock=None, blocked_by_component=None)
        )


batch_statements: Final = cache(BatchStatements)


@cache
def over_partition(dialect: Dialect) -> Select[Any]:
    """Locks that contain a partition; `names` has its name, the prefixes of that, and "" for table and database."""
    return LOCK_ROWS.where(_ON_TABLE, dialect.is_in_list(LOCKS.c.partition_name, "names"))


def committed_since(txn_id: int, targets: Iterable[Target], dialect: Dialect) -> Statement:
    """Rows of WRITE_SET_COLUMNS; as two lists, so some of what it finds lies in other databases' tables."""
    targets = [target for target in targets if is_storable(target.db_name) and is_storable(target.table_name or "")]
    values = {
        "the_txn": txn_id,
        "db_names": dialect.bound_list({target.db_name for target in targets}),
        "table_names": dialect.bound_list({target.table_name or "" for target in targets}),
    }
    return Statement(_committed_since(dialect), values)


@cache
def _committed_since(dialect: Dialect) -> Select[Any]:
    return select(*(WRITE_SETS.c[name] for name in WRITE_SET_COLUMNS)).where(
        dialect.is_in_list(WRITE_SETS.c.db_name, "db_names"),
        dialect.is_in_list(WRITE_SETS.c.table_name, "table_names"),
        WRITE_SETS.c.commit_id >= bindparam("the_txn"),
    )


class BatchChanges:
    """Rows and ids. Mappings keep the order in which they were changed."""

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.new_txns: dict[TxnId, list[dict[str, Any]]] = {}
        self.new_writes: dict[TxnId, list[dict[str, Any]]] = {}
        self.write_sets: dict[TxnId, list[dict[str, Any]]] = {}
        self.commits: dict[int, bool] = {}
        self.aborts: dict[int, tuple[str | None, LockId | None]] = {}
        self.refreshed_txns: dict[int, None] = {}
        self.new_locks: dict[LockId, list[dict[str, Any]]] = {}
        self.refreshed_locks: dict[int, None] = {}
        self.deleted_locks: dict[int, None] = {}
        self.grants: dict[int, None] = {}
        self.blockers: dict[int, tuple[int, int]] = {}
        self.outcomes: dict[tuple[str, str], dict[str, Any]] = {}
        self.events: dict[int, Event] = {}

    def has_ended(self, txn_id: int) -> bool:
        return txn_id in self.commits or txn_id in self.aborts

    def is_gone(self, lock_id: int, txn_id: int) -> bool:
        """Tell whether a lock was deleted, or has ended with its transaction."""
        return lock_id in self.deleted_locks or txn_id in self.commits or txn_id in self.aborts

    def statements(
        self, dialect: Dialect, now_ms: int, stored_counters: Container[str], first_event_id: int, seconds: int
    ) -> list[Statement]:
        """Statements that write it, in this order: heartbeats are of transactions that are open still."""
        return [
            *self._counters(stored_counters),
            *_insertion(NEW_TXN, self.new_txns.values()),
            *_insertion(NEW_WRITE, self.new_writes.values()),
            *_insertion(NEW_WRITE_SET, self.write_sets.values()),
            *self._heartbeats(dialect, now_ms),
            *self._ends(dialect, now_ms),
            *self._locks(dialect, now_ms),
            *_insertion(NEW_OUTCOME, [list(self.outcomes.values())]),
            *self._log(first_event_id, seconds),
        ]

    def _log(self, first_id: int, seconds: int) -> Iterable[Statement]:
        rows = [event_row(event, first_id + place, seconds) for place, event in enumerate(self.events.values())]
        yield from _insertion(NEW_EVENT, [rows])
        if rows:
            yield Statement(SET_VERSION, {"newest": first_id + len(rows) - 1})

    def _counters(self, stored: Container[str]) -> Iterable[Statement]:
        for name, last_id in self.counters.items():
            if name in stored:
                yield Statement(SET_COUNTER, {"the_name": name, "last_id": last_id})
            else:
                yield Statement(NEW_COUNTER, {"name": name, "last_id": last_id})

    def _heartbeats(self, dialect: Dialect, now_ms: int) -> Iterable[Statement]:
        statements = batch_statements(dialect)
        if self.refreshed_txns:
            yield Statement(statements.refresh_txns, {"ids": dialect.bound_list(self.refreshed_txns), "now_ms": now_ms})
        if self.refreshed_locks:
            locks = dialect.bound_list(self.refreshed_locks)
            yield Statement(statements.refresh_locks, {"ids": locks, "now_ms": now_ms})

    def _ends(self, dialect: Dialect, now_ms: int) -> Iterable[Statement]:
        statements = batch_statements(dialect)
        if self.commits:
            yield Statement(statements.commit, {"ids": dialect.bound_list(self.commits), "now_ms": now_ms})
        for reason, refused_lock in dict.fromkeys(self.aborts.values()):
            ids = [txn_id for txn_id, why in self.aborts.items() if why == (reason, refused_lock)]
            why = {"the_reason": reason, "the_refused_lock": refused_lock}
            yield Statement(statements.abort, {"ids": dialect.bound_list(ids), "now_ms": now_ms, **why})
        if self.commits or self.aborts:
            ended = dialect.bound_list([*self.commits, *self.aborts])
            yield Statement(statements.delete_locks_of_txns, {"ids": ended})
        if written := [txn_id for txn_id, has_writes in self.commits.items() if has_writes]:
            yield Statement(statements.complete, {"ids": dialect.bound_list(written)})
            yield Statement(statements.delete_components, {"ids": dialect.bound_list(written)})

    def _locks(self, dialect: Dialect, now_ms: int) -> Iterable[Statement]:
        """New ones that the batch has taken away again are not inserted."""
        statements = batch_statements(dialect)
        kept = (rows for rows in self.new_locks.values() if not self.is_gone(rows[0]["lock_id"], rows[0]["txn_id"]))
        yield from _insertion(NEW_LOCK, kept)
        if self.deleted_locks:
            yield Statement(statements.delete_locks, {"ids": dialect.bound_list(self.deleted_locks)})
        if self.grants:
            yield Statement(statements.grant, {"ids": dialect.bound_list(self.grants), "now_ms": now_ms})
        for lock_id, (blocker, number) in self.blockers.items():
            yield Statement(SET_BLOCKER, {"the_lock": lock_id, "blocker": blocker, "number": number})


def _insertion(sql: Executable, rows: Iterable[Sequence[Values]]) -> Iterable[Statement]:
    together = [row for some in rows for row in some]
    if together:
        yield Statement(sql, together)
