"""Ids of two servers whose counters differ are called the same."""

from tests.comparison.ids import Ids, event, lock, txn


def test_transactions_are_counted_from_the_newest_before() -> None:
    ids = Ids(newest_txn=41, newest_event=7)
    assert ids.named("txn", 42) == "{txn 1}"
    assert ids.fill_in(f"[{txn(1)},{event(0)}]") == "[42,7]"
    assert ids.is_older("txn", 41)
    assert not ids.is_older("txn", 42)
    assert ids.named("txn", -1) == -1


def test_locks_are_numbered_as_they_appear() -> None:
    ids = Ids(1, 1)
    assert [ids.named("lock", number) for number in (900, 17, 900)] == ["{lock 1}", "{lock 2}", "{lock 1}"]
    assert ids.fill_in(str(lock(2))) == "17"
    assert ids.fill_in(str(lock(3))) == str(lock(3))


def test_texts_name_what_is_known() -> None:
    ids = Ids(40, 1)
    ids.named("lock", 900)
    assert ids.text("No such lock lockid:900") == "No such lock lockid:{lock 1}"
    assert ids.text("No such lock lockid:901") == "No such lock lockid:901"
    assert ids.text("Aborting [txnid:42,43] due to") == "Aborting [txnid:{txn 2},{txn 3}] due to"
