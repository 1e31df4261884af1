"""Units of work: all or nothing, one at a time, each alone when many are committed together."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hms_gateway.metastore.ports.store import DuplicateKey, Event, Selection, Snapshot, StoreUnavailable, Transaction
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.contract.objects import create, database, get, names, partition, table
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_SECONDS

EVENT = Event("X", "sales", None, "{}")


class Refused(Exception):
    pass


def test_work_that_raises_changes_nothing(store: SqlStore) -> None:
    of = create(store, values=[["a", "1"]])

    def work(transaction: Transaction) -> None:
        transaction.insert_database(database("other"))
        transaction.insert_partitions(of, [partition(of.table, ["b", "2"])])
        transaction.update_table(of.table_id, of.database_id, table("renamed"))
        transaction.delete_partitions(of, ["k0=a/k1=1"])
        transaction.insert_pending_move(of.table_id, "a", "b")
        transaction.append_event(EVENT)
        raise Refused

    with pytest.raises(Refused):
        store.write(work)
    assert store.read(lambda snapshot: snapshot.database_names()) == ["sales"]
    assert names(store, get(store)) == ["k0=a/k1=1"]
    assert get(store) == of
    assert store.read(lambda snapshot: snapshot.pending_moves()) == []
    assert store.version() == 0
    store.write(lambda transaction: transaction.append_event(EVENT))
    assert store.version() == 1


def test_reading_goes_on_while_a_unit_of_work_runs(store: SqlStore) -> None:
    create(store)

    def work(transaction: Transaction) -> list[str]:
        transaction.insert_database(database("other"))
        return store.read(lambda snapshot: snapshot.database_names())

    assert store.write(work) == ["sales"]
    assert store.read(lambda snapshot: snapshot.database_names()) == ["other", "sales"]


def test_a_snapshot_is_one_state(store: SqlStore) -> None:
    def work(snapshot: Snapshot) -> tuple[list[str], list[str]]:
        before = snapshot.database_names()
        store.write(lambda transaction: transaction.insert_database(database()))
        return before, snapshot.database_names()

    assert store.read(work) == ([], [])
    assert store.read(lambda snapshot: snapshot.database_names()) == ["sales"]


def test_waiting_units_are_committed_together_and_fail_alone(store: SqlStore) -> None:
    """While the first one holds the writer, the others queue up: they share a commit."""
    started, may_end = threading.Event(), threading.Event()

    def blocking(transaction: Transaction) -> None:
        started.set()
        assert may_end.wait(PATIENCE_SECONDS)

    def add(number: int) -> Callable[[Transaction], int]:
        def work(transaction: Transaction) -> int:
            transaction.insert_database(database(f"d{number}"))
            transaction.append_event(Event("X", f"d{number}", None, "{}"))
            if number % 3 == 0:
                raise Refused(number)
            if number % 3 == 1:
                transaction.insert_database(database("d2"))
            return number

        return work

    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(store.write, blocking)
        assert started.wait(PATIENCE_SECONDS)
        others = [pool.submit(store.write, add(number)) for number in range(3, 18)]
        while store._writer._jobs.qsize() < len(others):
            threading.Event().wait(0.001)
        may_end.set()
        first.result()
        errors = [other.exception() for other in others]
    assert [type(error) for error in errors[0::3]] == [Refused] * 5
    # The first of these finds "d2" free and takes it.
    succeeded = [number for number, error in zip(range(3, 18), errors, strict=True) if error is None]
    duplicates = [number for number, error in zip(range(3, 18), errors, strict=True) if isinstance(error, DuplicateKey)]
    assert len(succeeded) == 6
    assert len(duplicates) == 4
    events = store.changes_since(0)  # type: ignore[arg-type]
    assert [one.event_id for one in events] == list(range(1, 7))
    assert {one.event.db_name for one in events} == {f"d{number}" for number in succeeded}
    assert store.read(lambda snapshot: snapshot.database_names()) == sorted(
        ["d2", *(one.event.db_name for one in events)]
    )


def test_event_ids_are_dense_under_many_writers(store: SqlStore) -> None:
    def write(number: int) -> int:
        def work(transaction: Transaction) -> int:
            event_id = transaction.append_event(EVENT)
            if number % 5 == 0:
                raise Refused
            return event_id

        try:
            return store.write(work)
        except Refused:
            return 0

    with ThreadPoolExecutor(8) as pool:
        ids = [event_id for event_id in pool.map(write, range(200)) if event_id]
    assert sorted(ids) == list(range(1, 161))
    assert [one.event_id for one in store.changes_since(0)] == list(range(1, 161))  # type: ignore[arg-type]


def test_of_many_equal_additions_exactly_one_wins(store: SqlStore) -> None:
    of = create(store)

    def add(number: int) -> bool:
        try:
            store.write(lambda transaction: transaction.insert_partitions(of, [partition(of.table, ["a", "1"])]))
        except DuplicateKey:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 1
    assert get(store).partition_count == 1


@pytest.mark.slow
def test_two_stores_on_one_database_keep_one_sequence(store: SqlStore, database_url: str) -> None:
    other = open_store(database_url, ManualClock(), Limits())
    of = create(store)

    def write(number: int) -> None:
        def work(transaction: Transaction) -> None:
            transaction.append_event(EVENT)
            found = transaction.table("sales", "orders")
            assert found is not None
            transaction.insert_partitions(of, [partition(of.table, ["a", str(found.partition_count)])])

        (store, other)[number % 2].write(work)

    try:
        before = store.data_version()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(60)))
        assert before is None or store.data_version() != before
        assert [one.event_id for one in other.changes_since(0)] == list(range(1, 61))  # type: ignore[arg-type]
        assert get(store).partition_count == len(names(other, of)) == 60
    finally:
        other.close()


def test_a_full_queue_names_its_limit(database_url: str) -> None:
    store = open_store(database_url, ManualClock(), Limits(write_queue_max=2))
    started, may_end = threading.Event(), threading.Event()

    def blocking(transaction: Transaction) -> None:
        started.set()
        assert may_end.wait(PATIENCE_SECONDS)

    def nothing(transaction: Transaction) -> None:
        pass

    with ThreadPoolExecutor(4) as pool:
        calls: list[Any] = [pool.submit(store.write, blocking)]
        assert started.wait(PATIENCE_SECONDS)
        calls += [pool.submit(store.write, nothing) for _ in range(2)]
        while store._writer._jobs.qsize() < 2:
            threading.Event().wait(0.001)
        with pytest.raises(StoreUnavailable, match="write_queue_max"):
            store.write(nothing)
        may_end.set()
        for call in calls:
            call.result()
    store.close()


def test_closing_finishes_what_waits_and_takes_nothing_more(database_url: str) -> None:
    store = open_store(database_url, ManualClock(), Limits())
    store.write(lambda transaction: transaction.append_event(EVENT))
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.write(lambda transaction: transaction.append_event(EVENT))
    again = open_store(database_url, ManualClock(), Limits())
    assert again.version() == 1
    again.close()


def test_errors_of_work_pass_through_unchanged(store: SqlStore) -> None:
    error = Refused("exactly this one")

    def work(snapshot: object) -> None:
        raise error

    for run in (store.read, store.write):
        with pytest.raises(Refused) as caught:
            run(work)
        assert caught.value is error


def test_a_store_that_answers_is_ready(store: SqlStore) -> None:
    store.ready()
    assert store.read(lambda snapshot: snapshot.partition_names(create(store), Selection())) == []
