"""A gateway whose clock is ten minutes behind that of another one on the same database: nothing ends too early, nothing
is lost, and what they change is in one order.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from hms_gateway.metastore.ports.store import EventId
from hms_gateway.rpc.structs import LockState, LockType
from hms_gateway.runtime.call_keys import AlreadyConcluded
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.txn.ports.txn import Client
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.services.compaction import Expiry
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from tests.faults.catalog_works import alters, creates, makes_database, together

pytestmark = pytest.mark.slow

BEHIND_SECONDS = 600
# Shorter than the clocks are apart, far longer than the test takes.
SETTINGS = TxnSettings(timeout_ms=BEHIND_SECONDS * 500)
WHO = Client("who", "host", "agent")
CHANGES = 10


class SlowClock(SystemClock):
    def seconds(self) -> int:
        return super().seconds() - BEHIND_SECONDS

    def milliseconds(self) -> int:
        return super().milliseconds() - 1000 * BEHIND_SECONDS


class Replica(NamedTuple):
    store: SqlStore
    locks: LockService
    txns: TransactionService
    expiry: Expiry


@pytest.fixture
def replicas(migrated_server_database: str) -> Iterator[list[Replica]]:
    """The second one is behind."""
    stores = [open_store(migrated_server_database, clock, Limits()) for clock in (SystemClock(), SlowClock())]
    yield [made(store) for store in stores]
    for store in stores:
        store.close()


def made(store: SqlStore) -> Replica:
    locks = LockService(store, SETTINGS)
    return Replica(store, locks, TransactionService(store, locks, SETTINGS), Expiry(store, SETTINGS))


@pytest.mark.parametrize("first", [0, 1])
def test_locks_and_transactions_live_as_long_on_both(replicas: list[Replica], first: int) -> None:
    one, other = replicas[first], replicas[1 - first]
    wanted = LockSpec([ComponentSpec(Target("d", "t"), LockType.EXCLUSIVE, None)], WHO)
    lock = one.locks.lock(wanted).result()
    (txn_id,) = one.txns.open(1, WHO).result()
    assert lock.state is LockState.ACQUIRED
    for each in replicas:
        each.expiry.expire()
    assert other.locks.lock(wanted).result().state is LockState.WAITING
    other.txns.heartbeat(lock.lock_id, 0).result()
    other.txns.heartbeat(0, txn_id).result()
    for each in replicas:
        each.expiry.expire()
    one.txns.commit(txn_id, checks_writes=False).result()
    other.locks.unlock(lock.lock_id).result()


def test_changes_are_in_one_order_and_a_key_counts_on_both(replicas: list[Replica]) -> None:
    writers = [each.store._writer for each in replicas]
    assert set(together(writers[0], {"database": makes_database, "table": creates("t")}).values()) == {None}
    for number in range(CHANGES):
        change = {f"alter {number}": alters("t", str(number))}
        assert set(together(writers[number % 2], change).values()) == {None}
        (again,) = together(writers[1 - number % 2], change).values()
        assert isinstance(again, AlreadyConcluded)
    for each in replicas:
        events = each.store.read(lambda snapshot: [event.event_id for event in snapshot.events_after(EventId(0))])
        assert events == list(range(1, CHANGES + 2))
        found = each.store.read(lambda snapshot: snapshot.table("d", "t"))
        assert found is not None
        assert found.table.parameters == {"value": str(CHANGES - 1)}
