"""Who gets which lease, for how long, and whose writes are refused: the rules, as functions over values.

The model
    A **lease** has an id, a user, and a `LeasedObject` for each of its objects: shared or exclusive, from start to end.
    It is live while now < end, by the database's clock; an end is a whole second, as answers have it. Objects are
    databases, tables and partitions, which need not exist. A database contains its tables, a table its partitions, and
    `ds=1` contains `ds=1/hr=2`.

The rules (semantics §7.2; the numbers in brackets are the holes of the original note they close)
    1. Two objects of different leases conflict when one is, contains or lies in the other and at least one of them is
       exclusive [1, 2, 6, 8]. Order of ends or of ids plays no part [5].
    2. A request is granted when none of its objects conflicts with a live lease, or with a request that came earlier
       and still waits: all of it or nothing, in one unit of work [4, 13]. No request overtakes or starves.
    3. Of an object that is named twice the exclusive one counts [17].
    4. Duration and type are the request's, within the longest time [3, 14]; the time is the database's [7, 15].
    5. Extending and dropping are for the lease's user, for all its objects or for some [9, 11]. An end is never moved
       back, and what has expired is lost for good.
    6. A shared object becomes exclusive when no other live lease is in the way [16].
    7. The id grows with every grant. A change that presents one is made only while that lease is live and holds the
       changed object exclusively [12].
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, NewType

import msgspec

from hms_gateway.txn.rules.names import Target, prefixes

LeaseId = NewType("LeaseId", int)
Ticket = NewType("Ticket", int)


class LeaseType(StrEnum):
    SHARED = "s"
    EXCLUSIVE = "x"


class Claim(NamedTuple):
    """An object that is wanted, and how."""

    target: Target
    type: LeaseType


class LeasedObject(msgspec.Struct, frozen=True):
    """One object of a lease. Times in milliseconds of the database's clock; `duration_ms` is the one it was granted."""

    lease_id: LeaseId
    user: str
    claim: Claim
    start_ms: int
    end_ms: int
    duration_ms: int

    def is_live(self, now_ms: int) -> bool:
        return now_ms < self.end_ms

    def __str__(self) -> str:
        kind = "exclusive" if self.claim.type is LeaseType.EXCLUSIVE else "shared"
        return f"{kind} lease {self.lease_id} of {self.user} on {self.claim.target}"


class Waiter(msgspec.Struct, frozen=True):
    """One object of a request that waits. It counts until `until_ms`, which its server puts off as long as it waits."""

    ticket: Ticket
    claim: Claim
    until_ms: int

    def __str__(self) -> str:
        return f"a request for {self.claim.target} that waits already"


class LeaseConflict(msgspec.Struct, frozen=True):
    """Why a request is not granted. `free_ms` is the earliest time at which that may have changed by itself."""

    claim: Claim
    obstacle: LeasedObject | Waiter
    free_ms: int


class Extension(msgspec.Struct, frozen=True):
    """What extending does: the objects as they are afterwards."""

    changed: Sequence[LeasedObject]

    @property
    def end_ms(self) -> int:
        """Until when all of them are held."""
        return min(held.end_ms for held in self.changed)


class Lost(Exception):
    """The lease is not there, not live, not the caller's, or does not hold the object; the text says which."""


class TooLong(Exception):
    """The lease would last longer than the longest time."""


def merged(claims: Iterable[Claim]) -> list[Claim]:
    """Each object once and in order; exclusive where any of its claims is (rule 3)."""
    strongest: dict[Target, LeaseType] = {}
    for target, type in claims:
        if strongest.get(target) is not LeaseType.EXCLUSIVE:
            strongest[target] = type
    return [Claim(target, strongest[target]) for target in sorted(strongest, key=_order)]


def conflict(
    claims: Sequence[Claim], held: Iterable[LeasedObject], waiting: Iterable[Waiter], now_ms: int
) -> LeaseConflict | None:
    """What keeps `claims` from being granted, the longest-lasting obstacle first; None when nothing does (rule 2).

    `held` and `waiting` may contain what does not matter; they must not omit what does. `waiting` are the requests that
    came earlier.
    """
    around = _Surroundings(
        [*(one for one in held if one.is_live(now_ms)), *(one for one in waiting if now_ms < one.until_ms)]
    )
    found = [(claim, other) for claim in claims for other in around.of(claim.target) if conflicts(claim, other.claim)]
    if not found:
        return None
    claim, obstacle = max(found, key=lambda pair: (isinstance(pair[1], LeasedObject), _end_of(pair[1])))
    return LeaseConflict(claim, obstacle, min(_end_of(other) for _, other in found))


def conflicts(one: Claim, other: Claim) -> bool:
    """Rule 1, for objects of different leases."""
    if LeaseType.EXCLUSIVE not in (one.type, other.type):
        return False
    return covers(one.target, other.target) or covers(other.target, one.target)


def end_of_grant(now_ms: int, duration_ms: int, longest_ms: int) -> int:
    """When a new lease ends (rule 4). Raises TooLong."""
    if duration_ms > longest_ms:
        raise TooLong(f"a lease of {_seconds(duration_ms)} is longer than {_seconds(longest_ms)} (lease_seconds_max)")
    return _whole_second(now_ms + duration_ms)


def extension(
    lease_id: int,
    user: str,
    wanted: Sequence[Claim],
    held: Sequence[LeasedObject],
    others: Iterable[LeasedObject],
    now_ms: int,
    duration_ms: int | None,
    longest_ms: int,
) -> Extension | LeaseConflict:
    """What `user` gets who extends `wanted` objects of the lease, or all of it when none are named (rules 5, 6).

    `held` is the lease as stored, `others` are other leases that may be in the way. `duration_ms` None is the duration
    it was granted for. A Conflict when a shared object should become exclusive and cannot. Raises Lost and TooLong.
    """
    live = [one for one in owned(lease_id, user, held) if one.is_live(now_ms)]
    if not live:
        raise Lost(f"lease {lease_id} is not held any more")
    by_target = {one.claim.target: one for one in live}
    missing = next((target for target, _ in wanted if target not in by_target), None)
    if missing is not None:
        raise Lost(f"lease {lease_id} does not hold {missing}")
    upgrades = [claim for claim in wanted if claim.type is LeaseType.EXCLUSIVE]
    obstacle = conflict(upgrades, others, (), now_ms)
    if obstacle is not None:
        return obstacle
    chosen = [by_target[target] for target, _ in wanted] or live
    exclusive = {claim.target for claim in upgrades}
    return Extension([_extended(one, one.claim.target in exclusive, now_ms, duration_ms, longest_ms) for one in chosen])


def owned(lease_id: int, user: str, held: Sequence[LeasedObject]) -> Sequence[LeasedObject]:
    """`held`, when the lease is the user's. Raises Lost."""
    other = next((one for one in held if one.user != user), None)
    if other is not None:
        raise Lost(f"lease {lease_id} belongs to {other.user}")
    return held


def refusal(lease_id: int, held: Iterable[LeasedObject], now_ms: int, changed: Iterable[Target]) -> str | None:
    """Why a change of these objects under this lease is refused, None when it is not (rule 7).

    A shared lease is for reading, as the note says. A change of a partition is covered by its table's lease, one of a
    table is not by that of a partition.
    """
    live = dict(one.claim for one in held if one.is_live(now_ms))
    if not live:
        return f"lease {lease_id} is not held any more: it ended, was dropped, or never was"
    for target in changed:
        types = {live.get(container) for container in containers(target)}
        if LeaseType.EXCLUSIVE not in types:
            problem = f"holds {target} for reading only" if LeaseType.SHARED in types else f"does not hold {target}"
            return f"lease {lease_id} {problem}"
    return None


def covers(holder: Target, target: Target) -> bool:
    """Whether `target` is `holder` or lies in it."""
    return holder in containers(target)


def containers(target: Target) -> list[Target]:
    """All that contain the object, from its database down to itself."""
    db_name, table_name, partition_name = target
    found = [Target(db_name)]
    if table_name is not None:
        found.append(Target(db_name, table_name))
    if partition_name is not None:
        found += [Target(db_name, table_name, prefix) for prefix in prefixes(partition_name)]
        found.append(target)
    return found


class _Surroundings:
    """Obstacles, found by what they contain or lie in; comparing each with each takes seconds for many."""

    def __init__(self, obstacles: Iterable[LeasedObject | Waiter]) -> None:
        self._exactly: dict[Target, list[LeasedObject | Waiter]] = defaultdict(list)
        self._inside: dict[Target, list[LeasedObject | Waiter]] = defaultdict(list)
        for obstacle in obstacles:
            *around, itself = containers(obstacle.claim.target)
            self._exactly[itself].append(obstacle)
            for container in around:
                self._inside[container].append(obstacle)

    def of(self, target: Target) -> Iterator[LeasedObject | Waiter]:
        for container in containers(target):
            yield from self._exactly.get(container, ())
        yield from self._inside.get(target, ())


def _extended(
    held: LeasedObject, becomes_exclusive: bool, now_ms: int, duration_ms: int | None, longest_ms: int
) -> LeasedObject:
    end_ms = now_ms + (held.duration_ms if duration_ms is None else duration_ms)
    if end_ms - held.start_ms > longest_ms:
        raise TooLong(f"lease {held.lease_id} would last longer than {_seconds(longest_ms)} (lease_seconds_max)")
    claim = Claim(held.claim.target, LeaseType.EXCLUSIVE) if becomes_exclusive else held.claim
    return msgspec.structs.replace(held, claim=claim, end_ms=max(_whole_second(end_ms), held.end_ms))


def _whole_second(end_ms: int) -> int:
    """The next whole second: answers have ends in seconds, and the end in an answer is the one that counts."""
    return -(-end_ms // 1000) * 1000


def _end_of(obstacle: LeasedObject | Waiter) -> int:
    return obstacle.end_ms if isinstance(obstacle, LeasedObject) else obstacle.until_ms


def _order(target: Target) -> tuple[str, ...]:
    return tuple(name or "" for name in target)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000} s"
