"""Units of work on transactions and locks that run together: what they ask for is read for all of them at once, what
they change is written for all at once.

Each still runs alone, one after the other, over values that already contain what those before it changed; one that
raises takes its changes back. A statement costs many times what a decision costs, and 64 clients make batches of many.

A unit of work that asks for anything not read ahead raises `NeedsDatabase` here. It is then run on its own, after what
the others changed was written (`storage.writing.writer`), so only speed depends on what callers say they need
(`ports.TxnWork`).

Nothing here talks to the database: what is to be asked and changed are values, which `storage.writing.writer` hands to
SQLAlchemy one by one and `storage.writing.event_loop_writer` sends to PostgreSQL all at once.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

import msgspec
from sqlalchemy import Executable

from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.registry.outcomes import outcome_row
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.group_statements import (
    COUNTERS,
    COUNTERS_AND_NOW,
    NEW_COUNTER,
    NEW_LOCK,
    NEW_OUTCOME,
    NEW_TXN,
    NEW_WRITE,
    OPEN_IDS,
    SET_BLOCKER,
    SET_COUNTER,
    Rows,
    Statement,
    Values,
    group_statements,
)
from hms_gateway.storage.txn.locks import lock_insertions, locks_of, near_places
from hms_gateway.storage.txn.state import txn_insertions, txn_of, write_insertions, write_of
from hms_gateway.structs import LockType, TxnType
from hms_gateway.txn.ports.txn import Client, TxnWork, TxnWrites
from hms_gateway.txn.rules.locks import STRENGTH, Lock, LockId, TxnId, weakest_conflicting
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import State, Txn, Write

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


Asked: TypeAlias = Mapping[str, Statement]


class TxnGroup:
    """`ports.TxnWrites`, as far as the most frequent calls need it, for the units of work that `jobs` are.

    First what `reading` asks for is to be read, then the jobs are run, then `changes` are to be written, all within
    one database transaction that holds the lock on the catalog.
    """

    def __init__(self, dialect: Dialect, clock: Clock, jobs: Sequence[GroupJob]) -> None:
        self._dialect = dialect
        self._statements = group_statements(dialect)
        self._clock = clock
        self._jobs = jobs
        self._now_ms: int | None = None
        self._undo: list[tuple[MutableMapping[Any, Any], Any, Any]] = []
        self._changed = _Changed()
        self._known_counters: dict[str, int] | None = None
        self._stored_counters: dict[str, int] = {}
        self._txns: dict[int, Txn | None] = {}
        self._writes: dict[int, list[Write]] = {}
        self._requests: dict[int, list[Lock]] = {}
        self._near: dict[_Place, dict[tuple[int, int], Lock]] = {}
        self._open_ids: _OpenIds | None = None
        self._concluded: dict[tuple[str, str], None] = {}

    def reading(self) -> Generator[Asked, Mapping[str, Rows], None]:
        """Says what is to be read, is sent the rows of each under the same name, and perhaps says more."""
        works = [job.work for job in self._jobs]
        # Whether a lock is in the way of requests that are there already is seen when they are known.
        checks = any(work.checks for work in works)
        near = [] if checks else _wanted(works)
        asked = {**self._ask_first(works), **self._ask_near(near)}
        if asked:
            rows = yield asked
            self._learn(rows, works)
            self._learn_near(rows, near)
        if checks:
            near = _wanted(works, self._requests)
            if asked := self._ask_near(near):
                self._learn_near((yield asked), near)

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

    def changes(self) -> list[Statement]:
        """What is to be written, in this order. Nothing may be run afterwards."""
        now_ms = self._now_ms or 0
        return [
            *self._counter_changes(),
            *_insertion(NEW_TXN, self._changed.new_txns.values()),
            *_insertion(NEW_WRITE, self._changed.new_writes.values()),
            *self._commits(now_ms),
            *self._heartbeats(now_ms),
            *self._lock_changes(now_ms),
            *_insertion(NEW_OUTCOME, [list(self._changed.outcomes.values())]),
        ]

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
            if self._dialect.has_clock:
                raise NeedsDatabase
            self._now_ms = self._clock.milliseconds()
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
                self._set(self._txns, txn_id, msgspec.structs.replace(txn, last_heartbeat_ms=self.now_ms()))
                self._set(self._changed.refreshed_txns, txn_id, None)

    def writes_of(self, txn_id: TxnId) -> list[Write]:
        if txn_id not in self._writes:
            raise NeedsDatabase
        return self._writes[txn_id]

    def insert_writes(self, txn_id: TxnId, writes: Sequence[Write]) -> None:
        if txn_id in self._changed.new_writes:
            raise NeedsDatabase
        self._set(self._changed.new_writes, txn_id, write_insertions(txn_id, writes, self._dialect))
        if txn_id in self._writes:
            self._set(self._writes, txn_id, [*self._writes[txn_id], *writes])

    def commit_txn(self, txn_id: TxnId, writes: Sequence[Write], changes: Sequence[Write], commit_id: TxnId) -> None:
        txn = self.txn(txn_id)
        if changes or txn is None:
            raise NeedsDatabase
        self.now_ms()
        self._set(self._txns, txn_id, msgspec.structs.replace(txn, state=State.COMMITTED))
        self._set(self._changed.commits, txn_id, bool(writes))

    def next_lock_id(self) -> LockId:
        return LockId(self._next_ids("lock", 1))

    def insert_request(self, request: Sequence[Lock], client: Client, blocker: Lock | None) -> None:
        lock_id = request[0].lock_id
        self._set(
            self._changed.new_locks,
            lock_id,
            lock_insertions(request, client, blocker, self.now_ms(), self._dialect),
        )
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
        self._put(lock_id, [msgspec.structs.replace(lock, is_acquired=True) for lock in self.request(lock_id)])

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
            return msgspec.structs.replace(lock, last_heartbeat_ms=self.now_ms())
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
        self._set(self._changed.outcomes, (key.principal, key.text), outcome_row(key, seconds, value))
        self._set(self._concluded, (key.principal, key.text), None)

    # Reading ahead.

    def _ask_first(self, works: Sequence[TxnWork[Any]]) -> dict[str, Statement]:
        asked = {}
        if self._dialect.has_clock:
            asked["counters"] = Statement(COUNTERS_AND_NOW, {})
        elif any(work.opens or work.locks or work.txn_ids for work in works):
            asked["counters"] = Statement(COUNTERS, {})
        if txn_ids := {txn_id for work in works for txn_id in work.txn_ids}:
            asked["txns"] = Statement(self._statements.txns, self._bound(txn_ids))
        if txn_ids := {txn_id for work in works if work.commits for txn_id in work.txn_ids}:
            asked["components"] = Statement(self._statements.components, self._bound(txn_ids))
        if lock_ids := {lock_id for work in works for lock_id in work.lock_ids}:
            asked["requests"] = Statement(self._statements.requests, self._bound(lock_ids))
        if any(work.opens for work in works):
            asked["open ids"] = Statement(OPEN_IDS, {"limit": self._open_ids_max()})
        if keys := self._storable_keys():
            asked["outcomes"] = Statement(self._statements.outcomes, self._dialect.bound_pairs(keys))
        return asked

    def _learn(self, rows: Mapping[str, Rows], works: Sequence[TxnWork[Any]]) -> None:
        if "counters" in rows:
            self._known_counters = {name: last_id for name, last_id, *_ in rows["counters"]}
            self._stored_counters = dict(self._known_counters)
            for _, _, *now_ms in rows["counters"]:
                self._now_ms = now_ms[0] if now_ms else None
        self._txns = {txn_id: None for work in works for txn_id in work.txn_ids}
        self._txns.update((row[0], txn_of(row)) for row in rows.get("txns", ()))
        self._writes = {txn_id: [] for work in works if work.commits for txn_id in work.txn_ids}
        for row in rows.get("components", ()):
            self._writes[row[0]].append(write_of(row))
        self._requests = {lock_id: [] for work in works for lock_id in work.lock_ids}
        for lock in sorted(locks_of(rows.get("requests", ())), key=lambda lock: (lock.lock_id, lock.number)):
            self._requests[lock.lock_id].append(lock)
        if "open ids" in rows:
            ids = [txn_id for (txn_id,) in rows["open ids"]]
            self._open_ids = _OpenIds(ids, len(ids) < self._open_ids_max())
        self._concluded = dict.fromkeys((principal, text) for principal, text in rows.get("outcomes", ()))

    def _open_ids_max(self) -> int:
        return len(self._jobs) + _OPEN_IDS_MORE

    def _storable_keys(self) -> set[tuple[str, str]]:
        keys = {(job.key.principal, job.key.text) for job in self._jobs if job.key is not None}
        return {key for key in keys if all(map(is_storable, key))}

    def _ask_near(self, wanted: "_Wanted") -> dict[str, Statement]:
        if not wanted:
            return {}
        places = _places(target for target, _ in wanted)
        values = {
            **self._dialect.bound_pairs([place for place in places if all(map(is_storable, place))]),
            "least_strength": min(weakest_conflicting(type) for _, type in wanted),
            "limit": NEAR_ROWS_MAX,
        }
        return {"near": Statement(near_places(self._dialect), values)}

    def _learn_near(self, rows: Mapping[str, Rows], wanted: "_Wanted") -> None:
        """Nothing when there is too much; then whoever needs it runs on its own."""
        found = rows.get("near", ())
        if len(found) >= NEAR_ROWS_MAX:
            return
        self._near = {place: {} for place in _places(target for target, _ in wanted)}
        for lock in locks_of(found):
            place = self._near.get((lock.target.db_name, lock.target.table_name or ""))
            if place is not None:
                place[lock.lock_id, lock.number] = lock

    # Writing.

    def _bound(self, ids: Iterable[int], **others: object) -> dict[str, object]:
        return {"ids": self._dialect.bound_list(ids), **others}

    def _counter_changes(self) -> Iterable[Statement]:
        for name, last_id in self._changed.counters.items():
            if name in self._stored_counters:
                yield Statement(SET_COUNTER, {"the_name": name, "last_id": last_id})
            else:
                yield Statement(NEW_COUNTER, {"name": name, "last_id": last_id})

    def _commits(self, now_ms: int) -> Iterable[Statement]:
        ids = self._changed.commits
        if not ids:
            return
        yield Statement(self._statements.commit, self._bound(ids, now_ms=now_ms))
        yield Statement(self._statements.delete_locks_of_txns, self._bound(ids))
        if written := [txn_id for txn_id, has_writes in ids.items() if has_writes]:
            yield Statement(self._statements.complete, self._bound(written))
            yield Statement(self._statements.delete_components, self._bound(written))

    def _heartbeats(self, now_ms: int) -> Iterable[Statement]:
        if ids := self._changed.refreshed_txns:
            yield Statement(self._statements.refresh_txns, self._bound(ids, now_ms=now_ms))
        if ids := self._changed.refreshed_locks:
            yield Statement(self._statements.refresh_locks, self._bound(ids, now_ms=now_ms))

    def _lock_changes(self, now_ms: int) -> Iterable[Statement]:
        """Those that a commit has deleted are inserted no more: nobody has heard of them."""
        changed = self._changed
        yield from _insertion(
            NEW_LOCK, (rows for lock_id, rows in changed.new_locks.items() if not self._is_gone(lock_id))
        )
        if changed.deleted_locks:
            yield Statement(self._statements.delete_locks, self._bound(changed.deleted_locks))
        if changed.grants:
            yield Statement(self._statements.grant, self._bound(changed.grants, now_ms=now_ms))
        for lock_id, (blocker, number) in changed.blockers.items():
            yield Statement(SET_BLOCKER, {"the_lock": lock_id, "blocker": blocker, "number": number})


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


_Wanted: TypeAlias = Sequence[tuple[Target, LockType]]


def _wanted(works: Sequence[TxnWork[Any]], requests: Mapping[int, Sequence[Lock]] | None = None) -> _Wanted:
    """What locks may be in the way of: those on tables that are requested, and that wait among the `requests`."""
    wanted = [one for work in works for one in work.locks]
    for work in works:
        if work.checks and requests is not None:
            locks = [lock for lock_id in work.lock_ids for lock in requests[lock_id]]
            wanted += [(lock.target, lock.type) for lock in locks if not lock.is_acquired]
    return [(target, type) for target, type in wanted if target.table_name is not None]


def _insertion(sql: Executable, rows: Iterable[Sequence[Values]]) -> Iterable[Statement]:
    together = [row for some in rows for row in some]
    if together:
        yield Statement(sql, together)


def _places(targets: Iterable[Target]) -> dict[_Place, None]:
    """The tables of the targets, and their databases. Raises NeedsDatabase for a database itself."""
    places: dict[_Place, None] = {}
    for target in targets:
        if target.table_name is None:
            raise NeedsDatabase
        places[target.db_name, ""] = None
        places[target.db_name, target.table_name] = None
    return places
