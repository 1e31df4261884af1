"""The search for an order, on histories of a register that are known to be right or wrong."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.linearizability.history import NEVER, Call
from tests.linearizability.search import LATE_NS, GivenUp, NotLinearizable, Undecided, linearization


class Register:
    """Holds one number: `write(n)`, `read() -> n`, `add(n) -> the number before`."""

    def begin(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> Iterable[int]:
        if call.name == "write":
            return [call.arguments[0]]
        if call.is_answered and call.answer != state:
            return []
        return [state + call.arguments[0] if call.name == "add" else state]

    def commute(self, one: Call, other: Call) -> bool:
        return one.name == other.name == "read"

    def stays_idle(self, call: Call) -> bool:
        return call.name == "read"


class Pair(Register):
    """A register, and another one that `look() -> n` reads and no call writes."""

    def step(self, state: int, call: Call) -> Iterable[int]:
        if call.name == "look":
            return [state] if call.answer == 0 else []
        return super().step(state, call)

    def commute(self, one: Call, other: Call) -> bool:
        return "look" in (one.name, other.name) or super().commute(one, other)

    def stays_idle(self, call: Call) -> bool:
        return call.name == "look" or super().stays_idle(call)


class Hasty(Register):
    """Takes everything for unrelated."""

    def commute(self, one: Call, other: Call) -> bool:
        return True


def call(name: str, argument: int | None, answer: int | None, invoked: int, returned: int = NEVER) -> Call:
    return Call(0, 0, name, () if argument is None else (argument,), answer, invoked, returned, returned)


def order_of(*calls: Call, model: Register | None = None) -> list[int]:
    """The places of the calls in the order that is found."""
    return [calls.index(each) for each in linearization(calls, model or Register())]


def test_calls_that_do_not_overlap_keep_their_order() -> None:
    assert order_of(call("write", 1, None, 0, 1), call("read", None, 1, 2, 3)) == [0, 1]
    with pytest.raises(NotLinearizable, match="1 of 2 calls"):
        order_of(call("write", 1, None, 0, 1), call("read", None, 0, 2, 3))


def test_a_call_may_have_happened_at_any_moment_until_its_answer() -> None:
    assert order_of(call("write", 1, None, 0, 5), call("read", None, 0, 1, 2), call("read", None, 1, 3, 4)) == [1, 0, 2]


def test_what_was_seen_is_not_unseen() -> None:
    with pytest.raises(NotLinearizable):
        order_of(call("write", 1, None, 0, 9), call("read", None, 1, 1, 2), call("read", None, 0, 3, 4))


def test_two_cannot_take_the_same() -> None:
    with pytest.raises(NotLinearizable):
        order_of(call("add", 1, 0, 0, 9), call("add", 1, 0, 1, 8))


def test_two_writers_whose_readers_disagree() -> None:
    """The order of two writes that overlap is free, but the same for all."""
    writes = call("write", 1, None, 0, 9), call("write", 2, None, 0, 9)
    assert order_of(*writes, call("read", None, 2, 10, 11), call("read", None, 2, 12, 13)) in ([0, 1, 2, 3],)
    with pytest.raises(NotLinearizable):
        order_of(*writes, call("read", None, 2, 10, 11), call("read", None, 1, 12, 13))


def test_a_call_without_an_answer_may_have_happened_late_or_not_at_all() -> None:
    lost = call("write", 7, None, 0)
    assert order_of(lost, call("read", None, 0, 1, 2)) == [1]
    assert order_of(lost, call("read", None, 0, 1, 2), call("read", None, 7, 3, 4)) == [1, 0, 2]
    with pytest.raises(NotLinearizable):
        order_of(lost, call("read", None, 7, 1, 2), call("read", None, 0, 3, 4))


def test_a_call_without_an_answer_comes_before_what_was_made_after_its_end() -> None:
    """No shortcut takes the look first: after it the write would be too late for the read."""
    lost = replace(call("write", 7, None, 0), ended=1)
    late = LATE_NS + 10
    calls = [lost, call("look", None, 0, late, late + 1), call("read", None, 7, 2, late + 5)]
    assert set(linearization(calls, Pair(), is_thorough=False)) == set(calls)
    seen = [*calls[:2], call("read", None, 0, late + 2, late + 3), call("read", None, 7, late + 2, late + 9)]
    with pytest.raises(NotLinearizable):
        linearization(seen, Pair(), is_thorough=False)


def test_what_is_known_to_come_first_does() -> None:
    calls = [call("write", 1, None, 0, 9), call("write", 2, None, 0, 9), call("read", None, 1, 10, 11)]
    assert linearization(calls, Register())[-2:] == [calls[0], calls[2]]
    with pytest.raises(NotLinearizable):
        linearization(calls, Register(), [(calls[0], calls[1])])


def test_a_wrong_shortcut_changes_no_verdict() -> None:
    """Here the write has to come before the read that was answered first."""
    assert order_of(call("write", 1, None, 0, 9), call("read", None, 1, 1, 2), model=Hasty()) == [0, 1]


def test_a_call_that_would_change_nothing_now_may_change_something_later() -> None:
    calls = call("write", 0, None, 0, 9), call("write", 1, None, 1, 2), call("read", None, 1, 3, 4)
    assert order_of(*calls, call("read", None, 0, 5, 6)) == [1, 2, 0, 3]


def test_a_wrong_step_early_on_is_taken_back() -> None:
    calls = [call("write", number, None, 0, 20 + number) for number in range(1, 9)]
    reads = [call("read", None, number, 100 + 2 * place, 101 + 2 * place) for place, number in enumerate([3])]
    found = order_of(*calls, *reads)
    assert found[-2:] == [2, 8]


@pytest.mark.slow
def test_a_search_that_went_astray_begins_in_another_order() -> None:
    """The write that was answered first is the last; the others have 16! orders."""
    calls = [call("write", number, None, 0, 20 + number) for number in range(1, 18)]
    assert order_of(*calls, call("read", None, 1, 100, 101))[-2:] == [0, 17]


def test_a_history_is_undecided_where_no_search_comes_to_an_end() -> None:
    """One that the shortcuts refute is not, though the search without them gives up."""
    writes = [call("write", number, None, 0, 20 + number) for number in range(1, 18)]
    with pytest.raises(Undecided):
        linearization([*writes, call("read", None, 1, 100, 101)], Register(), states_max=[100])
    with pytest.raises(GivenUp) as given_up:
        linearization([*writes, call("read", None, 99, 100, 101)], Hasty(), states_max=[100])
    assert not isinstance(given_up.value, Undecided)
