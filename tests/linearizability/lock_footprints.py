"""What calls on locks and transactions have to do with each other: of all others the search tries one order only."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hms_gateway.rpc.structs import LockType
from tests.linearizability.history import Call, answered
from tests.simulation.exclusion import Claim, Place, exclude

_ABORTED: Final = re.compile(r"(?:Transaction |Aborting \[)txnid:(\d+)")
_DEADLOCK: Final = re.compile(r"txnid:(\d+) already aborted: deadlock with (.*), closed on")


@dataclass(slots=True)
class Footprint:
    """What a call looks at and changes.

    claims        the locks it asks for, acquires or gives up
    ends          the transactions it may end, or let go on as something else
    uses          those that have to be open for it
    asks          the transaction it acquires locks for: what that holds decides whom its other requests may pass
    tables        those whose write ids it gives or reads
    looks_at      what stops it where others hold it
    asks_for_id   it is given the id of a lock
    had_id        it was given one that others saw, though it was not answered: its place among those that were is fixed
    """

    claims: frozenset[Claim] = frozenset()
    lock_ids: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()
    uses: frozenset[int] = frozenset()
    asks: frozenset[int] = frozenset()
    tables: frozenset[str] = frozenset()
    changes: frozenset[object] = frozenset()
    looks_at: frozenset[Claim] = frozenset()
    makes_change: bool = False
    sees_changes: bool = False
    opens: bool = False
    sees_locks: bool = False
    sees_txns: bool = False
    asks_for_id: bool = False
    had_id: bool = False
    is_in_deadlock: bool = False

    def commutes(self, other: "Footprint") -> bool:
        return not (self._affects(other) or other._affects(self) or self._excludes(other))

    def _affects(self, other: "Footprint") -> bool:
        return (
            bool(self.ends & (other.ends | other.uses))
            or bool(self.lock_ids & other.lock_ids)
            or bool(self.asks & other.asks)
            or bool(self.tables & other.tables)
            or (other.sees_locks and bool(self.claims))
            or (other.sees_txns and (self.opens or bool(self.ends)))
            or (self.opens and (other.opens or bool(other.changes)))
            or bool(self.changes & other.changes)
            or (self.had_id and other.asks_for_id)
            or (self.is_in_deadlock and other.is_in_deadlock)
            or (self.makes_change and other.sees_changes)
        )

    def _excludes(self, other: "Footprint") -> bool:
        return (
            any(exclude(one, another) for one in self.claims for another in other.claims | other.looks_at)
            or any(exclude(one, another) for one in self.looks_at for another in other.claims)
        )  # fmt: skip


class Footprints:
    """Those of the calls of one world; a lock's claims are known from the call that asked for it."""

    def __init__(self, calls: Sequence[Call], seen_ids: Mapping[int, Sequence[int]]) -> None:
        """`seen_ids` has the lock ids that a call without an answer may have been given, by the `id` of the call."""
        self._seen_ids = seen_ids
        self._claims_of_lock: dict[int, frozenset[Claim]] = {}
        self._claims_of_txn: dict[int, frozenset[Claim]] = {}
        self._changes: dict[int, frozenset[object]] = {}
        self._tables: dict[int, frozenset[str]] = {}
        self._in_deadlocks = set(_in_deadlocks(calls, "txnid"))
        self._locks_in_deadlocks = set(_in_deadlocks(calls, "lockid"))
        self._silent = _aborted_silently(calls)
        for call in calls:
            self._learn(call)
        self._owner_of_lock = {call.answer[0]: call.arguments[0] for call in answered(calls, "lock")}
        self._known = {id(call): self._footprint(call) for call in calls}

    def of(self, call: Call) -> Footprint:
        return self._known[id(call)]

    def _learn(self, call: Call) -> None:
        if call.name == "lock":
            txn_id, _, parts = call.arguments
            claims = _claims(call)
            self._claims_of_txn[txn_id] = self._claims_of_txn.get(txn_id, frozenset()) | claims
            self._changes[txn_id] = self._changes.get(txn_id, frozenset()) | {part[0] for part in parts if part[2]}
            if call.is_answered and call.failure is None:
                self._claims_of_lock[call.answer[0]] = claims
        elif call.name == "add_writes":
            txn_id, place, _ = call.arguments
            self._changes[txn_id] = self._changes.get(txn_id, frozenset()) | {place}
        elif call.name == "allocate":
            table, txn_ids = call.arguments
            for txn_id in txn_ids:
                self._tables[txn_id] = self._tables.get(txn_id, frozenset()) | {table}

    def _footprint(self, call: Call) -> Footprint:
        made: Footprint = getattr(self, f"_{call.name}")(call)
        return made

    def _open(self, call: Call) -> Footprint:
        return Footprint(opens=True)

    def _commit(self, call: Call) -> Footprint:
        txn_id = call.arguments[0]
        return Footprint(
            claims=self._claims_of_txn.get(txn_id, frozenset()),
            ends=frozenset({txn_id}),
            tables=self._tables.get(txn_id, frozenset()),
            changes=self._changes.get(txn_id, frozenset()),
            is_in_deadlock=self._is_in_deadlock(txn_id),
        )

    _abort = _commit

    def _heartbeat(self, call: Call) -> Footprint:
        lock_id, txn_id = call.arguments
        return Footprint(lock_ids=frozenset({lock_id}) - {0}, uses=frozenset({txn_id, self._owner(lock_id)}) - {0})

    def _add_writes(self, call: Call) -> Footprint:
        return Footprint(uses=frozenset({call.arguments[0]}))

    def _open_txns(self, call: Call) -> Footprint:
        return Footprint(sees_txns=True)

    def _lock(self, call: Call) -> Footprint:
        """One that may close a cycle may end any transaction of it."""
        txn_id = call.arguments[0]
        lock_ids = frozenset({call.answer[0]}) if call.is_answered and call.failure is None else frozenset()
        own = frozenset({txn_id}) - {0}
        made = Footprint(_claims(call), lock_ids, uses=own, asks=own, asks_for_id=True)
        made.had_id = bool(self._seen_ids.get(id(call)))
        made.ends = frozenset(victim for victim in self._silent if txn_id and txn_id <= victim)
        if txn_id in self._in_deadlocks:
            made.ends |= self._in_deadlocks
        if made.ends:
            made.claims = made.claims.union(*(self._claims_of_txn.get(one, ()) for one in made.ends))
            made.tables = made.tables.union(*(self._tables.get(one, ()) for one in made.ends))
        made.is_in_deadlock = self._is_in_deadlock(txn_id) or not self._locks_in_deadlocks.isdisjoint(lock_ids)
        return made

    def _check_lock(self, call: Call) -> Footprint:
        lock_id = call.arguments[0]
        own = frozenset({self._owner(lock_id)}) - {0}
        return Footprint(
            claims=self._claims_of_lock.get(lock_id, frozenset()),
            lock_ids=frozenset({lock_id}),
            uses=own,
            asks=own,
            is_in_deadlock=lock_id in self._locks_in_deadlocks or self._is_in_deadlock(self._owner(lock_id)),
        )

    _unlock = _check_lock

    def _change(self, call: Call) -> Footprint:
        return Footprint(looks_at=frozenset({change_claim(call.arguments[0])}), makes_change=call.failure is None)

    def _count_changes(self, call: Call) -> Footprint:
        return Footprint(sees_changes=True)

    def _show_locks(self, call: Call) -> Footprint:
        return Footprint(sees_locks=True)

    def _allocate(self, call: Call) -> Footprint:
        table, txn_ids = call.arguments
        return Footprint(uses=frozenset(txn_ids), tables=frozenset({table}))

    def _valid_write_ids(self, call: Call) -> Footprint:
        return Footprint(tables=frozenset({call.arguments[0]}))

    def _is_in_deadlock(self, txn_id: int) -> bool:
        """Or may be: with one that was aborted silently, which is the youngest of the cycle."""
        return txn_id in self._in_deadlocks or 0 < txn_id <= max(self._silent, default=0)

    def _owner(self, lock_id: int) -> int:
        return self._owner_of_lock.get(lock_id, 0)


def change_claim(place: Place) -> Claim:
    """What has to be free for a change."""
    return place, LockType.EXCLUSIVE, False


def _claims(call: Call) -> frozenset[Claim]:
    _, is_of_hive_4, parts = call.arguments
    return frozenset((place, LockType[kind], is_of_hive_4) for place, kind, _ in parts)


def _aborted_silently(calls: Sequence[Call]) -> frozenset[int]:
    """The transactions that others saw aborted, while their own clients, dead by then, neither asked nor heard.

    A deadlock may have cost them.
    """
    seen = {txn_id for call in answered(calls, "open_txns") for txn_id, is_open in call.answer[1] if not is_open}
    asked = {call.arguments[0] for call in answered(calls, "abort")}
    failures = (call.failure.text for call in calls if call.failure is not None)
    answered_so = {int(found[1]) for found in map(_ABORTED.match, failures) if found is not None}
    used = {call.arguments[0] for call in calls if call.name == "lock"}
    return frozenset((seen & used) - asked - answered_so)


def _in_deadlocks(calls: Iterable[Call], kind: str) -> Iterable[int]:
    """The transactions, or requests without one, of all cycles that anybody was told of."""
    for call in calls:
        told = _DEADLOCK.search(call.failure.text) if call.failure is not None else None
        if told is not None:
            names = [("txnid", told[1]), *(name.split(":") for name in told[2].split(", "))]
            yield from (int(number) for one, number in names if one == kind)
