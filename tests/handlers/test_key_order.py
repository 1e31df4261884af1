"""One partition is one object of locks and leases, however its name is spelt."""

import pytest

from hms_gateway.rpc.structs import (
    Database,
    LeaseAlreadyExistsException,
    LeaseObject,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    ShowLocksRequest,
)
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table

NAME = "ds=1/hr=a%3Ab"
SPELLINGS = [NAME, "hr=a%3Ab/ds=1", "ds=%31/hr=a%3ab", "DS=1/HR=a:b", "hr=a:b/ds=%31"]


@pytest.fixture
def peer(newer: Peer) -> Peer:
    newer.ask("create_database", Database("sales"))
    newer.ask("create_table", new_table("orders", "sales", keys=columns("ds string", "hr string")))
    return newer


def lock(peer: Peer, partition: str, table: str = "orders") -> LockState:
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.PARTITION, "sales", table, partition)
    return LockState(peer.ask("lock", LockRequest([component], 0, "ann", "host")).state)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_partition_is_one_object_of_leases(peer: Peer, spelling: str) -> None:
    lease_id = peer.ask("grab_lease", [LeaseObject("sales", "orders", spelling, "x")], 60, 0)
    for other in SPELLINGS:
        with pytest.raises(LeaseAlreadyExistsException):
            peer.ask("grab_lease", [LeaseObject("sales", "orders", other, "s")], 60, 0)
        [found] = peer.ask("list_lease", [LeaseObject("SALES", "Orders", other)])
        assert found.partition_name == NAME
        peer.ask("extend_lease", lease_id, [LeaseObject("sales", "orders", other)], 600)
    peer.ask("drop_lease", lease_id, [LeaseObject("sales", "orders", spelling)])
    assert peer.ask("list_lease", []) == []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_partition_is_one_object_of_locks(peer: Peer, spelling: str) -> None:
    assert lock(peer, spelling) is LockState.ACQUIRED
    for other in SPELLINGS:
        assert lock(peer, other) is LockState.WAITING
        shown = peer.ask("show_locks", ShowLocksRequest("sales", "orders", other)).locks
        assert {one.partname for one in shown} == {NAME}
    assert lock(peer, "hr=c/ds=1") is LockState.ACQUIRED


def test_the_order_of_a_table_that_does_not_exist_is_not_known(newer: Peer) -> None:
    assert lock(newer, "ds=1/hr=2", "none") is LockState.ACQUIRED
    assert lock(newer, "ds=%31/hr=2", "none") is LockState.WAITING
    assert lock(newer, "hr=2/ds=1", "none") is LockState.ACQUIRED


@pytest.mark.parametrize("name", ["p1", "p1/q2", "ds=1", "other=2/ds=1", "ds=1/ds=2", "ds=1/hr=2/mi=3", "hr=2"])
def test_what_is_no_partition_of_the_table_stays_as_it_is_written(peer: Peer, name: str) -> None:
    peer.ask("grab_lease", [LeaseObject("sales", "orders", name, "x")], 60, 0)
    assert [one.partition_name for one in peer.ask("list_lease", [])] == [name]
