"""Who gets which lock: every cell of the compatibility matrix, and the rules around it."""

from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from hms_gateway.rpc.structs import LockType
from hms_gateway.txn.rules.locks import (
    STRENGTH,
    Lock,
    LockId,
    TxnId,
    block_of,
    blockers,
    deadlock_victim,
    find_cycle,
    has_expired,
    waiting_for,
    weakest_conflicting,
)
from hms_gateway.txn.rules.names import target
from tests.attacks.work import Work, count, is_linear

TYPES = {"SR": LockType.SHARED_READ, "SW": LockType.SHARED_WRITE, "EW": LockType.EXCL_WRITE, "X": LockType.EXCLUSIVE}

# Semantics §5.8; "4" is ok between clients of Hive 4 only.
MATRIX = """
        SR    SW    EW    X
    SR  ok    ok    ok    wait
    SW  ok    4     wait  wait
    EW  ok    wait  wait  wait
    X   wait  wait  wait  wait
"""


def lock(
    text: str, lock_id: int, *, txn: int = 0, waits: bool = False, number: int = 1, shares: bool = False, beat: int = 0
) -> Lock:
    """`lock("X sales.orders/ds=1", 1)`."""
    type_name, name = text.split(" ")
    table, _, partition = name.partition("/")
    db_name, _, table_name = table.partition(".")
    place = target(db_name, table_name, partition)
    return Lock(LockId(lock_id), number, TxnId(txn), place, TYPES[type_name], not waits, shares, beat)


def conflicts(requested: Lock, existing: Lock) -> bool:
    """Tell whether a request of one component waits for a lock that another one holds."""
    return block_of([requested], [replace(existing, is_acquired=True)]) is not None


def cells() -> list[tuple[str, str, str]]:
    header, *rows = (line.split() for line in MATRIX.strip().splitlines())
    return [(row[0], held, cell) for row in rows for held, cell in zip(header, row[1:], strict=True)]


@pytest.mark.parametrize(("requested", "held", "cell"), cells())
@pytest.mark.parametrize("place", ["d.t", "d.t/p=1", "d"])
def test_every_cell_of_the_matrix(requested: str, held: str, cell: str, place: str) -> None:
    request, existing = lock(f"{requested} {place}", 2, waits=True), lock(f"{held} {place}", 1)
    assert (block_of([request], [existing]) is None) == (cell == "ok")
    newer = lock(f"{requested} {place}", 2, waits=True, shares=True), lock(f"{held} {place}", 1, shares=True)
    assert (block_of([newer[0]], [newer[1]]) is None) == (cell != "wait")
    assert conflicts(existing, request) == conflicts(request, existing)


@pytest.mark.parametrize(("mine", "theirs"), [(False, True), (True, False)])
def test_one_old_client_is_enough_to_exclude_writers(mine: bool, theirs: bool) -> None:
    request, held = lock("SW d.t", 2, waits=True, shares=mine), lock("SW d.t", 1, shares=theirs)
    assert block_of([request], [held]) is not None


@pytest.mark.parametrize(
    ("held", "requested", "result"),
    [
        ("SR db1.t", "X db1.t", "wait"),
        ("X db1.t/p=1", "SR db1.t", "wait"),
        ("X db1.t/p=1", "SR db1.t/p=2", "ok"),
        ("X db1.t/p=1", "SR db1.t/p=1", "wait"),
        ("X db1.t", "SR db1", "ok"),
        ("X db1.t/p=1", "SR db1", "ok"),
        ("SR db1", "X db1.t", "ok"),
        ("SR db1", "X db1.t/p=1", "ok"),
        ("SW db1", "X db1.t", "wait"),
        ("SR db1", "X db1", "wait"),
        ("X db1", "SR db1.t", "wait"),
        ("X db1", "SR db1.t/p=1", "wait"),
        ("X db1", "X db2", "ok"),
        ("X db1.t", "X db1.u", "ok"),
        ("SR db1.t", "SW db1.t", "ok"),
        ("EW db1", "SW db1.t/p=1", "wait"),
        ("X DB1.T/P=a", "X db1.t/p=a", "wait"),
        ("X db1.t/p=A", "X db1.t/p=a", "ok"),
        ("X db1.t/p=1", "SR db1.t/p=1/q=2", "wait"),
        ("SR db1.t/p=1/q=2", "X db1.t/p=1", "wait"),
        ("X db1.t/p=1", "X db1.t/p=1/q=2/r=3", "wait"),
        ("SW db1.t/p=1/q=2/r=3", "X db1.t/p=1", "wait"),
        ("X db1.t/p=1/q=2", "X db1.t/p=1", "wait"),
        ("SR db1.t/p=1", "X db1.t/p=1/q=2", "ok"),
        ("X db1.t/p=1/q=2", "SR db1.t/p=1", "ok"),
        ("EW db1.t/p=1", "EW db1.t/p=1/q=2", "ok"),
        ("SW db1.t/p=1", "SW db1.t/p=1/q=2", "ok"),
        ("X db1.t/p=1", "X db1.t/p=10", "ok"),
        ("X db1.t/p=1", "X db1.t/p=10/q=2", "ok"),
        ("X db1.t/p=1", "X db1.t/p=1.5", "ok"),
        ("X db1.t/p=1", "X db1.u/p=1/q=2", "ok"),
        ("X db1.t/p=1", "X db2.t/p=1/q=2", "ok"),
    ],
)
def test_objects_that_overlap(held: str, requested: str, result: str) -> None:
    assert (block_of([lock(requested, 2, waits=True)], [lock(held, 1)]) is None) == (result == "ok")
    # Found in an index instead of compared with each.
    request = [lock(requested, 2, waits=True), lock("SR far.away", 2, waits=True, number=2)]
    assert (block_of(request, [lock(held, 1)]) is None) == (result == "ok")
    assert waiting_for([lock(held, 1)], [lock(held, 1), *request]) == [[] if result == "ok" else [2]]


def test_a_transaction_does_not_wait_for_itself() -> None:
    held = lock("SW d.t", 1, txn=5)
    assert block_of([lock("X d.t", 2, txn=5, waits=True)], [held]) is None
    assert block_of([lock("X d.t", 2, txn=6, waits=True)], [held]) is not None
    assert block_of([lock("X d.t", 2, waits=True)], [lock("SR d.t", 1)]) is not None


def test_components_of_a_request_do_not_wait_for_each_other() -> None:
    request = [lock("X d.t", 2, waits=True), lock("X d.t", 2, waits=True, number=2)]
    assert block_of(request, request) is None


def test_nobody_overtakes_a_waiting_request() -> None:
    reading, changing = lock("SR d.t", 1), lock("X d.t", 2, waits=True)
    assert block_of([lock("SR d.t", 3, waits=True)], [reading, changing]) is not None
    assert block_of([changing], [lock("SR d.t", 3, waits=True)]) is None


# Locks as they came, `?` for those that wait. Transaction 1 asks for the last one: who is in its way?
QUEUES = {
    "one that waits for what I hold": ("t1 X d.t, t2 X d?, t1 X d.u?", ""),
    "also if I make my lock stronger": ("t1 SR d.t, t2 X d.t?, t1 X d.t?", ""),
    "also if it has no transaction": ("t1 X d.t, -- X d?, t1 X d.u?", ""),
    "also if it came before what I hold": ("-- SR d.t, t2 X d.t?, t1 SW d.t, t1 X d.t?", "1"),
    "also if I waited before for what I hold now": ("t2 SR d?, t1 X d, t1 SR d.t?", ""),
    "one that waits for me elsewhere": ("t1 X d.t, t2 X d.t + X e.t?, t1 X e.t?", ""),
    "one that waits for me, and one that holds": ("t1 X d.t, -- SR d.u, t2 X d?, t1 X d.u?", "2"),
    "one that waits for somebody else": ("t1 X d.t, -- SR d.u, t2 X d.u?, t1 SR d.u?", "3"),
    "one that waits for nothing any more": ("t1 X d.t, t2 X d.u?, t1 X d.u?", "2"),
    "one that goes together with what I hold": ("t1 SR d.t, t2 SR d?, t2 X d.u?, t1 SR d.u?", "3"),
    "another request of who waits for me": ("t1 X d.t, t2 X d.t?, t2 X d.u?, t1 X d.u?", "3"),
    "one that waits for another who waits for me": ("t1 X d.t, t2 X d?, -- SR d.u?, t1 X d.u?", "3"),
    "one that waits behind what I wait for": ("-- X d.t, t1 X d.t?, t2 X d?, t1 X d.u?", "3"),
    "one that waits for me, but I hold nothing there": ("t1 X d.t, t2 X e?, t1 X e.u?", "2"),
    "nobody owns what has no transaction": ("-- X d.t, t2 X d?, -- X d.u?", "2"),
}


def queue(text: str) -> list[list[Lock]]:
    requests = []
    for lock_id, words in enumerate(text.split(", "), 1):
        owner, _, wanted = words.rstrip("?").partition(" ")
        txn = 0 if owner == "--" else int(owner[1:])
        parts = enumerate(wanted.split(" + "), 1)
        waits = words.endswith("?")
        requests.append([lock(part, lock_id, txn=txn, waits=waits, number=number) for number, part in parts])
    return requests


@pytest.mark.parametrize("name", QUEUES)
def test_a_request_passes_who_waits_for_what_its_transaction_holds(name: str) -> None:
    text, expected = QUEUES[name]
    *others, request = queue(text)
    everyone = [one for other in others for one in other]
    found = [one.lock_id for one in blockers(request, everyone)]
    assert " ".join(map(str, found)) == expected
    block = block_of(request, everyone)
    assert (block.blocker.lock_id if block else None) == min(found, default=None)
    stopped = waiting_for(everyone, [*everyone, *request])
    assert [one.lock_id for one, ids in zip(everyone, stopped, strict=True) if request[0].lock_id in ids] == found


def test_who_is_passed_waits_for_whoever_passed() -> None:
    (held,), (waiting,), (passing,) = queue("t1 X d.t, t2 X d?, t1 X d.u")
    assert {one.lock_id for one in blockers([waiting], [held, passing])} == {1, 3}


def test_an_acquired_lock_counts_however_late_it_came() -> None:
    """Hive 2.3 grants the writer beside a reader that came later (semantics §5.8)."""
    assert block_of([lock("X d.t", 2, waits=True)], [lock("SR d.t", 3)]) is not None


def test_all_or_nothing_and_the_first_blocker_of_the_first_blocked_component() -> None:
    request = [lock("X d.a", 9, waits=True), lock("X d.b", 9, waits=True, number=2), lock("X d.c", 9, number=3)]
    others = [lock("SR d.c", 1), lock("SR d.b", 3), lock("SR d.b", 2), lock("SR d.z", 4)]
    block = block_of(request, others)
    assert block is not None
    assert (block.component.number, block.blocker.lock_id) == (2, 2)
    assert {one.lock_id for one in blockers(request, others)} == {1, 2, 3}


def test_many_components_against_many_locks_find_the_same_as_one_by_one() -> None:
    places = ["d", "d.t", "d.u", "d.t/p=1", "d.t/p=2", "d.u/p=1", "d.t/p=1/q=1", "d.u/p=1/q=2", "e", "e.t"]
    request = [lock(f"X {place}", 100, waits=True, number=n) for n, place in enumerate(places[3:7], 1)]
    for number, place in enumerate(places, 1):
        other = lock(f"X {place}", number)
        singly = [part.number for part in request if conflicts(part, other)]
        block = block_of(request, [other])
        assert (block.component.number if block else None) == min(singly, default=None)


@pytest.mark.parametrize("type", list(LockType))
def test_what_is_not_loaded_cannot_be_in_the_way(type: LockType) -> None:
    least = weakest_conflicting(type)
    names = {value: key for key, value in TYPES.items()}
    for other in LockType:
        if STRENGTH[other] < least:
            assert not conflicts(lock(f"{names[type]} d.t", 1), lock(f"{names[other]} d.t", 2))


@pytest.mark.slow
def test_what_waits_for_each_of_many_locks_is_what_it_stops() -> None:
    random = Random(4)
    places = ["d", "d.t", "d.t/p=1", "d.t/p=2", "d.t/p=1/q=1", "d.t/p=1/q=2", "d.u", "e", "e.t"]

    def any_lock(number: int) -> Lock:
        text, txn = f"{random.choice(list(TYPES))} {random.choice(places)}", random.choice([0, 0, 1, 2])
        return lock(text, number, txn=txn, shares=random.random() < 0.5, waits=random.random() < 0.5)

    locks = [any_lock(number) for number in range(1, 400)]
    second = [replace(one, number=2, target=target("e", "t")) for one in locks if random.random() < 0.2]
    locks += second
    waiting = {one.lock_id: [part for part in locks if part.lock_id == one.lock_id] for one in locks}
    stopped_by = {
        lock_id: {(one.lock_id, one.number) for one in blockers(request, locks)}
        for lock_id, request in sorted(waiting.items())
        if not request[0].is_acquired
    }
    expected = [[one for one, found in stopped_by.items() if (other.lock_id, other.number) in found] for other in locks]
    assert [list(ids) for ids in waiting_for(locks, locks)] == expected
    assert waiting_for(locks[:1], locks[:1]) == [[]]


def assert_linear(prepared: Callable[[int], Callable[[], None]]) -> None:
    """Twice as many locks are at most twice the work."""
    work = Work()
    with work.watching():
        assert is_linear([count(work, prepared(size)) for size in (200, 400, 800)])


def test_many_that_wait_for_many_are_not_counted_one_by_one() -> None:
    def prepared(size: int) -> Callable[[], None]:
        held = [lock("SR d.t", number) for number in range(size)]
        locks = [*held, *(lock("X d.t", number, waits=True) for number in range(size, 2 * size))]

        def ask() -> None:
            assert {len(ids) for ids in waiting_for(held, locks)} == {size}

        return ask

    assert_linear(prepared)


@pytest.mark.slow
def test_many_below_a_prefix_are_not_compared_one_by_one() -> None:
    def prepared(size: int) -> Callable[[], None]:
        last = 2 * size
        held = [lock(f"SR d.t/p=1/q={number}", number) for number in range(size)]
        others = [lock(f"SR d.t/p={number}", number, waits=True) for number in range(size, last)]
        locks = [*held, *others, lock("X d.t/p=1", last, waits=True)]
        below = [lock(f"SR d.t/p=1/q={number}", last + 1, waits=True, number=number) for number in range(2, size)]
        request = [lock("X d.t/p=1", last + 1, waits=True), *below]

        def ask() -> None:
            found = waiting_for(held, locks)
            assert found == [[last]] * size
            assert block_of(request, held) is not None

        return ask

    assert_linear(prepared)


@pytest.mark.slow
def test_many_of_one_transaction_are_passed_by_it_at_once() -> None:
    def prepared(size: int) -> Callable[[], None]:
        last = 2 * size
        held = [lock(f"X d.t/p={number}", number, txn=1) for number in range(size)]
        waiting = [lock(f"X d.t/p={number - size}", number, txn=number, waits=True) for number in range(size, last)]
        request = [lock("X d.t", last, txn=1, waits=True)]

        def ask() -> None:
            assert block_of(request, [*held, *waiting]) is None
            assert not any(last in ids for ids in waiting_for(waiting, [*held, *waiting, *request]))

        return ask

    assert_linear(prepared)


def test_a_circle_and_its_youngest_transaction() -> None:
    a, b, c, free = ("txnid", 1), ("txnid", 2), ("lockid", 9), ("txnid", 4)
    edges = {a: [free, b], b: [c], c: [a]}
    assert find_cycle(a, edges) == [a, b, c]
    assert deadlock_victim([a, b, c]) == 2
    assert find_cycle(a, {a: [b], b: [c]}) is None
    assert find_cycle(free, edges) is None
    assert find_cycle(a, {a: [b], b: [c], c: [b]}) is None


def test_exactly_the_time_out_is_not_too_late() -> None:
    held = lock("X d.t", 1, beat=1_000)
    assert not has_expired(held, 301_000, 300_000)
    assert has_expired(held, 301_001, 300_000)


def test_a_lock_as_exceptions_show_it() -> None:
    assert str(lock("X d.t", 3, txn=7)) == (
        "lockid:3 intLockId:1 txnid:7 db:d table:t partition:null state:ACQUIRED type:EXCLUSIVE"
    )
