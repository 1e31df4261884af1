"""Who gets which lock: the rules, as functions over values.

The model
    A **lock request** has one or more **components**, each a type on a database, a table or a partition. Storage keeps
    one `Lock` for each component, under the request's lock id; ids grow, so they are the order of arrival. A request
    belongs to a transaction, or is on its own (Iceberg, PyIceberg). It is **waiting** or **acquired** as a whole.

The rules (semantics §5.8, §13 rows 16, 17, 36)
    1. Two components conflict when their objects overlap, their types do not go together (`COMPATIBLE`), and they
       belong to different owners. A transaction never waits for itself, nor one component for another of its request.
    2. A database-level SHARED_READ and an EXCLUSIVE on something inside the database never conflict: CREATE TABLE must
       work while another table is being changed.
    3. SHARED_WRITE excludes SHARED_WRITE, as in 2.3 and 3.1, unless both come from clients of Hive 4, which settle it
       when they commit (`shares_writes`).
    4. A request is granted when none of its components conflicts with any acquired lock, whenever that came, or with a
       waiting lock of an earlier request. So no request overtakes one it conflicts with, and none starves; Hive
       2.3 lets readers pass a waiting writer, and may then grant the writer while they read. With one exception: a
       request passes a waiting one that conflicts, in any component, with what its own transaction holds. Behind that
       it could only wait for itself, and the passed one waits no longer: all that a transaction holds ends with it.
    5. A transaction that waits while others wait for it, around a cycle, would do so for ever: the youngest
       transaction of the cycle is aborted. New waits-for edges appear only when a request arrives, so only then is
       there something to look for. A grant adds none: by rule 4 those it blocks waited for its owner before, the later
       ones behind the request and the passed ones for what else its transaction holds. Nor does an end: what lets a
       request pass goes only together with that request.
    6. Locks of a transaction live as long as it does; others live until the time-out passes without a heartbeat.
       A request that is stopped by a lock past its time removes it first; a holder who comes back before that keeps it.
    7. An EXCLUSIVE on a prefix of a partition's name (`ds=1` of `ds=1/hr=2`) overlaps all that lies below it. Other
       types on a prefix do not: who changes something below it locks the prefix shared, and two of these do not
       exclude each other. Hive's clients lock whole partitions only.

Known gaps
    * Requests without a transaction have no owner that ties them together, so a cycle through two such requests of
      one client is not seen. The time-out ends it.
    * A request is granted when its client asks again (check_lock), not when the lock falls free: one that polls slowly
      holds up those behind it.
    * A transaction that leaves a waiting request behind and goes on with other things still counts as waiting.
    * A request passes only who waits for what its transaction holds. Behind one that waits for it in other ways
      (through a third, or behind another waiting request of its transaction) it queues, and rule 5 ends the cycle.
      To pass those too, a waiting request that is given up would add edges, and cycles would appear at any time.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, NewType, TypeAlias

import msgspec

from hms_gateway.rpc.structs import InvalidOperationException, LockType
from hms_gateway.txn.rules.names import Target, prefixes

LockId = NewType("LockId", int)
TxnId = NewType("TxnId", int)

NO_TXN: Final = TxnId(0)
TIMED_OUT: Final = "no heartbeat within the time-out"
_AFTER_SLASH: Final = chr(ord("/") + 1)

_SR, _SW, _EW, _X = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE

# From weak to strong; show_locks sorts by it.
STRENGTH: Final[Mapping[LockType, int]] = {_SR: 1, _SW: 2, _EW: 3, _X: 4}

# What may be held beside each type; SHARED_WRITE beside itself is rule 3.
COMPATIBLE: Final[Mapping[LockType, frozenset[LockType]]] = {
    _SR: frozenset({_SR, _SW, _EW}),
    _SW: frozenset({_SR}),
    _EW: frozenset({_SR}),
    _X: frozenset(),
}

Owner: TypeAlias = tuple[str, int]
"""`("txnid", 7)`, or `("lockid", 3)` for a request without a transaction."""


class Lock(msgspec.Struct, frozen=True):
    """One component of a lock request. `txn_id` is 0 for a request of its own, `number` counts from 1.

    `last_heartbeat_ms` is that of the transaction, or of the request when it has none.
    """

    lock_id: LockId
    number: int
    txn_id: TxnId
    target: Target
    type: LockType
    is_acquired: bool
    shares_writes: bool = False
    last_heartbeat_ms: int = 0

    @property
    def owner(self) -> Owner:
        return ("txnid", self.txn_id) if self.txn_id else ("lockid", self.lock_id)

    def __str__(self) -> str:
        """As Hive's exceptions show a lock (semantics §5.9)."""
        return (
            f"lockid:{self.lock_id} intLockId:{self.number} txnid:{self.txn_id} db:{self.target.db_name}"
            f" table:{_shown(self.target.table_name)} partition:{_shown(self.target.partition_name)}"
            f" state:{'ACQUIRED' if self.is_acquired else 'WAITING'} type:{self.type.name}"
        )


class Block(msgspec.Struct, frozen=True):
    """Why a request waits: its first component that conflicts, and the earliest lock in its way."""

    component: Lock
    blocker: Lock


def block_of(request: Sequence[Lock], others: Sequence[Lock]) -> Block | None:
    """Rule 4: what the request waits for, None when all of it is granted.

    `others` may contain locks that do not matter, the request's own included; it must not omit one that does. Where
    the answer is a waiting lock, those are also what the request's transaction holds, and all of each waiting request.
    """
    return min(_blocks(request, others), key=_precedence, default=None) if others else None


def blockers(request: Sequence[Lock], others: Sequence[Lock]) -> list[Lock]:
    """Every lock the request waits for; `others` as for `block_of`."""
    by_component = {(block.blocker.lock_id, block.blocker.number): block.blocker for block in _blocks(request, others)}
    return list(by_component.values())


def waiting_for(locks: Iterable[Lock], everyone: Sequence[Lock]) -> list[Sequence[LockId]]:
    """For each lock the requests among all locks that wait for it by rule 4, the oldest first."""
    waiting = [lock for lock in everyone if not lock.is_acquired]
    waiting_by_kind, passing = _ByKind(waiting), _Passing(waiting, everyone)

    @cache
    def stopped(kind: _Kind) -> _Stopped:
        """Those that locks of this kind stop, of any holder; many locks are alike."""
        owner_of = {lock.lock_id: lock.owner for lock in waiting_by_kind.against(kind)}
        return _Stopped(sorted(owner_of), owner_of, frozenset(owner_of.values()))

    return [stopped(_kind(lock)).by(lock, passing.owners(lock)) for lock in locks]


def has_expired(lock: Lock, now_ms: int, timeout_ms: int) -> bool:
    """Rule 6: whether the owner of the lock has been silent for longer than the time-out."""
    return lock.last_heartbeat_ms < now_ms - timeout_ms


@cache
def weakest_conflicting(type: LockType) -> int:
    """The least strength of a lock that can be in the way of `type`."""
    return min(STRENGTH[other] for other in LockType if other not in COMPATIBLE[type])


def find_cycle(start: Owner, waits_for: Mapping[Owner, Iterable[Owner]]) -> list[Owner] | None:
    """Rule 5: the shortest cycle that goes from `start` back to it, `start` first; None without one."""
    came_from: dict[Owner, Owner] = {}
    level = [start]
    while level:
        following: list[Owner] = []
        for owner in level:
            for other in waits_for.get(owner, ()):
                if other == start:
                    return _path(start, owner, came_from)
                if other not in came_from:
                    came_from[other] = owner
                    following.append(other)
        level = following
    return None


def deadlock_victim(cycle: Iterable[Owner]) -> TxnId:
    """The youngest transaction of a cycle; there is one, since only transactions wait for more than one thing."""
    return TxnId(max(number for kind, number in cycle if kind == "txnid"))


_Kind: TypeAlias = tuple[Target, LockType, bool]


def _kind(lock: Lock) -> _Kind:
    """All that decides what a lock conflicts with, but its owner."""
    return lock.target, lock.type, lock.shares_writes


class _Stopped(msgspec.Struct, frozen=True):
    """Waiting requests: their ids, whose each is, and all whose they are."""

    lock_ids: Sequence[LockId]
    owner_of: Mapping[LockId, Owner]
    owners: frozenset[Owner]

    def by(self, lock: Lock, passing: frozenset[Owner]) -> Sequence[LockId]:
        """Not by its own owner, and if it waits itself only what came later and does not pass it."""
        later = self.lock_ids if lock.is_acquired else self.lock_ids[bisect_right(self.lock_ids, lock.lock_id) :]
        free = passing | {lock.owner}
        if self.owners.isdisjoint(free):
            return later
        return [lock_id for lock_id in later if self.owner_of[lock_id] not in free]


class _ByKind:
    """Locks, found by what they conflict with, of any holder."""

    def __init__(self, locks: Iterable[Lock]) -> None:
        self._groups: dict[_Kind, list[Lock]] = defaultdict(list)
        for lock in locks:
            self._groups[_kind(lock)].append(lock)
        self._index = _ByTarget([group[0] for group in self._groups.values()])

    def against(self, kind: _Kind) -> Iterable[Lock]:
        target, type, shares_writes = kind
        one = Lock(LockId(0), 0, NO_TXN, target, type, True, shares_writes)
        for each in self._index.reached(target, type):
            if not _go_together(each, one):
                yield from self._groups[_kind(each)]


class _Passing:
    """Whose requests pass which waiting ones: the owners who wait, and hold what those wait for."""

    def __init__(self, waiting: Iterable[Lock], everyone: Iterable[Lock]) -> None:
        self._kinds: dict[LockId, set[_Kind]] = defaultdict(set)
        for lock in waiting:
            self._kinds[lock.lock_id].add(_kind(lock))
        txn_ids = {lock.txn_id for lock in waiting if lock.txn_id != NO_TXN}
        self._held = _ByKind(lock for lock in everyone if lock.is_acquired and lock.txn_id in txn_ids)
        self._known: dict[_Kind, frozenset[Owner]] = {}

    def owners(self, lock: Lock) -> frozenset[Owner]:
        if lock.is_acquired:
            return frozenset()
        return frozenset().union(*(self._holders(kind) for kind in self._kinds[lock.lock_id]))

    def _holders(self, kind: _Kind) -> frozenset[Owner]:
        if kind not in self._known:
            self._known[kind] = frozenset(lock.owner for lock in self._held.against(kind))
        return self._known[kind]


def _go_together(one: Lock, other: Lock) -> bool:
    if other.type in COMPATIBLE[one.type] or _are_apart(one, other):
        return True
    if one.type is _SW and other.type is _SW:
        return one.shares_writes and other.shares_writes
    return _is_exempt(one, other) or _is_exempt(other, one)


def _are_apart(one: Lock, other: Lock) -> bool:
    """Rule 7: of two partitions one's name is a prefix of the other's, and is not locked exclusively."""
    here, there = one.target.partition_name, other.target.partition_name
    if here == there or here is None or there is None:
        return False
    return (one if len(here) < len(there) else other).type is not _X


def _is_exempt(reader: Lock, changer: Lock) -> bool:
    """Rule 2."""
    return (
        reader.type is _SR
        and reader.target.table_name is None
        and changer.type is _X
        and changer.target.table_name is not None
    )


def _blocks(request: Sequence[Lock], others: Sequence[Lock]) -> Iterable[Block]:
    index, passed = _ByTarget(request), _passed(request[0].txn_id, others)
    for other in others:
        if other.is_acquired or (other.lock_id < request[0].lock_id and other.lock_id not in passed):
            for component in index.reached(other.target, other.type):
                if component.owner != other.owner and not _go_together(component, other):
                    yield Block(component, other)


def _passed(txn_id: TxnId, others: Sequence[Lock]) -> frozenset[LockId]:
    """The waiting requests that a transaction's requests pass: they wait for what it holds."""
    held = [] if txn_id == NO_TXN else [lock for lock in others if lock.is_acquired and lock.txn_id == txn_id]
    if not held:
        return frozenset()
    index = _ByTarget(held)
    return frozenset(
        other.lock_id
        for other in others
        if not other.is_acquired
        and any(not _go_together(mine, other) for mine in index.reached(other.target, other.type))
    )


class _ByTarget:
    """Locks, as the components of a request, found by what they reach: to compare each with each takes seconds when
    there are many.
    """

    def __init__(self, locks: Sequence[Lock]) -> None:
        self._locks = locks
        self._inside: dict[tuple[str | None, ...], list[Lock]] = defaultdict(list)
        self._exactly: dict[Target, list[Lock]] = defaultdict(list)
        # By table: the partitions that are locked, those that are locked exclusively, and the former in order.
        self._names: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
        self._exclusive: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
        self._ordered: dict[tuple[str | None, ...], list[str]] = {}
        if len(locks) > 1:
            for lock in locks:
                self._exactly[lock.target].append(lock)
                self._inside[lock.target[:1]].append(lock)
                self._inside[lock.target[:2]].append(lock)
                if lock.target.partition_name is not None:
                    self._names[lock.target[:2]].add(lock.target.partition_name)
                    if lock.type is _X:
                        self._exclusive[lock.target[:2]].add(lock.target.partition_name)

    def reached(self, target: Target, type: LockType) -> Iterable[Lock]:
        """All that a lock of this type may exclude by where it is."""
        if len(self._locks) == 1:
            return self._locks if self._locks[0].target.reaches(target) else ()
        db_name, table_name, partition_name = target
        if table_name is None:
            return self._inside.get((db_name,), ())
        of_database = self._exactly.get(Target(db_name), ())
        if partition_name is None:
            return (*of_database, *self._inside.get((db_name, table_name), ()))
        of_table = self._exactly.get(Target(db_name, table_name), ())
        names = (*self._above(target), *(self._below(target) if type is _X else ()))
        further = (lock for name in names for lock in self._exactly[Target(db_name, table_name, name)])
        return (*of_database, *of_table, *self._exactly.get(target, ()), *further)

    def _above(self, target: Target) -> list[str]:
        """The prefixes that are locked exclusively."""
        found = self._exclusive.get(target[:2])
        return [name for name in prefixes(target.partition_name or "") if name in found] if found else []

    def _below(self, target: Target) -> list[str]:
        names = self._names.get(target[:2])
        if not names:
            return []
        if target[:2] not in self._ordered:
            self._ordered[target[:2]] = sorted(names)
        ordered, prefix = self._ordered[target[:2]], target.partition_name or ""
        return ordered[bisect_left(ordered, f"{prefix}/") : bisect_left(ordered, f"{prefix}{_AFTER_SLASH}")]


def _precedence(block: Block) -> tuple[int, int, int]:
    return block.component.number, block.blocker.lock_id, block.blocker.number


def _path(start: Owner, end: Owner, came_from: Mapping[Owner, Owner]) -> list[Owner]:
    path = [end]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def _shown(name: str | None) -> str:
    return "null" if name is None else name


# Whether a change could get the locks it needs against what others hold; they would be gone with its unit of work.
#
# Waiting requests are not in its way: what lasts no time delays none of them. A lock past its time is not held any
# more.


class LockedByAnother(InvalidOperationException):
    """A change was not made, because others hold what it needs."""


class Needed(NamedTuple):
    target: Target
    type: LockType


class AcquiredLock(msgspec.Struct, frozen=True):
    """An acquired lock. `user`, `hostname` and `agent_info` are what its client sent; `principal` is the authenticated
    user who asked for it, from `address`.
    """

    lock: Lock
    user: str
    hostname: str
    agent_info: str
    principal: str | None
    address: str | None


class Obstacle(msgspec.Struct, frozen=True):
    """The first need that is not met, and the oldest lock in its way."""

    needed: Needed
    held: AcquiredLock

    def __str__(self) -> str:
        lock = self.held.lock
        of_txn = f" of transaction {lock.txn_id}" if lock.txn_id != NO_TXN else ""
        held = f"{lock.type.name} on {lock.target}, lock {lock.lock_id}{of_txn}"
        return f"{self.needed.target} is locked: user {self.held.user} on {self.held.hostname} holds {held}"


def obstacle(
    needed: Sequence[Needed], held: Sequence[AcquiredLock], is_own: Callable[[AcquiredLock], bool]
) -> Obstacle | None:
    """None where all of `needed` could be granted at once to the owner of what `is_own`."""
    if not needed or not held:
        return None
    others = {(one.lock.lock_id, one.lock.number): one for one in held if not is_own(one)}
    request = [Lock(LockId(0), number, NO_TXN, target, type, False) for number, (target, type) in enumerate(needed, 1)]
    block = block_of(request, [one.lock for one in others.values()])
    if block is None:
        return None
    return Obstacle(needed[block.component.number - 1], others[block.blocker.lock_id, block.blocker.number])
