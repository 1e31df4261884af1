"""What has gone silent is taken away, what is over is forgotten; any number of servers may do it at once."""

from collections.abc import Callable
from typing import TypeAlias

from hms_gateway.txn.ports.txn import Store, TxnWrites
from hms_gateway.txn.rules.locks import TIMED_OUT
from hms_gateway.txn.services.compaction import CompactionService
from hms_gateway.txn.services.settings import TxnSettings

Step: TypeAlias = Callable[[TxnWrites], int]


class Expiry:
    """Each unit of work is short, so that calls in between do not wait; a crash between two loses nothing."""

    def __init__(self, store: Store, settings: TxnSettings) -> None:
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
