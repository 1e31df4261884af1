"""Changes of the catalog under implicit locks, among clients that lock: `txn_simulation` with calls that change tables.

Some changes are one unit of work; others touch files first and go on some steps later, while everybody else acts. What
each needs and whose locks are one's own is written down again here.
"""

import contextlib
import json
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hms_gateway.metastore.changes.implicit_locks import held_for_files, locked
from hms_gateway.metastore.ports.store import Event, OutcomeUnknown, StoreUnavailable
from hms_gateway.rpc.structs import LockType, ThriftException
from hms_gateway.runtime.presented import LockCaller, locking
from hms_gateway.txn.ports.txn import Client, ShownLock
from hms_gateway.txn.rules.locks import Lock, LockedByAnother, has_expired
from hms_gateway.txn.rules.names import Target
from tests.simulation.exclusion import exclude
from tests.simulation.txn_simulation import CLIENTS, TIMEOUT_MS, ClientState, Simulation

_S, _X = LockType.SHARED_READ, LockType.EXCLUSIVE
_AGENT: Final = "hms-gateway, while it moves or deletes files"


class Change(NamedTuple):
    """What happens, and what has to be free for it: X on `changed`, S on `beside`."""

    event: Event
    changed: list[Target]
    beside: list[Target] = []  # noqa: RUF012 - never changed


def _of_table(kind: str, name: str) -> Change:
    return Change(Event(kind, "d", name, _altered(name)), [Target("d", name)])


def _altered(name: str) -> str:
    before, after = ({"1": {"str": name}, "9": {"map": ["str", "str", 1, {"a": text}]}} for text in "01")
    return json.dumps({"tableObjBeforeJson": json.dumps(before), "tableObjAfterJson": json.dumps(after)})


def _of_partition(kind: str, name: str) -> Change:
    return Change(Event(kind, "d", "t", json.dumps({"partName": name})), [Target("d", "t", name)])


def _formatted() -> Event:
    """Another file format, beside readers."""
    before, after = ({"7": {"rec": {"3": {"str": text}}}} for text in "01")
    return Event(
        "ALTER_TABLE",
        "d",
        "t",
        json.dumps({"tableObjBeforeJson": json.dumps(before), "tableObjAfterJson": json.dumps(after)}),
    )


CHANGES: Final = (
    _of_table("ALTER_TABLE", "t"),
    _of_table("DROP_TABLE", "t"),
    _of_table("DROP_TABLE", "u"),
    _of_partition("DROP_PARTITION", "p=1"),
    _of_partition("ADD_PARTITION", "p=1/q=1"),
    _of_partition("ADD_PARTITION", "p=2"),
    Change(Event("DROP_DATABASE", "d", None, "{}"), [Target("d")]),
    Change(Event("ALTER_DATABASE", "d", None, "{}"), [], [Target("d")]),
    Change(Event("CREATE_TABLE", "d", "u", "{}"), [], [Target("d", "u"), Target("d")]),
    Change(Event("UPDATE_TBL_COL_STAT_EVENT", "d", "t", "{}"), [], [Target("d", "t")]),
    Change(_formatted(), [], [Target("d", "t")]),
)
# What moves or deletes files first.
MOVES: Final = (
    Change(
        Event("ALTER_TABLE", "d", "u", _altered("t"), ("d", "t")), [Target("d", "t")], [Target("d", "u"), Target("d")]
    ),
    Change(Event("ALTER_TABLE", "d", "t", _altered("t"), emptied_partitions=("p=2",)), [Target("d", "t", "p=2")]),
)


@dataclass
class Work:
    """A change that has its files under locks and is not made yet."""

    change: Change
    caller: LockCaller
    context: Context
    stack: contextlib.ExitStack
    lock_id: int


class ChangeSimulation(Simulation):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._works: list[Work] = []
        # Whose the locks are that changes have taken, by their ids.
        self._callers: dict[int, LockCaller] = {}
        self.made = 0
        self.refused = 0

    def run(self, steps: int) -> None:
        try:
            super().run(steps)
        finally:
            for connection in self._connections:
                connection.faults = 0.0
            for work in self._works:
                work.context.run(work.stack.close)

    def _actions(self) -> list[tuple[Callable[[], None], int]]:
        return [*super()._actions(), (self._change, 12), (self._begin_change, 3), (self._end_change, 4)]

    def _who(self, client: ClientState) -> Client:
        """Two of them are one user at one address, two others only have the name in common."""
        number = next(number for number, one in enumerate(self._clients) if one is client)
        return Client("u", "h", "a", *_IDENTITIES[number])

    def _may_overtake(self, lock: Lock) -> bool:
        """A change does not wait for those who wait, also where it takes a lock for its files."""
        return lock.lock_id in self._callers

    def _are_of_one_caller(self, one: Lock, other: Lock) -> bool:
        return any(
            lock_id in self._callers and self._is_own(self._callers[lock_id], self._shown(lock))
            for lock_id, lock in ((one.lock_id, other), (other.lock_id, one))
        )

    # What clients do.

    def _change(self) -> None:
        change, caller = self.random.choice(CHANGES), self._caller()
        with locking(caller):
            self._make(change, caller)

    def _begin_change(self) -> None:
        if len(self._works) < 2:
            change, caller = self.random.choice(MOVES), self._caller()
            context, stack = copy_context(), contextlib.ExitStack()
            connection: Any = self.random.choice(self._connections)
            excluding = self._excluding(change, caller)

            def take() -> None:
                stack.enter_context(locking(caller))
                stack.enter_context(held_for_files(connection, change.changed, change.beside))

            try:
                self._attempt(lambda: context.run(take), excluding)
            except BaseException:
                context.run(stack.close)
                raise
            finally:
                new = [number for number in self.store.txns.locks if self._is_new(number)]
                self._callers |= dict.fromkeys(new, caller)
            self._works.append(Work(change, caller, context, stack, max(new, default=0)))
            if len(new) != 1:
                self.fail("files are touched without a lock")

    def _end_change(self) -> None:
        if self._works:
            work = self._works.pop(self.random.randrange(len(self._works)))
            is_lost = work.lock_id not in self.store.txns.locks
            try:
                work.context.run(self._make, work.change, work.caller, is_lost)
            finally:
                work.context.run(work.stack.close)

    def _make(self, change: Change, caller: LockCaller, is_lost: bool = False) -> None:
        """A unit of work that makes it. `is_lost`: its files were not locked all the time."""
        guarded: Any = locked(lambda transaction: transaction.append_event(change.event))  # type: ignore[arg-type]
        connection = self.random.choice(self._connections)
        self._attempt(lambda: connection.write(guarded), self._excluding(change, caller), is_lost)

    def _attempt(self, call: Callable[[], object], excluding: list[ShownLock], is_lost: bool = False) -> None:
        """Only what nothing excludes happens; what is past its time excludes nothing, and is gone afterwards."""
        now_ms = self.store.clock_ms
        alive = [one for one in excluding if not has_expired(self.store.txns.alive(one.lock), now_ms, TIMEOUT_MS)]
        locks = dict(self.store.txns.locks)
        try:
            call()
        except LockedByAnother as refused:
            self.refused += 1
            if not alive and not is_lost:
                self.fail(f"nothing excludes what was refused: {refused.message}")
            if locks != self.store.txns.locks:
                self.fail(f"what was refused changed locks: {refused.message}")
            raise
        except OutcomeUnknown:
            self._see_made(alive, excluding, is_lost)
            raise
        except (ThriftException, StoreUnavailable):
            raise
        self.made += 1
        self._see_made(alive, excluding, is_lost)

    def _see_made(self, alive: list[ShownLock], excluding: list[ShownLock], is_lost: bool) -> None:
        if is_lost:
            self.fail("a change was made whose files were not locked any more")
        if alive:
            self.fail(f"a change was made under {alive[0].lock} of {alive[0].client}")
        passed = [one.lock for one in excluding if one.lock.lock_id in self.store.txns.locks]
        if passed:
            self.fail(f"a change was made under {passed[0]}, whose owner will think it was not")

    # Whose is what.

    def _caller(self) -> LockCaller:
        client = self._client
        who, named = self._who(client), self.random.random()
        lock_ids = frozenset(client.locks) if named < 0.2 else frozenset()
        txn_ids = frozenset(client.txns) if 0.1 < named < 0.3 else frozenset()
        return LockCaller(who.principal, who.address, TIMEOUT_MS, lock_ids, txn_ids)

    def _excluding(self, change: Change, caller: LockCaller) -> list[ShownLock]:
        claims = [(place, _X, False) for place in change.changed] + [(place, _S, False) for place in change.beside]
        return [
            shown
            for request in self.store.txns.locks.values()
            for shown in request
            if shown.lock.is_acquired
            and not self._is_own(caller, shown)
            and any(exclude(claim, (shown.lock.target, shown.lock.type, shown.lock.shares_writes)) for claim in claims)
        ]

    def _is_own(self, caller: LockCaller, shown: ShownLock) -> bool:
        lock = shown.lock
        if self._callers.get(lock.lock_id) is caller:
            return True
        if caller.lock_ids or caller.txn_ids:
            return lock.lock_id in caller.lock_ids or lock.txn_id in caller.txn_ids
        return (shown.client.principal, shown.client.address) == (caller.principal, caller.address)

    def _shown(self, lock: Lock) -> ShownLock:
        return next(one for one in self.store.txns.locks[lock.lock_id] if one.lock.number == lock.number)

    def _is_new(self, lock_id: int) -> bool:
        return lock_id not in self._callers and self.store.txns.locks[lock_id][0].client.agent_info == _AGENT


_IDENTITIES: Final = (("ann", "1"), ("ann", "1"), ("ann", "2"), ("bob", "1"), ("eve", "3"))
assert len(_IDENTITIES) == CLIENTS
