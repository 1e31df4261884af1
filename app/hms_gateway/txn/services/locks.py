"""lock, check_lock, unlock, show_locks: load, decide, apply in one unit of work (semantics §5.7 to §5.9)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from hms_gateway.rpc.structs import EncodedList, LockState, LockType, MetaException, TxnOpenException
from hms_gateway.runtime.suspension import Deferred
from hms_gateway.txn.ports.txn import (
    BatchedWrites,
    Client,
    LockFilter,
    ShownLock,
    TxnReads,
    TxnWork,
    TxnWrites,
)
from hms_gateway.txn.rules.locks import (
    NO_TXN,
    STRENGTH,
    TIMED_OUT,
    Block,
    Lock,
    LockId,
    Owner,
    TxnId,
    block_of,
    blockers,
    deadlock_victim,
    find_cycle,
    has_expired,
    waiting_for,
)
from hms_gateway.txn.rules.names import (
    CommittedRefusal,
    Target,
    already_aborted,
    no_such_lock,
    no_such_lock_to_heartbeat,
    too_many,
    value_of,
)
from hms_gateway.txn.rules.transactions import Write, open_txn
from hms_gateway.txn.services.settings import TxnService

# One lock in the way is enough to wait, so a request looks at the oldest first and seldom at more.
_CANDIDATES_AT_FIRST: Final = 100


class ComponentSpec(msgspec.Struct, frozen=True):
    """One component of a request; `write` is what its transaction is recorded to do, None for nothing."""

    target: Target
    type: LockType
    write: Write | None = None


class LockSpec(msgspec.Struct, frozen=True):
    """A lock request. `txn_id` 0 is none.

    shares_writes   the client is of Hive 4: SHARED_WRITE goes beside SHARED_WRITE of its kind
    zero_wait_read  do not wait when a SHARED_READ component is blocked (zeroWaitReadEnabled)
    exclusive_ctas  do not wait at all (exclusiveCTAS)
    mistake         what is wrong with the request, for one whose transaction is open
    """

    components: Sequence[ComponentSpec]
    client: Client
    txn_id: TxnId = NO_TXN
    shares_writes: bool = False
    zero_wait_read: bool = False
    exclusive_ctas: bool = False
    mistake: MetaException | None = None


class LockAnswer(msgspec.Struct, frozen=True):
    lock_id: LockId
    state: LockState
    error_message: str | None = None


class BlockingLock(msgspec.Struct, frozen=True):
    """A lock that requests wait for: the last heartbeat of it or its transaction, when it is lost without another one,
    and who waits since when (0 where that is not known).
    """

    shown: ShownLock
    last_heartbeat_ms: int
    lost_ms: int
    blocked: Sequence[LockId]
    blocked_since_ms: Sequence[int]


class LockService(TxnService):
    def lock(self, call: LockSpec) -> Deferred[LockAnswer]:
        """Acquire all components or wait for all of them (semantics §5.7).

        Raises MetaException for a request without components, NoSuchTxnException, and TxnAbortedException, also when
        the transaction was sacrificed to end a deadlock that this very request would have closed.
        """
        if not call.components and call.mistake is None:
            raise MetaException("a lock request needs at least one component")
        if len(call.components) > self._settings.components_max:
            raise too_many("components", len(call.components), self._settings.components_max, "lock_components_max")
        txn_ids = () if call.txn_id == NO_TXN else (call.txn_id,)
        locks = [(component.target, component.type) for component in call.components]
        work = TxnWork(lambda txns: self._lock(txns, call), txn_ids=txn_ids, locks=locks)
        return Deferred(self._store, work, value_of)

    def check_lock(self, lock_id: int) -> Deferred[LockAnswer]:
        """Try again to acquire a waiting request; a heartbeat too (semantics §5.9).

        Raises NoSuchLockException; TxnAbortedException for a request that a deadlock cost its transaction.
        """
        work = TxnWork(lambda txns: self._check(txns, lock_id), lock_ids=[lock_id], checks=True)
        return Deferred(self._store, work, value_of)

    def heartbeat(self, txns: BatchedWrites, lock_id: int) -> None:
        """Keep a lock alive, within the caller's unit of work. Raises NoSuchLockException."""
        request = txns.request(lock_id)
        if not request:
            raise no_such_lock_to_heartbeat(lock_id)
        _refresh(txns, request)

    def unlock(self, lock_id: int) -> Deferred[None]:
        """Give a request up; an unknown one is given up already.

        Raises TxnOpenException for one that its transaction has acquired: that ends with the transaction.
        """
        return Deferred(self._store, TxnWork(lambda txns: _unlock(txns, lock_id), lock_ids=[lock_id]))

    def force_release(self, user: str, lock_id: int, reason: str | None = None) -> list[ShownLock]:
        """As `release`, for administrators. Raises NoSuchLockException, and MetaException for other users."""
        if user not in self._settings.administrators:
            raise MetaException(f"user {user} is not an administrator and may not release other users' locks")
        return self.release(lock_id, reason or f"its locks were released by administrator {user}")

    def release(self, lock_id: int, reason: str) -> list[ShownLock]:
        """Take a lock away from its holder; returns what was released. Raises NoSuchLockException.

        A transaction's lock cannot go without the transaction, which is aborted with `reason`: it would otherwise go
        on writing without protection.
        """
        return self._write(lambda txns: _release(txns, lock_id, reason))

    def show(self, filter: LockFilter, shown_types: Mapping[LockType, LockType] | None = None) -> EncodedList:
        """See `ports.TxnReads.lock_list`; without `shown_types` every type is shown as it is."""
        return self._store.read(lambda snapshot: snapshot.txns.lock_list(filter, shown_types or {}))

    def blocking(self, filter: LockFilter) -> list[BlockingLock]:
        """The locks that requests wait for, sorted as `show` does."""

        def work(txns: TxnReads) -> list[BlockingLock]:
            chosen = sorted(txns.shown_locks(filter), key=_order)
            everyone = txns.shown_locks(LockFilter())
            since = {one.lock.lock_id: one.since_ms or 0 for one in everyone}
            blocked = waiting_for([one.lock for one in chosen], [one.lock for one in everyone])
            found = [(shown, ids) for shown, ids in zip(chosen, blocked, strict=True) if ids]
            beats = _heartbeats(txns, [shown for shown, _ in found])
            return [
                BlockingLock(shown, beat, beat + self._settings.timeout_ms, ids, [since[each] for each in ids])
                for (shown, ids), beat in zip(found, beats, strict=True)
            ]

        return self._store.read(lambda snapshot: work(snapshot.txns))

    def _lock(self, txns: BatchedWrites, call: LockSpec) -> LockAnswer | CommittedRefusal:
        heartbeat_ms = txns.now_ms()
        if call.txn_id != NO_TXN:
            heartbeat_ms = open_txn(call.txn_id, txns.txn(call.txn_id)).last_heartbeat_ms
        if call.mistake is not None:
            raise call.mistake
        lock_id = txns.next_lock_id()
        request = [
            Lock(
                lock_id, number, call.txn_id, component.target, component.type, False, call.shares_writes, heartbeat_ms
            )
            for number, component in enumerate(call.components, 1)
        ]
        block = self._block(txns, request)
        if block is not None and call.txn_id != NO_TXN:
            if call.exclusive_ctas or (call.zero_wait_read and block.component.type is LockType.SHARED_READ):
                return LockAnswer(lock_id, LockState.NOT_ACQUIRED, _refusal_text(call, block.blocker))
            block, refusal = self._without_deadlock(txns, request, block)
            if refusal is not None:
                return refusal
        if block is None:
            request = [msgspec.structs.replace(lock, is_acquired=True) for lock in request]
        txns.insert_request(request, call.client, None if block is None else block.blocker)
        writes = [component.write for component in call.components if component.write is not None]
        if writes:
            txns.insert_writes(call.txn_id, writes)
        return LockAnswer(lock_id, _state(block))

    def _check(self, txns: BatchedWrites, lock_id: int) -> LockAnswer | CommittedRefusal:
        request = txns.request(lock_id)
        if not request:
            loser = txns.txn_of_refused_lock(lock_id)
            raise no_such_lock(lock_id) if loser is None else already_aborted(loser.txn_id, loser.reason)
        _refresh(txns, request)
        if request[0].is_acquired:
            return LockAnswer(request[0].lock_id, LockState.ACQUIRED)
        block = self._block(txns, request)
        if block is None:
            txns.grant(request[0].lock_id)
        else:
            txns.set_blocker(request[0].lock_id, block.blocker)
        return LockAnswer(request[0].lock_id, _state(block))

    def _block(self, txns: BatchedWrites, request: Sequence[Lock]) -> Block | None:
        """What the request waits for, after removing what is in its way but past its time."""
        candidates = txns.conflict_candidates(request, _CANDIDATES_AT_FIRST)
        block = self._block_among(txns, request, candidates)
        if block is None and len(candidates) >= _CANDIDATES_AT_FIRST:
            block = self._block_among(txns, request, txns.conflict_candidates(request))
        return block

    def _block_among(self, txns: BatchedWrites, request: Sequence[Lock], candidates: Sequence[Lock]) -> Block | None:
        while (block := _block_of(txns, request, candidates)) is not None:
            now_ms, own = txns.now_ms(), request[0].owner
            expired = [
                lock
                for lock in candidates
                if lock.owner != own and has_expired(lock, now_ms, self._settings.timeout_ms)
            ]
            if not expired:
                return block
            remove_expired(txns, expired)
            lost = {lock.owner for lock in expired}
            candidates = [lock for lock in candidates if lock.owner not in lost]
        return None

    def _without_deadlock(
        self, txns: BatchedWrites, request: Sequence[Lock], block: Block | None
    ) -> tuple[Block | None, CommittedRefusal | None]:
        """What the request still waits for when every deadlock it would close is ended by an abort."""
        own_id = request[0].txn_id
        while block is not None and txns.has_locks(own_id):
            cycle = find_cycle(request[0].owner, self._waits_for(txns, request))
            if cycle is None:
                break
            victim = deadlock_victim(cycle)
            reason = deadlock_text(victim, cycle, block)
            if victim == own_id:
                txns.abort_txns([own_id], reason, request[0].lock_id)
                return block, CommittedRefusal(already_aborted(own_id, reason))
            waiting = txns.waiting_requests([victim], [])
            txns.abort_txns([victim], reason, waiting[0].lock_id if waiting else None)
            block = self._block(txns, request)
        return block, None

    def _waits_for(self, txns: BatchedWrites, request: Sequence[Lock]) -> dict[Owner, list[Owner]]:
        """Who waits for whom, as far as it can be reached from the request's owner."""
        edges: dict[Owner, list[Owner]] = {}
        waiting: list[Sequence[Lock]] = [request]
        while waiting:
            found: set[Owner] = set()
            for one in waiting:
                owners = {lock.owner for lock in _blockers(txns, one)}
                edges.setdefault(one[0].owner, []).extend(owners)
                found |= owners
            new = [owner for owner in found if owner not in edges]
            edges.update((owner, []) for owner in new)
            waiting = _requests(
                txns.waiting_requests(
                    [TxnId(number) for kind, number in new if kind == "txnid"],
                    [LockId(number) for kind, number in new if kind == "lockid"],
                )
            )
        return edges


def _block_of(txns: BatchedWrites, request: Sequence[Lock], candidates: Sequence[Lock]) -> Block | None:
    """Whether a waiting request is passed is seen only with more locks, which few requests need."""
    block = block_of(request, candidates)
    if block is None or block.blocker.is_acquired:
        return block
    return block_of(request, _with_own(txns, request, candidates))


def _blockers(txns: BatchedWrites, request: Sequence[Lock]) -> list[Lock]:
    candidates = txns.conflict_candidates(request)
    found = blockers(request, candidates)
    if all(lock.is_acquired for lock in found):
        return found
    return blockers(request, _with_own(txns, request, candidates))


def _with_own(txns: BatchedWrites, request: Sequence[Lock], candidates: Sequence[Lock]) -> Sequence[Lock]:
    """Also what the request's transaction holds, and the other components of those who wait: they may wait for that."""
    held = txns.held_locks(request[0].txn_id) if request[0].txn_id != NO_TXN else []
    if not held:
        return candidates
    earlier = {lock.lock_id for lock in candidates if not lock.is_acquired and lock.lock_id < request[0].lock_id}
    return [*candidates, *txns.waiting_requests([], sorted(earlier)), *held]


def remove_expired(txns: BatchedWrites, expired: Iterable[Lock]) -> None:
    """Take away locks past their time, with the transactions they belong to."""
    lost = {lock.owner for lock in expired}
    txn_ids = sorted(TxnId(number) for kind, number in lost if kind == "txnid")
    lock_ids = sorted(LockId(number) for kind, number in lost if kind == "lockid")
    if txn_ids:
        txns.abort_txns(txn_ids, TIMED_OUT)
    if lock_ids:
        txns.delete_locks(lock_ids)


def deadlock_text(victim: TxnId, cycle: Sequence[Owner], block: Block) -> str:
    """The text for the victim: the others of the cycle in order, and where it closed."""
    own = cycle.index(("txnid", victim))
    others = ", ".join(f"{kind}:{number}" for kind, number in (*cycle[own + 1 :], *cycle[:own]))
    return f"deadlock with {others}, closed on {block.component.target}"


def _refresh(txns: BatchedWrites, request: Sequence[Lock]) -> None:
    """A transaction's lock has no heartbeat of its own; while there is a lock, its transaction is open."""
    if request[0].txn_id == NO_TXN:
        txns.refresh_lock(request[0].lock_id)
    else:
        txns.refresh_txns([request[0].txn_id])


def _unlock(txns: BatchedWrites, lock_id: int) -> None:
    request = txns.request(lock_id)
    if not request:
        return
    first = request[0]
    if first.txn_id != NO_TXN and first.is_acquired:
        raise TxnOpenException(f"Unlocking locks associated with transaction not permitted.  {first}")
    txns.delete_locks([first.lock_id])


def _release(txns: TxnWrites, lock_id: int, reason: str) -> list[ShownLock]:
    request = txns.batched(lambda batch: batch.request(lock_id))
    if not request:
        raise no_such_lock(lock_id)
    txn_id = request[0].txn_id
    if txn_id == NO_TXN:
        released = [shown for shown in txns.shown_locks(LockFilter()) if shown.lock.lock_id == lock_id]
        txns.batched(lambda batch: batch.delete_locks([request[0].lock_id]))
    else:
        released = txns.shown_locks(LockFilter(txn_id=txn_id))
        txns.batched(lambda batch: batch.abort_txns([txn_id], reason))
    return sorted(released, key=_order)


def _heartbeats(txns: TxnReads, shown: Sequence[ShownLock]) -> list[int]:
    """Those of transactions are looked up only when there are locks of some."""
    of_txns: dict[int, int] = {}
    if any(one.lock.txn_id != NO_TXN for one in shown):
        of_txns = {txn.txn_id: txn.last_heartbeat_ms for txn in txns.unfinished_txns()}
    return [of_txns.get(one.lock.txn_id, one.lock.last_heartbeat_ms) for one in shown]


def _requests(locks: Iterable[Lock]) -> list[Sequence[Lock]]:
    by_id: dict[LockId, list[Lock]] = {}
    for lock in locks:
        by_id.setdefault(lock.lock_id, []).append(lock)
    return list(by_id.values())


def _state(block: Block | None) -> LockState:
    return LockState.ACQUIRED if block is None else LockState.WAITING


def _refusal_text(call: LockSpec, blocker: Lock) -> str:
    if call.exclusive_ctas:
        return f"Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : {{{blocker}}}"
    return f"Unable to acquire read lock due to an existing exclusive lock {{{blocker}}}"


def _order(shown: ShownLock) -> tuple[bool, int, int, int]:
    lock = shown.lock
    return not lock.is_acquired, STRENGTH[lock.type], lock.lock_id, lock.number
