"""What the connection that watches a server's database tells, and what becomes of lookups when it is lost."""

import asyncio
import select
from collections.abc import Iterator

import pytest

from hms_gateway.cache import ReplyCache
from hms_gateway.cache.freshness import VersionWatch
from hms_gateway.metastore.ports.store import Event, EventId, StoreUnavailable
from hms_gateway.rpc.structs import METHODS
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.storage.test_outage import cut_connections
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_mariadb import DURABLE, PrivateMariadb
from tests.support.private_postgres import PrivatePostgres

KEY = ("tjson", "2.3", "get_table", b"sales.orders")


@pytest.fixture
def store(migrated_server_database: str) -> Iterator[SqlStore]:
    store = open_store(migrated_server_database, SystemClock(), Limits())
    yield store
    store.close()


@pytest.fixture
def watch(store: SqlStore) -> Iterator[VersionWatch]:
    watch = store.version_watch()
    assert watch is not None
    yield watch
    watch.close()


def change(store: SqlStore, table_name: str = "orders") -> None:
    store.write(lambda tx: tx.append_event(Event("ALTER_TABLE", "sales", table_name, "")))


def asked(watch: VersionWatch) -> EventId:
    watch.ask()
    return answered(watch)


def answered(watch: VersionWatch) -> EventId:
    while True:
        assert select.select([watch.fileno()], [], [], PATIENCE_SECONDS)[0]
        version = watch.answer()
        if version is not None:
            return version


def test_every_question_is_answered_with_the_newest_committed_event(store, watch):
    assert asked(watch) == 0
    for number in range(1, 4):
        change(store)
        assert asked(watch) == asked(watch) == number


def test_changes_are_asked_for_on_the_same_connection(store, watch, database_server):
    if not watch.knows_changes:
        assert isinstance(database_server, PrivateMariadb)
        return
    for number in range(1, 4):
        change(store, f"table_{number}")
        assert asked(watch) == number
        watch.ask_changes(EventId(number - 1))
        while (changes := watch.changes()) is None:
            assert select.select([watch.fileno()], [], [], PATIENCE_SECONDS)[0]
        assert [(one.event_id, one.event.table_name) for one in changes] == [(number, f"table_{number}")]
        assert changes == store.changes_since(EventId(number - 1))


def test_a_lookup_after_a_change_keeps_the_connection(store, monkeypatch):
    def read_in_thread(*_: object) -> None:
        raise AssertionError

    async def run() -> None:
        cache = ReplyCache(store, Limits())
        try:
            remember(cache)
            assert await cache.lookup(KEY) == b"reply"
            watch = cache._freshness._watch
            if watch.knows_changes:
                monkeypatch.setattr(cache._freshness, "_read_in_thread", read_in_thread)
            for _ in range(3):
                change(store)
                assert await cache.lookup(KEY) is None
                remember(cache)
                assert await cache.lookup(KEY) == b"reply"
            assert cache._freshness._watch is watch
        finally:
            cache.close()

    asyncio.run(run())


def test_a_lost_connection_is_told_whether_something_was_asked_or_not(store, watch, database_server):
    assert asked(watch) == 0
    cut_connections(database_server)
    with pytest.raises(StoreUnavailable):
        answered(watch)
    with pytest.raises(StoreUnavailable):
        watch.ask()


def test_lookups_are_current_before_and_after_the_connection_is_lost(store, database_server):
    # Where a lost connection may mean that changes are lost, too, replies are read again.
    kept = b"reply" if isinstance(database_server, PrivatePostgres) else None

    async def run() -> None:
        cache = ReplyCache(store, Limits())
        try:
            for _ in range(3):
                remember(cache)
                assert await cache.lookup(KEY) == b"reply"
                change(store, "returns")
                assert await asyncio.gather(*[cache.lookup(KEY) for _ in range(5)]) == [b"reply"] * 5
                change(store)
                assert await cache.lookup(KEY) is None
                remember(cache)
                cut_connections(database_server)
                assert await cache.lookup(KEY) == kept
        finally:
            cache.close()

    asyncio.run(run())


def test_a_connection_that_is_lost_while_nobody_asks_leaves_no_reader_behind(store, database_server):
    async def run() -> None:
        loop = asyncio.get_running_loop()
        problems: list[object] = []
        loop.set_exception_handler(lambda _loop, context: problems.append(context))
        cache = ReplyCache(store, Limits())
        try:
            remember(cache)
            assert await cache.lookup(KEY) == b"reply"
            watch = cache._freshness._watch
            cut_connections(database_server)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while cache._freshness._watch is watch:
                    await asyncio.sleep(0)
            assert not loop.remove_reader(watch.fileno())
            answer = cache.lookup(KEY)
            # What is in doubt may be gone by now: then nobody is asked.
            found = await answer if isinstance(answer, asyncio.Future) else answer
            assert found == (b"reply" if watch.sees_lasting_only else None)
        finally:
            cache.close()
        assert not problems

    asyncio.run(run())


def remember(cache: ReplyCache) -> None:
    cache.remember(KEY, METHODS["get_table"].arguments("sales", "orders"), b"reply", cache.ticket())


@pytest.mark.mariadb
@pytest.mark.parametrize("own_mariadb", [DURABLE], indirect=True, ids=["durable"])
def test_an_event_that_a_crash_took_back_is_not_taken_for_the_next_of_its_number(own_mariadb: PrivateMariadb) -> None:
    own_mariadb.administer("CREATE DATABASE catalog")
    migrate(own_mariadb.url("catalog"))
    store = open_store(own_mariadb.url("catalog"), SystemClock(), Limits())
    change(store)
    # A crash that forgets what was committed is one after which an earlier state of the files is found.
    own_mariadb.stop()
    own_mariadb.keep_files()
    own_mariadb.start()

    async def run() -> None:
        cache = ReplyCache(store, Limits())
        try:
            change(store)
            remember(cache)
            assert await cache.lookup(KEY) is None  # there was a change
            before = cache.ticket()
            remember(cache)
            assert await cache.lookup(KEY) == b"reply"
            own_mariadb.stop()
            own_mariadb.go_back_to_kept_files()
            own_mariadb.start()
            assert store.version() == 1
            change(store)
            assert store.version() == 2
            assert await cache.lookup(KEY) is None
            cache.remember(KEY, METHODS["get_table"].arguments("sales", "orders"), b"reply", before)
            assert len(cache) == 0
            remember(cache)
            assert await cache.lookup(KEY) == b"reply"
            change(store)
            assert await cache.lookup(KEY) is None
        finally:
            cache.close()

    asyncio.run(run())
    store.close()
