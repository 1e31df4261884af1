"""The calls on transactions and locks, as batches: what they ask for is read for all of them at once, what they change
is written for all at once.

Each unit of work still runs alone, one after the other, over values that already contain what those before it changed;
one that raises takes its changes back. A statement costs many times what a decision costs, and 64 clients make batches
of many. A single call is a batch of one.

What callers say they need (`ports.txn.TxnWork`) is read ahead. What turns out to be missing is read when it is asked
for (`ConnectedBatch`). Where that would block the event loop (`storage.writing.pipelined_writer`) it raises
`BatchMiss`, and the unit of work is run by the other writer.

Nothing here talks to the database: what is to be asked and changed are values.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import Connection

from hms_gateway.metastore.changes.events import aborted, committed
from hms_gateway.metastore.ports.store import Event, EventId, StoredEvent
from hms_gateway.rpc.structs import LockType, TxnType
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.suspension import Job, Outdated
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.dialects.statements import DATABASE_NOW, Rows, Statement
from hms_gateway.storage.registry.outcomes import outcome_row
from hms_gateway.storage.schema.txn import TXNS
from hms_gateway.storage.sql.repository import check_text, is_storable
from hms_gateway.storage.txn.batch_statements import (
    BELOW_PARTITION,
    COUNT_OPEN,
    COUNTERS,
    COUNTERS_AND_NOW,
    EVENTS_AFTER,
    IN_DATABASE,
    OPEN_IDS,
    TXN_OF_REFUSED_LOCK,
    BatchChanges,
    batch_statements,
    committed_since,
    over_partition,
)
from hms_gateway.storage.txn.locks import lock_insertions, locks_of
from hms_gateway.storage.txn.state import (
    committed_write_of,
    target_of,
    txn_insertions,
    txn_of,
    write_insertions,
    write_of,
    write_set_insertions,
)
from hms_gateway.txn.ports.txn import Assumption, Client, TxnWork
from hms_gateway.txn.rules.locks import NO_TXN, STRENGTH, Lock, LockId, TxnId, weakest_conflicting
from hms_gateway.txn.rules.names import Target, prefixes
from hms_gateway.txn.rules.transactions import CommittedWrite, Txn, TxnStatus, Write

# Of more candidates only those that are needed are held in memory.
CANDIDATES_MAX: Final = 2_000
# After more events than this rights are read anew.
EVENTS_MAX: Final = 100
_OPEN_IDS_MORE: Final = 64
_NO_LIMIT: Final = 2**31 - 1
_NO_LOCK: Final = max(STRENGTH.values()) + 1
_MISSING: Final = object()

_Key: TypeAlias = tuple[int, int]  # of a lock: its id and number
_Place: TypeAlias = tuple[str, str | None]  # database and table; "" for a lock on the database, None for all in it
_Strengths: TypeAlias = Mapping[_Place, int]
_Wanted: TypeAlias = Sequence[tuple[Target, LockType]]


class BatchMiss(BaseException):
    """The unit of work asks for what was not read ahead. Nothing between here and the writer takes it for a failure."""


class Reading(NamedTuple):
    """What is to be read, and who is handed the rows."""

    statement: Statement
    learn: Callable[[Rows], None]


class TxnBatch:
    """`ports.BatchedWrites` for units of work that run one after the other.

    First what `reading` asks for is to be read, then the jobs are run, then `changes` are to be written, all within
    one database transaction that holds the lock on the catalog.
    """

    def __init__(self, dialect: Dialect, clock: Clock, jobs: Sequence[Job] = ()) -> None:
        # The newest event's id, before the batch and then with what it has logged.
        self.last_event_id = 0
        self._dialect = dialect
        self._statements = batch_statements(dialect)
        self._clock = clock
        self.jobs = jobs
        self._now_ms: int | None = None
        self._undo: list[tuple[MutableMapping[Any, Any], Any, Any]] = []
        self._changed = BatchChanges()
        self._known_counters: dict[str, int] | None = None
        self._stored_counters: Collection[str] = ()
        self._open_ids: _OpenIds | None = None
        self._concluded: dict[tuple[str, str], None] = {}
        self._txns: dict[int, Txn | None] = {}
        self._components: dict[int, list[Write]] = {}
        self._write_ids: dict[int, dict[Target, int]] = {}
        # Locks by request and number with what the batch has changed, and where to find them; complete for requests,
        # transactions and places that are known, there down to a strength.
        self._requests: defaultdict[int, dict[int, Lock]] = defaultdict(dict)
        self._by_txn: defaultdict[int, dict[_Key, None]] = defaultdict(dict)
        self._by_place: defaultdict[_Place, dict[_Key, None]] = defaultdict(dict)
        self._known_requests: set[int] = set()
        self._known_txns: set[int] = set()
        self._known_places: dict[_Place, int] = {}
        self._crowded: set[_Place] = set()
        # For the rights of callers.
        self._lock_users: dict[int, str] = {}
        self._events: list[StoredEvent] = []

    def reading(self, lock: Sequence[Statement] = ()) -> Generator[Sequence[Statement], Sequence[Rows], None]:
        """Says what is to be read ahead, is sent the rows of each, and perhaps says more; at last nothing.

        `lock` goes before all that: the last of it locks the catalog, whose row has the newest event.
        """
        works = [job.work for job in self.jobs]
        first = self._first_readings(works)
        wanted = [one for work in works for one in work.locks]
        # Whether a lock is in the way of requests that are there already is seen when they are known.
        checked = [lock_id for work in works if work.checks for lock_id in work.lock_ids]
        if not checked:
            first += self._candidate_readings(wanted)
        yield from self._learn(first, lock)
        if committing := {txn_id for work in works for txn_id in self._naming_write_ids(work)}:
            yield from self._learn([self._write_ids_reading(committing)])
        if checked:
            waiting = [lock for lock_id in checked for lock in self.request(lock_id) if not lock.is_acquired]
            wanted += [(lock.target, lock.type) for lock in waiting]
            yield from self._learn(self._candidate_readings(wanted))
        yield ()

    def run(self, job: Job, seconds: int) -> Any:
        """The value of one unit of work. Raises what it raises, AlreadyConcluded, Outdated, and BatchMiss."""
        self._undo.clear()
        try:
            key = job.open_key
            if key is not None and (key.principal, key.text) in self._concluded:
                raise AlreadyConcluded(key.text)
            if job.work.assumed is not None:
                self._check(job.work, job.work.assumed)
            value = job.work.work(self)
            if key is not None:
                self._conclude(key, seconds, value)
        except BaseException:
            for mapping, key, old in reversed(self._undo):
                if old is _MISSING:
                    del mapping[key]
                else:
                    mapping[key] = old
            raise
        return value

    def _check(self, work: TxnWork[Any], assumed: Assumption) -> None:
        """Raises Outdated."""
        if assumed.user is not None:
            txns = [txn for txn_id in work.txn_ids if (txn := self.txn(txn_id)) is not None]
            # Nobody has been told the id of a lock of this batch.
            locks = [self._lock_users.get(lock_id) for lock_id in work.lock_ids if self.request(lock_id)]
            if any(user != assumed.user for user in (*(txn.user for txn in txns), *locks)):
                raise Outdated
        if assumed.version != self.last_event_id:
            events = [event for event in self._events if event.event_id > assumed.version]
            if not events or events[-1].event_id != self.last_event_id or not assumed.holds(events):
                raise Outdated

    def changes(self) -> list[Statement]:
        """What is to be written, in this order. Nothing may be run afterwards."""
        first_id = self.last_event_id + 1
        self.last_event_id += len(self._changed.events)
        now_ms, seconds = self._now_ms or 0, self._clock.seconds()
        return self._changed.statements(self._dialect, now_ms, self._stored_counters, first_id, seconds)

    def take_events(self) -> list[Event]:
        """What was logged so far, for a caller that writes it."""
        events, self._changed.events = list(self._changed.events.values()), {}
        return events

    # `ports.BatchedWrites`: transactions.

    def now_ms(self) -> int:
        """One time for all of them: what one writes with it is not visible before they are committed."""
        if self._now_ms is None and not self._dialect.has_clock:
            self._now_ms = self._clock.milliseconds()
        elif self._now_ms is None:
            self._load(Reading(Statement(DATABASE_NOW, {}), self._learn_now))
        assert self._now_ms is not None
        return self._now_ms

    def high_water_mark(self) -> TxnId:
        return TxnId(self._counters.get("txn", 0))

    def count_open(self) -> int:
        found: list[Sequence[Any]] = []
        self._load(Reading(Statement(COUNT_OPEN, {}), found.extend))
        opened = sum(map(len, self._changed.new_txns.values()))
        return int(found[0][0]) + opened - len(self._changed.commits) - len(self._changed.aborts)

    def insert_txns(self, count: int, type: TxnType, client: Client) -> list[TxnId]:
        if count <= 0:
            return []
        last = self._next_ids("txn", count)
        ids = [TxnId(txn_id) for txn_id in range(last - count + 1, last + 1)]
        rows = txn_insertions(ids, type, client, self.now_ms(), self._oldest_open(ids[0]))
        self._set(self._changed.new_txns, ids[0], rows)
        return ids

    def txn(self, txn_id: int) -> Txn | None:
        self._know_txns([txn_id])
        return self._txns[txn_id] or self._opened(txn_id)

    def refresh_txns(self, txn_ids: Sequence[TxnId]) -> None:
        for txn_id, txn in self._open_among(txn_ids):
            self._set(self._txns, txn_id, msgspec.structs.replace(txn, last_heartbeat_ms=self.now_ms()))
            self._set(self._changed.refreshed_txns, txn_id, None)

    def abort_txns(self, txn_ids: Sequence[TxnId], reason: str | None, refused_lock: LockId | None = None) -> None:
        check_text("reason", reason)
        for txn_id, txn in self._open_among(txn_ids):
            self.now_ms()
            self._set(
                self._txns,
                txn_id,
                msgspec.structs.replace(txn, state=TxnStatus.ABORTED, reason=reason, refused_lock=refused_lock),
            )
            self._set(self._changed.aborts, txn_id, (reason, refused_lock))
            if txn.has_write_ids:
                self._log(aborted(txn_id, self._write_ids_of(txn_id), self._clock.seconds()))

    def commit_txn(
        self,
        txn_id: TxnId,
        writes: Sequence[Write],
        changes: Sequence[Write],
        commit_id: TxnId,
        names_write_ids: bool | None = None,
    ) -> None:
        txn = self.txn(txn_id)
        assert txn is not None
        self.now_ms()
        names_them = txn.has_write_ids if names_write_ids is None else names_write_ids
        write_ids = self._write_ids_of(txn_id) if names_them else None
        if txn.has_write_ids or write_ids:
            self._log(committed(txn_id, write_ids, self._clock.seconds()))
        self._set(self._txns, txn_id, msgspec.structs.replace(txn, state=TxnStatus.COMMITTED))
        self._set(self._changed.commits, txn_id, bool(writes))
        if changes:
            rows = write_set_insertions(txn_id, changes, commit_id, self._dialect)
            self._set(self._changed.write_sets, txn_id, rows)

    def txn_of_refused_lock(self, lock_id: int) -> Txn | None:
        for txn_id, (_, refused_lock) in self._changed.aborts.items():
            if refused_lock == lock_id:
                return self.txn(txn_id)
        found: list[Sequence[Any]] = []
        self._load(Reading(Statement(TXN_OF_REFUSED_LOCK, {"the_lock": lock_id}), found.extend))
        return txn_of(found[0]) if found else None

    def insert_writes(self, txn_id: TxnId, writes: Sequence[Write]) -> None:
        new = write_insertions(txn_id, writes, self._dialect)
        self._set(self._changed.new_writes, txn_id, [*self._changed.new_writes.get(txn_id, ()), *new])

    def writes_of(self, txn_id: TxnId) -> list[Write]:
        if txn_id not in self._components:
            self._load(self._components_reading([txn_id]))
        if txn_id in self._changed.commits:
            return []
        new = self._changed.new_writes.get(txn_id, ())
        return [*self._components[txn_id], *(write_of(row.values()) for row in new)]

    def committed_since(self, txn_id: TxnId, targets: Sequence[Target]) -> list[CommittedWrite]:
        found: list[Sequence[Any]] = []
        self._load(Reading(committed_since(txn_id, targets, self._dialect), found.extend))
        new = [row.values() for rows in self._changed.write_sets.values() for row in rows]
        committed = [committed_write_of(row) for row in (*found, *new)]
        return [write for write in committed if write.commit_id >= txn_id]

    # `ports.BatchedWrites`: locks.

    def next_lock_id(self) -> LockId:
        return LockId(self._next_ids("lock", 1))

    def insert_request(self, request: Sequence[Lock], client: Client, blocker: Lock | None) -> None:
        lock_id = request[0].lock_id
        rows = lock_insertions(request, client, blocker, self.now_ms(), self._dialect)
        self._set(self._changed.new_locks, lock_id, rows)
        self._known_requests.add(lock_id)
        self._set(self._requests, lock_id, {lock.number: lock for lock in request})
        for lock in request:
            for index in self._indexes_of(lock):
                self._set(index, (lock_id, lock.number), None)

    def request(self, lock_id: int) -> list[Lock]:
        self._know_requests([lock_id])
        request = self._requests.get(lock_id, {})
        return self._present([request[number] for number in sorted(request)])

    def waiting_requests(self, txn_ids: Sequence[TxnId], lock_ids: Sequence[LockId]) -> list[Lock]:
        self._know_locks_of(txn_ids)
        self._know_requests(lock_ids)
        of_txns = (key for txn_id in txn_ids for key in self._by_txn.get(txn_id, ()))
        of_requests = ((lock_id, number) for lock_id in lock_ids for number in self._requests.get(lock_id, ()))
        return [lock for lock in self._found(sorted({*of_txns, *of_requests})) if not lock.is_acquired]

    def has_locks(self, txn_id: TxnId) -> bool:
        return bool(self._locks_of(txn_id))

    def held_locks(self, txn_id: TxnId) -> list[Lock]:
        return [lock for lock in self._locks_of(txn_id) if lock.is_acquired]

    def conflict_candidates(self, request: Sequence[Lock], limit: int | None = None) -> list[Lock]:
        wanted = [(lock.target, lock.type) for lock in request]
        places = _places(wanted)
        unknown = self._unknown(places)
        if unknown and not self._crowded.issuperset(unknown):
            self._load(*self._candidate_readings(wanted))
            unknown = self._unknown(places)
            self._crowded.update(unknown)
        found = self._others_in(places, request)
        if unknown and (limit is None or len(found) < limit):
            self._load(*self._complete_readings(wanted))
            found = self._others_in(places, request)
        return found

    def grant(self, lock_id: LockId) -> None:
        self.now_ms()
        self._set(self._changed.grants, lock_id, None)
        self._know_requests([lock_id])
        request = self._requests[lock_id].items()
        granted = {number: msgspec.structs.replace(lock, is_acquired=True) for number, lock in request}
        self._set(self._requests, lock_id, granted)

    def set_blocker(self, lock_id: LockId, blocker: Lock) -> None:
        self._set(self._changed.blockers, lock_id, (blocker.lock_id, blocker.number))

    def refresh_lock(self, lock_id: LockId) -> None:
        self.now_ms()
        self._set(self._changed.refreshed_locks, lock_id, None)

    def delete_locks(self, lock_ids: Sequence[LockId]) -> None:
        for lock_id in lock_ids:
            self._set(self._changed.deleted_locks, lock_id, None)

    # What they are made of.

    def _load(self, *readings: Reading) -> None:
        """Read what is missing."""
        raise BatchMiss

    def _log(self, event: Event) -> None:
        self._set(self._changed.events, len(self._changed.events), event)

    def _write_ids_of(self, txn_id: int) -> dict[Target, int]:
        if txn_id not in self._write_ids:
            self._load(self._write_ids_reading([txn_id]))
        return self._write_ids[txn_id]

    def _naming_write_ids(self, work: TxnWork[Any]) -> Iterator[int]:
        """The transactions it commits whose write ids will be asked for."""
        for txn_id in work.txn_ids if work.commits and work.names_write_ids is not False else ():
            txn = self._txns.get(txn_id)
            if work.names_write_ids or (txn is not None and txn.has_write_ids):
                yield txn_id

    def _set(self, mapping: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((mapping, key, mapping.get(key, _MISSING)))
        mapping[key] = value

    @property
    def _counters(self) -> dict[str, int]:
        if self._known_counters is None:
            self._load(self._counters_reading())
        assert self._known_counters is not None
        return self._known_counters

    def _next_ids(self, name: str, count: int) -> int:
        last = self._counters.get(name, 0) + count
        self._set(self._counters, name, last)
        self._set(self._changed.counters, name, last)
        return last

    def _conclude(self, key: CallKey, seconds: int, value: object) -> None:
        self._set(self._changed.outcomes, (key.principal, key.text), outcome_row(key, seconds, value))
        self._set(self._concluded, (key.principal, key.text), None)

    def _oldest_open(self, new_id: TxnId) -> TxnId:
        changed = self._changed
        if self._open_ids is None or not (self._open_ids.are_all or self._first_open(self._open_ids.ids)):
            # One more than have ended, so that one of them is open if any is.
            self._load(self._open_ids_reading(len(changed.commits) + len(changed.aborts) + 1))
        assert self._open_ids is not None
        opened = (row["txn_id"] for rows in changed.new_txns.values() for row in rows)
        return TxnId(self._first_open(self._open_ids.ids) or self._first_open(opened) or new_id)

    def _first_open(self, txn_ids: Iterable[int]) -> int | None:
        return next((txn_id for txn_id in txn_ids if not self._changed.has_ended(txn_id)), None)

    def _opened(self, txn_id: int) -> Txn | None:
        """One that this batch has opened."""
        for first, rows in self._changed.new_txns.items():
            if first <= txn_id < first + len(rows):
                return txn_of(rows[txn_id - first].get(column.name) for column in TXNS.columns)
        return None

    def _open_among(self, txn_ids: Sequence[int]) -> Iterator[tuple[int, Txn]]:
        self._know_txns(txn_ids)
        for txn_id in txn_ids:
            txn = self.txn(txn_id)
            if txn is not None and txn.state is TxnStatus.OPEN:
                yield txn_id, txn

    def _locks_of(self, txn_id: TxnId) -> list[Lock]:
        self._know_locks_of([txn_id])
        return self._found(self._by_txn.get(txn_id, ()))

    def _found(self, keys: Iterable[_Key]) -> list[Lock]:
        return self._present([self._requests[lock_id][number] for lock_id, number in keys])

    def _present(self, locks: Iterable[Lock]) -> list[Lock]:
        """Those that are there still, as they are now."""
        return [self._current(lock) for lock in locks if not self._is_gone(lock)]

    def _others_in(self, places: _Strengths, request: Sequence[Lock]) -> list[Lock]:
        """Locks of other owners in these places, as far as they are strong enough there."""
        own_id, own_txn = request[0].lock_id, request[0].txn_id
        found = []
        for place, least in self._each_of(places).items():
            for lock_id, number in self._by_place.get(place, ()):
                lock = self._requests[lock_id][number]
                is_own = lock.lock_id == own_id or (own_txn != NO_TXN and lock.txn_id == own_txn)
                if not is_own and STRENGTH[lock.type] >= least and not self._is_gone(lock):
                    found.append(self._current(lock))
        return found

    def _each_of(self, places: _Strengths) -> _Strengths:
        """With all tables of a database for the database."""
        whole = {db_name: least for (db_name, table_name), least in places.items() if table_name is None}
        if not whole:
            return places
        inside = {place: whole[place[0]] for place in self._by_place if place[0] in whole}
        return {place: min(least, places.get(place, least)) for place, least in {**places, **inside}.items()}

    def _is_gone(self, lock: Lock) -> bool:
        return self._changed.is_gone(lock.lock_id, lock.txn_id)

    def _current(self, lock: Lock) -> Lock:
        """With the heartbeat that has come since it was read."""
        if lock.lock_id in self._changed.refreshed_locks or lock.txn_id in self._changed.refreshed_txns:
            return msgspec.structs.replace(lock, last_heartbeat_ms=self.now_ms())
        return lock

    def _unknown(self, places: _Strengths) -> _Strengths:
        """Where not all locks are known that are so strong."""
        known = self._known_places
        return {
            place: least
            for place, least in places.items()
            if known.get(place, _NO_LOCK) > least and known.get((place[0], None), _NO_LOCK) > least
        }

    def _indexes_of(self, lock: Lock) -> list[dict[_Key, None]]:
        of_place = self._by_place[lock.target.db_name, lock.target.table_name or ""]
        return [of_place] if lock.txn_id == NO_TXN else [of_place, self._by_txn[lock.txn_id]]

    # Reading.

    def _learn(
        self, readings: Sequence[Reading], lock: Sequence[Statement] = ()
    ) -> Generator[Sequence[Statement], Sequence[Rows], None]:
        if not readings and not lock:
            return
        rows = yield [*lock, *(reading.statement for reading in readings)]
        if lock:
            ((self.last_event_id,),) = rows[len(lock) - 1]
        for reading, found in zip(readings, rows[len(lock) :], strict=True):
            reading.learn(found)

    def _first_readings(self, works: Sequence[TxnWork[Any]]) -> list[Reading]:
        readings = []
        if self._dialect.has_clock or any(work.opens or work.locks or work.commits for work in works):
            readings.append(self._counters_reading())
        if txn_ids := {txn_id for work in works for txn_id in work.txn_ids}:
            readings.append(self._txns_reading(txn_ids))
        if txn_ids := {txn_id for work in works if work.commits for txn_id in work.txn_ids}:
            readings.append(self._components_reading(txn_ids))
        if lock_ids := {lock_id for work in works for lock_id in work.lock_ids}:
            readings.append(self._requests_reading(lock_ids))
        if any(work.opens for work in works):
            readings.append(self._open_ids_reading(len(self.jobs) + _OPEN_IDS_MORE))
        if versions := [work.assumed.version for work in works if work.assumed is not None]:
            readings.append(self._events_reading(min(versions)))
            if lock_ids:
                statement = Statement(self._statements.lock_users, self._bound(lock_ids))
                readings.append(Reading(statement, lambda rows: self._lock_users.update(map(tuple, rows))))
        if keys := self._storable_keys():
            pairs = self._dialect.bound_pairs(keys)
            readings.append(Reading(Statement(self._statements.outcomes, pairs), self._learn_outcomes))
        return readings

    def _counters_reading(self) -> Reading:
        counters = COUNTERS_AND_NOW if self._dialect.has_clock else COUNTERS
        return Reading(Statement(counters, {}), self._learn_counters)

    def _events_reading(self, after: int) -> Reading:
        def learn(rows: Rows) -> None:
            for event_id, event_type, db_name, table_name, old_db, old_table in rows:
                renamed_from = None if old_table is None else (old_db, old_table)
                event = Event(event_type, db_name, table_name, "", renamed_from)
                self._events.append(StoredEvent(EventId(event_id), 0, event))

        return Reading(Statement(EVENTS_AFTER, {"after": after, "limit": EVENTS_MAX}), learn)

    def _txns_reading(self, txn_ids: Collection[int]) -> Reading:
        def learn(rows: Rows) -> None:
            self._txns.update(dict.fromkeys(txn_ids))
            self._txns.update((row[0], txn_of(row)) for row in rows)

        return Reading(Statement(self._statements.txns, self._bound(txn_ids)), learn)

    def _components_reading(self, txn_ids: Collection[int]) -> Reading:
        def learn(rows: Rows) -> None:
            self._components.update((txn_id, []) for txn_id in txn_ids)
            for row in rows:
                self._components[row[0]].append(write_of(row))

        return Reading(Statement(self._statements.components, self._bound(txn_ids)), learn)

    def _write_ids_reading(self, txn_ids: Collection[int]) -> Reading:
        def learn(rows: Rows) -> None:
            self._write_ids.update((txn_id, {}) for txn_id in txn_ids)
            for txn_id, db_name, table_name, write_id in rows:
                self._write_ids[txn_id][target_of(db_name, table_name, "")] = write_id

        return Reading(Statement(self._statements.write_ids, self._bound(txn_ids)), learn)

    def _requests_reading(self, lock_ids: Collection[int]) -> Reading:
        statement = Statement(self._statements.requests, self._bound(lock_ids))
        return Reading(statement, partial(self._learn_locks, self._known_requests, lock_ids))

    def _locks_of_txns_reading(self, txn_ids: Collection[int]) -> Reading:
        statement = Statement(self._statements.locks_of_txns, self._bound(txn_ids))
        return Reading(statement, partial(self._learn_locks, self._known_txns, txn_ids))

    def _open_ids_reading(self, limit: int) -> Reading:
        def learn(rows: Rows) -> None:
            self._open_ids = _OpenIds([txn_id for (txn_id,) in rows], len(rows) < limit)

        return Reading(Statement(OPEN_IDS, {"limit": limit}), learn)

    def _candidate_readings(self, wanted: _Wanted, limit: int = CANDIDATES_MAX) -> list[Reading]:
        """What may be in the way of such locks, as far as it is not known. It stays unknown when there is more."""
        unknown = self._unknown(_places(wanted))
        tables = {place: least for place, least in unknown.items() if place[1] is not None}
        databases = {place: least for place, least in unknown.items() if place[1] is None}
        readings = [self._database_reading(place, least, limit) for place, least in databases.items()]
        return [*readings, self._tables_reading(tables, limit)] if tables else readings

    def _database_reading(self, place: _Place, least: int, limit: int) -> Reading:
        values = {"the_db": place[0] if is_storable(place[0]) else "", "least_strength": least, "limit": limit}
        return Reading(Statement(IN_DATABASE, values), partial(self._learn_candidates, [place], least, limit))

    def _tables_reading(self, tables: _Strengths, limit: int) -> Reading:
        least = min(tables.values())
        pairs = [(db_name, name or "") for db_name, name in tables if is_storable(db_name) and is_storable(name or "")]
        values = {**self._dialect.bound_pairs(pairs), "least_strength": least, "limit": limit}
        statement = Statement(self._statements.candidates, values)
        return Reading(statement, partial(self._learn_candidates, tables, least, limit))

    def _complete_readings(self, wanted: _Wanted) -> list[Reading]:
        """All that may be in the way of a request, where there is much; of a partition not what is on others."""
        (target, type), *others = wanted
        if others or target.partition_name is None or not all(is_storable(name or "") for name in target):
            return self._candidate_readings(wanted, _NO_LIMIT)
        table = {"the_db": target.db_name, "the_table": target.table_name, "least_strength": weakest_conflicting(type)}
        names = self._dialect.bound_list(["", target.partition_name, *prefixes(target.partition_name)])
        statements = [Statement(over_partition(self._dialect), {**table, "names": names})]
        if type is LockType.EXCLUSIVE:
            below = f"{target.partition_name}/"
            statements.append(Statement(BELOW_PARTITION, {**table, "below": below, "characters": len(below)}))
        return [Reading(statement, partial(self._learn_locks, set(), ())) for statement in statements]

    def _know_txns(self, txn_ids: Iterable[int]) -> None:
        if missing := [txn_id for txn_id in txn_ids if txn_id not in self._txns]:
            self._load(self._txns_reading(missing))

    def _know_requests(self, lock_ids: Iterable[int]) -> None:
        if missing := [lock_id for lock_id in lock_ids if lock_id not in self._known_requests]:
            self._load(self._requests_reading(missing))

    def _know_locks_of(self, txn_ids: Iterable[int]) -> None:
        if missing := [txn_id for txn_id in txn_ids if txn_id not in self._known_txns]:
            self._load(self._locks_of_txns_reading(missing))

    def _learn_counters(self, rows: Rows) -> None:
        self._known_counters = {name: last_id for name, last_id, *_ in rows}
        self._stored_counters = set(self._known_counters)
        self._learn_now([now_ms for _, _, *now_ms in rows if now_ms])

    def _learn_now(self, rows: Rows) -> None:
        for (now_ms,) in rows:
            self._now_ms = now_ms

    def _learn_outcomes(self, rows: Rows) -> None:
        self._concluded = dict.fromkeys((principal, text) for principal, text in rows)

    def _learn_locks(self, known: set[int], ids: Iterable[int], rows: Rows) -> None:
        known.update(ids)
        for lock in locks_of(rows):
            request = self._requests[lock.lock_id]
            if lock.number not in request:
                request[lock.number] = lock
                for index in self._indexes_of(lock):
                    index[lock.lock_id, lock.number] = None

    def _learn_candidates(self, places: Iterable[_Place], least: int, limit: int, rows: Rows) -> None:
        self._learn_locks(set(), (), rows)
        if len(rows) < limit:
            self._known_places.update((place, min(least, self._known_places.get(place, least))) for place in places)

    def _storable_keys(self) -> set[tuple[str, str]]:
        keys = {(key.principal, key.text) for job in self.jobs if (key := job.open_key) is not None}
        return {key for key in keys if all(map(is_storable, key))}

    def _bound(self, ids: Iterable[int]) -> dict[str, object]:
        return {"ids": self._dialect.bound_list(ids)}


class _OpenIds(NamedTuple):
    """The oldest open transactions when they were read."""

    ids: Sequence[int]
    are_all: bool


def _places(wanted: _Wanted) -> _Strengths:
    """Where locks that overlap these are, and how strong one is at least that is in the way."""
    places: dict[_Place, int] = {}
    for target, type in wanted:
        least = weakest_conflicting(type)
        of_table = [(target.db_name, ""), (target.db_name, target.table_name)]
        for place in [(target.db_name, None)] if target.table_name is None else of_table:
            places[place] = min(least, places.get(place, least))
    return places


class ConnectedBatch(TxnBatch):
    """Errors of the database, which end the batch, are those of SQLAlchemy."""

    def __init__(self, connection: Connection, clock: Clock, jobs: Sequence[Job] = ()) -> None:
        super().__init__(dialect_of(connection), clock, jobs)
        self._connection = connection

    def read_ahead(self, lock: Sequence[Statement] = ()) -> None:
        """Read what the jobs said they will ask for."""
        reading = self.reading(lock)
        statements = next(reading)
        while statements:
            statements = reading.send(self._rows(statements))

    def write(self) -> None:
        """Write what was changed. Nothing may be run afterwards."""
        self._rows(self.changes())

    def commit(self) -> None:
        """Write what was changed, and commit. Raises ConnectionLost when it may have happened or not."""
        self._dialect.commit_with(self._connection, self.changes())

    def _load(self, *readings: Reading) -> None:
        for reading, rows in zip(readings, self._rows([each.statement for each in readings]), strict=True):
            reading.learn(rows)

    def _rows(self, statements: Sequence[Statement]) -> list[Rows]:
        return self._dialect.run_together(self._connection, statements)
