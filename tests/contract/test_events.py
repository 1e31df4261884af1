"""Notification events, the version they make, and announced moves."""

from app.clock import ManualClock
from app.metastore.ports import Event, StoredEvent, Transaction
from app.storage import SqlStore
from tests.contract.objects import create, database

ONE = Event("CREATE_DATABASE", "sales", None, '{"words":"Größe \\u0000"}')
TWO = Event("CREATE_TABLE", "sales", "orders", "{}")


def test_events_come_back_in_order_with_their_time(store: SqlStore, clock: ManualClock) -> None:
    assert store.write(lambda transaction: transaction.append_event(ONE)) == 1
    clock.advance(5)
    assert store.write(lambda transaction: [transaction.append_event(one) for one in (TWO, ONE)]) == [2, 3]
    start = ManualClock().seconds()
    expected = [StoredEvent(1, start, ONE), StoredEvent(2, start + 5, TWO), StoredEvent(3, start + 5, ONE)]  # type: ignore[arg-type]
    assert store.read(lambda snapshot: snapshot.events_after(0)) == expected  # type: ignore[arg-type]
    assert store.read(lambda snapshot: snapshot.events_after(1)) == expected[1:]  # type: ignore[arg-type]
    assert store.read(lambda snapshot: snapshot.events_after(0, limit=2)) == expected[:2]  # type: ignore[arg-type]
    assert store.read(lambda snapshot: snapshot.events_after(3)) == []  # type: ignore[arg-type]


def test_the_version_is_the_newest_event(store: SqlStore) -> None:
    assert store.version() == 0
    store.write(lambda transaction: transaction.append_event(ONE))
    store.write(lambda transaction: transaction.insert_database(database()))
    assert store.version() == store.read(lambda snapshot: snapshot.current_event_id()) == 1


def test_changes_come_without_messages(store: SqlStore) -> None:
    store.write(lambda transaction: [transaction.append_event(one) for one in (ONE, TWO)])
    found = [(one.event_id, one.event) for one in store.changes_since(store.version() - 1)]  # type: ignore[arg-type]
    assert found == [(2, Event("CREATE_TABLE", "sales", "orders", ""))]


def test_the_data_version_changes_with_every_commit(store: SqlStore) -> None:
    before = store.data_version()
    assert store.data_version() == before
    store.write(lambda transaction: transaction.insert_database(database()))
    assert before is None or store.data_version() != before


def test_a_unit_of_work_sees_its_own_events(store: SqlStore) -> None:
    def work(transaction: Transaction) -> tuple[int, int]:
        transaction.append_event(ONE)
        seen = len(transaction.events_after(0))  # type: ignore[arg-type]
        transaction.append_event(TWO)
        return seen, transaction.current_event_id()

    assert store.write(work) == (1, 2)
    assert len(store.changes_since(0)) == 2  # type: ignore[arg-type]


def test_pending_moves_stay_until_they_are_deleted(store: SqlStore) -> None:
    of = create(store)
    first = store.write(lambda transaction: transaction.insert_pending_move(of.table_id, "file:/a", "file:/b"))
    second = store.write(lambda transaction: transaction.insert_pending_move(of.table_id, "file:/c", "file:/d"))
    found = store.read(lambda snapshot: snapshot.pending_moves())
    assert [(move.move_id, move.table_id, move.source, move.target) for move in found] == [
        (first, of.table_id, "file:/a", "file:/b"),
        (second, of.table_id, "file:/c", "file:/d"),
    ]
    store.write(lambda transaction: transaction.delete_table(of.table_id))
    store.write(lambda transaction: transaction.delete_pending_move(first))
    assert [move.move_id for move in store.read(lambda snapshot: snapshot.pending_moves())] == [second]
