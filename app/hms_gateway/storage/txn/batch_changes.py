"""What a batch changes (`storage.txn.batch`), and the statements that write it."""

from collections.abc import Container, Iterable, Sequence
from typing import Any

from sqlalchemy import Executable

from hms_gateway.metastore.ports.store import Event
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Statement, Values
from hms_gateway.storage.sql.event_rows import event_row
from hms_gateway.storage.txn.batch_statements import (
    NEW_COUNTER,
    NEW_EVENT,
    NEW_LOCK,
    NEW_OUTCOME,
    NEW_TXN,
    NEW_WRITE,
    NEW_WRITE_SET,
    SET_BLOCKER,
    SET_COUNTER,
    SET_VERSION,
    batch_statements,
)
from hms_gateway.txn.rules.locks import LockId, TxnId


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
        """Whether a lock was deleted, or has ended with its transaction."""
        return lock_id in self.deleted_locks or txn_id in self.commits or txn_id in self.aborts

    def statements(
        self, dialect: Dialect, now_ms: int, stored_counters: Container[str], first_event_id: int, seconds: int
    ) -> list[Statement]:
        """What writes it, in this order: heartbeats are of transactions that are open still."""
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
