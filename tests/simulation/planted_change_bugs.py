"""Mistakes one could make with implicit locks, to show that the simulation sees them; see `planted_bugs`."""

from typing import Any

from msgspec.structs import replace

from hms_gateway.metastore.changes import implicit_locks
from hms_gateway.metastore.changes.implicit_locks import _Guard
from hms_gateway.rpc.structs import LockType
from hms_gateway.txn.rules.locks import LockId
from tests.simulation.planted_bugs import Bug

_is_own = _Guard._is_own
_places = implicit_locks._places
_needed = implicit_locks.needed_locks
_obstacle = implicit_locks.obstacle  # type: ignore[attr-defined]
_take = implicit_locks._take


def _looks_where_it_is_now(event: Any) -> Any:
    return _places(event)[:1]


def _shares_everything(event: Any) -> Any:
    return [one._replace(type=LockType.SHARED_READ) for one in _needed(event)]


def _asks_for_the_first(needed: Any, held: Any, is_own: Any) -> Any:
    return _obstacle(needed[:1], held, is_own)


def _asks_for_tables(event: Any) -> Any:
    return [one for one in _needed(event) if one.target.partition_name is None]


def _forgets_the_database(needed: Any, held: Any, is_own: Any) -> Any:
    return _obstacle(needed, [one for one in held if one.lock.target.table_name is not None], is_own)


def _has_the_same_name(self: Any, held: Any) -> bool:
    return _is_own(self, held) or held.principal == self._caller.principal


def _adds_to_what_is_named(self: Any, held: Any) -> bool:
    unnamed = _Guard(replace(self._caller, lock_ids=frozenset(), txn_ids=frozenset()))
    return _is_own(self, held) or _is_own(unnamed, held)


def _is_of_no_transaction(self: Any, held: Any) -> bool:
    return _is_own(self, held) or held.lock.txn_id == 0


def _does_not_know_what_it_took(self: Any, held: Any) -> bool:
    return held.lock.lock_id not in self._caller.taken and _is_own(self, held)


def _misses_nothing(self: Any, transaction: Any) -> None:
    _check(_Guard(replace(self._caller, taken=frozenset())), transaction)


_check = _Guard.check


def _takes_nothing(caller: Any, needed: Any, transaction: Any) -> LockId:
    implicit_locks.refuse_locked(transaction, caller, needed)
    return LockId(0)


def _takes_unasked(caller: Any, needed: Any, transaction: Any) -> LockId:
    """The locks for files are inserted, whatever others hold."""
    return _take(
        replace(caller, txn_ids=frozenset(range(10_000)), lock_ids=frozenset(range(10_000))), needed, transaction
    )


_WITHOUT_STATISTICS: Any = {kind: row for kind, row in implicit_locks.ROWS.items() if "COL_STAT" not in kind}

BUGS: dict[str, Bug] = {
    "the old name of a rename is not looked at": (implicit_locks, "_places", _looks_where_it_is_now),
    "changes take shared locks": (implicit_locks, "needed_locks", _shares_everything),
    "only the first lock is compared": (implicit_locks, "obstacle", _asks_for_the_first),
    "partitions are not compared": (implicit_locks, "needed_locks", _asks_for_tables),
    "locks on databases are not compared": (implicit_locks, "obstacle", _forgets_the_database),
    "all locks are one's own": (_Guard, "_is_own", lambda self, held: True),
    "no locks are one's own": (_Guard, "_is_own", lambda self, held: False),
    "the address does not count": (_Guard, "_is_own", _has_the_same_name),
    "who names locks has his others too": (_Guard, "_is_own", _adds_to_what_is_named),
    "locks without a transaction do not count": (_Guard, "_is_own", _is_of_no_transaction),
    "a call is stopped by what it took itself": (_Guard, "_is_own", _does_not_know_what_it_took),
    "statistics take nothing": (implicit_locks, "ROWS", _WITHOUT_STATISTICS),
    "locks past their time are passed over": (implicit_locks, "_remove", lambda locks, batch: None),
    "locks are past their time at once": (implicit_locks, "has_expired", lambda lock, now_ms, timeout_ms: True),
    "locks are never past their time": (implicit_locks, "has_expired", lambda lock, now_ms, timeout_ms: False),
    "files are touched without a lock": (implicit_locks, "_take", _takes_nothing),
    "files are touched under a lock that was not free": (implicit_locks, "_take", _takes_unasked),
    "a lost lock of files is not missed": (_Guard, "check", _misses_nothing),
}
