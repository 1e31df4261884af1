"""Notification events, the version they make, and announced moves."""

import pytest

from hms_gateway.metastore.ports.store import Event, EventId, EventSelection, StoredEvent, Transaction
from hms_gateway.storage.txn.batch_statements import COMPRESSED_FROM_CHARACTERS
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create, database
from tests.support.manual_clock import ManualClock

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


def test_events_are_read_without_their_messages(store: SqlStore) -> None:
    long = Event("ALTER_TABLE", "sales", "orders", "x" * COMPRESSED_FROM_CHARACTERS)
    store.write(lambda transaction: [transaction.append_event(one) for one in (ONE, long)])
    found = store.read(lambda snapshot: snapshot.events(EventSelection(EventId(0), has_messages=False)))
    assert [(one.event_id, one.event) for one in found] == [
        (1, Event("CREATE_DATABASE", "sales", None, "")),
        (2, Event("ALTER_TABLE", "sales", "orders", "")),
    ]


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


def append(store: SqlStore, *events: Event) -> None:
    store.write(lambda transaction: [transaction.append_event(one) for one in events])


def ids(store: SqlStore, selection: EventSelection) -> list[int]:
    stored = store.read(lambda snapshot: snapshot.events(selection))
    found = [one.event_id for one in stored]
    assert store.read(lambda snapshot: snapshot.count_events(selection)) == len(found)
    if selection.limit is None:
        firsts = {(one.event.db_name, one.event.table_name): one.event_id for one in reversed(stored)}
        of_each = store.read(lambda snapshot: snapshot.first_events(selection))
        assert {(db_name, tbl_name): first for db_name, tbl_name, first in of_each} == firsts
    return [int(one) for one in found]


NONE = EventId(0)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (EventSelection(NONE), [1, 2, 3, 4]),
        (EventSelection(EventId(2)), [3, 4]),
        (EventSelection(EventId(-(2**63))), [1, 2, 3, 4]),
        (EventSelection(EventId(2**63 - 1)), []),
        (EventSelection(EventId(1), up_to=3), [2, 3]),
        (EventSelection(NONE, up_to=0), []),
        (EventSelection(NONE, limit=2), [1, 2]),
        (EventSelection(NONE, db_name="sales"), [1, 2, 3]),
        (EventSelection(NONE, db_name="SALES"), []),
        (EventSelection(NONE, db_name="a\0"), []),
        (EventSelection(NONE, table_names=["orders", "people"]), [2, 3, 4]),
        (EventSelection(NONE, db_name="sales", table_names=["people", "a\0", "\ud800"]), []),
        (EventSelection(NONE, table_names=[]), []),
        (EventSelection(NONE, types=["INSERT", "CREATE_DATABASE", "OTHER"]), [1, 3, 4]),
        (EventSelection(NONE, skipped_types=["INSERT", "a\0"]), [1, 2]),
        (EventSelection(NONE, types=["INSERT"], skipped_types=["INSERT"]), []),
        (EventSelection(EventId(1), db_name="sales", types=["INSERT"], limit=1), [3]),
    ],
)
def test_selected_events(store: SqlStore, selection: EventSelection, expected: list[int]) -> None:
    append(store, ONE, TWO, Event("INSERT", "sales", "orders", "{}"), Event("INSERT", "hr", "people", "{}"))
    assert ids(store, selection) == expected


@pytest.mark.parametrize("length", [COMPRESSED_FROM_CHARACTERS - 1, COMPRESSED_FROM_CHARACTERS, 300_000])
def test_long_messages_come_back_whole(store: SqlStore, length: int) -> None:
    message = ("größe☃ " * length)[:length]
    append(store, Event("ADD_PARTITION", "sales", "orders", message), ONE)
    found = store.read(lambda snapshot: snapshot.events_after(NONE))
    assert [one.event.message for one in found] == [message, ONE.message]
    assert [one.event.message for one in store.changes_since(NONE)] == ["", ""]


def expire(store: SqlStore, seconds: int, count_max: int = 100) -> int:
    return store.write(lambda transaction: transaction.delete_events_before(seconds, count_max))


def test_old_events_are_forgotten_and_the_newest_stays(store: SqlStore, clock: ManualClock) -> None:
    start = clock.seconds()
    assert expire(store, start + 1) == 0
    for _ in range(4):
        append(store, ONE)
        clock.advance(10)
    assert expire(store, start) == 0
    assert expire(store, start + 11) == 2
    assert ids(store, EventSelection(NONE)) == [3, 4]
    assert expire(store, start + 1000) == 1
    assert expire(store, start + 1000) == 0
    assert ids(store, EventSelection(NONE)) == [4]
    assert store.version() == 4
    append(store, ONE)
    assert [int(one.event_id) for one in store.changes_since(EventId(1))] == [4, 5]


def test_so_many_are_forgotten_at_once(store: SqlStore, clock: ManualClock) -> None:
    append(store, *[ONE] * 7)
    later = clock.seconds() + 1
    assert [expire(store, later, 3) for _ in range(4)] == [3, 3, 0, 0]
    assert ids(store, EventSelection(NONE)) == [7]


def test_a_clock_that_went_back_leaves_no_hole(store: SqlStore, clock: ManualClock) -> None:
    """Another replica's clock may be behind; then an old event lies between younger ones."""
    start = clock.seconds()
    for step in (0, 20, -15, 20):
        clock.advance(step)
        append(store, ONE)
    assert expire(store, start + 10) == 1
    assert ids(store, EventSelection(NONE)) == [2, 3, 4]
