"""Leases on every database; the scenarios of tests/txn run here once more."""

import re

import pytest

from hms_gateway.metastore.ports.store import Event
from hms_gateway.rpc.structs import InvalidOperationException, LeaseObject
from hms_gateway.runtime.presented import presenting
from hms_gateway.txn.rules.leases import Claim, LeasedObject, LeaseId, LeaseType, Waiter, containers
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.services.leases import LeaseService
from hms_gateway.txn.services.settings import LeaseSettings
from tests.txn.lease_memory import MemoryLeases
from tests.txn.lease_scenario import Scenario
from tests.txn.services.test_leases import SCENARIOS

S, X = LeaseType.SHARED, LeaseType.EXCLUSIVE
HOUR = 3_600_000

TARGETS = [
    Target("d"),
    Target("d", "t"),
    Target("d", "t", "ds=1"),
    Target("d", "t", "ds=1/hr=2"),
    Target("d", "t", "ds=1/hr=2/mi=3"),
    Target("d", "t", "ds=10"),
    Target("d", "t", "ds=1.5"),
    Target("d", "t", "ds=1%2F2"),
    Target("d", "t2", "ds=1"),
    Target("d", "u"),
    Target("e"),
    Target("e", "t", "ds=1"),
]


def everywhere(store, now_ms):
    """A lease on each target, its id the place in the list from 1."""
    for number, target in enumerate(TARGETS, 1):
        held = [LeasedObject(LeaseId(number), "ann", Claim(target, X), now_ms, now_ms + HOUR, HOUR)]
        store.write(lambda tx, held=held: tx.leases.insert_lease(held))


@pytest.mark.parametrize("text", SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(text, store, clock, database_url):
    if not database_url.startswith("sqlite") and re.search(r"after|-> \d", text):
        pytest.skip("the clock of a database cannot be moved")
    Scenario(LeaseService(store, LeaseSettings(duration_seconds_max=1_000, objects_max=5)), clock).run(text)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_nothing_around_an_object_is_missed(store, clock, target):
    now_ms = store.write(lambda tx: tx.leases.now_ms())
    everywhere(store, now_ms)
    related = {
        number for number, other in enumerate(TARGETS, 1) if other in containers(target) or target in containers(other)
    }
    found = store.write(lambda tx: tx.leases.leases_around([target]))
    assert related <= {one.lease_id for one in found}
    both = store.write(lambda tx: tx.leases.leases_around([target, Target("x", "y", "z=1")]))
    assert related <= {one.lease_id for one in both}
    inside = store.write(lambda tx: tx.leases.leases_inside([target]))
    assert [one.lease_id for one in inside] == [
        number for number, other in enumerate(TARGETS, 1) if target in containers(other)
    ]


def test_what_surely_does_not_matter_is_not_loaded(store):
    everywhere(store, store.write(lambda tx: tx.leases.now_ms()))
    found = store.write(lambda tx: tx.leases.leases_around([Target("d", "t", "ds=1/hr=2")]))
    assert {str(one.claim.target) for one in found} == {"d", "d.t", "d.t/ds=1", "d.t/ds=1/hr=2", "d.t/ds=1/hr=2/mi=3"}


def test_a_lease_comes_back_as_it_was_stored(store):
    claims = [Claim(target, S) for target in TARGETS]
    held = [LeasedObject(LeaseId(7), "ännchen", claim, 5, 2**53, 10) for claim in claims]
    store.write(lambda tx: tx.leases.insert_lease(held))
    assert store.write(lambda tx: tx.leases.lease(7)) == held
    assert store.write(lambda tx: tx.leases.lease(8)) == []


def test_some_objects_of_a_lease_change_or_go(store):
    held = [LeasedObject(LeaseId(7), "ann", Claim(target, S), 5, 100, 10) for target in TARGETS[:4]]
    store.write(lambda tx: tx.leases.insert_lease(held))
    changed = [LeasedObject(LeaseId(7), "ann", Claim(target, X), 5, 200, 10) for target in TARGETS[1:3]]
    store.write(lambda tx: tx.leases.update_lease(changed))
    assert store.write(lambda tx: tx.leases.lease(7)) == [held[0], *changed, held[3]]
    assert store.write(lambda tx: tx.leases.delete_lease(7, [*TARGETS[2:4], TARGETS[9]])) == 2
    assert store.write(lambda tx: tx.leases.lease(7)) == [held[0], changed[0]]
    assert store.write(lambda tx: tx.leases.delete_lease(7)) == 2


def test_expired_leases_and_waiters_are_forgotten(store):
    now_ms = store.write(lambda tx: tx.leases.now_ms())
    for number, end_ms in enumerate((now_ms - 1, now_ms - HOUR, now_ms + HOUR), 1):
        held = [LeasedObject(LeaseId(number), "ann", Claim(TARGETS[1], S), 5, end_ms, 10)]
        store.write(lambda tx, held=held: tx.leases.insert_lease(held))
        store.write(lambda tx, n=number, end=end_ms: tx.leases.put_waiter(n, [Claim(TARGETS[1], X)], end))
    store.write(lambda tx: tx.leases.delete_expired())
    assert [one.lease_id for one in store.write(lambda tx: tx.leases.leases_inside(None))] == [3]
    assert [one.ticket for one in store.write(lambda tx: tx.leases.waiters_around(TARGETS[:1], None))] == [3]


def test_waiters_keep_their_place_and_count_only_for_later_ones(store):
    claims = [Claim(TARGETS[1], S), Claim(TARGETS[2], X)]
    first, second = (store.write(lambda tx: tx.leases.next_ticket()) for _ in range(2))
    assert first < second
    store.write(lambda tx: tx.leases.put_waiter(first, claims, 10))
    store.write(lambda tx: tx.leases.put_waiter(first, claims, 20))
    found = store.write(lambda tx: tx.leases.waiters_around(TARGETS[2:3], second))
    assert sorted(found, key=lambda one: claims.index(one.claim)) == [Waiter(first, claim, 20) for claim in claims]
    assert store.write(lambda tx: tx.leases.waiters_around(TARGETS[2:3], first)) == []
    store.write(lambda tx: tx.leases.delete_waiter(first))
    assert store.write(lambda tx: tx.leases.waiters_around(TARGETS[2:3], None)) == []


def test_the_memory_store_of_other_tests_behaves_alike(store, clock):
    memory = MemoryLeases(clock)
    held = [
        LeasedObject(LeaseId(number), "ann", Claim(target, S), 5, 2**53, 10) for number, target in enumerate(TARGETS)
    ]

    def work(leases):
        leases.insert_lease(held)
        gone = leases.delete_lease(3), leases.delete_lease(3), leases.delete_lease(4, [TARGETS[4], TARGETS[5]])
        leases.update_lease([LeasedObject(LeaseId(5), "ann", Claim(TARGETS[5], X), 5, 9, 10)])
        inside = [one.lease_id for one in leases.leases_inside([TARGETS[1]])]
        return gone, inside, leases.lease(5), leases.next_lease_id(), leases.next_lease_id(), leases.next_ticket()

    assert store.write(lambda tx: work(tx.leases)) == work(memory)


class TestFencing:
    """A change under a lease, in one unit of work with the check."""

    @pytest.fixture
    def service(self, store):
        return LeaseService(store, LeaseSettings())

    @staticmethod
    def change(store, *events):
        return store.write(lambda tx: [tx.append_event(event) for event in events][-1])

    EVENT = Event("ALTER_TABLE", "d", "t", "{}")

    def test_without_a_lease_nothing_is_checked(self, store, service):
        service.grab("ann", [LeaseObject("d", "t", None, "x")], 60, 0)
        assert self.change(store, self.EVENT) == 1

    def test_a_live_exclusive_lease_lets_the_change_through(self, store, service):
        lease_id = service.grab("ann", [LeaseObject("d", "t", None, "x")], 60, 0)
        with presenting(lease_id):
            assert self.change(store, self.EVENT) == 1
        assert store.version() == 1

    @pytest.mark.parametrize(
        ("event", "text"),
        [
            (Event("ALTER_TABLE", "d", "u", "{}"), "Refused: lease 1 does not hold d.u"),
            (Event("DROP_DATABASE", "d", None, "{}"), "Refused: lease 1 does not hold d"),
            (Event("ALTER_TABLE", "d", "t", "{}", ("d", "old")), "Refused: lease 1 does not hold d.old"),
        ],
    )
    def test_what_the_lease_does_not_hold_is_not_changed(self, store, service, event, text):
        lease_id = service.grab("ann", [LeaseObject("d", "t", None, "x")], 60, 0)
        with presenting(lease_id), pytest.raises(InvalidOperationException) as raised:
            self.change(store, self.EVENT, event)
        assert raised.value.message == text
        assert store.version() == 0
        assert store.read(lambda snapshot: snapshot.events_after(0)) == []

    def test_nothing_at_all_happens_under_a_lease_that_has_ended(self, store, service):
        lease_id = service.grab("ann", [LeaseObject("d", "t", None, "x")], 60, 0)
        service.drop("ann", lease_id, [])
        ran = []
        with presenting(lease_id), pytest.raises(InvalidOperationException, match="lease 1 is not held any more"):
            store.write(ran.append)
        assert not ran

    def test_the_lease_of_another_is_no_excuse(self, store, service):
        first = service.grab("ann", [LeaseObject("d", "t", None, "x")], 60, 0)
        service.force_drop("admin", [])
        service.grab("bob", [LeaseObject("d", "t", None, "x")], 60, 0)
        with presenting(first), pytest.raises(InvalidOperationException):
            self.change(store, self.EVENT)
