"""Units of work on transactions and locks that run together: what they ask for is read for all of them at once, what
they change is written for all at once.

Each still runs alone, one after the other, over values that already contain what those before it changed; one that
raises takes its changes back. A statement costs many times what a decision costs, and 64 clients make batches of many.

A unit of work that asks for anything not read ahead raises `NeedsDatabase` here. It is then run on its own, after what
the others changed was written (`app.storage.writer`), so only speed depends on what callers say they need
(`ports.TxnWork`).
"""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, cast

from sqlalchemy import Connection, insert

from app.call_keys import AlreadyConcluded, CallKey
from app.clock import Clock
from app.storage.errors import is_storable
from app.storage.filter_sql import bound_list, bound_pairs
from app.storage.kept_values import packed_value
from app.storage.schema import OUTCOMES
from app.storage.txn_group_statements import (
    COUNTERS,
    COUNTERS_AND_NOW,
    NEW_COUNTER,
    OPEN_IDS,
    SET_BLOCKER,
    SET_COUNTER,
    group_statements,
)
from app.storage.txn_locks import lock_insertions, locks_near, locks_with_ids
from app.storage.txn_schema import LOCKS, TXN_COMPONENTS, TXNS
from app.storage.txn_state import POSTGRES_NOW, txn_insertions, txn_of, write_insertions, write_of
from app.structs import TxnType
from app.txn.locks import STRENGTH, Lock, LockId, TxnId, weakest_conflicting
from app.txn.names import Target
from app.txn.ports import Client, TxnWork, TxnWrites
from app.txn.transactions import State, Txn, Write

T = TypeVar("T")

# More locks near those that are asked for are not held in memory.
NEAR_ROWS_MAX: Final = 2_000
_OPEN_IDS_MORE: Final = 64
_MISSING: Final = object()

_Place = tuple[str, str]  # database and table, empty for a lock on the database


class NeedsDatabase(BaseException):
    """The unit of work has to run on its own. Nothing between here and the writer may take it for a failure."""


class GroupJob(NamedTuple):
    work: TxnWork[Any]
    key: CallKey | None


class TxnGroup:
    """`ports.TxnWrites`, as far as the most frequent calls need it, for the units of work that `jobs` are."""

    def __init__(self, connection: Connection, clock: Clock, jobs: Sequence[GroupJob]) -> None:
        self._connection = connection
        self._dialect_name = connection.dialect.name
        self._statements = group_statements(self._dialect_name)
        self._clock = clock
        self._now_ms: int | None = None
        self._undo: list[tuple[MutableMapping[Any, Any], Any, Any]] = []
        self._changed = _Changed()
        works = [job.work for job in jobs]
        needs_counters = any(work.opens or work.locks or work.txn_ids for work in works)
        self._known_counters = self._read_counters() if needs_counters else None
        self._stored_counters = dict(self._known_counters or {})
        self._txns = self._read_txns({txn_id for work in works for txn_id in work.txn_ids})
        self._writes = self._read_writes({txn_id for work in works if work.commits for txn_id in work.txn_ids})
        self._requests = self._read_requests({lock_id for work in works for lock_id in work.lock_ids})
        self._near = self._read_near(works)
        self._open_ids = self._read_open_ids(sum(work.opens for work in works), len(works))
        self._concluded = self._read_concluded([job.key for job in jobs if job.key is not None])

    def run(self, job: GroupJob, seconds: int) -> Any:
        """The value of one unit of work. Raises what it raises, AlreadyConcluded, and NeedsDatabase."""
        self._undo.clear()
        try:
            if job.key is not None and (job.key.principal, job.key.text) in self._concluded:
                raise AlreadyConcluded(job.key.text)
            value = job.work.work(cast(TxnWrites, self))
            if job.key is not None:
                self._conclude(job.key, seconds, value)
        except BaseException:
            for mapping, key, old in reversed(self._undo):
                if old is _MISSING:
                    del mapping[key]
                else:
                    mapping[key] = old
            raise
        return value

    def write(self) -> None:
        """Write what has been changed. Nothing may be run afterwards."""
        now_ms = self._now_ms or 0
        for name, last_id in self._changed.counters.items():
            self._write_counter(name, last_id)
        self._insert(TXNS, self._changed.new_txns.values())
        self._insert(TXN_COMPONENTS, self._changed.new_writes.values())
        self._write_commits(now_ms)
        self._write_heartbeats(now_ms)
        self._write_locks(now_ms)
        self._insert(OUTCOMES, ([row] for row in self._changed.outcomes.values()))

    # `TxnWrites`. Everything else needs the database.

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("_"):
            raise AttributeError(name)

        def needs_database(*_: object, **__: object) -> NoReturn:
            raise NeedsDatabase

        return needs_database

    def now_ms(self) -> int:
        """One time for all of them; what one writes with it nobody can have read before they are committed."""
        if self._now_ms is None:
            if self._dialect_name == "sqlite":
                self._now_ms = self._clock.milliseconds()
            else:
                self._now_ms = self._connection.execute(POSTGRES_NOW).scalar_one()
        return self._now_ms

    def high_water_mark(self) -> TxnId:
        return TxnId(self._counters.get("txn", 0))

    def insert_txns(self, count: int, type: TxnType, client: Client) -> list[TxnId]:
        if count <= 0:
            return []
        last = self._next_ids("txn", count)
        ids = [TxnId(txn_id) for txn_id in range(last - count + 1, last + 1)]
        rows = txn_insertions(ids, type, client, self.now_ms(), self._oldest_open(ids[0]))
        self._set(self._changed.new_txns, ids[0], rows)
        return ids

    def txn(self, txn_id: int) -> Txn | None:
        # Who asks for an id newer than those before the group guesses.
        if txn_id not in self._txns or txn_id > self._stored_counters.get("txn", 0):
            raise NeedsDatabase
        return self._txns[txn_id]

    def refresh_txns(self, txn_ids: Sequence[TxnId]) -> None:
        for txn_id in txn_ids:
            txn = self.txn(txn_id)
            if txn is not None and txn.state is State.OPEN:
                self._set(self._txns, txn_id, replace(txn, last_heartbeat_ms=self.now_ms()))
                self._set(self._changed.refreshed_txns, txn_id, None)

    def writes_of(self, txn_id: TxnId) -> list[Write]:
        if txn_id not in self._writes:
            raise NeedsDatabase
        return self._writes[txn_id]

    def insert_writes(self, txn_id: TxnId, writes: Sequence[Write]) -> None:
        if txn_id in self._changed.new_writes:
            raise NeedsDatabase
        self._set(self._changed.new_writes, txn_id, write_insertions(txn_id, writes))
        if txn_id in self._writes:
            self._set(self._writes, txn_id, [*self._writes[txn_id], *writes])

    def commit_txn(self, txn_id: TxnId, writes: Sequence[Write], changes: Sequence[Write], commit_id: TxnId) -> None:
        txn = self.txn(txn_id)
        if changes or txn is None:
            raise NeedsDatabase
        self.now_ms()
        self._set(self._txns, txn_id, replace(txn, state=State.COMMITTED))
        self._set(self._changed.commits, txn_id, bool(writes))

    def next_lock_id(self) -> LockId:
        return LockId(self._next_ids("lock", 1))

    def insert_request(self, request: Sequence[Lock], client: Client, blocker: Lock | None) -> None:
        lock_id = request[0].lock_id
        self._set(self._changed.new_locks, lock_id, lock_insertions(request, client, blocker, self.now_ms()))
        self._put(lock_id, request)

    def request(self, lock_id: int) -> list[Lock]:
        if lock_id not in self._requests:
            raise NeedsDatabase
        return [] if self._is_gone(lock_id) else [self._current(lock) for lock in self._requests[lock_id]]

    def conflict_candidates(self, request: Sequence[Lock], limit: int | None = None) -> list[Lock]:
        own_id, own_txn = request[0].lock_id, request[0].txn_id
        least = min(weakest_conflicting(lock.type) for lock in request)
        found = []
        for place in _places(lock.target for lock in request):
            if place not in self._near:
                raise NeedsDatabase
            for lock in self._near[place].values():
                is_own = lock.lock_id == own_id or (own_txn != 0 and lock.txn_id == own_txn)
                if not is_own and STRENGTH[lock.type] >= least and not self._is_gone(lock.lock_id, lock.txn_id):
                    found.append(self._current(lock))
        return found

    def grant(self, lock_id: LockId) -> None:
        self.now_ms()
        self._set(self._changed.grants, lock_id, None)
        self._put(lock_id, [replace(lock, is_acquired=True) for lock in self.request(lock_id)])

    def set_blocker(self, lock_id: LockId, blocker: Lock) -> None:
        self._set(self._changed.blockers, lock_id, (blocker.lock_id, blocker.number))

    def refresh_lock(self, lock_id: LockId) -> None:
        self.now_ms()
        self._set(self._changed.refreshed_locks, lock_id, None)

    def delete_locks(self, lock_ids: Sequence[LockId]) -> None:
        for lock_id in lock_ids:
            self._set(self._changed.deleted_locks, lock_id, None)

    # What they are made of.

    def _set(self, mapping: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((mapping, key, mapping.get(key, _MISSING)))
        mapping[key] = value

    def _put(self, lock_id: LockId, request: Sequence[Lock]) -> None:
        self._set(self._requests, lock_id, list(request))
        for lock in request:
            near = self._near.get((lock.target.db_name, lock.target.table_name or ""))
            if near is not None:
                self._set(near, (lock.lock_id, lock.number), lock)

    def _is_gone(self, lock_id: int, txn_id: int = 0) -> bool:
        if not txn_id and self._requests.get(lock_id):
            txn_id = self._requests[lock_id][0].txn_id
        return lock_id in self._changed.deleted_locks or (txn_id != 0 and txn_id in self._changed.commits)

    def _current(self, lock: Lock) -> Lock:
        """With the heartbeat that has come since it was read."""
        if lock.lock_id in self._changed.refreshed_locks or lock.txn_id in self._changed.refreshed_txns:
            return replace(lock, last_heartbeat_ms=self.now_ms())
        return lock

    @property
    def _counters(self) -> dict[str, int]:
        if self._known_counters is None:
            raise NeedsDatabase
        return self._known_counters

    def _next_ids(self, name: str, count: int) -> int:
        last = self._counters.get(name, 0) + count
        self._set(self._counters, name, last)
        self._set(self._changed.counters, name, last)
        return last

    def _oldest_open(self, new_id: TxnId) -> TxnId:
        open_ids = self._open_ids
        if open_ids is None:
            raise NeedsDatabase
        for txn_id in open_ids.ids:
            if txn_id not in self._changed.commits:
                return TxnId(txn_id)
        if not open_ids.are_all:
            raise NeedsDatabase
        return min((first for first in self._changed.new_txns), default=new_id)

    def _conclude(self, key: CallKey, seconds: int, value: object) -> None:
        row = {
            "principal": key.principal,
            "call_key": key.text,
            "method": key.method,
            "concluded_at": seconds,
            "payload": packed_value(value) if key.keeps_value else None,
        }
        self._set(self._changed.outcomes, (key.principal, key.text), row)
        self._set(self._concluded, (key.principal, key.text), None)

    # Reading ahead.

    def _read_counters(self) -> dict[str, int]:
        counters = {}
        if self._dialect_name == "sqlite":
            counters = {name: int(last_id) for name, last_id in self._connection.execute(COUNTERS)}
        else:
            for name, last_id, now_ms in self._connection.execute(COUNTERS_AND_NOW):
                counters[name] = int(last_id)
                self._now_ms = now_ms
        return counters

    def _read_txns(self, txn_ids: set[int]) -> dict[int, Txn | None]:
        if not txn_ids:
            return {}
        found: dict[int, Txn | None] = dict.fromkeys(txn_ids)
        rows = self._connection.execute(self._statements.txns, self._bound(txn_ids)).all()
        found.update((row.txn_id, txn_of(row)) for row in rows)
        return found

    def _read_writes(self, txn_ids: set[int]) -> dict[int, list[Write]]:
        found: dict[int, list[Write]] = {txn_id: [] for txn_id in txn_ids}
        if txn_ids:
            for row in self._connection.execute(self._statements.components, self._bound(txn_ids)).all():
                found[row.txn_id].append(write_of(row))
        return found

    def _read_requests(self, lock_ids: set[int]) -> dict[int, list[Lock]]:
        found: dict[int, list[Lock]] = {lock_id: [] for lock_id in lock_ids}
        if lock_ids:
            for lock in locks_with_ids(self._connection, lock_ids):
                found[lock.lock_id].append(lock)
        return found

    def _read_near(self, works: Sequence[TxnWork[Any]]) -> dict[_Place, dict[tuple[int, int], Lock]]:
        """Nothing when there is too much; then whoever needs it runs on its own."""
        wanted = [(target, type) for work in works for target, type in work.locks]
        for work in works:
            if work.checks:
                wanted += [
                    (lock.target, lock.type)
                    for lock_id in work.lock_ids
                    for lock in self._requests[lock_id]
                    if not lock.is_acquired
                ]
        wanted = [(target, type) for target, type in wanted if target.table_name is not None]
        if not wanted:
            return {}
        near: dict[_Place, dict[tuple[int, int], Lock]] = {
            place: {} for place in _places(target for target, _ in wanted)
        }
        least = min(weakest_conflicting(type) for _, type in wanted)
        rows = locks_near(self._connection, near, least, NEAR_ROWS_MAX)
        if len(rows) >= NEAR_ROWS_MAX:
            return {}
        for lock in rows:
            place = near.get((lock.target.db_name, lock.target.table_name or ""))
            if place is not None:
                place[lock.lock_id, lock.number] = lock
        return near

    def _read_open_ids(self, opening: int, count: int) -> "_OpenIds | None":
        if not opening:
            return None
        limit = count + _OPEN_IDS_MORE
        ids = self._connection.execute(OPEN_IDS, {"limit": limit}).scalars().all()
        return _OpenIds(ids, len(ids) < limit)

    def _read_concluded(self, keys: Sequence[CallKey]) -> dict[tuple[str, str], None]:
        if not keys:
            return {}
        pairs = {(key.principal, key.text) for key in keys if is_storable(key.principal) and is_storable(key.text)}
        rows = self._connection.execute(self._statements.outcomes, bound_pairs(pairs, self._dialect_name)).all()
        return dict.fromkeys((principal, text) for principal, text in rows)

    # Writing.

    def _bound(self, ids: Iterable[int], **others: object) -> dict[str, object]:
        return {"ids": bound_list(ids, self._dialect_name), **others}

    def _insert(self, table: Any, rows: Iterable[Sequence[dict[str, Any]]]) -> None:
        together = [row for some in rows for row in some]
        if together:
            self._connection.execute(insert(table), together)

    def _write_counter(self, name: str, last_id: int) -> None:
        if name in self._stored_counters:
            self._connection.execute(SET_COUNTER, {"the_name": name, "last_id": last_id})
        else:
            self._connection.execute(NEW_COUNTER, {"name": name, "last_id": last_id})

    def _write_commits(self, now_ms: int) -> None:
        ids = self._changed.commits
        if not ids:
            return
        self._connection.execute(self._statements.commit, self._bound(ids, now_ms=now_ms))
        self._connection.execute(self._statements.delete_locks_of_txns, self._bound(ids))
        if written := [txn_id for txn_id, has_writes in ids.items() if has_writes]:
            self._connection.execute(self._statements.complete, self._bound(written))
            self._connection.execute(self._statements.delete_components, self._bound(written))

    def _write_heartbeats(self, now_ms: int) -> None:
        if ids := self._changed.refreshed_txns:
            self._connection.execute(self._statements.refresh_txns, self._bound(ids, now_ms=now_ms))
        if ids := self._changed.refreshed_locks:
            self._connection.execute(self._statements.refresh_locks, self._bound(ids, now_ms=now_ms))

    def _write_locks(self, now_ms: int) -> None:
        """Those that a commit has deleted are inserted no more: nobody has heard of them."""
        changed = self._changed
        self._insert(LOCKS, (rows for lock_id, rows in changed.new_locks.items() if not self._is_gone(lock_id)))
        if changed.deleted_locks:
            self._connection.execute(self._statements.delete_locks, self._bound(changed.deleted_locks))
        if changed.grants:
            self._connection.execute(self._statements.grant, self._bound(changed.grants, now_ms=now_ms))
        for lock_id, (blocker, number) in changed.blockers.items():
            self._connection.execute(SET_BLOCKER, {"the_lock": lock_id, "blocker": blocker, "number": number})


class _OpenIds(NamedTuple):
    """The oldest open transactions when the group began."""

    ids: Sequence[int]
    are_all: bool


class _Changed:
    """What is to be written. Mappings keep the order in which it was changed."""

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.new_txns: dict[TxnId, list[dict[str, Any]]] = {}
        self.new_writes: dict[TxnId, list[dict[str, Any]]] = {}
        self.commits: dict[int, bool] = {}
        self.refreshed_txns: dict[int, None] = {}
        self.new_locks: dict[LockId, list[dict[str, Any]]] = {}
        self.refreshed_locks: dict[int, None] = {}
        self.deleted_locks: dict[int, None] = {}
        self.grants: dict[int, None] = {}
        self.blockers: dict[int, tuple[int, int]] = {}
        self.outcomes: dict[tuple[str, str], dict[str, Any]] = {}


def _places(targets: Iterable[Target]) -> dict[_Place, None]:
    """The tables of the targets, and their databases. Raises NeedsDatabase for a database itself."""
    places: dict[_Place, None] = {}
    for target in targets:
        if target.table_name is None:
            raise NeedsDatabase
        places[target.db_name, ""] = None
        places[target.db_name, target.table_name] = None
    return places
