"""Locks of a change that moves or deletes files before its unit of work: taken first, and held until it is over.

A lock request like any other, seen in SHOW LOCKS. What is left of it after a crash expires like any other.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

import msgspec

from hms_gateway.metastore.changes.implicit_locks import refuse_locked
from hms_gateway.metastore.ports.store import BatchedWrites, Store, StoreError, Transaction
from hms_gateway.runtime.call_keys import answering
from hms_gateway.runtime.presented import LockCaller, lock_caller, locking
from hms_gateway.structs import LockType
from hms_gateway.txn.ports.txn import Client
from hms_gateway.txn.rules.implicit_locks import Needed
from hms_gateway.txn.rules.locks import NO_TXN, Lock, LockId
from hms_gateway.txn.rules.names import Target

_AGENT: Final = "hms-gateway, while it moves or deletes files"
_BEATS_PER_TIMEOUT: Final = 3
_LOG: Final = logging.getLogger(__name__)


@contextmanager
def held_for_files(store: Store, exclusive: Sequence[Target], shared: Sequence[Target] = ()) -> Iterator[None]:
    """Nothing where changes take no locks. Raises LockedByAnother where others hold what excludes these."""
    caller = lock_caller()
    if caller is None:
        yield
        return
    needed = [Needed(each, LockType.EXCLUSIVE) for each in exclusive]
    needed += [Needed(each, LockType.SHARED_READ) for each in shared]
    with answering(None):
        lock_id = store.write(partial(_take, caller, needed))
    ended = threading.Event()
    beats = threading.Thread(target=_beat, args=(store, lock_id, caller.timeout_ms, ended), daemon=True)
    try:
        beats.start()
        with locking(msgspec.structs.replace(caller, taken=caller.taken | {lock_id})):
            yield
    finally:
        ended.set()
        if beats.is_alive():  # where it could be started
            beats.join()
        _release(store, lock_id)


def _take(caller: LockCaller, needed: Sequence[Needed], transaction: Transaction) -> LockId:
    refuse_locked(transaction, caller, needed)
    client = Client(caller.principal, caller.address, _AGENT, caller.principal, caller.address)

    def insert(batch: BatchedWrites) -> LockId:
        lock_id = batch.next_lock_id()
        request = [Lock(lock_id, number, NO_TXN, *one, is_acquired=True) for number, one in enumerate(needed, 1)]
        batch.insert_request(request, client, None)
        return lock_id

    return transaction.txns.batched(insert)


def _beat(store: Store, lock_id: LockId, timeout_ms: int, ended: threading.Event) -> None:
    while not ended.wait(timeout_ms / 1000 / _BEATS_PER_TIMEOUT):
        with suppress(StoreError):
            store.write(lambda transaction: transaction.txns.batched(partial(_refresh, lock_id)))


def _refresh(lock_id: LockId, batch: BatchedWrites) -> None:
    if batch.request(lock_id):
        batch.refresh_lock(lock_id)


def _release(store: Store, lock_id: LockId) -> None:
    try:
        with answering(None):
            store.write(lambda transaction: transaction.txns.batched(lambda batch: batch.delete_locks([lock_id])))
    except StoreError as error:
        _LOG.warning("Lock %s stays until it expires: %s", lock_id, error)
