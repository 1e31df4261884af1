"""Implicit locks: a change is made only while others do not hold what its row of Hive's table of locks needs.

The events that a unit of work has made say what it changed, so the check is part of the same unit of work and knows the
partitions, and of an altered table what differs. Nothing is stored: the locks would be gone with the unit of work.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from hms_gateway.metastore.changes.fencing import changed
from hms_gateway.metastore.ports.store import BatchedWrites, CatalogWork, Event, Store, StoreError, Transaction
from hms_gateway.metastore.vocabulary.parameters import DDL_TIME
from hms_gateway.rpc.structs import LockType
from hms_gateway.runtime.call_keys import answering
from hms_gateway.runtime.presented import LockCaller, lock_caller, locking
from hms_gateway.txn.ports.txn import Client
from hms_gateway.txn.rules.locks import (
    NO_TXN,
    TIMED_OUT,
    AcquiredLock,
    Lock,
    LockedByAnother,
    LockId,
    Needed,
    has_expired,
    obstacle,
)
from hms_gateway.txn.rules.names import Target, target

T = TypeVar("T")

_S, _X = LockType.SHARED_READ, LockType.EXCLUSIVE


class Row(NamedTuple):
    """What a change needs on what its event names, the partitions where it names some; and on the database.

    S on the table of a partition is left out, as `client.concurrency` does: a lock knows what it lies in.
    """

    itself: LockType
    database: LockType | None = None


# What the page of Hive does not list is as in Hive's code, except that what is made or described anew is locked S: a
# name that is held exclusively is not taken, and statistics change beside readers. Events that are not here change no
# object that can be locked.
ROWS: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "CREATE_DATABASE": Row(_S),
        "ALTER_DATABASE": Row(_S),
        "DROP_DATABASE": Row(_X),
        "CREATE_TABLE": Row(_S, database=_S),
        "DROP_TABLE": Row(_X),
        "ALTER_TABLE": Row(_X),
        "ADD_PARTITION": Row(_X),
        "ALTER_PARTITION": Row(_X),
        "DROP_PARTITION": Row(_X),
        "CREATE_INDEX": Row(_X),
        "ALTER_INDEX": Row(_X),
        "DROP_INDEX": Row(_X),
        "ADD_PRIMARYKEY": Row(_X),
        "ADD_FOREIGNKEY": Row(_X),
        "ADD_UNIQUECONSTRAINT": Row(_X),
        "ADD_NOTNULLCONSTRAINT": Row(_X),
        "ADD_DEFAULTCONSTRAINT": Row(_X),
        "ADD_CHECKCONSTRAINT": Row(_X),
        "DROP_CONSTRAINT": Row(_X),
        "UPDATE_TBL_COL_STAT_EVENT": Row(_S),
        "UPDATE_PART_COL_STAT_EVENT": Row(_S),
        "DELETE_TBL_COL_STAT_EVENT": Row(_S),
        "DELETE_PART_COL_STAT_EVENT": Row(_S),
    }
)

# What "set serdeproperties", "set serializer" and "set file format" change: S, as on the page. By field ids of TJSON.
_DESCRIPTOR: Final = "7"
_FORMAT_FIELDS: Final = ("3", "4", "7")
_PARAMETERS: Final = "9"
_BOOKKEEPING: Final = (DDL_TIME, "last_modified_by", "last_modified_time")


def locked(work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """`work` under implicit locks; `work` itself for callers whose changes take none.

    What is returned raises LockedByAnother, and nothing is changed, when another holds what the change needs.
    """
    caller = lock_caller()
    if caller is None:
        return work
    guard = _Guard(caller)

    def locked_work(transaction: Transaction) -> T:
        result = work(transaction)
        guard.check(transaction)
        return result

    if isinstance(work, CatalogWork):
        return msgspec.structs.replace(work, work=locked_work, reads_locks=True)
    return locked_work


class _Guard:
    def __init__(self, caller: LockCaller) -> None:
        self._caller = caller

    def check(self, transaction: Transaction) -> None:
        """What the changes of the unit of work need, which is worked out only where something is held."""
        events = [event for event in transaction.made_events() if event.event_type in ROWS]
        if not events:
            return
        held, _ = transaction.held_locks([place for event in events for place in _places(event)])
        if not self._caller.taken <= {one.lock.lock_id for one in held}:
            raise LockedByAnother("the locks that the call took before it moved or deleted files are lost; call again")
        if not all(map(self._is_own, held)):
            self.refuse(transaction, [one for event in events for one in needed_locks(event)])

    def refuse(self, transaction: Transaction, needed: Sequence[Needed]) -> None:
        """Raises LockedByAnother where others hold what is needed."""
        found = obstacle(needed, self._live(transaction, [one.target for one in needed]), self._is_own)
        if found is not None:
            raise LockedByAnother(f"{found}; wait until it is released, or name a lock of your own in hms.lock.id")

    def _live(self, transaction: Transaction, targets: list[Target]) -> list[AcquiredLock]:
        """Without what is past its time, which is taken away: its holder must not think that nothing happened."""
        held, now_ms = transaction.held_locks(targets)
        lost = [one for one in held if has_expired(one.lock, now_ms, self._caller.timeout_ms) and not self._is_own(one)]
        if lost:
            transaction.txns.batched(partial(_remove, [one.lock for one in lost]))
        return [one for one in held if one not in lost]

    def _is_own(self, held: AcquiredLock) -> bool:
        caller, lock = self._caller, held.lock
        if lock.lock_id in caller.taken:
            return True
        if caller.lock_ids or caller.txn_ids:
            return lock.lock_id in caller.lock_ids or (lock.txn_id != NO_TXN and lock.txn_id in caller.txn_ids)
        return (held.principal, held.address) == (caller.principal, caller.address)


def refuse_locked(transaction: Transaction, caller: LockCaller, needed: Sequence[Needed]) -> None:
    """Raises LockedByAnother where others hold what the caller needs."""
    _Guard(caller).refuse(transaction, needed)


def _places(event: Event) -> list[Target]:
    """Where locks lie that may be in the way of a change; names in events are normalised."""
    places = [Target(event.db_name, event.table_name)]
    return places if event.renamed_from is None else [*places, Target(*event.renamed_from)]


def _remove(locks: Sequence[Lock], batch: BatchedWrites) -> None:
    txn_ids = {lock.txn_id for lock in locks if lock.txn_id != NO_TXN}
    batch.abort_txns(sorted(txn_ids), TIMED_OUT)
    batch.delete_locks(sorted({lock.lock_id for lock in locks if lock.txn_id == NO_TXN}))


def needed_locks(event: Event) -> list[Needed]:
    """The locks of the row of the change behind an event; none for what changes no object that can be locked."""
    row = ROWS.get(event.event_type)
    if row is None:
        return []
    mode = _S if _sets_format_only(event) else row.itself
    emptied = [target(event.db_name, event.table_name, name) for name in event.emptied_partitions]
    needed = [Needed(each, mode) for each in emptied or changed(event)]
    if row.database is not None:
        needed.append(Needed(target(event.db_name), row.database))
    if event.renamed_from is not None:
        needed += [Needed(target(event.db_name), _S), Needed(target(event.db_name, event.table_name), _S)]
    return needed


def _sets_format_only(event: Event) -> bool:
    if event.event_type != "ALTER_TABLE" or event.renamed_from is not None:
        return False
    message = json.loads(event.message)
    before, after = (json.loads(message[key]) for key in ("tableObjBeforeJson", "tableObjAfterJson"))
    return before != after and not message.get("isTruncateOp") and _without_format(before) == _without_format(after)


def _without_format(table: dict[str, Any]) -> dict[str, Any]:
    descriptor = table.get(_DESCRIPTOR, {}).get("rec", {})
    kept = {key: value for key, value in descriptor.items() if key not in _FORMAT_FIELDS}
    parameters = table.get(_PARAMETERS, {}).get("map", [{}])[-1]
    described = {key: value for key, value in parameters.items() if key not in _BOOKKEEPING}
    return {**table, _DESCRIPTOR: kept, _PARAMETERS: described}


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
