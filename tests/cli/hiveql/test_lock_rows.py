"""Rows of SHOW LOCKS, and of locks that block requests."""

import pytest

from hms_gateway.cli.hiveql.locking import blocking_of, locks_of
from hms_gateway.rpc.structs import BlockingLock, LockState, LockType, ShowLocksResponseElement

BEAT, LOST = 1_700_000_000_000, 1_700_000_300_999


def lock(lock_id, type, table=None, partition=None, **fields):
    given = {"state": LockState.ACQUIRED, "txnid": 0, "lastheartbeat": BEAT, "acquiredat": BEAT, "lockIdInternal": 1}
    given |= {"user": "ann", "hostname": "h", "agentInfo": "q1", **fields}
    return ShowLocksResponseElement(lockid=lock_id, dbname="d", tablename=table, partname=partition, type=type, **given)


def rows(found):
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_a_lock_and_one_that_waits_for_it():
    first, second = rows(
        locks_of(
            [
                lock(7, LockType.EXCLUSIVE, "t", "ds=1", txnid=3, lastheartbeat=0),
                lock(
                    8,
                    LockType.SHARED_READ,
                    state=LockState.WAITING,
                    acquiredat=None,
                    blockedByExtId=7,
                    blockedByIntId=1,
                ),
            ]
        )
    )
    assert first == {
        "lockid": "7.1", "database": "d", "table": "t", "partition": "ds=1", "lock_state": "ACQUIRED",
        "blocked_by": None, "lock_type": "EXCLUSIVE", "transaction_id": 3, "last_heartbeat": None,
        "acquired_at": "2023-11-14T22:13:20Z", "user": "ann", "hostname": "h", "agent_info": "q1",
    }  # fmt: skip
    assert (second["lock_state"], second["blocked_by"], second["transaction_id"]) == ("WAITING", "7.1", None)


def test_states_and_types_that_are_newer_are_shown_as_numbers():
    (found,) = rows(locks_of([lock(7, 99, state=98)]))
    assert (found["lock_state"], found["lock_type"]) == ("98", "99")


@pytest.mark.parametrize(("count", "blocks"), [(2, "8,9"), (6, "8,9 and 4 more")])
def test_who_blocks_whom(count, blocks):
    (found,) = rows(blocking_of([BlockingLock(lock(7, LockType.EXCLUSIVE, "t"), BEAT, LOST, [8, 9], count)]))
    assert found == {
        "lockid": "7.1", "database": "d", "table": "t", "partition": None, "lock_state": "ACQUIRED",
        "lock_type": "EXCLUSIVE", "transaction_id": None, "user": "ann", "hostname": "h",
        "acquired_at": "2023-11-14T22:13:20Z", "last_heartbeat": "2023-11-14T22:13:20Z",
        "lost_at": "2023-11-14T22:18:20Z", "blocks": blocks, "agent_info": "q1",
    }  # fmt: skip
