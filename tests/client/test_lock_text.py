"""SHOW LOCKS and EXPLAIN LOCKS as texts."""

import pytest

from hms_gateway.cli.hiveql.lock_commands import parse_command
from hms_gateway.client.concurrency import needed_locks
from hms_gateway.client.lock_text import (
    LockReason,
    explain_locks,
    parse_reason,
    show_blocking_locks,
    show_locks,
    show_locks_legacy,
)
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import BlockingLock, LockState, LockType, ShowLocksResponseElement


def lock(lock_id, type, table=None, partition=None, **fields):
    given = {"state": LockState.ACQUIRED, "txnid": 0, "lastheartbeat": 1000, "acquiredat": 900, "lockIdInternal": 1}
    given |= {"user": "ann", "hostname": "h", "agentInfo": "q1", **fields}
    return ShowLocksResponseElement(lockid=lock_id, dbname="d", tablename=table, partname=partition, type=type, **given)


def test_the_form_of_the_transaction_manager():
    locks = [
        lock(7, LockType.EXCLUSIVE, "t", "ds=1", txnid=3, lastheartbeat=0),
        lock(8, LockType.SHARED_READ, state=LockState.WAITING, acquiredat=None, blockedByExtId=7, blockedByIntId=1),
    ]
    header, first, second = (line.split("\t") for line in show_locks(locks).splitlines())
    assert header == [
        "Lock ID", "Database", "Table", "Partition", "State", "Blocked By", "Type", "Transaction ID",
        "Last Heartbeat", "Acquired At", "User", "Hostname", "Agent Info",
    ]  # fmt: skip
    assert first[:5] == ["7.1", "d", "t", "ds=1", "ACQUIRED"]
    assert first[5].isspace()
    assert first[6:] == ["EXCLUSIVE", "3", "0", "900", "ann", "h", "q1"]
    assert second == [
        "8.1", "d", "NULL", "NULL", "WAITING", "7.1", "SHARED_READ", "NULL", "1000", "NULL", "ann", "h", "q1",
    ]  # fmt: skip


def test_states_and_types_that_are_newer_are_shown_as_numbers():
    cells = show_locks([lock(7, 99, state=98)]).splitlines()[1].split("\t")
    assert (cells[4], cells[6]) == ("98", "99")


def test_without_locks_there_is_the_header():
    assert len(show_locks([]).splitlines()) == 1
    assert show_locks_legacy([]) == ""


def test_the_older_form_is_sorted_by_name_and_exclusive_comes_first():
    locks = [
        lock(1, LockType.SHARED_READ, "t"),
        lock(2, LockType.EXCLUSIVE, "t"),
        lock(3, LockType.SHARED_WRITE, "t", "ds=1"),
        lock(4, LockType.SHARED_READ),
        lock(5, LockType.EXCLUSIVE, "t", state=LockState.WAITING),
    ]
    assert show_locks_legacy(locks).splitlines() == [
        "d\tSHARED",
        "d@t\tEXCLUSIVE",
        "d@t\tSHARED",
        "d@t@ds=1\tSHARED",
    ]


def test_extended_tells_what_a_lock_was_taken_for():
    reason = LockReason("q1", is_explicit=True, statement="lock table t\n\texclusive")
    first = lock(1, LockType.EXCLUSIVE, "t", agentInfo=str(reason))
    second = lock(2, LockType.SHARED_READ, "u", agentInfo="q2")
    assert show_locks_legacy([first, second], is_extended=True).splitlines() == [
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
    held = [BlockingLock(locks[0], 1, 2, [], 0)]
    for text in (show_locks(locks), show_blocking_locks(held)):
        assert len(text.splitlines()) == 2
        assert text.splitlines()[0].count("\t") == text.splitlines()[1].count("\t")
        assert text.replace("\t", "").replace("\n", "").isprintable()
    extended = show_locks_legacy(locks, is_extended=True)
    assert len(extended.splitlines()) == 5
    assert "\x1b" not in extended


def test_who_blocks_whom():
    beat, lost = 1_700_000_000_000, 1_700_000_300_999
    waiting = lock(6, LockType.SHARED_READ, state=LockState.WAITING, acquiredat=None)
    held = [
        BlockingLock(lock(7, LockType.EXCLUSIVE, "t", txnid=3), beat, lost, [8, 9], 2),
        BlockingLock(waiting, beat, lost, [8], 5),
    ]
    header, first, second = (line.split("\t") for line in show_blocking_locks(held).splitlines())
    assert dict(zip(header, first, strict=True)) == {
        "Lock ID": "7.1",
        "Database": "d",
        "Table": "t",
        "Partition": "NULL",
        "State": "ACQUIRED",
        "Type": "EXCLUSIVE",
        "Transaction ID": "3",
        "User": "ann",
        "Hostname": "h",
        "Acquired At": "1970-01-01T00:00:00Z",
        "Last Heartbeat": "2023-11-14T22:13:20Z",
        "Lost At": "2023-11-14T22:18:20Z",
        "Blocks": "8,9",
        "Agent Info": "q1",
    }
    waits = dict(zip(header, second, strict=True))
    assert (waits["State"], waits["Acquired At"], waits["Blocks"]) == ("WAITING", "NULL", "8 and 4 more")


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
