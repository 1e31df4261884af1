"""Leases of one world as a state machine over values: what each call may answer in a state (semantics §7.2).

It shares nothing with `txn.rules.leases`. Nothing expires here: histories are shorter than the leases in them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from tests.linearizability.history import Call, Failure

Place: TypeAlias = tuple[str, str | None, str | None]
Claim: TypeAlias = tuple[Place, str]
"""What is leased, and `s` or `x`."""


class Lease(NamedTuple):
    lease_id: int
    user: str
    claims: tuple[Claim, ...]


class Waiter(NamedTuple):
    ticket: int
    claims: tuple[Claim, ...]


class State(NamedTuple):
    leases: tuple[Lease, ...] = ()
    waiters: tuple[Waiter, ...] = ()


def contains(whole: Place, part: Place) -> bool:
    """Whether `part` is `whole` or lies in it; `ds=1` contains `ds=1/hr=2`."""
    return _path(part)[: len(_path(whole))] == _path(whole)


def clash(one: Claim, other: Claim) -> bool:
    """Whether different leases cannot have both."""
    return "x" in (one[1], other[1]) and (contains(one[0], other[0]) or contains(other[0], one[0]))


def in_steps(calls: Iterable[Call]) -> tuple[list[Call], list[tuple[Call, Call]]]:
    """The calls as what they do one after the other, and which of it comes first.

    A request that has to wait finds that out in one unit of work and takes its place in another.
    """
    steps: list[Call] = []
    pairs: list[tuple[Call, Call]] = []
    for call in calls:
        if call.name == "grab" and call.is_answered and not call.failure and call.answer[0] == "waits":
            blocked, placed = replace(call, name="is_blocked"), replace(call, name="take_place")
            steps += [blocked, placed]
            pairs.append((blocked, placed))
        else:
            steps.append(call)
    return steps, pairs


class LeaseModel:
    """The world of these calls, as `in_steps` gives them."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._claims: dict[int, tuple[Claim, ...]] = {}
        for call in calls:
            if call.name == "grab" and call.is_answered and not call.failure:
                self._claims[call.answer[1]] = call.arguments[1]

    def begin(self) -> State:
        return State()

    def step(self, state: State, call: Call) -> Iterable[State]:
        return getattr(self, f"_{call.name}")(state, call, *call.arguments)  # type: ignore[no-any-return]

    def commute(self, one: Call, other: Call) -> bool:
        sees_all = {"listed", "force_drop"}
        if one.name in sees_all or other.name in sees_all:
            return False
        if self._leases_of(one) & self._leases_of(other):
            return False
        return not any(clash(mine, theirs) for mine in self._claims_of(one) for theirs in self._claims_of(other))

    def stays_idle(self, call: Call) -> bool:
        """Whoever takes away what others have does not know what there is."""
        return call.name != "force_drop"

    def _leases_of(self, call: Call) -> set[int]:
        if call.name in ("drop", "extend"):
            return {call.arguments[1]}
        if call.name == "write":
            return {call.arguments[0]}
        return {call.answer[1]} if call.name == "grab" and call.is_answered and not call.failure else set()

    def _claims_of(self, call: Call) -> Sequence[Claim]:
        if call.name in ("grab", "is_blocked", "take_place", "abandon"):
            claims: Sequence[Claim] = call.arguments[1]
            return claims
        if call.name in ("drop", "extend"):
            return [(place, "x") for place, _ in self._claims.get(call.arguments[1], ())]
        return ()

    def _grab(self, state: State, call: Call, user: str, claims: tuple[Claim, ...], ticket: int) -> Iterator[State]:
        if call.failure is not None:
            if call.failure.name == "LeaseAlreadyExists" and self._is_in_the_way(state, claims, ticket):
                yield state
        elif not self._is_in_the_way(state, claims, ticket):
            waiters = tuple(one for one in state.waiters if one.ticket != ticket)
            yield State((*state.leases, Lease(call.answer[1], user, _merged(claims))), waiters)

    def _is_blocked(self, state: State, call: Call, user: str, claims: Sequence[Claim], ticket: int) -> Iterator[State]:
        if self._is_in_the_way(state, claims, ticket):
            yield state

    def _take_place(
        self, state: State, call: Call, user: str, claims: tuple[Claim, ...], ticket: int
    ) -> Iterator[State]:
        if ticket:
            if call.answer[1] == ticket:
                yield state
        elif all(one.ticket < call.answer[1] for one in state.waiters):
            yield state._replace(waiters=(*state.waiters, Waiter(call.answer[1], claims)))

    def _abandon(self, state: State, call: Call, ticket: int, claims: Sequence[Claim]) -> Iterator[State]:
        yield state._replace(waiters=tuple(one for one in state.waiters if one.ticket != ticket))

    def _drop(self, state: State, call: Call, user: str, lease_id: int, places: Sequence[Place]) -> Iterator[State]:
        lease = _lease(state, lease_id)
        if lease is None:
            yield from _same_if(state, not call.failure)
        elif lease.user != user:
            yield from _same_if(state, _is_invalid(call))
        elif not call.failure:
            yield _without(state, lambda one, claim: one is lease and (not places or claim[0] in places))

    def _force_drop(self, state: State, call: Call, places: Sequence[Place]) -> Iterator[State]:
        if not call.failure:
            yield _without(state, lambda one, claim: any(contains(place, claim[0]) for place in places))

    def _extend(self, state: State, call: Call, user: str, lease_id: int, claims: Sequence[Claim]) -> Iterator[State]:
        lease = _lease(state, lease_id)
        held = dict(lease.claims) if lease is not None and lease.user == user else {}
        upgrades = [claim for claim in claims if claim[1] == "x"]
        others = [claim for one in state.leases if one is not lease for claim in one.claims]
        is_refused = (
            not held
            or any(place not in held for place, _ in claims)
            or any(clash(mine, theirs) for mine in upgrades for theirs in others)
        )
        if is_refused:
            yield from _same_if(state, _is_invalid(call))
        elif not call.failure and lease is not None:
            changed = tuple((place, "x" if (place, "x") in upgrades else kind) for place, kind in lease.claims)
            yield state._replace(
                leases=tuple(one._replace(claims=changed) if one is lease else one for one in state.leases)
            )

    def _listed(self, state: State, call: Call, db_name: str) -> Iterator[State]:
        wanted = {(one.lease_id, *claim) for one in state.leases for claim in one.claims}
        yield from _same_if(state, set(call.answer) == wanted)

    def _version(self, state: State, call: Call) -> Iterator[State]:
        """That is checked for all worlds together."""
        yield state

    def _write(self, state: State, call: Call, lease_id: int, place: Place) -> Iterator[State]:
        lease = _lease(state, lease_id)
        is_held = lease is not None and any(kind == "x" and contains(mine, place) for mine, kind in lease.claims)
        refused = call.failure is not None and call.failure.name == "InvalidOperation"
        yield from _same_if(state, not call.failure if is_held else refused)

    def _is_in_the_way(self, state: State, claims: Sequence[Claim], ticket: int) -> bool:
        others = [claim for one in state.leases for claim in one.claims]
        others += [claim for one in state.waiters if not ticket or one.ticket < ticket for claim in one.claims]
        return any(clash(mine, theirs) for mine in claims for theirs in others)


def _same_if(state: State, is_right: bool) -> Iterator[State]:
    if is_right:
        yield state


def _is_invalid(call: Call) -> bool:
    return isinstance(call.answer, Failure) and call.answer.name == "InvalidArguments"


def _merged(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    strongest: dict[Place, str] = {}
    for place, kind in claims:
        strongest[place] = max(kind, strongest.get(place, "s"))
    return tuple(sorted(strongest.items(), key=str))


def _without(state: State, is_gone: Any) -> State:
    left = [
        one._replace(claims=tuple(claim for claim in one.claims if not is_gone(one, claim))) for one in state.leases
    ]
    return state._replace(leases=tuple(one for one in left if one.claims))


def _lease(state: State, lease_id: int) -> Lease | None:
    return next((one for one in state.leases if one.lease_id == lease_id), None)


def _path(place: Place) -> tuple[str, ...]:
    db_name, table_name, partition_name = place
    return tuple(name for name in (db_name, table_name, *(partition_name or "").split("/")) if name)
