"""Turns among addresses and users, and who loses a place when there are too many."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hms_gateway.gateway.auth.passwords import Check, PasswordQueue
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Ledger

TOTAL, OF_USER, EACH = 12, 6, 5


def queue() -> PasswordQueue[int]:
    limits = Limits(share_per_user=OF_USER / TOTAL, share_per_address=EACH / TOTAL)
    return PasswordQueue(Ledger(limits, Bound("total", TOTAL)))


def drained(it: PasswordQueue[int]) -> list[int]:
    taken = []
    while (check := it.next(suspects_too=True)) is not None:
        taken.append(check.job)
    return taken


class Queueing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = queue()
        self.waiting: list[Check[int]] = []
        self.number = 0

    @rule(
        address=st.sampled_from(["a", "b", "c", "d", None]),
        user=st.sampled_from(["ann", "bob", "cid", "name"]),
        suspect=st.booleans(),
        right=st.booleans(),
    )
    def add(self, address: str | None, user: str, suspect: bool, right: bool) -> None:
        self.number += 1
        check = Check(self.number, address, user, "" if user == "name" else user, suspect, right)
        self.waiting.append(check)
        for dropped, bound in self.queue.add(check):
            assert not dropped.was_right
            of_address = [one for one in self.waiting if one.address == dropped.address and not one.was_right]
            if bound.name.startswith("share_per_user"):
                of_user = [one.address for one in self.counted() if one.user == dropped.user]
                assert len(of_user) > OF_USER
                # No address has more checks of that name.
                assert max(map(of_user.count, of_user)) == of_user.count(dropped.address)
            else:
                assert (
                    len(of_address) > EACH
                    if bound.name.startswith("share_per_address")
                    else len(self.counted()) > TOTAL
                )
                assert bound.name == "total" or dropped.address is not None
                # No lane of the address is longer.
                lanes = [one.lane for one in of_address]
                assert max(map(lanes.count, lanes)) == lanes.count(dropped.lane)
            # It was the last of its lane.
            assert [one for one in of_address if one.lane == dropped.lane][-1] is dropped
            self.waiting.remove(dropped)

    @rule(suspects_too=st.booleans())
    def take(self, suspects_too: bool) -> None:
        check = self.queue.next(suspects_too=suspects_too)
        if check is None:
            assert not suspects_too or not self.waiting
            assert not any(one.was_right for one in self.waiting)
            return
        assert check.was_right or not any(one.was_right for one in self.waiting)
        lane = [
            one
            for one in self.waiting
            if (one.address, one.lane, one.was_right) == (check.address, check.lane, check.was_right)
        ]
        assert check.was_right or lane[0] is check
        self.waiting.remove(check)

    def counted(self) -> list[Check[int]]:
        return [one for one in self.waiting if not one.was_right]

    @invariant()
    def the_bounds_hold(self) -> None:
        counted = self.counted()
        assert len(counted) == len(self.queue._waiting) <= TOTAL
        assert all(sum(one.address == address for one in counted) <= EACH for address in "abcd")
        assert all(sum(one.user == user for one in counted) <= OF_USER for user in ("ann", "bob", "cid", "name"))


TestQueueing = pytest.mark.slow(Queueing.TestCase)


def test_addresses_take_turns_and_in_each_of_them_the_users():
    it = queue()
    for number, (address, lane) in enumerate([("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "x"), ("c", "z")]):
        assert not list(it.add(Check(number, address, lane, lane)))
    assert drained(it) == [0, 3, 5, 2, 4, 1]


def test_among_equals_the_check_of_the_address_that_came_first_is_dropped():
    """Not of the one whose turn it is: serving bob's check put the first address at the end of the turns."""
    it = PasswordQueue(Ledger(Limits(share_per_user=0.2, share_per_address=1.0), Bound("total", 10)))
    for number, (address, user) in enumerate([("1", "bob"), ("1", "ann"), ("2", "ann")]):
        assert not list(it.add(Check(number, address, user, user)))
    assert it.next(suspects_too=True).job == 0
    assert [dropped.job for dropped, _ in it.add(Check(3, "3", "ann", "ann"))] == [1]


def test_of_several_bounds_the_one_of_the_address_is_the_first_to_hold():
    it = queue()
    for number, (address, user) in enumerate([*[("a", "ann")] * EACH, ("b", "ann"), *[("c", "cid")] * EACH]):
        assert not list(it.add(Check(number, address, user, user)))
    assert not list(it.add(Check(11, None, "eve", "eve")))
    last = Check(12, "a", "ann", "ann")
    assert [(dropped, bound.name) for dropped, bound in it.add(last)] == [(last, "share_per_address of total")]
    other = Check(13, "d", "ann", "ann")
    assert [bound.name for _, bound in it.add(other)] == ["share_per_user of total"]


def test_suspects_leave_a_thread_to_others():
    it = queue()
    list(it.add(Check(1, "a", "name", "", is_suspect=True)))
    list(it.add(Check(2, "a", "ann", "ann")))
    assert it.next(suspects_too=False) == Check(2, "a", "ann", "ann")
    assert it.next(suspects_too=False) is None
    assert it.next(suspects_too=True) == Check(1, "a", "name", "", is_suspect=True)
