"""Which connections stay: the bounds hold, one that is being served stays, the oldest silent one goes first."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Connections, Holder, Ledger

TOTAL, OF_USER, EACH = 10, 5, 4


class Fake:
    def __init__(self, number: int, address: str | None) -> None:
        self.number, self.address = number, address
        self.is_busy = self.was_cut = False
        self.user: str | None = None

    def silence(self):
        return None if self.is_busy else (False, float(self.number))

    def cut(self) -> None:
        assert not self.is_busy
        self.was_cut = True


class ComingAndGoing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        limits = Limits(connections_max=TOTAL, share_per_user=OF_USER / TOTAL, share_per_address=EACH / TOTAL)
        self.connections = Connections(Ledger(limits, "connections_max"), self.note)
        self.present: list[Fake] = []
        self.number = 0

    def note(self, limit: str, holder: Holder) -> None:
        self.refused += 1

    @rule(address=st.sampled_from(["a", "b", "c", None]))
    def arrive(self, address: str | None) -> None:
        self.number += 1
        newcomer = Fake(self.number, address)
        of_address = [one for one in self.present if one.address == address and address is not None]
        may_stay = self.connections.enter(newcomer, address)
        cut = [one for one in self.present if one.was_cut]
        assert self.refused == len(cut) + (not may_stay)
        self.refused = 0
        if not may_stay:
            assert all(one.is_busy for one in (of_address if len(of_address) == EACH else self.present))
            return
        for one in cut:
            older = [other for other in self.present if other.number < one.number and not other.is_busy]
            assert all(other.was_cut or len(of_address) == EACH for other in older)
        self.present = [one for one in self.present if not one.was_cut] + [newcomer]

    @precondition(lambda self: self.present)
    @rule(data=st.data(), user=st.sampled_from(["ann", "bob"]))
    def claim(self, data, user: str) -> None:
        claimed = data.draw(st.sampled_from(self.present))
        of_user = [one for one in self.present if one.user == user]
        bound = self.connections.claim(claimed, user)
        cut = [one for one in self.present if one.was_cut]
        assert self.refused == len(cut)
        self.refused = 0
        if bound is not None:
            assert (bound.name, len(of_user)) == ("share_per_user of connections_max", OF_USER)
            assert all(one.is_busy for one in of_user)
        elif claimed.user is None:
            claimed.user = user
        # The oldest silent one of the user's went.
        assert cut == [one for one in of_user if not one.is_busy][: len(cut)]
        self.present = [one for one in self.present if not one.was_cut]

    @precondition(lambda self: self.present)
    @rule(data=st.data(), is_busy=st.booleans())
    def work(self, data, is_busy: bool) -> None:
        data.draw(st.sampled_from(self.present)).is_busy = is_busy

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def go(self, data) -> None:
        one = self.present.pop(data.draw(st.integers(0, len(self.present) - 1)))
        self.connections.leave(one)
        self.connections.leave(one)

    @invariant()
    def the_bounds_hold(self) -> None:
        assert len(self.connections) == len(self.present) <= TOTAL
        for user in ("ann", "bob"):
            of_user = [one for one in self.present if one.user == user]
            assert len(of_user) == self.connections._ledger._users.get(user, 0) <= OF_USER
        for address in "abc":
            assert len([one for one in self.present if one.address == address]) <= EACH


TestComingAndGoing = pytest.mark.slow(ComingAndGoing.TestCase)


def test_an_address_that_has_its_part_makes_room_itself_when_there_are_too_many_of_all():
    limits = Limits(connections_max=4, share_per_user=1.0, share_per_address=0.5)
    noted: list[str] = []
    connections = Connections(Ledger(limits, "connections_max"), lambda limit, _: noted.append(limit))
    present = [Fake(number, address) for number, address in enumerate("aabb")]
    assert all(connections.enter(one, one.address) for one in present)
    assert connections.enter(Fake(4, "b"), "b")
    assert [one.was_cut for one in present] == [False, False, True, False]
    assert connections.enter(Fake(5, "c"), "c")
    assert [one.was_cut for one in present] == [True, False, True, False]
    assert noted == ["share_per_address of connections_max", "connections_max"]


def test_a_host_of_ipv6_has_one_share():
    assert share_of("2001:db8:1:2::5") == share_of("2001:db8:1:2:ffff::1") != share_of("2001:db8:1:3::5")
    assert share_of("fe80::1%eth0") == share_of("fe80::2")
    assert [share_of(address) for address in ("10.0.0.1", "no: address", "")] == ["10.0.0.1", "no: address", ""]
