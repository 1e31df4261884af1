"""Locks: every pair of types and levels, all or none, waiting, in and without transactions, shown and given up.

The callers are many at the same time: nothing here depends on the connection, only on who holds what.
"""

from collections.abc import Iterator
from itertools import product

from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AbortTxnsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    LockComponent,
    LockRequest,
    OpenTxnRequest,
    ShowLocksRequest,
    UnlockRequest,
)
from tests.comparison.ids import lock, txn
from tests.comparison.scripts.locking import (
    EXCLUSIVE,
    EXCLUSIVE_WRITE,
    INSERT,
    NO_TXN,
    SELECT,
    SHARED_READ,
    SHARED_WRITE,
    UNSET,
    UPDATE,
    component,
    request,
)
from tests.comparison.servers import Step, call

TYPES = (SHARED_READ, SHARED_WRITE, EXCLUSIVE)
PLACES = (("sales",), ("sales", "t"), ("sales", "t", "ds=1"))
ELSEWHERE = (("hr",), ("sales", "other"), ("sales", "t", "ds=2"))
UNKNOWN_ID = 888_888_888


class Locks:
    """Counts the locks of the script, since each request needs the number of its own."""

    def __init__(self) -> None:
        self.number = 0

    def ask(self, *components: LockComponent, txn_id: int | None = None, **who: str) -> Iterator[Step]:
        self.number += 1
        yield call("lock", request(*components, txn_id=txn_id, **who))

    @property
    def newest(self) -> int:
        return lock(self.number)


def steps() -> Iterator[Step]:
    locks = Locks()
    yield from _pairs(locks)
    yield from _apart(locks)
    yield from _all_or_none(locks)
    yield from _within_transactions(locks)
    yield from _waiting(locks)
    yield from _shown(locks)
    yield from _refused(locks)
    yield from _overtaking(locks)
    yield from _aborting_nothing(locks)
    yield from _passing(locks)
    yield from _deadlock(locks)
    yield from _newer()


def check(number: int) -> Step:
    return call("check_lock", CheckLockRequest(number))


def unlock(number: int) -> Step:
    return call("unlock", UnlockRequest(number))


def _pairs(locks: Locks) -> Iterator[Step]:
    """One holds each type at each level, another asks for each type at each level, then the first lets go."""
    for held, wanted in product(TYPES, TYPES):
        for held_at, wanted_at in product(PLACES, PLACES):
            yield from locks.ask(component(held, *held_at))
            first = locks.newest
            yield from locks.ask(component(wanted, *wanted_at), user="ben")
            yield check(locks.newest)
            yield unlock(first)
            yield check(locks.newest)
            yield unlock(locks.newest)


def _apart(locks: Locks) -> Iterator[Step]:
    """What is beside each other, in another database too, or spelled in the very same way, is locked at once."""
    for held_at, wanted_at in zip((*PLACES, *ELSEWHERE), (*ELSEWHERE, *PLACES), strict=True):
        yield from locks.ask(component(EXCLUSIVE, *held_at))
        first = locks.newest
        yield from locks.ask(component(EXCLUSIVE, *wanted_at))
        yield unlock(first)
        yield unlock(locks.newest)


def _all_or_none(locks: Locks) -> Iterator[Step]:
    yield from locks.ask(component(EXCLUSIVE, "sales", "t"))
    first = locks.newest
    yield from locks.ask(component(SHARED_READ, "sales", "free"), component(SHARED_READ, "sales", "t", "ds=1"))
    second = locks.newest
    # What the second one could have is not held for it.
    yield from locks.ask(component(SHARED_READ, "sales", "free"))
    third = locks.newest
    yield call("show_locks", ShowLocksRequest())
    yield check(second)
    yield unlock(first)
    yield check(second)
    yield call("show_locks", ShowLocksRequest("sales"))
    for number in (second, third):
        yield unlock(number)
    # One request may name a thing twice, and what is inside of it.
    twice = (component(EXCLUSIVE, "sales", "t"), component(EXCLUSIVE, "sales", "t"), component(SHARED_READ, "sales"))
    yield from locks.ask(*twice)
    yield call("show_locks", ShowLocksRequest())
    yield unlock(locks.newest)


def _within_transactions(locks: Locks) -> Iterator[Step]:
    """Transaction 1 never waits for itself, transaction 2 does for it; they end in each way."""
    yield call("open_txns", OpenTxnRequest(4, "ann", "somewhere"))
    for place in PLACES[1:]:
        for type in (SHARED_READ, EXCLUSIVE, SHARED_WRITE):
            yield from locks.ask(component(type, *place, operationType=SELECT), txn_id=txn(1))
            yield check(locks.newest)
    held = locks.newest
    yield from locks.ask(component(SHARED_WRITE, "sales", "t", operationType=UPDATE), txn_id=txn(2), user="ben")
    waiting = locks.newest
    yield unlock(held)
    yield call("show_locks", ShowLocksRequest("sales", "t"))
    yield call("commit_txn", CommitTxnRequest(txn(1)))
    yield check(held)
    yield check(waiting)
    yield unlock(waiting)
    yield from locks.ask(component(EXCLUSIVE, "sales", operationType=INSERT), txn_id=txn(3))
    blocked = locks.newest
    yield call("abort_txn", AbortTxnRequest(txn(2)))
    yield check(waiting)
    yield check(blocked)
    yield call("abort_txn", AbortTxnRequest(txn(3)))
    yield check(blocked)
    yield call("show_locks", ShowLocksRequest())
    # A request that waits may be given up in a transaction too.
    yield from locks.ask(component(EXCLUSIVE, "sales", "t"))
    other = locks.newest
    yield from locks.ask(component(SHARED_READ, "sales", "t", operationType=SELECT), txn_id=txn(4))
    yield unlock(locks.newest)
    yield check(locks.newest)
    yield unlock(other)
    yield call("commit_txn", CommitTxnRequest(txn(4)))


def _waiting(locks: Locks) -> Iterator[Step]:
    """Those who came earlier go first: three writers, one after the other."""
    numbers = []
    for user in ("ann", "ben", "cid"):
        yield from locks.ask(component(EXCLUSIVE, "sales", "t"), user=user)
        numbers.append(locks.newest)
    for released in numbers:
        for number in numbers:
            yield check(number)
        yield unlock(released)
    # The one in the middle gives up.
    numbers = []
    for user in ("ann", "ben", "cid"):
        yield from locks.ask(component(SHARED_WRITE, "sales", "t", "ds=1"), user=user)
        numbers.append(locks.newest)
    yield unlock(numbers[1])
    yield unlock(numbers[0])
    yield check(numbers[2])
    yield unlock(numbers[2])


def _shown(locks: Locks) -> Iterator[Step]:
    held = []
    for place in (*PLACES, *ELSEWHERE):
        yield from locks.ask(component(SHARED_READ, *place), user="dora", host="there")
        held.append(locks.newest)
    yield from locks.ask(component(SHARED_WRITE, "sales", "t"), component(SHARED_READ, "hr"))
    held.append(locks.newest)
    yield from locks.ask(component(EXCLUSIVE, "sales", "t"))
    held.append(locks.newest)
    for wanted in (
        ShowLocksRequest(),
        ShowLocksRequest("sales"),
        ShowLocksRequest("sales", "t"),
        ShowLocksRequest("sales", "t", "ds=1"),
        ShowLocksRequest(None, "t"),
        ShowLocksRequest(None, None, "ds=2"),
        ShowLocksRequest("nosuch"),
        ShowLocksRequest("sales", isExtended=True),
        ShowLocksRequest(""),
        ShowLocksRequest(None, ""),
        ShowLocksRequest(None, None, ""),
        None,
    ):
        yield call("show_locks", wanted)
    for number in held:
        yield unlock(number)


def _refused(locks: Locks) -> Iterator[Step]:
    yield call("open_txns", OpenTxnRequest(1, "ann", "somewhere"))
    yield call("lock", request())
    yield call("lock", None)
    for incomplete in (
        LockRequest(None, None, "ann", "x"),
        LockRequest([component(SHARED_READ, "sales")], None, None, "x"),
        LockRequest([component(SHARED_READ, "sales")], None, "ann", None),
        request(component(None, "sales")),
        request(component(SHARED_READ, None)),
        request(component(99, "sales")),
        request(component(0, "sales")),
    ):
        yield call("lock", incomplete)
    yield call("lock", request(component(SHARED_READ, "sales"), txn_id=txn(5)))
    yield call("lock", request(component(SHARED_READ, "sales", operationType=UNSET), txn_id=txn(5)))
    for number in (UNKNOWN_ID, 0, -1, 2**63 - 1):
        yield check(number)
        yield unlock(number)
    yield call("check_lock", None)
    yield call("unlock", None)
    yield call("check_lock", CheckLockRequest())
    yield call("unlock", UnlockRequest())
    yield call("abort_txn", AbortTxnRequest(txn(5)))
    yield call("show_locks", ShowLocksRequest())


def _overtaking(locks: Locks) -> Iterator[Step]:
    """A reader comes while a writer waits for another reader."""
    yield from locks.ask(component(SHARED_READ, "fair", "t"))
    yield from locks.ask(component(EXCLUSIVE, "fair", "t"), user="ben")
    yield from locks.ask(component(SHARED_READ, "fair", "t"), user="cid")


def _aborting_nothing(locks: Locks) -> Iterator[Step]:
    yield from locks.ask(component(EXCLUSIVE, "kept", "t"))
    yield call("abort_txns", AbortTxnsRequest([0]))
    yield check(locks.newest)


def _passing(locks: Locks) -> Iterator[Step]:
    """Transaction 7 waits for transaction 6, which asks for more."""
    yield call("open_txns", OpenTxnRequest(2, "ann", "somewhere"))
    yield from locks.ask(component(EXCLUSIVE, "passing", "t", operationType=UPDATE), txn_id=txn(6))
    yield from locks.ask(component(EXCLUSIVE, "passing", operationType=SELECT), txn_id=txn(7))
    yield from locks.ask(component(SHARED_READ, "passing", "u", operationType=SELECT), txn_id=txn(6))
    yield from locks.ask(component(EXCLUSIVE, "passing", "v", operationType=UPDATE), txn_id=txn(6))


def _deadlock(locks: Locks) -> Iterator[Step]:
    """Transactions 8 and 9 want what the other one has. From here on they hold other locks."""
    yield call("open_txns", OpenTxnRequest(2, "ann", "somewhere"))
    for number, tables in ((8, "ab"), (9, "ba")):
        yield from locks.ask(component(EXCLUSIVE, "circle", tables[0], operationType=UPDATE), txn_id=txn(number))
    for number, tables in ((8, "ab"), (9, "ba")):
        yield from locks.ask(component(EXCLUSIVE, "circle", tables[1], operationType=UPDATE), txn_id=txn(number))


def _newer() -> Iterator[Step]:
    """What 2.3 does not know, or refuses."""
    yield call("open_txns", OpenTxnRequest(1, "ann", "somewhere"))
    yield call("lock", request(component(SHARED_READ, "sales", operationType=NO_TXN), txn_id=txn(10)))
    yield call("lock", request(component(EXCLUSIVE_WRITE, "newer", "t")))
