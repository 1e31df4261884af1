"""The model of leases and the check of tenures, on histories that are known to be right or wrong."""

from typing import Any

import pytest

from tests.linearizability.checks import check_leases
from tests.linearizability.history import NEVER, Call, Failure
from tests.linearizability.numbering import NotInOrder
from tests.linearizability.search import NotLinearizable
from tests.linearizability.tenures import Impossible, check_tenures

T, P1, P2, D = ("d", "t", None), ("d", "t", "ds=1"), ("d", "t", "ds=1/hr=2"), ("d", None, None)
EXISTS, INVALID, REFUSED = (
    Failure(name, "") for name in ("LeaseAlreadyExists", "InvalidArguments", "InvalidOperation")
)


def grab(user: str, place: Any, kind: str, answer: Any, ticket: int = 0) -> tuple[Any, ...]:
    return "grab", (user, ((place, kind),), ticket), answer


def granted(user: str, place: Any, kind: str, lease_id: int, ticket: int = 0) -> tuple[Any, ...]:
    return grab(user, place, kind, ("granted", lease_id), ticket)


def waits(user: str, place: Any, kind: str, ticket: int) -> tuple[Any, ...]:
    return grab(user, place, kind, ("waits", ticket))


def one_after_the_other(*made: tuple[Any, ...]) -> list[Call]:
    return [
        Call(0, number, name, arguments, answer, 10 * number, 10 * number + 1, 10 * number + 1)
        for number, (name, arguments, answer) in enumerate(made)
    ]


def drop(user: str, lease_id: int, answer: Any = None) -> tuple[Any, ...]:
    return "drop", (user, lease_id, ()), answer


def write(lease_id: int, place: Any, answer: Any = 1) -> tuple[Any, ...]:
    return "write", (lease_id, place), answer


RIGHT = {
    "readers together": [granted("a", T, "s", 1), granted("b", P1, "s", 2)],
    "one after the other": [granted("a", T, "x", 1), drop("a", 1), granted("b", D, "x", 2)],
    "refused and granted": [granted("a", P1, "x", 1), grab("b", P2, "s", EXISTS), grab("b", D, "x", EXISTS)],
    "in order of arrival": [
        granted("a", T, "s", 1),
        waits("b", T, "x", 1),
        grab("c", T, "s", EXISTS),
        drop("a", 1),
        granted("b", T, "x", 2, ticket=1),
    ],
    "who does not wait any more is in nobody's way": [
        granted("a", T, "s", 1),
        waits("b", T, "x", 1),
        ("abandon", (1, ((T, "x"),)), None),
        granted("c", T, "s", 2),
    ],
    "others' leases stay": [granted("a", T, "x", 1), drop("b", 1, INVALID), write(1, P1)],
    "writing under it": [
        granted("a", T, "x", 1),
        write(1, P2),
        write(1, D, REFUSED),
        drop("a", 1),
        write(1, T, REFUSED),
    ],
    "reading only": [
        granted("a", T, "s", 1),
        write(1, T, REFUSED),
        ("extend", ("a", 1, ((T, "x"),)), None),
        write(1, T),
    ],
    "taken away": [granted("a", P1, "x", 1), ("force_drop", ((T,),), None), ("listed", ("d",), ())],
}

WRONG = {
    "two writers": [granted("a", T, "x", 1), granted("b", T, "x", 2)],
    "a part beside the whole": [granted("a", T, "x", 1), granted("b", P2, "s", 2)],
    "refused for nothing": [granted("a", P2, "x", 1), grab("b", ("d", "t", "ds=10"), "x", EXISTS)],
    "overtaken": [granted("a", T, "s", 1), waits("b", T, "x", 1), granted("c", T, "s", 2)],
    "an id of the past": [granted("a", T, "s", 2), granted("b", T, "s", 1)],
    "dropped by another": [granted("a", T, "x", 1), drop("b", 1)],
    "still listed": [granted("a", T, "x", 1), drop("a", 1), ("listed", ("d",), ((1, T, "x"),))],
    "a late write": [granted("a", T, "x", 1), drop("a", 1), write(1, T)],
    "a write beside what is held": [granted("a", P1, "x", 1), write(1, T)],
    "a write under a shared lease": [granted("a", T, "s", 1), write(1, T)],
    "a write is refused for nothing": [granted("a", T, "x", 1), write(1, T, REFUSED)],
    "exclusive beside a reader": [
        granted("a", T, "s", 1),
        granted("b", T, "s", 2),
        ("extend", ("a", 1, ((T, "x"),)), None),
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    check_leases(one_after_the_other(*RIGHT[name]))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_in_its_last_call(name: str) -> None:
    check_leases(one_after_the_other(*WRONG[name][:-1]))
    with pytest.raises(NotLinearizable):
        check_leases(one_after_the_other(*WRONG[name]))


def timed(name: str, arguments: tuple[Any, ...], answer: Any, first: float, last: float | None = None) -> Call:
    """Times in seconds; without a second one it is answered a millisecond later."""
    invoked = int(first * 1e9)
    returned = invoked + 1_000_000 if last is None else NEVER if last < 0 else int(last * 1e9)
    return Call(0, 0, name, arguments, answer, invoked, returned, returned)


def take(lease_id: Any, kind: str, first: float, last: float | None = None, wait: int = 0) -> Call:
    return timed("take", ("u", ((T, kind),), 1, wait), lease_id, first, last)


def late_write(lease_id: int, answer: Any, first: float, last: float | None = None) -> Call:
    return timed("write", (lease_id, T), answer, first, last)


POSSIBLE = {
    "after the end of the first": [take(1, "x", 0), take(2, "x", 1.001)],
    "waiting for the end": [take(1, "x", 0), take(2, "x", 0.2, 1.002, wait=3)],
    "both answers late": [take(1, "x", 0, 0.9), take(2, "x", 0.8, 2)],
    "after giving it up": [take(1, "x", 0), timed("drop", ("u", 1, ()), None, 0.1), take(2, "x", 0.2)],
    "the drop got no answer": [take(1, "x", 0), timed("drop", ("u", 1, ()), None, 0.1, -1), take(2, "x", 0.2)],
    "a write in time": [take(1, "x", 0), late_write(1, 1, 0.99, 1.5)],
    "a write before the next whole second": [take(1, "x", 0), late_write(1, 1, 1.9)],
    "a late write refused": [take(1, "x", 0), late_write(1, REFUSED, 1.1)],
    "a write around the end may be refused": [take(1, "x", 0), late_write(1, REFUSED, 0.9, 1.1)],
    "extended": [take(1, "x", 0), timed("extend", ("u", 1, (), 1), None, 0.5), late_write(1, 1, 1.4)],
    "refused while it is held": [take(1, "x", 0), take(EXISTS, "s", 0.5)],
    "refused for one who waits": [take(1, "s", 0), take(2, "x", 0.1, 1.5, wait=3), take(EXISTS, "s", 1.2)],
}

IMPOSSIBLE = {
    "two at once": [take(1, "x", 0), take(2, "x", 0.5)],
    "beside a reader": [take(1, "s", 0), take(2, "x", 0.5)],
    "before the end of an extension": [
        take(1, "x", 0),
        timed("extend", ("u", 1, (), 1), None, 0.9),
        take(2, "x", 1.5),
    ],
    "an id of the past": [take(2, "x", 0), take(1, "x", 1.5)],
    "a late write": [take(1, "x", 0), late_write(1, 1, 2.1)],
    "a write after the drop": [take(1, "x", 0), timed("drop", ("u", 1, ()), None, 0.1), late_write(1, 1, 0.2)],
    "a write while another has it": [
        take(1, "x", 0, 0.6),
        timed("drop", ("u", 1, ()), None, 0.61, -1),
        take(2, "x", 0.7),
        late_write(1, 1, 0.8),
    ],
    "a write under a shared lease": [take(1, "s", 0), late_write(1, 1, 0.1)],
    "a write in time refused": [take(1, "x", 0), late_write(1, REFUSED, 0.1)],
    "refused for nothing": [take(1, "x", 0), take(EXISTS, "x", 2.5)],
    "readers refuse each other": [take(1, "s", 0), take(EXISTS, "s", 0.5)],
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_possible(name: str) -> None:
    check_tenures(POSSIBLE[name])


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible(name: str) -> None:
    check_tenures(IMPOSSIBLE[name][:-1])
    with pytest.raises((Impossible, NotInOrder)):
        check_tenures(IMPOSSIBLE[name])
