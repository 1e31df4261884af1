"""What the comparison itself knows about locks: who has to wait, and who waits for himself."""

from typing import Any

from tests.comparison.lock_history import (
    ACQUIRED,
    EXCLUSIVE,
    SHARED_READ,
    WAITING,
    Called,
    followed,
    must_wait,
    passes,
    waits_for_itself,
)


def locked(name: str, state: int, type: int, table: str | None, txn: str | None = None) -> Called:
    component: dict[str, Any] = {"type": type, "dbname": "d"}
    if table is not None:
        component["tablename"] = table
    rqst = {"component": [component], **({"txnid": txn} if txn else {})}
    return "lock", {"rqst": rqst}, {"success": {"lockid": name, "state": state}}


def ended(txn: str) -> Called:
    return "commit_txn", {"rqst": {"txnid": txn}}, {}


def waits(name: str, *calls: Called) -> bool:
    requests = followed(calls)
    return must_wait(requests[name], requests.values())


def test_nobody_passes_who_asked_earlier() -> None:
    reader, writer = locked("1", ACQUIRED, SHARED_READ, "t"), locked("2", WAITING, EXCLUSIVE, "t")
    assert waits("2", reader, writer)
    assert waits("3", reader, writer, locked("3", WAITING, SHARED_READ, "t"))
    assert not waits("1", reader, writer)


def test_who_waits_for_a_transaction_is_passed_by_it() -> None:
    held, wanted = locked("1", ACQUIRED, EXCLUSIVE, "t", "a"), locked("2", WAITING, EXCLUSIVE, None, "b")
    of_holder, of_others = locked("3", ACQUIRED, EXCLUSIVE, "u", "a"), locked("3", WAITING, EXCLUSIVE, "u", "c")
    assert not waits("3", held, wanted, of_holder)
    assert waits("3", held, wanted, of_others)
    assert waits("3", held, locked("2", WAITING, EXCLUSIVE, "u", "b"), of_holder)
    assert waits("2", held, wanted, of_holder)
    requests = followed([held, wanted, of_holder])
    assert [passes(one, requests.values()) for one in requests.values()] == [False, False, True]
    assert not waits_for_itself("3", requests)


def test_what_goes_together() -> None:
    held = locked("1", ACQUIRED, SHARED_READ, None)
    assert not waits("2", held, locked("2", ACQUIRED, EXCLUSIVE, "t"))
    assert waits("2", held, locked("2", WAITING, EXCLUSIVE, None))
    assert not waits("2", locked("1", ACQUIRED, EXCLUSIVE, "t"), locked("2", ACQUIRED, EXCLUSIVE, "u"))
    assert not waits("2", locked("1", ACQUIRED, EXCLUSIVE, "t", "a"), locked("2", ACQUIRED, EXCLUSIVE, "t", "a"))


def test_locks_end_with_their_transaction_or_when_given_up() -> None:
    held, wanted = locked("1", ACQUIRED, EXCLUSIVE, "t", "a"), locked("2", WAITING, EXCLUSIVE, "t")
    assert waits("2", held, wanted)
    assert not waits("2", held, wanted, ended("a"))
    given_up: Called = ("unlock", {"rqst": {"lockid": "1"}}, {})
    assert not waits("2", held, wanted, given_up)


def test_a_circle() -> None:
    calls = [
        locked("1", ACQUIRED, EXCLUSIVE, "t", "a"),
        locked("2", ACQUIRED, EXCLUSIVE, "u", "b"),
        locked("3", WAITING, EXCLUSIVE, "u", "a"),
    ]
    assert not waits_for_itself("3", followed(calls))
    assert waits_for_itself("4", followed([*calls, locked("4", WAITING, EXCLUSIVE, "t", "b")]))
