from app.structs import LockComponent, LockLevel, LockState, LockType, ShowLocksResponseElement
from app.txn.lock_text import explain_locks, show_locks, show_locks_legacy


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


def test_extended_tells_whose_a_lock_is():
    locks = [lock(1, LockType.EXCLUSIVE, "t"), lock(2, LockType.SHARED_READ, "u", agentInfo="q2")]
    text = show_locks_legacy(locks, is_extended=True, statements={"q1": "drop table t"}, explicit=frozenset({2}))
    assert text.splitlines() == [
        "d@t\tEXCLUSIVE",
        "LOCK_QUERYID:q1",
        "LOCK_TIME:900",
        "LOCK_MODE:IMPLICIT",
        "LOCK_QUERYSTRING:drop table t",
        "d@u\tSHARED",
        "LOCK_QUERYID:q2",
        "LOCK_TIME:900",
        "LOCK_MODE:EXPLICIT",
        "LOCK_QUERYSTRING:",
    ]


def test_explain():
    parts = [
        LockComponent(LockType.SHARED_READ, LockLevel.DB, "d"),
        LockComponent(LockType.EXCLUSIVE, LockLevel.PARTITION, "d", "t", "ds=1"),
    ]
    assert explain_locks(parts) == "LOCK INFORMATION:\nd -> SHARED_READ\nd.t.ds=1 -> EXCLUSIVE"
