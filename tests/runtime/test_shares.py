"""Whatever is taken and given back in whatever order: no holder has more than the bounds say, and nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Ledger

USERS = st.sampled_from(["ann", "bob", "cid"])
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", None])
TOTAL, PER_USER, PER_ADDRESS = 20, 9, 12
LIMITS = Limits(share_per_user=PER_USER / TOTAL, share_per_address=PER_ADDRESS / TOTAL)


def ledger() -> Ledger:
    return Ledger(LIMITS, Bound("total", TOTAL))


class Sharing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shares = ledger()
        self.taken: list[tuple[int, str, str | None]] = []

    def held(self, position: int, holder: str) -> int:
        return sum(one[0] for one in self.taken if one[position] == holder)

    @rule(amount=st.integers(1, 25), user=USERS, address=ADDRESSES)
    def take(self, amount: int, user: str, address: str | None) -> None:
        fits = {
            "total": sum(one[0] for one in self.taken) + amount <= TOTAL,
            "share_per_user of total": self.held(1, user) + amount <= PER_USER,
            "share_per_address of total": address is None or self.held(2, address) + amount <= PER_ADDRESS,
        }
        in_the_way = self.shares.take(amount, Holder(user, address))
        if in_the_way is None:
            assert all(fits.values())
            self.taken.append((amount, user, address))
        else:
            assert not fits[in_the_way.name]

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give_back(self, data) -> None:
        amount, user, address = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        part_first = data.draw(st.integers(0, amount))
        self.shares.give_back(part_first, Holder(user, address))
        self.shares.give_back(amount - part_first, Holder(user, address))

    @invariant()
    def the_total_is_what_was_taken(self) -> None:
        assert self.shares.taken == sum(one[0] for one in self.taken) <= TOTAL

    @invariant()
    def who_has_nothing_is_forgotten(self) -> None:
        assert set(self.shares._users) == {user for amount, user, _ in self.taken if amount}
        assert set(self.shares._addresses) == {address for amount, _, address in self.taken if amount and address}


TestSharing = pytest.mark.slow(Sharing.TestCase)


@given(st.integers(0, 10_000))
def test_one_holder_never_has_everything(total: int):
    shares = Ledger(Limits(), Bound("total", total))
    for share in (shares.per_user, shares.per_address):
        assert 1 <= share.value < total or total <= 1


def test_the_share_of_a_user_and_of_an_address_are_fractions():
    limits = Limits(connections_max=40, share_per_user=0.25, share_per_address=0.5)
    named = Bound("share_per_user of connections_max", 10), Bound("share_per_address of connections_max", 20)
    shares = Ledger(limits, "connections_max")
    assert (shares.per_user, shares.per_address) == named
    assert [shares.take(amount, Holder("ann", "a")) for amount in (11, 10)] == [named[0], None]
    assert shares.take(11, Holder(None, "a")) == named[1]


def test_of_several_bounds_in_the_way_the_total_is_named_and_where_others_make_room_the_parts():
    limits = Limits(calls_in_flight_max=2, share_per_user=0.5, share_per_address=0.5)
    shares = Ledger(limits, "calls_in_flight_max")
    assert [shares.take(1, Holder(*of)) for of in (("ann", "a"), ("bob", "b"))] == [None, None]
    assert shares.take(1, Holder("ann", "b")) == shares.take(1, Holder("cid", "c")) == shares.total
    assert shares.take(1, Holder("ann", "b"), parts_first=True) == shares.per_address
    assert shares.take(1, Holder("ann", "c"), parts_first=True) == shares.per_user
    assert shares.take(1, Holder("cid", "c"), parts_first=True) == shares.total
    shares.give_back(1, Holder("bob", "b"))
    assert shares.take(1, Holder("ann", "a")) == shares.per_user
    assert shares.take(1, Holder("ann", "a"), parts_first=True) == shares.per_address


def test_what_was_not_taken_cannot_be_given_back():
    shares = ledger()
    shares.take(2, Holder("ann", None))
    with pytest.raises(AssertionError):
        shares.give_back(3, Holder("ann", None))
    with pytest.raises(AssertionError):
        shares.give_back(1, Holder("bob", None))
