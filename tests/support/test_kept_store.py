"""A store that is kept is as a new one for each test."""

from hms_gateway.rpc.structs import Database
from tests.support.kept_store import KeptStore, empty_database, empty_store


def add(store):
    return store.write(lambda transaction: transaction.insert_database(Database(name="d", locationUri="file:/d")))


def test_it_is_empty_and_numbers_from_one_each_time():
    for _ in range(2):
        with empty_store() as (store, clock):
            assert store.version() == 0
            assert store.read(lambda snapshot: snapshot.database("d")) is None
            assert add(store) == 1
            before = clock.seconds()
            clock.advance(5)
    with empty_store() as (again, clock):
        assert (again, clock.seconds()) == (store, before)


def test_what_a_test_has_closed_is_not_lent_again(tmp_path):
    file = tmp_path / "catalog.db"
    file.write_bytes(empty_database())
    kept = KeptStore(f"sqlite:///{file}")
    with kept.lent() as (closed, _):
        closed.close()
    with kept.lent() as (last, _):
        add(last)
    with kept.lent() as (same, _):
        assert same is last is not closed
    kept.close()
