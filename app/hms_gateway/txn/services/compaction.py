"""compact, show_compact and the calls of outside workers (semantics §5.12): load, decide, apply. And expiry.

Expiry takes away what has gone silent, and forgets what is over; any number of servers may do it at once.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from hms_gateway.rpc.structs import CompactionType
from hms_gateway.txn.ports.txn import TxnStore, TxnWrites
from hms_gateway.txn.rules.compaction import (
    STATE_TEXTS,
    Compaction,
    CompactionDetails,
    CompactionFilter,
    CompactionState,
    compacted,
    is_abandoned,
    moved,
    next_for_worker,
    pending,
    surplus_history,
)
from hms_gateway.txn.rules.locks import TIMED_OUT
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.services.settings import TxnSettings

T = TypeVar("T")

_QUEUED = frozenset({CompactionState.INITIATED})


class AbortOutcome(msgspec.Struct, frozen=True):
    compaction_id: int
    is_aborted: bool
    message: str


class CompactionService:
    def __init__(self, store: TxnStore) -> None:
        self._store = store

    def request(self, target: Target, type: CompactionType, details: CompactionDetails) -> tuple[Compaction, bool]:
        """The new entry and True, or the one that is queued or worked on already and False."""

        def work(txns: TxnWrites) -> tuple[Compaction, bool]:
            existing = pending(txns.compactions(CompactionFilter(target=target)))
            if existing is not None:
                return existing, False
            return _added(txns, target, type, CompactionState.INITIATED, details), True

        return self._write(work)

    def submit_for_cleanup(self, target: Target, type: CompactionType, details: CompactionDetails) -> Compaction:
        """An entry whose compaction was done elsewhere and that only has to be cleaned up."""
        return self._write(lambda txns: _added(txns, target, type, CompactionState.READY, details))

    def show(
        self, filter: CompactionFilter, pool_name: str | None = None, limit: int | None = None
    ) -> list[Compaction]:
        """Queue and history: what has not ended first, then the latest."""
        found = self._store.read(lambda snapshot: snapshot.txns.compactions(filter))
        shown = [entry for entry in found if pool_name is None or entry.details.pool_name == pool_name]
        shown.sort(key=_latest_first, reverse=True)
        return shown if limit is None or limit < 0 else shown[:limit]

    def take(self, worker_id: str | None, worker_version: str | None, pool_name: str | None) -> Compaction | None:
        """The next entry for a worker, which it has now; None when there is nothing to do."""

        def work(txns: TxnWrites) -> Compaction | None:
            found = next_for_worker(txns.compactions(CompactionFilter(states=_QUEUED)), pool_name)
            if found is None:
                return None
            taken = msgspec.structs.replace(found, state=CompactionState.WORKING).with_details(
                worker_id=worker_id, worker_version=worker_version, start_ms=txns.now_ms()
            )
            txns.save_compactions([taken])
            return taken

        return self._write(work)

    def mark(
        self, compaction_id: int, state: CompactionState, worker_id: str | None = None, error: str | None = None
    ) -> None:
        """A worker or cleaner is done with an entry. Raises MetaException when it is not its to move."""

        def work(txns: TxnWrites) -> None:
            entry = moved(_one(txns, compaction_id), compaction_id, state, worker_id)
            if state is CompactionState.READY:
                entry = entry.with_details(worker_id=None, committed_ms=txns.now_ms())
            else:
                entry = entry.with_details(end_ms=txns.now_ms(), error_message=error or entry.details.error_message)
            txns.save_compactions([entry])
            if state is CompactionState.SUCCEEDED:
                txns.forget_compacted(entry.target, entry.details.highest_write_id)
            txns.delete_compactions(surplus_history(txns.compactions(CompactionFilter(target=entry.target))))

        self._write(work)

    def update(self, compaction_id: int, **changed: object) -> None:
        """Change details of an entry; one that is not there is left alone."""

        def work(txns: TxnWrites) -> None:
            entry = _one(txns, compaction_id)
            if entry is not None:
                txns.save_compactions([entry.with_details(**changed)])

        self._write(work)

    def abort(self, compaction_ids: Sequence[int]) -> list[AbortOutcome]:
        """Take entries without a worker out of the queue."""

        def work(txns: TxnWrites) -> list[AbortOutcome]:
            return [_aborted(txns, compaction_id) for compaction_id in dict.fromkeys(compaction_ids)]

        return self._write(work)

    def latest_compacted(
        self, table: Target, partition_names: Iterable[str] | None, after_id: int | None
    ) -> list[Compaction]:
        """The newest finished compaction of a table, or of each of its partitions, if newer than `after_id`."""
        latest: dict[str | None, Compaction] = {}
        for entry in self._store.read(lambda snapshot: snapshot.txns.compactions(compacted(table))):
            latest[entry.target.partition_name] = entry
        wanted = None if partition_names is None else set(partition_names)
        return [
            entry
            for name, entry in latest.items()
            if (wanted is None or name in wanted) and (after_id is None or entry.compaction_id > after_id)
        ]

    def give_back_abandoned(self) -> int:
        """Queue again what a worker has had for too long; how many. Any server may run it at any time."""

        def work(txns: TxnWrites) -> int:
            working = txns.compactions(CompactionFilter(states=frozenset({CompactionState.WORKING})))
            abandoned = [entry for entry in working if is_abandoned(entry, txns.now_ms())]
            txns.save_compactions(
                [
                    msgspec.structs.replace(entry, state=CompactionState.INITIATED).with_details(
                        worker_id=None, start_ms=None
                    )
                    for entry in abandoned
                ]
            )
            return len(abandoned)

        return self._write(work)

    def _write(self, work: Callable[[TxnWrites], T]) -> T:
        return self._store.write(lambda transaction: work(transaction.txns))


def _added(
    txns: TxnWrites, target: Target, type: CompactionType, state: CompactionState, details: CompactionDetails
) -> Compaction:
    entry = Compaction(
        txns.next_compaction_id(), target, type, state, msgspec.structs.replace(details, enqueued_ms=txns.now_ms())
    )
    txns.save_compactions([entry])
    return entry


def _one(txns: TxnWrites, compaction_id: int) -> Compaction | None:
    return next(iter(txns.compactions(CompactionFilter(compaction_id=compaction_id))), None)


def _aborted(txns: TxnWrites, compaction_id: int) -> AbortOutcome:
    entry = _one(txns, compaction_id)
    if entry is None:
        return AbortOutcome(compaction_id, False, "No Such Compaction Id Available")
    if entry.state is not CompactionState.INITIATED:
        text = f"Error while aborting compaction as compaction is in state-{STATE_TEXTS[entry.state]}"
        return AbortOutcome(compaction_id, False, text)
    aborted = moved(entry, compaction_id, CompactionState.ABORTED, None)
    txns.save_compactions([aborted.with_details(end_ms=txns.now_ms(), error_message="aborted by request")])
    txns.delete_compactions(surplus_history(txns.compactions(CompactionFilter(target=entry.target))))
    return AbortOutcome(compaction_id, True, "Successfully aborted compaction")


def _latest_first(entry: Compaction) -> tuple[float, int, int, int]:
    details = entry.details
    end_ms = float("inf") if details.end_ms is None else details.end_ms
    return end_ms, details.start_ms or 0, details.enqueued_ms or 0, entry.compaction_id


Step: TypeAlias = Callable[[TxnWrites], int]


class Expiry:
    """Each unit of work is short, so that calls in between do not wait; a crash between two loses nothing."""

    def __init__(self, store: TxnStore, settings: TxnSettings) -> None:
        self._store = store
        self._settings = settings
        self._compactions = CompactionService(store)

    def expire(self) -> int:
        """Abort silent transactions, delete silent locks, forget what is over; how many things were done.

        The time is the database's. A heartbeat that comes first keeps its owner alive: every reader sees one or the
        other (semantics §5.5). Raises StoreError.
        """
        done = sum(self._all_of(step) for step in (self._abort_silent, self._delete_silent, self._forget))
        return done + self._compactions.give_back_abandoned()

    def _all_of(self, step: Step) -> int:
        total = 0
        while count := self._store.write(lambda transaction: step(transaction.txns)):
            total += count
            if count < self._settings.expiry_batch:
                break
        return total

    def _abort_silent(self, txns: TxnWrites) -> int:
        silent = txns.silent_txns(txns.now_ms() - self._settings.timeout_ms, self._settings.expiry_batch)
        if silent:
            txns.batched(lambda batch: batch.abort_txns(silent, TIMED_OUT))
        return len(silent)

    def _delete_silent(self, txns: TxnWrites) -> int:
        silent = txns.silent_locks(txns.now_ms() - self._settings.timeout_ms, self._settings.expiry_batch)
        if silent:
            txns.batched(lambda batch: batch.delete_locks(silent))
        return len(silent)

    def _forget(self, txns: TxnWrites) -> int:
        now_ms, settings = txns.now_ms(), self._settings
        return txns.forget_finished(
            now_ms - settings.remembered_ms,
            settings.expiry_batch,
            victims_before_ms=now_ms - settings.victims_remembered_ms,
            victims_max=settings.victims_max,
        )
