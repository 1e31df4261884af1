"""`txn.ports.txn` in memory: what storage does, as plainly as it can be said, for millions of simulated calls."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TypeVar

from msgspec.structs import replace

from hms_gateway.metastore.ports.store import Event
from hms_gateway.rpc.structs import LockType, TxnType
from hms_gateway.txn.ports.txn import Client, LockFilter, Rebuild, ShownLock
from hms_gateway.txn.rules.compaction import Compaction, CompactionFilter
from hms_gateway.txn.rules.locks import NO_TXN, AcquiredLock, Lock, LockId, TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import CommittedWrite, Txn, TxnStatus, Unfinished, Write
from tests.txn.lock_elements import ElementList, elements

T = TypeVar("T")


class MemoryStore:
    """`ports.Store`: a unit of work that raises changes nothing.

    `clock_ms` is the database's; that of the server which works on it is wrong by `local_skew_ms`.
    """

    def __init__(self) -> None:
        self.clock_ms = 1_000_000_000_000
        self.local_skew_ms = 0
        self.txns = MemoryTxns(self)
        self._made: list[Event] = []

    def append_event(self, event: Event) -> None:
        self._made.append(event)

    def made_events(self) -> Sequence[Event]:
        return self._made

    def held_locks(self, targets: Sequence[Target]) -> tuple[list[AcquiredLock], int]:
        """No more than was asked for, so that a rule which needs more has to ask."""
        return [
            AcquiredLock(self.txns.alive(shown.lock), *_holder(shown.client))
            for request in self.txns.locks.values()
            for shown in request
            if shown.lock.is_acquired and any(_is_around(shown.lock.target, each) for each in targets)
        ], self.clock_ms

    def read(self, work: Callable[["MemoryStore"], T]) -> T:
        return work(self)

    def write(self, work: Callable[["MemoryStore"], T]) -> T:
        before = self.txns
        self.txns, self._made = before.copied(), []
        try:
            return work(self)
        except BaseException:
            self.txns = before
            raise


class MemoryTxns:
    """`ports.TxnWrites`. What is finished stays small: the simulation forgets it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.last_txn = TxnId(0)
        self.last_lock = LockId(0)
        self.known: dict[int, Txn] = {}
        self.ended_ms: dict[int, int] = {}
        self.writes: list[tuple[TxnId, Write]] = []
        self.write_sets: list[CommittedWrite] = []
        self.locks: dict[int, list[ShownLock]] = {}
        self.given: dict[Target, dict[int, int]] = {}
        self.last_given: dict[Target, int] = {}

    def copied(self) -> "MemoryTxns":
        twin = copy(self)
        for name in ("known", "ended_ms", "writes", "write_sets", "locks", "last_given"):
            setattr(twin, name, copy(getattr(self, name)))
        twin.given = {table: dict(ids) for table, ids in self.given.items()}
        return twin

    def now_ms(self) -> int:
        return self._store.clock_ms

    def batched(self, work: Callable[["MemoryTxns"], T]) -> T:
        return work(self)

    # Transactions.

    def high_water_mark(self) -> TxnId:
        return self.last_txn

    def unfinished_txns(self) -> list[Txn]:
        return [txn for _, txn in sorted(self.known.items()) if txn.state is not TxnStatus.COMMITTED]

    def unfinished(self) -> list[Unfinished]:
        return [Unfinished(txn.txn_id, txn.state is TxnStatus.OPEN, txn.type) for txn in self.unfinished_txns()]

    def insert_txns(self, count: int, type: TxnType, client: Client) -> list[TxnId]:
        ids = [TxnId(self.last_txn + number) for number in range(1, count + 1)]
        open_ids = [txn.txn_id for txn in self.known.values() if txn.state is TxnStatus.OPEN]
        for txn_id in ids:
            oldest = min(open_ids, default=ids[0])
            who = (client.user, client.hostname, client.agent_info)
            self.known[txn_id] = Txn(txn_id, TxnStatus.OPEN, type, *who, self.now_ms(), self.now_ms(), oldest)
        self.last_txn = TxnId(self.last_txn + count)
        return ids

    def txn(self, txn_id: int) -> Txn | None:
        return self.known.get(txn_id)

    def txns(self, txn_ids: Sequence[int]) -> list[Txn]:
        return [self.known[txn_id] for txn_id in sorted(set(txn_ids)) if txn_id in self.known]

    def txns_between(self, first: int, last: int) -> list[Unfinished]:
        return [txn for txn in self.unfinished() if first <= txn.txn_id <= last]

    def count_open(self) -> int:
        return sum(txn.state is TxnStatus.OPEN for txn in self.known.values())

    def skip_txn_ids(self, last: TxnId) -> None:
        self.last_txn = max(self.last_txn, last)

    def replicated(self, policy: str, source_ids: Sequence[int]) -> dict[int, TxnId]:
        return {}

    def insert_replicated(self, policy: str, txn_ids: Mapping[int, TxnId]) -> None:
        raise NotImplementedError

    def refresh_txns(self, txn_ids: Sequence[TxnId]) -> None:
        for txn_id in txn_ids:
            if self.known[txn_id].state is TxnStatus.OPEN:
                self.known[txn_id] = replace(self.known[txn_id], last_heartbeat_ms=self.now_ms())

    def abort_txns(self, txn_ids: Sequence[TxnId], reason: str | None, refused_lock: LockId | None = None) -> None:
        for txn_id in txn_ids:
            # Of others there is no row.
            if txn_id in self.known and self.known[txn_id].state is TxnStatus.OPEN:
                aborted = replace(self.known[txn_id], state=TxnStatus.ABORTED, reason=reason, refused_lock=refused_lock)
                self.known[txn_id] = aborted
                self.ended_ms[txn_id] = self.now_ms()
        self._delete_locks_of(set(txn_ids))

    def commit_txn(
        self,
        txn_id: TxnId,
        writes: Sequence[Write],
        changes: Sequence[Write],
        commit_id: TxnId,
        names_write_ids: bool | None = None,
    ) -> None:
        self.known[txn_id] = replace(self.known[txn_id], state=TxnStatus.COMMITTED)
        self.ended_ms[txn_id] = self.now_ms()
        self.writes = [one for one in self.writes if one[0] != txn_id]
        self.write_sets += [CommittedWrite(txn_id, commit_id, one.target, one.operation) for one in changes]
        self._delete_locks_of({txn_id})

    def txn_of_refused_lock(self, lock_id: int) -> Txn | None:
        return next((txn for txn in self.known.values() if txn.refused_lock == lock_id), None)

    def insert_writes(self, txn_id: TxnId, writes: Sequence[Write]) -> None:
        self.writes += [(txn_id, write) for write in writes]

    def writes_of(self, txn_id: TxnId) -> list[Write]:
        return [write for owner, write in self.writes if owner == txn_id]

    def committed_since(self, txn_id: TxnId, targets: Sequence[Target]) -> list[CommittedWrite]:
        return [one for one in self.write_sets if one.commit_id >= txn_id]

    # Write ids.

    def table_id(self, table: Target) -> int | None:
        raise NotImplementedError

    def last_write_id(self, table: Target) -> int | None:
        return self.last_given.get(table)

    def hidden_write_ids(self, table: Target, high_water_mark: int, excepted: Sequence[int]) -> list[tuple[int, int]]:
        rows = self.given.get(table, {}).items()
        return [(txn_id, given) for txn_id, given in rows if txn_id > high_water_mark or txn_id in set(excepted)]

    def completed_changes(self, table: Target) -> list[tuple[int, int]]:
        raise NotImplementedError

    def write_ids_of(self, table: Target, txn_ids: Sequence[TxnId]) -> dict[int, int]:
        return {txn_id: given for txn_id, given in self.given.get(table, {}).items() if txn_id in set(txn_ids)}

    def insert_write_ids(self, table: Target, write_ids: Mapping[TxnId, int]) -> None:
        self.given.setdefault(table, {}).update({int(txn_id): given for txn_id, given in write_ids.items()})

    def delete_write_ids(self, table: Target, txn_ids: Sequence[TxnId]) -> None:
        for txn_id in txn_ids:
            self.given.get(table, {}).pop(txn_id, None)

    def set_last_write_id(self, table: Target, write_id: int) -> None:
        self.last_given[table] = write_id

    # Locks.

    def next_lock_id(self) -> LockId:
        self.last_lock = LockId(self.last_lock + 1)
        return self.last_lock

    def insert_request(self, request: Sequence[Lock], client: Client, blocker: Lock | None) -> None:
        found = None if blocker is None else (blocker.lock_id, blocker.number)
        self.locks[request[0].lock_id] = [
            ShownLock(
                replace(lock, last_heartbeat_ms=0 if lock.txn_id else self.now_ms()),
                client,
                self.now_ms(),
                found,
            )
            for lock in request
        ]

    def request(self, lock_id: int) -> list[Lock]:
        return [self.alive(shown.lock) for shown in self.locks.get(lock_id, ())]

    def waiting_requests(self, txn_ids: Sequence[TxnId], lock_ids: Sequence[LockId]) -> list[Lock]:
        found = (lock for lock in self._all() if not lock.is_acquired)
        return [lock for lock in found if (lock.txn_id and lock.txn_id in txn_ids) or lock.lock_id in lock_ids]

    def has_locks(self, txn_id: TxnId) -> bool:
        return any(lock.txn_id == txn_id for lock in self._all())

    def held_locks(self, txn_id: TxnId) -> list[Lock]:
        return [lock for lock in self._all() if lock.txn_id == txn_id and lock.is_acquired]

    def conflict_candidates(self, request: Sequence[Lock], limit: int | None = None) -> list[Lock]:
        """No more than was asked for, so that a rule which needs more has to ask."""
        own_id, own_txn = request[0].lock_id, request[0].txn_id or -1
        others = (lock for lock in self._all() if lock.lock_id != own_id and lock.txn_id != own_txn)
        return [lock for lock in others if any(mine.target.reaches(lock.target) for mine in request)][:limit]

    def grant(self, lock_id: LockId) -> None:
        self.locks[lock_id] = [
            replace(shown, lock=replace(shown.lock, is_acquired=True), since_ms=self.now_ms(), blocker=None)
            for shown in self.locks[lock_id]
        ]

    def set_blocker(self, lock_id: LockId, blocker: Lock) -> None:
        found = (blocker.lock_id, blocker.number)
        self.locks[lock_id] = [replace(shown, blocker=found) for shown in self.locks[lock_id]]

    def refresh_lock(self, lock_id: LockId) -> None:
        self.locks[lock_id] = [
            replace(shown, lock=replace(shown.lock, last_heartbeat_ms=self.now_ms())) for shown in self.locks[lock_id]
        ]

    def delete_locks(self, lock_ids: Sequence[LockId]) -> None:
        for lock_id in lock_ids:
            self.locks.pop(lock_id, None)

    def shown_locks(self, filter: LockFilter) -> list[ShownLock]:
        wanted = (filter.db_name, filter.table_name, filter.partition_name, filter.txn_id)
        return [
            shown
            for request in self.locks.values()
            for shown in request
            if all(map(_is_wanted, wanted, (*shown.lock.target, shown.lock.txn_id)))
        ]

    def lock_list(self, filter: LockFilter, shown_types: Mapping[LockType, LockType]) -> ElementList:
        return ElementList(elements(self.shown_locks(filter), shown_types))

    # Expiry.

    def silent_txns(self, before_ms: int, limit: int) -> list[TxnId]:
        silent = (
            txn for txn in self.known.values() if txn.state is TxnStatus.OPEN and txn.last_heartbeat_ms < before_ms
        )
        return [txn.txn_id for txn in silent][:limit]

    def silent_locks(self, before_ms: int, limit: int) -> list[LockId]:
        silent = (lock for lock in self._all() if lock.txn_id == NO_TXN and lock.last_heartbeat_ms < before_ms)
        return list(dict.fromkeys(lock.lock_id for lock in silent))[:limit]

    def forget_finished(self, ended_before_ms: int, limit: int, *, victims_before_ms: int, victims_max: int) -> int:
        busy = {owner for owner, _ in self.writes} | {owner for ids in self.given.values() for owner in ids}
        victims = [txn_id for txn_id in sorted(self.known, reverse=True) if self.known[txn_id].refused_lock is not None]
        shown = {txn_id for txn_id in victims[:victims_max] if self.ended_ms[txn_id] >= victims_before_ms}
        old = [
            txn_id
            for txn_id, ended_ms in self.ended_ms.items()
            if ended_ms < ended_before_ms
            and txn_id not in shown
            and (self.known[txn_id].state is TxnStatus.COMMITTED or txn_id not in busy)
        ][:limit]
        for txn_id in old:
            del self.known[txn_id], self.ended_ms[txn_id]
        open_txns = [txn for txn in self.known.values() if txn.state is TxnStatus.OPEN]
        oldest = min((txn.txn_id for txn in open_txns), default=self.last_txn + 1)
        needed = min((txn.min_open_txn for txn in open_txns), default=self.last_txn + 1)
        self.write_sets = [one for one in self.write_sets if one.commit_id >= oldest]
        for table, ids in self.given.items():
            self.given[table] = {one: given for one, given in ids.items() if one >= needed or one in self.known}
        return len(old)

    # What the simulation does not do.

    def rebuild(self, view: Target) -> Rebuild | None:
        raise NotImplementedError

    def set_rebuild(self, view: Target, txn_id: TxnId) -> None:
        raise NotImplementedError

    def compactions(self, filter: CompactionFilter) -> list[Compaction]:
        return []

    def next_compaction_id(self) -> int:
        raise NotImplementedError

    def save_compactions(self, compactions: Sequence[Compaction]) -> None:
        assert not compactions

    def delete_compactions(self, compaction_ids: Sequence[int]) -> None:
        assert not compaction_ids

    def forget_compacted(self, target: Target, highest_write_id: int | None) -> None:
        raise NotImplementedError

    def _all(self) -> list[Lock]:
        return [self.alive(shown.lock) for request in self.locks.values() for shown in request]

    def alive(self, lock: Lock) -> Lock:
        """A transaction's heartbeat is that of its locks."""
        if not lock.txn_id:
            return lock
        return replace(lock, last_heartbeat_ms=self.known[lock.txn_id].last_heartbeat_ms)

    def _delete_locks_of(self, txn_ids: set[TxnId]) -> None:
        self.locks = {
            lock_id: request for lock_id, request in self.locks.items() if request[0].lock.txn_id not in txn_ids
        }


def _holder(client: Client) -> tuple[str, str, str, str, str]:
    return client.user, client.hostname, client.agent_info, client.principal, client.address


def _is_around(held: Target, asked: Target) -> bool:
    """On the table that was asked about or on its database; in the database that was asked about."""
    is_near = None in (asked.table_name, held.table_name) or asked.table_name == held.table_name
    return is_near and held.db_name == asked.db_name


def _is_wanted(asked: object, there: object) -> bool:
    return asked is None or asked == there
