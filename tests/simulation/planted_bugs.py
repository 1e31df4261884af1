"""Mistakes one could make, to show that the simulation sees them. Each replaces one function by a wrong one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec.structs import replace

from hms_gateway.rpc.structs import NoSuchTxnException
from hms_gateway.txn.rules import locks
from hms_gateway.txn.rules.locks import Lock, LockId, TxnId
from hms_gateway.txn.rules.transactions import Txn, TxnStatus
from hms_gateway.txn.services import locks as lock_service
from hms_gateway.txn.services import transactions as transaction_service
from hms_gateway.txn.services import write_ids as write_id_service
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.txn_memory import MemoryStore, MemoryTxns

Bug: TypeAlias = tuple[Any, str, Callable[..., Any]]
"""Where, what, and by what it is replaced."""

_block_of = locks.block_of
_blockers = locks.blockers
_collision = transaction_service.collision  # type: ignore[attr-defined]
_needs_commit = transaction_service.needs_commit  # type: ignore[attr-defined]
_open_txn = transaction_service.open_txn  # type: ignore[attr-defined]
_read_open_txns = transaction_service.read_open_txns
_abort_txns = MemoryTxns.abort_txns
_commit_txn = MemoryTxns.commit_txn
_forget = MemoryTxns.forget_finished
_hidden = MemoryTxns.hidden_write_ids
_unlock = lock_service._unlock


def _skips_waiting(request: Any, others: Any) -> Any:
    return _block_of(request, [lock for lock in others if lock.is_acquired])


def _skips_waiting_and_later_ones(request: Any, others: Any) -> Any:
    """Hive 2.3 (semantics §5.8). Skipping later ones alone does no harm while nobody overtakes."""
    return _block_of(request, [lock for lock in others if lock.is_acquired and lock.lock_id < request[0].lock_id])


def _passes_everybody_once_it_holds_something(request: Any, others: Any) -> Any:
    is_holder = any(lock.is_acquired and lock.owner == request[0].owner for lock in others)
    return _block_of(request, [lock for lock in others if lock.is_acquired or not is_holder])


def _passes_nobody(request: Any, others: Any) -> Any:
    return _block_of(request, [lock for lock in others if lock.owner != request[0].owner])


def _waits_for_all_it_passes(request: Any, others: Any) -> Any:
    """The search for deadlocks follows the rule as it would be if nobody passed anybody."""
    return _blockers(request, [lock for lock in others if lock.owner != request[0].owner])


def _looks_at_what_is_near(txns: Any, request: Any, candidates: Any) -> Any:
    """Not at the other components of those who wait."""
    return [*candidates, *txns.held_locks(request[0].txn_id)] if request[0].txn_id else candidates


def _looks_at_one_component(request: Any, others: Any) -> Any:
    return _block_of(request[:1], others)


def _exempts_everything(reader: Lock, changer: Lock) -> bool:
    return reader.type is locks._SR and changer.type is locks._X


def _compares_whole_names(one: Lock, other: Lock) -> bool:
    """What lies below a prefix is another partition."""
    names = {one.target.partition_name, other.target.partition_name}
    return None not in names and len(names) == 2


def _takes_every_prefix_for_exclusive(one: Lock, other: Lock) -> bool:
    return False


def _owner_is_the_transaction(lock: Lock) -> tuple[str, int]:
    return "txnid", lock.txn_id


def _finds_no_deadlock(self: Any, txns: Any, request: Any, block: Any) -> Any:
    return block, None


def _takes_nothing_away(txns: Any, expired: Any) -> None:
    pass


def _always_grants(self: Any, txns: Any, request: Any) -> None:
    return None


def _keeps_locks_of_aborted(self: MemoryTxns, txn_ids: Any, reason: Any, refused_lock: Any = None) -> None:
    kept = self.locks
    _abort_txns(self, txn_ids, reason, refused_lock)
    self.locks = kept


def _keeps_locks_of_committed(self: MemoryTxns, txn_id: Any, *rest: Any) -> None:
    kept = self.locks
    _commit_txn(self, txn_id, *rest)
    self.locks = kept


def _finds_no_collision(*_: Any, **__: Any) -> None:
    return None


def _forgets_the_boundary(txn_id: Any, changes: Any, committed: Any, **rest: Any) -> Any:
    return _collision(txn_id, changes, [one for one in committed if one.commit_id > txn_id], **rest)


def _commits_aborted(txn_id: int, txn: Txn | None) -> bool:
    is_aborted = txn is not None and txn.state is TxnStatus.ABORTED
    return True if is_aborted else _needs_commit(txn_id, txn)


def _refuses_to_commit_twice(txn_id: int, txn: Txn | None) -> bool:
    if txn is not None and txn.state is TxnStatus.COMMITTED:
        raise NoSuchTxnException(f"No such transaction txnid:{txn_id}")
    return _needs_commit(txn_id, txn)


def _takes_aborted_for_open(txn_id: int, txn: Txn | None) -> Txn:
    is_aborted = txn is not None and txn.state is TxnStatus.ABORTED
    return txn if is_aborted and txn is not None else _open_txn(txn_id, txn)


def _counts_from_the_start(self: MemoryTxns, before_ms: int, limit: int) -> list[TxnId]:
    return [one.txn_id for one in self.known.values() if one.state is TxnStatus.OPEN and one.started_ms < before_ms]


def _uses_the_servers_clock(self: MemoryTxns) -> int:
    return self._store.clock_ms + self._store.local_skew_ms


def _uses_lock_ids_again(self: MemoryTxns) -> LockId:
    return LockId(max(self.locks, default=0) + 1)


def _uses_txn_ids_again(self: MemoryTxns, count: int, *rest: Any) -> list[TxnId]:
    self.last_txn = TxnId(max(self.known, default=0))
    return _insert_txns(self, count, *rest)


_insert_txns = MemoryTxns.insert_txns


def _forgets_at_once(self: MemoryTxns, ended_before_ms: int, limit: int, **victims: int) -> int:
    return _forget(self, self.now_ms() + 1, limit, **victims)


def _shows_aborted_writes(self: MemoryTxns, table: Any, high_water_mark: int, excepted: Any) -> Any:
    aborted = {one.txn_id for one in self.known.values() if one.state is TxnStatus.ABORTED}
    return [row for row in _hidden(self, table, high_water_mark, excepted) if row[0] not in aborted]


def _allocates_anew(txn_ids: Any, known: Any, last: int) -> Any:
    given = {txn_id: last + number for number, txn_id in enumerate(sorted(set(txn_ids)), 1)}
    return given, last + len(given)


def _unlocks_anything(txns: Any, lock_id: int) -> None:
    txns.delete_locks([LockId(lock_id)])


def _grants_half(self: MemoryTxns, lock_id: LockId) -> None:
    first, *rest = self.locks[lock_id]
    self.locks[lock_id] = [replace(first, lock=replace(first.lock, is_acquired=True)), *rest]


def _forgets_the_heartbeat_of_check_lock(txns: Any, request: Any) -> None:
    pass


def _loses_the_listing(self: MemoryTxns) -> Any:
    return [txn for _, txn in sorted(self.known.items()) if txn.state is TxnStatus.OPEN]


def _works_on_what_was_before(self: MemoryStore, work: Callable[[Any], Any]) -> Any:
    """Two servers at once without the row lock that makes one wait: the second does not see what the first did."""
    before = self.txns
    stale = getattr(self, "stale", before)
    self.stale = before.copied()  # type: ignore[attr-defined]
    self.txns = before.copied()
    self.txns.locks, self.txns.known = dict(stale.locks), {**stale.known}
    try:
        result = work(self)
    except BaseException:
        self.txns = before
        raise
    _merge(self.txns.locks, before.locks, stale.locks)
    _merge(self.txns.known, before.known, stale.known)
    return result


def _merge(changed: dict[Any, Any], current: dict[Any, Any], stale: dict[Any, Any]) -> None:
    """Bring into `current` what was changed since `stale`: statements change rows, not the whole table."""
    gone = stale.keys() - changed.keys()
    made = {key: value for key, value in changed.items() if stale.get(key) is not value}
    merged = {**{key: value for key, value in current.items() if key not in gone}, **made}
    changed.clear()
    changed.update(merged)


def _keeps_what_was_undone(self: MemoryStore, work: Callable[[Any], Any]) -> Any:
    return work(self)


def _redoes_without_undoing(self: FaultyStore, work: Callable[[Any], Any]) -> None:
    with suppress(Exception):
        self.store.write(work)


def _reads_the_list_before_the_mark(txns: Any) -> Any:
    """The two statements of `read_open_txns` swapped, in a transaction that sees what others commit in between."""
    listing = getattr(txns, "earlier_listing", [])
    found = _read_open_txns(txns)
    txns.earlier_listing = found.unfinished
    return replace(found, unfinished=listing)


def _commits_as_of_its_beginning(
    self: MemoryTxns, txn_id: Any, writes: Any, changes: Any, commit_id: Any, *rest: Any
) -> None:
    _commit_txn(self, txn_id, writes, changes, txn_id, *rest)


def _notes_its_changes_late(
    self: MemoryTxns, txn_id: Any, writes: Any, changes: Any, commit_id: Any, *rest: Any
) -> None:
    """With the transaction that commits next, as if that had been put behind the commit."""
    late = getattr(self, "late", [])
    self.late = changes  # type: ignore[attr-defined]
    _commit_txn(self, txn_id, writes, late, commit_id, *rest)


def _aborts_whoever_asked(cycle: Any) -> TxnId:
    return TxnId(next(number for kind, number in cycle if kind == "txnid"))


def _forgets_aborted_writes(self: MemoryTxns, ended_before_ms: int, limit: int, **victims: int) -> int:
    over = [one for one, ended_ms in self.ended_ms.items() if ended_ms < ended_before_ms]
    for txn_id in over:
        del self.known[txn_id], self.ended_ms[txn_id]
    return 0


BUGS: dict[str, Bug] = {
    "a row lock is dropped": (MemoryStore, "write", _works_on_what_was_before),
    "two statements are swapped: the list and the mark": (
        transaction_service,
        "read_open_txns",
        _reads_the_list_before_the_mark,
    ),
    "two statements are swapped: the commit and its changes": (MemoryTxns, "commit_txn", _notes_its_changes_late),
    "a commit counts from the beginning": (MemoryTxns, "commit_txn", _commits_as_of_its_beginning),
    "what failed is kept": (MemoryStore, "write", _keeps_what_was_undone),
    "what is done again was not undone": (FaultyStore, "undo", _redoes_without_undoing),
    "a deadlock costs whoever comes first": (lock_service, "deadlock_victim", _aborts_whoever_asked),
    "aborted ones are forgotten with their writes": (MemoryTxns, "forget_finished", _forgets_aborted_writes),
    "waiting requests are skipped": (lock_service, "block_of", _skips_waiting),
    "waiting requests and later locks are skipped": (lock_service, "block_of", _skips_waiting_and_later_ones),
    "whoever holds something passes every waiting request": (
        lock_service,
        "block_of",
        _passes_everybody_once_it_holds_something,
    ),
    "nobody passes who waits for him": (lock_service, "block_of", _passes_nobody),
    "deadlocks with who is passed": (lock_service, "blockers", _waits_for_all_it_passes),
    "who waits for me elsewhere is not passed": (lock_service, "_with_own", _looks_at_what_is_near),
    "only one component is looked at": (lock_service, "block_of", _looks_at_one_component),
    "readers are exempt from everything": (locks, "_is_exempt", _exempts_everything),
    "what lies below a prefix is not reached": (locks, "_are_apart", _compares_whole_names),
    "prefixes that are shared exclude writers below them": (locks, "_are_apart", _takes_every_prefix_for_exclusive),
    "requests without a transaction have one owner": (locks.Lock, "owner", property(_owner_is_the_transaction)),  # type: ignore[dict-item]
    "deadlocks are not looked for": (lock_service.LockService, "_without_deadlock", _finds_no_deadlock),
    "expired locks are passed over": (lock_service, "remove_expired", _takes_nothing_away),
    "everything is granted": (lock_service.LockService, "_block", _always_grants),
    "an abort leaves locks": (MemoryTxns, "abort_txns", _keeps_locks_of_aborted),
    "a commit leaves locks": (MemoryTxns, "commit_txn", _keeps_locks_of_committed),
    "write sets are not compared": (transaction_service, "collision", _finds_no_collision),
    "write sets are compared one id too late": (transaction_service, "collision", _forgets_the_boundary),
    "aborted ones can commit": (transaction_service, "needs_commit", _commits_aborted),
    "a commit cannot be repeated": (transaction_service, "needs_commit", _refuses_to_commit_twice),
    "heartbeats of aborted ones are fine": (transaction_service, "open_txn", _takes_aborted_for_open),
    "expiry forgets heartbeats": (MemoryTxns, "silent_txns", _counts_from_the_start),
    "time is the server's": (MemoryTxns, "now_ms", _uses_the_servers_clock),
    "lock ids are used again": (MemoryTxns, "next_lock_id", _uses_lock_ids_again),
    "transaction ids are used again": (MemoryTxns, "insert_txns", _uses_txn_ids_again),
    "finished ones are forgotten at once": (MemoryTxns, "forget_finished", _forgets_at_once),
    "writes of aborted ones are visible": (MemoryTxns, "hidden_write_ids", _shows_aborted_writes),
    "write ids are given again": (write_id_service, "allocate", _allocates_anew),
    "locks of transactions can be unlocked": (lock_service, "_unlock", _unlocks_anything),
    "half a request is granted": (MemoryTxns, "grant", _grants_half),
    "check_lock is no heartbeat": (lock_service, "_refresh", _forgets_the_heartbeat_of_check_lock),
    "aborted ones are not listed": (MemoryTxns, "unfinished_txns", _loses_the_listing),
}
