"""open, commit, abort, heartbeat and lists of transactions: load, decide, apply (semantics §5.2 to §5.6)."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from hms_gateway.rpc.structs import MetaException, TxnAbortedException, TxnInfo, TxnType
from hms_gateway.runtime.suspension import Deferred, in_thread
from hms_gateway.txn.ports.txn import BatchedWrites, Client, TxnReads, TxnStore, TxnUnit, TxnWork, TxnWrites
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import CommittedRefusal, Target, value_of
from hms_gateway.txn.rules.transactions import (
    Txn,
    TxnOperation,
    TxnStatus,
    Unfinished,
    Write,
    batch_size,
    changes_to_check,
    collision,
    collision_text,
    may_open,
    needs_abort,
    needs_commit,
    open_txn,
    too_many_open,
)
from hms_gateway.txn.services.locks import LockService
from hms_gateway.txn.services.settings import TxnService, TxnSettings

T = TypeVar("T")

_ID_MAX: Final = 2**63 - 1


class OpenTxns(msgspec.Struct, frozen=True):
    """All transactions up to the high water mark that are not committed, by id."""

    high_water_mark: TxnId
    unfinished: Sequence[Unfinished]

    @property
    def oldest_open(self) -> TxnId | None:
        return next((txn.txn_id for txn in self.unfinished if txn.is_open), None)


class RangeHeartbeat(msgspec.Struct, frozen=True):
    aborted: Sequence[int]
    missing: Sequence[int]


class TransactionService(TxnService):
    def __init__(self, store: TxnStore, locks: LockService, settings: TxnSettings) -> None:
        super().__init__(store, settings)
        self._locks = locks
        self._gauge = _OpenGauge(settings.open_txns_max)

    def open(
        self,
        count: int,
        client: Client,
        type: TxnType = TxnType.DEFAULT,
        replication: tuple[str, Sequence[int]] | None = None,
    ) -> Deferred[list[TxnId]]:
        """Open up to `count` transactions; their ids, ascending and without a gap (semantics §5.2).

        `replication` is a policy and the ids that transactions have at its source: those that were opened for them
        before are returned again. Raises MetaException for a negative count and when too many are open.
        """
        if replication is not None:
            return in_thread(lambda: self._write(lambda txns: self._open_replicated(txns, client, *replication)))
        size = batch_size(count, self._settings.batch_max)
        return Deferred(self._store, TxnWork(lambda txns: self._open(txns, size, type, client), opens=True))

    def commit(
        self,
        txn_id: int,
        *,
        checks_writes: bool,
        is_strict: bool = False,
        policy: str | None = None,
        alongside: Callable[[Any], None] | None = None,
        names_write_ids: bool | None = None,
    ) -> Deferred[object]:
        """Commit; the first committer wins (semantics §5.6).

        checks_writes  look whether a transaction committed meanwhile changed the same (2.3, exclWriteEnabled=false)
        is_strict      two deletes collide as well
        policy         `txn_id` is an id at this replication policy's source; one that was never opened is done already
        alongside      what else is done in the commit's unit of work, which it is given; nothing at all when it raises
        names_write_ids  whether the write ids that are committed are looked up, which caches then know at once; None
                       where the transaction is known to have any

        Raises NoSuchTxnException, and TxnAbortedException for a collision too: the transaction is aborted then.
        """

        def commits(own_id: int) -> TxnWork[CommittedRefusal | bool]:
            def work(txns: BatchedWrites) -> CommittedRefusal | bool:
                return _commit(txns, TxnId(own_id), checks_writes, is_strict, names_write_ids)

            return TxnWork(work, txn_ids=[own_id], commits=True, names_write_ids=names_write_ids)

        def work(transaction: TxnUnit) -> CommittedRefusal | bool:
            own_id = _local_id(transaction.txns, txn_id, policy)
            outcome = own_id is not None and commits(own_id)(transaction)
            if outcome is True and alongside is not None:
                alongside(transaction)
            return outcome

        if alongside is None and policy is None:
            return Deferred(self._store, commits(txn_id), value_of)
        return in_thread(lambda: value_of(self._store.write(work)))

    def abort(self, txn_id: int, policy: str | None = None) -> Deferred[None]:
        """Raises NoSuchTxnException, for a committed one too; aborting twice is fine (semantics §5.4)."""
        if policy is None:
            return Deferred(self._store, _abort(txn_id))

        def work(transaction: TxnUnit) -> None:
            own_id = _local_id(transaction.txns, txn_id, policy)
            if own_id is not None:
                _abort(own_id)(transaction)

        return in_thread(lambda: self._store.write(work))

    def abort_all(self, txn_ids: Sequence[int]) -> list[TxnId]:
        """Abort those that are open, ignore all others; which they were."""
        self._check_count(len(txn_ids))
        # To look for many takes a while, in which others may write. What is over now stays over.
        found = self._store.read(lambda snapshot: _open_among(snapshot.txns, txn_ids))

        def work(txns: BatchedWrites) -> list[TxnId]:
            open_ids = [txn_id for txn_id in found if _is_open(txns.txn(txn_id))]
            txns.abort_txns(open_ids, None)
            return open_ids

        return self._store.write(TxnWork(work, txn_ids=found))

    def heartbeat(self, lock_id: int, txn_id: int) -> Deferred[None] | None:
        """Keep a lock, a transaction or both alive; 0 is none (semantics §5.9).

        One that went silent too long is saved if that was not noticed yet. Raises NoSuchLockException,
        NoSuchTxnException, TxnAbortedException.
        """

        def work(txns: BatchedWrites) -> None:
            if lock_id:
                self._locks.heartbeat(txns, lock_id)
            if txn_id:
                txns.refresh_txns([open_txn(txn_id, txns.txn(txn_id)).txn_id])

        if not lock_id and not txn_id:
            return None
        txn_ids, lock_ids = [txn_id] if txn_id else [], [lock_id] if lock_id else []
        return Deferred(self._store, TxnWork(work, txn_ids=txn_ids, lock_ids=lock_ids))

    def heartbeat_range(self, first: int, last: int) -> RangeHeartbeat:
        """Keep all open transactions of a range alive; which of it are aborted, and which are neither.

        Raises MetaException for a range that is upside down or longer than the limit.
        """
        if first > last:
            raise MetaException(f"the range of transactions ends before it begins: {first} to {last}")
        self._check_count(last - first + 1)

        def work(txns: TxnWrites) -> RangeHeartbeat:
            found = txns.txns_between(first, last)
            open_ids = [txn.txn_id for txn in found if txn.is_open]
            txns.batched(lambda batch: batch.refresh_txns(open_ids))
            known = {txn.txn_id for txn in found}
            aborted = [txn.txn_id for txn in found if not txn.is_open]
            # 0 means no transaction, so it is not missed.
            missing = [number for number in range(first, last + 1) if number and number not in known]
            return RangeHeartbeat(aborted, missing)

        return self._write(work)

    def open_txns(self) -> OpenTxns:
        """For a snapshot of the data: a transaction up to the mark that is not listed has committed for ever."""
        return self._store.read(lambda snapshot: read_open_txns(snapshot.txns))

    def open_txn_infos(self) -> tuple[TxnId, list[TxnInfo]]:
        """The high water mark, and open and aborted transactions by id."""
        return self._store.read(lambda snapshot: (snapshot.txns.high_water_mark(), snapshot.txns.txn_infos()))

    def add_writes(self, txn_id: int, targets: Sequence[Target], operation: TxnOperation, write_id: int | None) -> None:
        """Record what an open transaction wrote to partitions that could not be named before (semantics §5.13).

        Raises NoSuchTxnException, TxnAbortedException.
        """

        def work(txns: BatchedWrites) -> None:
            txn = open_txn(txn_id, txns.txn(txn_id))
            txns.insert_writes(txn.txn_id, [Write(target, operation, write_id) for target in targets])

        self._store.write(TxnWork(work, txn_ids=[txn_id]))

    def newest_in_conflict(self, txn_id: int) -> int:
        """The newest committed transaction whose changes collide with this open one's so far, -1 for none."""

        def work(txns: BatchedWrites) -> int:
            changes = changes_to_check(txns.writes_of(TxnId(txn_id)))
            committed = txns.committed_since(TxnId(txn_id), [change.target for change in changes]) if changes else []
            mine = {change.target for change in changes}
            return max((other.txn_id for other in committed if other.target in mine), default=-1)

        return self._store.write(TxnWork(work))

    def seed(self, seed_id: int) -> None:
        """Let the next transaction have the id behind `seed_id`. Raises MetaException for one that was given."""

        def work(txns: TxnWrites) -> None:
            newest = txns.high_water_mark()
            if seed_id <= newest:
                raise MetaException(f"Invalid txnId seed {seed_id}, the highWaterMark is {newest}")
            if seed_id >= _ID_MAX - self._settings.open_txns_max:
                raise MetaException(f"Invalid txnId seed {seed_id}: no ids would be left")
            txns.skip_txn_ids(TxnId(seed_id))

        self._write(work)

    def _open(self, txns: BatchedWrites, count: int, type: TxnType, client: Client) -> list[TxnId]:
        if not self._gauge.admits(count, txns.count_open):
            raise too_many_open()
        return txns.insert_txns(count, type, client)

    def _open_replicated(self, txns: TxnWrites, client: Client, policy: str, source_ids: Sequence[int]) -> list[TxnId]:
        known = txns.replicated(policy, source_ids)
        new = sorted({source_id for source_id in source_ids if source_id not in known})
        if new:
            self._check_count(len(new))
            ids = txns.batched(lambda batch: self._open(batch, len(new), TxnType.REPL_CREATED, client))
            txns.insert_replicated(policy, dict(zip(new, ids, strict=True)))
            known |= dict(zip(new, ids, strict=True))
        return [known[source_id] for source_id in source_ids]


def read_open_txns(txns: TxnReads) -> OpenTxns:
    """See `TransactionService.open_txns`; within the caller's unit of work."""
    return OpenTxns(txns.high_water_mark(), txns.unfinished())


class _OpenGauge:
    """Counting open transactions takes as long as there are many, so it is done only when it may matter.

    What was opened here since the last count can be too high (commits are not subtracted), and other servers' are not
    seen: the limit is a protection, not a promise.
    """

    def __init__(self, open_max: int) -> None:
        self._open_max = open_max
        self._lock = threading.Lock()
        self._count: int | None = None
        self._opened_since = 0
        self._is_refusing = False

    def admits(self, count: int, count_open: Callable[[], int]) -> bool:
        with self._lock:
            near = self._count is None or self._count + self._opened_since + count > self._open_max // 2
            if near and (self._count is None or self._is_refusing or self._opened_since * 20 >= self._open_max):
                self._count, self._opened_since = count_open(), 0
            self._is_refusing = not may_open((self._count or 0) + self._opened_since, self._open_max, self._is_refusing)
            if not self._is_refusing:
                self._opened_since += count
            return not self._is_refusing


def _local_id(txns: TxnWrites, txn_id: int, policy: str | None) -> int | None:
    """The transaction's id here; None when replication never opened it, or it is finished and forgotten."""
    if policy is None:
        return txn_id
    return txns.replicated(policy, [txn_id]).get(txn_id)


def _commit(
    txns: BatchedWrites, own_id: TxnId, checks_writes: bool, is_strict: bool, names_write_ids: bool | None
) -> CommittedRefusal | bool:
    """Whether it was committed now."""
    if not needs_commit(own_id, txns.txn(own_id)):
        return False
    writes = txns.writes_of(own_id)
    changes = changes_to_check(writes)
    commit_id = txns.high_water_mark()
    if changes and checks_writes:
        committed = txns.committed_since(own_id, [change.target for change in changes])
        found = collision(own_id, changes, committed, is_strict=is_strict)
        if found is not None:
            text = collision_text(own_id, commit_id, *found)
            txns.abort_txns([own_id], text)
            return CommittedRefusal(TxnAbortedException(text))
    txns.commit_txn(own_id, writes, changes, commit_id, names_write_ids)
    return True


def _open_among(txns: TxnReads, txn_ids: Sequence[int]) -> list[TxnId]:
    return [txn.txn_id for txn in txns.txns(txn_ids) if _is_open(txn)]


def _is_open(txn: Txn | None) -> bool:
    return txn is not None and txn.state is TxnStatus.OPEN


def _abort(txn_id: int) -> TxnWork[None]:
    def work(txns: BatchedWrites) -> None:
        if needs_abort(txn_id, txns.txn(txn_id)):
            txns.abort_txns([TxnId(txn_id)], None)

    return TxnWork(work, txn_ids=[txn_id])
