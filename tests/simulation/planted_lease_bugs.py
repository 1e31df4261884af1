"""Mistakes one could make with leases, to show that the simulation sees them: each replaces a function by a bad one."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec.structs import replace

from hms_gateway.metastore.changes import fencing
from hms_gateway.txn.rules import leases
from hms_gateway.txn.rules.leases import Claim, Extension, LeasedObject, LeaseType
from hms_gateway.txn.services import leases as lease_service
from tests.simulation import faulty_store
from tests.simulation.lease_database import LeaseDatabase
from tests.txn.lease_memory import MemoryLeases

Bug: TypeAlias = tuple[Any, str, Callable[..., Any]]
"""Where, what, and by what it is replaced."""

# Stores in memory are plain objects without types.
_Leases: Any = MemoryLeases
_conflict = lease_service.conflict  # type: ignore[attr-defined]
_extension = lease_service.extension  # type: ignore[attr-defined]
_refusal = fencing.refusal  # type: ignore[attr-defined]
_owned = lease_service.owned  # type: ignore[attr-defined]
_covers = leases.covers
_delete_lease = _Leases.delete_lease
_insert_lease = _Leases.insert_lease
_waiters_around = _Leases.waiters_around


def _ignores_readers(one: Claim, other: Claim) -> bool:
    both = LeaseType.EXCLUSIVE is one.type is other.type
    return both and (_covers(one.target, other.target) or _covers(other.target, one.target))


def _knows_no_hierarchy(one: Claim, other: Claim) -> bool:
    return LeaseType.EXCLUSIVE in (one.type, other.type) and one.target == other.target


def _looks_down_only(one: Claim, other: Claim) -> bool:
    return LeaseType.EXCLUSIVE in (one.type, other.type) and _covers(one.target, other.target)


def _skips_waiting(claims: Any, held: Any, waiting: Any, now_ms: int) -> Any:
    return _conflict(claims, held, (), now_ms)


def _looks_at_one_object(claims: Any, held: Any, waiting: Any, now_ms: int) -> Any:
    return _conflict(claims[:1], held, waiting, now_ms)


def _is_live_at_its_end(self: LeasedObject, now_ms: int) -> bool:
    return now_ms <= self.end_ms


def _never_ends(self: LeasedObject, now_ms: int) -> bool:
    return True


def _extends_what_has_ended(
    self: Any, stored: Any, user: str, lease_id: int, claims: Any, duration_ms: int | None
) -> Any:
    now_ms = stored.now_ms()
    held = [replace(one, end_ms=max(one.end_ms, now_ms + 1)) for one in stored.lease(lease_id)]
    outcome = _extension(lease_id, user, claims, held, (), now_ms, duration_ms, self._longest_ms)
    assert isinstance(outcome, Extension)
    stored.update_lease(outcome.changed)
    return outcome


def _forgets_nothing(self: Any) -> None:
    """So that a clock that is set back brings it to life again."""


def _extends_beside_others(lease_id: Any, user: Any, wanted: Any, held: Any, others: Any, *rest: Any) -> Any:
    return _extension(lease_id, user, wanted, held, (), *rest)


def _moves_the_end_back(
    held: LeasedObject, becomes: bool, now_ms: int, duration_ms: int | None, longest_ms: int
) -> LeasedObject:
    kind = LeaseType.EXCLUSIVE if becomes else held.claim.type
    end_ms = now_ms + (held.duration_ms if duration_ms is None else duration_ms)
    return replace(held, claim=Claim(held.claim.target, kind), end_ms=end_ms)


def _forgets_how_long_it_lasts(
    held: LeasedObject, becomes: bool, now_ms: int, duration_ms: int | None, longest_ms: int
) -> LeasedObject:
    moved = _moves_the_end_back(held, becomes, now_ms, duration_ms, longest_ms)
    return replace(moved, end_ms=max(held.end_ms, moved.end_ms))


def _belongs_to_all(lease_id: int, user: str, held: Any) -> Any:
    return held


def _fences_nothing(lease_id: int, held: Any, now_ms: int, changed: Any) -> None:
    return None


def _fences_only_what_is_over(lease_id: int, held: Any, now_ms: int, changed: Any) -> Any:
    return _refusal(lease_id, held, now_ms, [])


def _lets_readers_write(lease_id: int, held: Iterable[LeasedObject], now_ms: int, changed: Any) -> Any:
    raised = [replace(one, claim=one.claim._replace(type=LeaseType.EXCLUSIVE)) for one in held]
    return _refusal(lease_id, raised, now_ms, changed)


def _uses_the_servers_clock(self: Any) -> int:
    now_ms: int = self._clock.now_ms + self.database.local_skew_ms
    return now_ms


def _uses_ids_again(self: Any, name: str) -> int:
    if name == "lease":
        return max((lease_id for lease_id, _ in self._held), default=0) + 1
    self._ids[name] += 1
    return int(self._ids[name])


def _uses_tickets_again(self: Any, name: str) -> int:
    if name == "ticket":
        return max(self._waiting, default=0) + 1
    self._ids[name] += 1
    return int(self._ids[name])


def _grants_half(self: Any, held: Any) -> None:
    _insert_lease(self, held[:1])


def _drops_the_whole(self: Any, lease_id: int, targets: Any = None) -> int:
    return int(_delete_lease(self, lease_id))


def _drops_nothing_that_is_named(self: Any, lease_id: int, targets: Any = None) -> int:
    return int(_delete_lease(self, lease_id)) if targets is None else len(targets)


def _forgets_who_waits(self: Any) -> None:
    now_ms = self.now_ms()
    self._held = {key: one for key, one in self._held.items() if one.end_ms > now_ms}
    self._waiting = {}


def _goes_to_the_end_of_the_queue(self: Any, targets: Any, before: Any) -> Any:
    return _waiters_around(self, targets, None)


def _keeps_a_place_for_ever(self: Any, ticket: int) -> None:
    pass


def _keeps_what_was_undone(self: LeaseDatabase, work: Callable[[Any], Any]) -> Any:
    return work(self)


def _redoes_without_undoing(self: faulty_store.FaultyStore, work: Callable[[Any], Any]) -> None:
    with suppress(Exception):
        self.store.write(work)


BUGS: dict[str, Bug] = {
    "readers do not count": (leases, "conflicts", _ignores_readers),
    "a table is not part of its database": (leases, "conflicts", _knows_no_hierarchy),
    "what contains the object is not looked at": (leases, "conflicts", _looks_down_only),
    "waiting requests are skipped": (lease_service, "conflict", _skips_waiting),
    "only one object is looked at": (lease_service, "conflict", _looks_at_one_object),
    "a lease is live at its end": (leases.LeasedObject, "is_live", _is_live_at_its_end),
    "a lease never ends": (leases.LeasedObject, "is_live", _never_ends),
    "what has ended can be extended": (lease_service.LeaseService, "_extend", _extends_what_has_ended),
    "what has ended comes back": (_Leases, "delete_expired", _forgets_nothing),
    "becoming exclusive is always possible": (lease_service, "extension", _extends_beside_others),
    "an extension can be a shortening": (leases, "_extended", _moves_the_end_back),
    "a lease can last for ever": (leases, "_extended", _forgets_how_long_it_lasts),
    "anybody can drop a lease": (lease_service, "owned", _belongs_to_all),
    "anybody can extend a lease": (leases, "owned", _belongs_to_all),
    "late writes are let through": (fencing, "refusal", _fences_nothing),
    "what a lease does not hold can be written": (fencing, "refusal", _fences_only_what_is_over),
    "readers can write": (fencing, "refusal", _lets_readers_write),
    "time is the server's": (_Leases, "now_ms", _uses_the_servers_clock),
    "lease ids are used again": (_Leases, "_next", _uses_ids_again),
    "tickets are used again": (_Leases, "_next", _uses_tickets_again),
    "half a request is granted": (_Leases, "insert_lease", _grants_half),
    "the whole lease is dropped": (_Leases, "delete_lease", _drops_the_whole),
    "objects of a lease cannot be dropped": (_Leases, "delete_lease", _drops_nothing_that_is_named),
    "those who wait are forgotten": (_Leases, "delete_expired", _forgets_who_waits),
    "one's own place is in the way": (_Leases, "waiters_around", _goes_to_the_end_of_the_queue),
    "a place is never given up": (_Leases, "delete_waiter", _keeps_a_place_for_ever),
    "what failed is kept": (LeaseDatabase, "write", _keeps_what_was_undone),
    "what is done again was not undone": (faulty_store.FaultyStore, "undo", _redoes_without_undoing),
}
