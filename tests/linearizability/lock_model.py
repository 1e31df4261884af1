"""Transactions, locks and write ids of one world as a state machine over values: what each call may answer in a state.

It says the same as `txn` and shares nothing with it: rules of semantics §5.4 to §5.9 and §5.11, without time-outs,
as histories are shorter than those. What the rules leave open, such as which of two deadlocks is ended first, leads to
several states.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from hms_gateway.rpc.structs import LockType
from tests.linearizability.history import Call, Failure, answered
from tests.linearizability.lock_footprints import Footprints, change_claim
from tests.simulation.exclusion import Claim, Place, exclude

Owner: TypeAlias = tuple[str, float]

_DEADLOCK: Final = re.compile(r"deadlock with ((?:\w+:\d+(?:, )?)+), closed on")
_CONFLICT: Final = re.compile(
    r"Aborting \[txnid:(\d+),\d+\] due to a write conflict on \S+ committed by \[txnid:(\d+),"
)


class Part(NamedTuple):
    """One component of a request; `operation` is what its transaction does there, None for nothing to remember."""

    place: Place
    type: str
    operation: str | None


class Request(NamedTuple):
    lock_id: float
    txn_id: int
    is_of_hive_4: bool
    parts: tuple[Part, ...]
    is_acquired: bool

    @property
    def owner(self) -> Owner:
        return ("txnid", self.txn_id) if self.txn_id else ("lockid", self.lock_id)


class Txn(NamedTuple):
    """`others` are those it collided with: the cycle of a deadlock, or who may have committed first."""

    txn_id: int
    status: str = "open"
    changes: frozenset[tuple[Place, str]] = frozenset()
    reason: str = ""
    others: frozenset[Owner] = frozenset()
    refused_lock: float = 0


class State(NamedTuple):
    last_txn: int
    last_lock: float = 0
    requests: tuple[Request, ...] = ()
    txns: tuple[Txn, ...] = ()
    commits: tuple[tuple[int, int, frozenset[tuple[Place, str]]], ...] = ()
    write_ids: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    changes: int = 0


class LockModel:
    """The world of these calls. `is_alone`: nobody else opens transactions meanwhile, so their ids have no gaps."""

    def __init__(self, calls: Sequence[Call], *, is_alone: bool) -> None:
        opened = {txn_id for call in answered(calls, "open") for txn_id in call.answer}
        self._is_alone = is_alone
        self._before = min(opened, default=1) - 1 if is_alone else 0
        # What was seen and nobody was given belongs to calls without an answer. Others' transactions are seen as well.
        seen_txns = {txn_id for call in answered(calls, "open_txns") for txn_id, _ in call.answer[1]}
        self._orphan_txns = sorted(seen_txns - opened)
        self._orphan_locks = _orphan_locks(calls)
        self._footprints = Footprints(calls, self._orphan_locks)

    def begin(self) -> State:
        return State(self._before)

    def step(self, state: State, call: Call) -> Iterable[State]:
        return getattr(self, f"_{call.name}")(state, call, *call.arguments)  # type: ignore[no-any-return]

    def commute(self, one: Call, other: Call) -> bool:
        return self._footprints.of(one).commutes(self._footprints.of(other))

    def stays_idle(self, call: Call) -> bool:
        """What is over stays over, and nobody names what is not there yet."""
        return True

    # Transactions.

    def _open(self, state: State, call: Call, count: int) -> Iterator[State]:
        if call.is_answered:
            groups = [call.answer]
        else:
            yield state
            new = [txn_id for txn_id in self._orphan_txns if txn_id > state.last_txn]
            groups = [new[start : start + count] for start in range(len(new) - count + 1)]
        for ids in groups:
            is_dense = list(ids) == list(range(ids[0], ids[0] + count))
            follows = ids[0] == state.last_txn + 1 if self._is_alone else ids[0] > state.last_txn
            if is_dense and follows:
                yield state._replace(last_txn=ids[-1], txns=(*state.txns, *map(Txn, ids)))

    def _commit(self, state: State, call: Call, txn_id: int, checks: bool, is_strict: bool) -> Iterator[State]:
        txn = _txn(state, txn_id)
        if txn is None or txn.status == "aborted":
            yield from _same_if(state, call, _is_refusal_of(txn_id, txn))
        elif txn.status == "committed":
            yield from _same_if(state, call, _is_fine)
        elif rivals := _rivals(state, txn, is_strict) if checks else frozenset():
            others = frozenset(("txnid", float(rival)) for rival in rivals)
            if not call.is_answered or _is_conflict(call.failure, txn_id, others):
                yield _aborted(state, txn_id, "conflict", others)
        elif not call.is_answered or _is_fine(call.answer):
            committed = _changed(state, txn._replace(status="committed"))
            kept = tuple(one for one in state.requests if one.txn_id != txn_id)
            commits = (*state.commits, (txn_id, state.last_txn, txn.changes)) if txn.changes else state.commits
            yield committed._replace(requests=kept, commits=commits)

    def _abort(self, state: State, call: Call, txn_id: int) -> Iterator[State]:
        txn = _txn(state, txn_id)
        if txn is None or txn.status == "committed":
            yield from _same_if(state, call, _is_refusal_of(txn_id, txn))
        elif not call.is_answered or _is_fine(call.answer):
            yield state if txn.status == "aborted" else _aborted(state, txn_id, "", frozenset())

    def _heartbeat(self, state: State, call: Call, lock_id: int, txn_id: int) -> Iterator[State]:
        if lock_id and _request(state, lock_id) is None:
            yield from _same_if(state, call, _is_called("NoSuchLock"))
        elif txn_id:
            yield from _same_if(state, call, _is_open_or_told(txn_id, _txn(state, txn_id)))
        else:
            yield from _same_if(state, call, _is_fine)

    def _add_writes(self, state: State, call: Call, txn_id: int, place: Place, operation: str) -> Iterator[State]:
        txn = _txn(state, txn_id)
        if txn is None or txn.status != "open":
            yield from _same_if(state, call, _is_refusal_of(txn_id, txn))
        elif not call.is_answered or _is_fine(call.answer):
            yield _with_changes(state, txn, [(place, operation)])

    def _open_txns(self, state: State, call: Call, since: int) -> Iterator[State]:
        """Aborted ones are listed too; those before `since` were left out by the caller."""

        def is_right(answer: Any) -> bool:
            mark, listed = answer
            known = {txn.txn_id for txn in state.txns}
            seen = tuple((txn_id, is_open) for txn_id, is_open in listed if self._is_alone or txn_id in known)
            wanted = tuple(
                (txn.txn_id, txn.status == "open")
                for txn in state.txns
                if txn.status != "committed" and txn.txn_id >= since
            )
            return seen == wanted and (mark == state.last_txn if self._is_alone else mark >= state.last_txn)

        yield from _same_if(state, call, is_right)

    # Locks.

    def _lock(
        self, state: State, call: Call, txn_id: int, is_of_hive_4: bool, parts: tuple[Any, ...]
    ) -> Iterator[State]:
        txn = _txn(state, txn_id)
        if txn_id and (txn is None or txn.status != "open"):
            yield from _same_if(state, call, _is_refusal_of(txn_id, txn))
            return
        for lock_id in self._lock_ids(state, call):
            request = Request(lock_id, txn_id, is_of_hive_4, tuple(Part(*part) for part in parts), False)
            for settled, is_refused in set(_without_deadlocks(state, request)):
                if is_refused:
                    if not call.is_answered or _is_told(call.failure, _txn(settled, txn_id)):
                        yield settled
                    continue
                is_acquired = not _blockers(settled, request)
                if call.is_answered and (call.failure or call.answer[1] != _state_name(is_acquired)):
                    continue
                following = settled._replace(
                    last_lock=lock_id, requests=(*settled.requests, request._replace(is_acquired=is_acquired))
                )
                owner = _txn(following, txn_id)
                changes = [(part.place, part.operation) for part in request.parts if part.operation]
                yield following if owner is None else _with_changes(following, owner, changes)

    def _lock_ids(self, state: State, call: Call) -> list[float]:
        """What id the request has. Nobody knows that of one without an answer, only where it stands."""
        between = (state.last_lock + int(state.last_lock) + 1) / 2
        if not call.is_answered:
            return [*(lock_id for lock_id in self._orphan_locks[id(call)] if lock_id > state.last_lock), between]
        if call.failure is not None:
            return [between]
        return [call.answer[0]] if call.answer[0] > state.last_lock else []

    def _check_lock(self, state: State, call: Call, lock_id: int) -> Iterator[State]:
        request = _request(state, lock_id)
        if request is None:
            loser = next((txn for txn in state.txns if txn.refused_lock == lock_id), None)
            yield from _same_if(
                state, call, _is_called("NoSuchLock") if loser is None else _is_refusal_of(loser.txn_id, loser)
            )
            return
        is_acquired = request.is_acquired or not _blockers(state, request)
        if not call.is_answered or call.answer == _state_name(is_acquired):
            yield _replaced(state, request, request._replace(is_acquired=is_acquired))

    def _unlock(self, state: State, call: Call, lock_id: int) -> Iterator[State]:
        request = _request(state, lock_id)
        if request is None:
            yield from _same_if(state, call, _is_fine)
        elif request.txn_id and request.is_acquired:
            yield from _same_if(state, call, _is_called("TxnOpen"))
        elif not call.is_answered or _is_fine(call.answer):
            yield _replaced(state, request, None)

    def _show_locks(self, state: State, call: Call) -> Iterator[State]:
        wanted = tuple(
            (request.lock_id, number, request.txn_id, part.place, request.is_acquired)
            for request in state.requests
            for number, part in enumerate(request.parts, 1)
        )
        yield from _same_if(state, call, lambda answer: answer == wanted)

    # Write ids.

    def _allocate(self, state: State, call: Call, table: str, txn_ids: tuple[int, ...]) -> Iterator[State]:
        statuses = {txn.txn_id: txn.status for txn in state.txns}
        if any(statuses.get(txn_id) != "open" for txn_id in txn_ids):
            yield from _same_if(state, call, _is_called("Meta"))
            return
        tables = dict(state.write_ids)
        given = dict(tables.get(table, ()))
        for txn_id in sorted(txn_ids):
            given.setdefault(txn_id, len(given) + 1)
        if not call.is_answered or call.answer == tuple((txn_id, given[txn_id]) for txn_id in sorted(txn_ids)):
            tables[table] = tuple(given.items())
            yield state._replace(write_ids=tuple(sorted(tables.items())))

    def _valid_write_ids(self, state: State, call: Call, table: str) -> Iterator[State]:
        statuses = {txn.txn_id: txn.status for txn in state.txns}
        given = dict(state.write_ids).get(table, ())
        hidden = {
            status: tuple(sorted(write_id for txn_id, write_id in given if statuses[txn_id] == status))
            for status in ("open", "aborted")
        }
        yield from _same_if(state, call, lambda answer: answer == (len(given), hidden["open"], hidden["aborted"]))

    # Changes of the catalog.

    def _change(self, state: State, call: Call, place: Place, own: tuple[int, ...]) -> Iterator[State]:
        is_excluded = any(
            request.is_acquired and request.lock_id not in own and _meet(_claims(request), [change_claim(place)])
            for request in state.requests
        )
        if is_excluded:
            yield from _same_if(state, call, _is_called("LockedByAnother"))
            return
        if not call.is_answered:
            yield state
        if not call.is_answered or _is_fine(call.answer):
            yield state._replace(changes=state.changes + 1)

    def _count_changes(self, state: State, call: Call) -> Iterator[State]:
        yield from _same_if(state, call, lambda answer: answer == state.changes)


def _orphan_locks(calls: Sequence[Call]) -> dict[int, list[int]]:
    """Ids of locks that others saw and no answer gave, by the `id` of the unanswered calls that may have made them."""
    given = {call.answer[0] for call in answered(calls, "lock")}
    places: dict[tuple[int, int], dict[int, Place]] = {}
    for call in answered(calls, "show_locks"):
        for lock_id, number, txn_id, place, _ in call.answer:
            if lock_id not in given:
                places.setdefault((lock_id, txn_id), {})[number] = place
    found: dict[int, list[int]] = {}
    for call in calls:
        if call.name == "lock" and not call.is_answered:
            txn_id, _, parts = call.arguments
            wanted = {number: part[0] for number, part in enumerate(parts, 1)}
            found[id(call)] = sorted(
                lock_id for (lock_id, owner), seen in places.items() if owner == txn_id and seen == wanted
            )
    return found


def _same_if(state: State, call: Call, is_right: Any) -> Iterator[State]:
    """A call that changes nothing."""
    if not call.is_answered or is_right(call.answer):
        yield state


def _is_fine(answer: Any) -> bool:
    return not isinstance(answer, Failure)


def _is_called(name: str) -> Any:
    return lambda answer: isinstance(answer, Failure) and answer.name == name


def _is_open_or_told(txn_id: int, txn: Txn | None) -> Any:
    return _is_fine if txn is not None and txn.status == "open" else _is_refusal_of(txn_id, txn)


def _is_refusal_of(txn_id: int, txn: Txn | None) -> Any:
    """What one is told who wants to go on with a transaction that is over."""
    if txn is None or txn.status == "committed":
        return _is_called("NoSuchTxn")
    return lambda answer: isinstance(answer, Failure) and _is_told(answer, txn)


def _is_told(failure: Failure | None, txn: Txn | None) -> bool:
    """Whether the failure says that this transaction is aborted, and why."""
    assert txn is not None
    if failure is None or failure.name != "TxnAborted":
        return False
    head = f"Transaction txnid:{txn.txn_id} already aborted"
    if not txn.reason:
        return failure.text == head
    if not failure.text.startswith(head + ": "):
        return False
    if txn.reason == "conflict":
        return _is_conflict(failure, txn.txn_id, txn.others)
    told = _DEADLOCK.search(failure.text)
    if told is None:
        return False
    names = (one.split(":") for one in told[1].split(", "))
    return {(kind, float(number)) for kind, number in names} == txn.others


def _is_conflict(failure: Failure | None, txn_id: int, others: frozenset[Owner]) -> bool:
    told = _CONFLICT.search(failure.text) if failure is not None and failure.name == "TxnAborted" else None
    return told is not None and int(told[1]) == txn_id and ("txnid", float(told[2])) in others


def _rivals(state: State, txn: Txn, is_strict: bool) -> frozenset[int]:
    """Who committed since the transaction began, and changed the same."""
    return frozenset(
        other
        for other, commit_id, theirs in state.commits
        if commit_id >= txn.txn_id
        for place, operation in txn.changes
        for their_place, their_operation in theirs
        if place == their_place and (is_strict or "UPDATE" in (operation, their_operation))
    )


def _without_deadlocks(state: State, request: Request) -> Iterator[tuple[State, bool]]:
    """The states in which the request closes no cycle any more, and whether that cost its own transaction."""
    cycles = set(_circles(state, request)) if request.txn_id else set()
    if not cycles:
        yield state, False
    for cycle in cycles:
        victim = int(max(number for kind, number in cycle if kind == "txnid"))
        ended = _aborted(state, victim, "deadlock", cycle - {("txnid", victim)}, request)
        if victim == request.txn_id:
            yield ended, True
        else:
            yield from _without_deadlocks(ended, request)


def _circles(state: State, request: Request) -> list[frozenset[Owner]]:
    """The shortest ones that the request closes: of these the rules leave open which is ended first."""
    waits_for: dict[Owner, set[Owner]] = {}
    for waiting in (*state.requests, request):
        if not waiting.is_acquired:
            waits_for.setdefault(waiting.owner, set()).update(_blockers(state, waiting))

    paths: list[tuple[Owner, ...]] = [(request.owner,)]
    seen: set[Owner] = set()
    while paths:
        cycles = [frozenset(path) for path in paths if request.owner in waits_for.get(path[-1], ())]
        if cycles:
            return cycles
        seen.update(path[-1] for path in paths)
        paths = [(*path, owner) for path in paths for owner in waits_for.get(path[-1], ()) if owner not in seen]
    return []


def _blockers(state: State, request: Request) -> set[Owner]:
    """Whoever holds what excludes it, whenever that came, and whoever asked for it before.

    But not who waits for something that its own transaction holds.
    """
    mine = _claims(request)
    held = [
        claim
        for own in state.requests
        if request.txn_id and own.txn_id == request.txn_id and own.is_acquired
        for claim in _claims(own)
    ]
    return {
        other.owner
        for other in state.requests
        if other.owner != request.owner
        and (other.is_acquired or (other.lock_id < request.lock_id and not _meet(held, _claims(other))))
        and _meet(mine, _claims(other))
    }


def _meet(claims: Sequence[Claim], others: Sequence[Claim]) -> bool:
    return any(exclude(one, other) for one in claims for other in others)


def _claims(request: Request) -> list[Claim]:
    return [(part.place, LockType[part.type], request.is_of_hive_4) for part in request.parts]


def _aborted(
    state: State, txn_id: int, reason: str, others: frozenset[Owner], closed_by: Request | None = None
) -> State:
    """Without its locks. One that loses to a deadlock is told so when it asks for what it waited for first."""
    (txn,) = (txn for txn in state.txns if txn.txn_id == txn_id)
    waiting = [one.lock_id for one in state.requests if one.txn_id == txn_id and not one.is_acquired]
    refused = waiting[0] if waiting and reason == "deadlock" else 0
    if closed_by is not None and closed_by.txn_id == txn_id:
        refused = 0
    lost = txn._replace(status="aborted", reason=reason, others=others, refused_lock=refused)
    kept = tuple(one for one in state.requests if one.txn_id != txn_id)
    return _changed(state, lost)._replace(requests=kept)


def _with_changes(state: State, txn: Txn, made: Sequence[tuple[Place, str]]) -> State:
    kept = {(place, operation) for place, operation in made if operation in ("UPDATE", "DELETE")}
    return _changed(state, txn._replace(changes=txn.changes | kept)) if kept else state


def _changed(state: State, txn: Txn) -> State:
    return state._replace(txns=tuple(txn if one.txn_id == txn.txn_id else one for one in state.txns))


def _replaced(state: State, old: Request, new: Request | None) -> State:
    replaced = (new if one is old else one for one in state.requests)
    return state._replace(requests=tuple(one for one in replaced if one is not None))


def _txn(state: State, txn_id: int) -> Txn | None:
    return next((txn for txn in state.txns if txn.txn_id == txn_id), None)


def _request(state: State, lock_id: float) -> Request | None:
    return next((request for request in state.requests if request.lock_id == lock_id), None)


def _state_name(is_acquired: bool) -> str:
    return "ACQUIRED" if is_acquired else "WAITING"
