"""Many threads over one store: what they were granted is checked afterwards, by other means than it was granted by."""

import random
import threading
from dataclasses import dataclass

import pytest

from hms_gateway.rpc.structs import LeaseObject
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.services.leases import LeaseService, MustWait
from hms_gateway.txn.services.settings import LeaseSettings
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sample import sample

THREADS = sample(8, of=16)
GRANTS_EACH = sample(6, of=12)

# What there is, as the smallest things that can be leased; an object is the set of those it contains.
LEAVES = frozenset({"t/ds=1/hr=1", "t/ds=1/hr=2", "t/ds=2/hr=1", "u/ds=1/hr=1", "u/ds=2/hr=1"})
NAMES = ("", "t", "u", "t/ds=1", "t/ds=2", "u/ds=1", *sorted(LEAVES))


def leaves(name):
    return {leaf for leaf in LEAVES if not name or leaf == name or leaf.startswith(f"{name}/")}


def lease_object(name, kind):
    table, _, partition = name.partition("/")
    return LeaseObject("d", table or None, partition or None, kind)


@dataclass
class Grant:
    """One lease, with the places of its begin and end in the history of all."""

    lease_id: int
    kinds: dict[str, str]
    begin: int
    end: int = 0


class History:
    def __init__(self):
        self._lock = threading.Lock()
        self._moments = 0
        self.grants = []

    def begin(self, lease_id, wanted):
        kinds = {}
        for name, kind in wanted:
            for leaf in leaves(name):
                kinds[leaf] = max(kind, kinds.get(leaf, "s"))
        with self._lock:
            self._moments += 1
            self.grants.append(Grant(lease_id, kinds, self._moments))
            return self.grants[-1]

    def end(self, grant):
        with self._lock:
            self._moments += 1
            grant.end = self._moments

    def conflicting_pairs(self):
        for place, one in enumerate(self.grants):
            for other in self.grants[place + 1 :]:
                if any("x" in (kind, other.kinds[leaf]) for leaf, kind in one.kinds.items() if leaf in other.kinds):
                    yield one, other


class Worker(threading.Thread):
    def __init__(self, number, service, released, history):
        super().__init__(name=f"worker {number}")
        self._random = random.Random(number)
        self._user = f"user{number}"
        self._service = service
        self._released = released
        self._history = history
        self.failure = None

    def run(self):
        try:
            for _ in range(GRANTS_EACH):
                self._hold_once()
        except BaseException as error:
            self.failure = error

    def _hold_once(self):
        count = self._random.randint(1, 3)
        wanted = [(self._random.choice(NAMES), self._random.choice("ssx")) for _ in range(count)]
        objects = [lease_object(name, kind) for name, kind in wanted]
        ticket = None
        while isinstance(outcome := self._service.grab(self._user, objects, 600, 300, ticket=ticket), MustWait):
            ticket = outcome.ticket
            with self._released:
                self._released.wait(0.05)
        grant = self._history.begin(outcome, wanted)
        self._history.end(grant)
        self._service.drop(self._user, outcome, [])


@pytest.mark.slow
# On servers tests/linearizability asks the same and more.
@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.whole])],
    indirect=True,
)
def test_conflicting_leases_never_overlap_and_ids_follow_the_order_of_holding(store):
    released, history = threading.Condition(), History()

    def announce():
        with released:
            released.notify_all()

    service = LeaseService(store, LeaseSettings(), announce)
    workers = [Worker(number, service, released, history) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        while worker.is_alive():
            before = len(history.grants)
            worker.join(PATIENCE_SECONDS)
            assert not worker.is_alive() or len(history.grants) > before, "all wait for ever"
        assert worker.failure is None, worker.failure
    ids = [grant.lease_id for grant in history.grants]
    assert len(set(ids)) == len(ids) == THREADS * GRANTS_EACH
    pairs = list(history.conflicting_pairs())
    assert len(pairs) > 100
    for one, other in pairs:
        first, second = (one, other) if one.lease_id < other.lease_id else (other, one)
        assert first.end < second.begin, (first, second)
    assert service.listed([]) == []
    assert store.write(lambda tx: tx.leases.waiters_around([Target("d")], None)) == []


@pytest.mark.slow
def test_of_many_who_want_one_thing_at_once_one_gets_it(store):
    service = LeaseService(store, LeaseSettings())
    barrier = threading.Barrier(THREADS)
    outcomes = []

    def grab(number):
        barrier.wait(PATIENCE_SECONDS)
        try:
            outcomes.append(service.grab(f"user{number}", [lease_object("t", "x")], 600, 0))
        except Exception as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=grab, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert sorted(map(str, outcomes)) == ["1", *["LeaseAlreadyExistsException"] * (THREADS - 1)]
