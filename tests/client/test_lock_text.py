"""SHOW LOCKS and EXPLAIN LOCKS as texts."""

import pytest

from hms_gateway.cli.hiveql.lock_commands import parse_command
from hms_gateway.client.concurrency import needed_locks
from hms_gateway.client.lock_text import (
    LockReason,
    explain_locks,
    parse_reason,
    show_locks_legacy,
)
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import LockState, LockType, ShowLocksResponseElement


def lock(lock_id, type, table=None, partition=None, **fields):
    given = {"state": LockState.ACQUIRED, "txnid": 0, "lastheartbeat": 1000, "acquiredat": 900, "lockIdInternal": 1}
    given |= {"user": "ann", "hostname": "h", "agentInfo": "q1", **fields}
    return ShowLocksResponseElement(lockid=lock_id, dbname="d", tablename=table, partname=partition, type=type, **given)


def test_without_locks_there_is_nothing():
    assert list(show_locks_legacy([])) == []


def test_the_older_form_is_sorted_by_name_and_exclusive_comes_first():
    locks = [
        lock(1, LockType.SHARED_READ, "t"),
        lock(2, LockType.EXCLUSIVE, "t"),
        lock(3, LockType.SHARED_WRITE, "t", "ds=1"),
        lock(4, LockType.SHARED_READ),
        lock(5, LockType.EXCLUSIVE, "t", state=LockState.WAITING),
    ]
    assert list(show_locks_legacy(locks)) == [
        "d\tSHARED",
        "d@t\tEXCLUSIVE",
        "d@t\tSHARED",
        "d@t@ds=1\tSHARED",
    ]


def test_extended_tells_what_a_lock_was_taken_for():
    reason = LockReason("q1", is_explicit=True, statement="lock table t\n\texclusive")
    first = lock(1, LockType.EXCLUSIVE, "t", agentInfo=str(reason))
    second = lock(2, LockType.SHARED_READ, "u", agentInfo="q2")
    assert list(show_locks_legacy([first, second], is_extended=True)) == [
        "d@t\tEXCLUSIVE",
        "LOCK_QUERYID:q1",
        "LOCK_TIME:900",
        "LOCK_MODE:EXPLICIT",
        "LOCK_QUERYSTRING:lock table t exclusive",
        "d@u\tSHARED",
        "LOCK_QUERYID:q2",
        "LOCK_TIME:900",
        "LOCK_MODE:IMPLICIT",
        "LOCK_QUERYSTRING:",
    ]


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("Iceberg-1a2b", LockReason("Iceberg-1a2b")),
        ("a:b:c", LockReason("a:b:c")),
        ("", LockReason("")),
        ("q:IMPLICIT:select ':EXPLICIT:'", LockReason("q", statement="select ':EXPLICIT:'")),
        ("q:EXPLICIT:", LockReason("q", is_explicit=True)),
    ],
)
def test_the_agent_of_a_lock_is_its_reason_when_it_has_the_form(agent, reason):
    assert parse_reason(agent) == reason


def test_a_reason_survives_being_written_and_read_and_is_cut_where_it_is_long():
    reason = LockReason("q", statement="select * from t where a = 'x:y'")
    assert parse_reason(str(reason)) == reason
    assert len(str(LockReason("q", statement="x" * 5_000))) < 1_100


def test_what_others_wrote_cannot_break_a_line_or_a_terminal():
    hostile = "a\tb\nc\x1b[2Jd\x9be"
    locks = [lock(1, LockType.EXCLUSIVE, hostile, hostile, user=hostile, hostname=hostile, agentInfo=hostile)]
    extended = list(show_locks_legacy(locks, is_extended=True))
    assert len(extended) == 5
    assert all(line.replace("\t", "").isprintable() for line in extended)


def test_explain():
    locks = needed_locks(parse_command("insert into d.T2(partition p.q) select .. t1 partition p1", make_name))
    assert explain_locks(locks).splitlines() == [
        "LOCK INFORMATION:",
        "d.t2 -> SHARED_READ",
        "d.t2.p -> SHARED_READ",
        "d.t2.p/q -> EXCLUSIVE",
        "default.t1 -> SHARED_READ",
        "default.t1.p1 -> SHARED_READ",
    ]
    assert explain_locks([]) == "LOCK INFORMATION:"
