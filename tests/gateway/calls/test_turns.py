"""Turns among users: none has all the places, others overtake, and a free place never stays empty."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hms_gateway.gateway.calls.turns import FIRST_PLACES, LITTLE_SECONDS, REMEMBERED_MAX, Turns
from hms_gateway.runtime.shares import Holder

PLACES, EACH, PER_ADDRESS, BUSY = 8, 5, 6, 2
USERS = st.sampled_from(["ann", "bob", "cid", "dot", "eve"])
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", None])


def of(user: str, address: str | None = None) -> Holder:
    return Holder(user, address)


def test_who_is_narrowed_gets_one_place_at_a_time_until_its_jobs_take_little() -> None:
    turns: Turns[int] = Turns(PLACES, EACH, PER_ADDRESS, 1)
    assert [turns.ask(of("ann"), number, 0.0) for number in range(3)] == [True] * 3
    turns.narrow(of("ann"), 0.0)
    assert not turns.ask(of("ann"), 3, 0.0)
    assert turns.end(of("ann"), LITTLE_SECONDS * 2, 0.0) == turns.end(of("ann"), LITTLE_SECONDS * 2, 0.0) == []
    assert turns.end(of("ann"), LITTLE_SECONDS / 2, 0.0) == [3]
    assert turns.ask(of("ann"), 4, 0.0)


class TakingTurns(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.turns: Turns[tuple[Holder, int]] = Turns(PLACES, EACH, PER_ADDRESS, BUSY)
        self.running: list[Holder] = []
        self.waiting: list[tuple[Holder, int]] = []
        self.number = 0
        self.now = 0.0

    def begin(self, job: tuple[Holder, int]) -> None:
        assert not [one for one in self.waiting if one[0] == job[0] and one[1] < job[1]], "out of order"
        self.running.append(job[0])

    @rule(user=USERS, address=ADDRESSES)
    def ask(self, user: str, address: str | None) -> None:
        self.number += 1
        holder = of(user, address)
        job = (holder, self.number)
        if self.turns.ask(holder, job, self.now):
            self.begin(job)
        else:
            self.waiting.append(job)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), seconds=st.sampled_from([0.0, 0.1, 3.0]), passed=st.sampled_from([0.0, 0.5, 20.0]))
    def end(self, data, seconds: float, passed: float) -> None:
        self.now += passed
        holder = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        for job in self.turns.end(holder, seconds, self.now):
            self.waiting.remove(job)
            self.begin(job)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def pause(self, data) -> None:
        holder = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        for job in self.turns.pause(holder, self.now):
            self.waiting.remove(job)
            self.begin(job)

    @invariant()
    def nobody_has_more_than_the_share(self) -> None:
        assert len(self.running) <= PLACES
        users, addresses = [one.user for one in self.running], [one.address for one in self.running if one.address]
        assert all(users.count(user) <= EACH for user in users)
        assert all(addresses.count(address) <= PER_ADDRESS for address in addresses)

    @invariant()
    def who_has_none_waits_only_where_there_is_none(self) -> None:
        addresses = [one.address for one in self.running if one.address]
        for holder, _ in self.waiting:
            if holder.user not in [one.user for one in self.running]:
                assert len(self.running) == PLACES or addresses.count(holder.address) == PER_ADDRESS


TestTakingTurns = pytest.mark.slow(TakingTurns.TestCase)


def run_all(turns: Turns[str], running: list[str]) -> list[str]:
    """The jobs in the order in which they begin after these, each ended at once."""
    order = []
    while running:
        begun = turns.end(of(running.pop(0)), 0.0, 0.0)
        order += begun
        running += [job[0] for job in begun]
    return order


def test_users_take_turns_however_many_jobs_one_has():
    turns: Turns[str] = Turns(1, 1, 1_000, 1)
    assert turns.ask(of("a"), "a0", 0.0)
    for job in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
        assert not turns.ask(of(job[0]), job, 0.0)
    assert run_all(turns, ["a"]) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_greedy_users_together_leave_places_for_the_others():
    turns: Turns[str] = Turns(8, 6, 1_000, 6)
    begun = sum(turns.ask(of(user), user, 0.0) for _ in range(20) for user in ("a", "b"))
    assert begun == 6
    assert turns.ask(of("c"), "c", 0.0)
    assert turns.ask(of("d"), "d", 0.0)


def test_who_keeps_a_processor_busy_gets_few_places_until_that_is_over():
    turns: Turns[str] = Turns(8, 6, 1_000, 2)
    assert turns.ask(of("a"), "long", 0.0)
    assert turns.end(of("a"), 5.0, 5.0) == []
    assert [turns.ask(of("a"), "more", 5.0) for _ in range(4)] == [True, True, False, False]
    assert turns.end(of("a"), 0.0, 60.0) == ["more", "more"]


def test_who_begins_has_few_places_until_the_jobs_turn_out_to_take_little():
    turns: Turns[int] = Turns(32, 24, 1_000, 2)
    begun = sum(turns.ask(of("a"), number, 0.0) for number in range(100))
    assert begun == FIRST_PLACES
    assert len(turns.end(of("a"), 0.001, 0.0)) == 2
    assert turns.end(of("a"), 1.0, 0.0) == []


def places_after(*seconds: float) -> int:
    """How many jobs of a user run at once after some that took so much of a processor, one after the other."""
    turns: Turns[int] = Turns(32, 24, 1_000, 1)
    for taken in seconds:
        assert turns.ask(of("a"), 0, 0.0)
        assert turns.end(of("a"), taken, 0.0) == []
    return sum(turns.ask(of("a"), number, 0.0) for number in range(100))


def test_each_long_job_halves_the_places_and_each_short_one_brings_one_back():
    short, long = LITTLE_SECONDS / 2, LITTLE_SECONDS * 2
    assert places_after(short, short, short, short) == FIRST_PLACES + 4 == 8
    assert places_after(short, short, short, short, long) == 4
    assert places_after(short, short, short, short, long, short, long) == 2
    assert places_after(long, long) == places_after(long, long, long) == 1
    assert places_after(long, long, short) == 2


def test_one_address_leaves_places_for_others_whatever_users_call_from_it():
    turns: Turns[int] = Turns(32, 24, 1_000, 2)
    assert sum(turns.ask(of(f"user {number}", "10.0.0.1"), number, 0.0) for number in range(40)) == 28
    assert turns.ask(of("user 1", "10.0.0.2"), 99, 0.0) is False  # the last places are for users who have none
    assert turns.ask(of("ann", "10.0.0.2"), 100, 0.0)


def test_jobs_from_an_address_that_has_its_share_do_not_hold_up_the_same_user_elsewhere():
    turns: Turns[str] = Turns(8, 4, 2, 2)
    for number in range(2):
        assert turns.ask(of(f"other {number}", "full"), "other", 0.0)
    assert not turns.ask(of("ann", "full"), "waits", 0.0)
    assert turns.ask(of("ann", "free"), "begins", 0.0)
    assert turns.end(of("other 0", "full"), 0.0, 0.0) == ["waits"]


@given(st.integers(1, 64))
def test_one_user_never_has_every_place(places: int):
    turns: Turns[int] = Turns(places, 1_000, 1_000, 2)
    running = sum(turns.ask(of("a"), number, 0.0) for number in range(200))
    for _ in range(100):
        running += len(turns.end(of("a"), 0.0, 0.0)) - 1
    assert running == max(1, places * 3 // 4)


def test_users_of_long_ago_are_forgotten():
    turns: Turns[str] = Turns(8, 6, 1_000, 2)
    for number in range(REMEMBERED_MAX + 1):
        assert turns.ask(of(str(number)), "job", float(number))
        turns.end(of(str(number)), 0.01, float(number))
    assert len(turns._used) < 10
