"""Calls that the event loop writes to PostgreSQL: outcomes and rows are as one by one, whatever happens meanwhile."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec
import psycopg
import pytest
from sqlalchemy import select

from hms_gateway.metastore.changes.events import committed_write_ids
from hms_gateway.metastore.ports.store import Event, OutcomeUnknown, StoredEvent, StoreUnavailable
from hms_gateway.rpc.structs import LockState, LockType, NoSuchTxnException
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey, answering
from hms_gateway.runtime.call_record import TraceSpans, set_notes
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.suspension import Deferred, Job, Outdated, Result
from hms_gateway.storage.dialects import parse_url, writing_engine
from hms_gateway.storage.schema.catalog import METADATA
from hms_gateway.storage.writing.pipelined_writer import PipelinedWriter
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.txn.ports.txn import Assumption, TxnWork
from hms_gateway.txn.rules.names import target
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService
from tests.storage.test_outage import cut_connections
from tests.storage.txn.test_batch import WHO, random_call
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_postgres import PrivatePostgres
from tests.support.sample import sample

pytestmark = pytest.mark.postgres

SEEDS = sample(3, of=100)
ROUNDS = 14
PLACE = target("d", "t")
EXCLUSIVE = LockSpec([ComponentSpec(PLACE, LockType.EXCLUSIVE)], WHO)


class Services:
    def __init__(self, store: Any) -> None:
        self.locks = LockService(store, TxnSettings())
        self.txns = TransactionService(store, self.locks, TxnSettings())

    def call(self, name: str, *arguments: Any) -> Any:
        service = self.txns if name in ("open", "commit", "heartbeat", "abort") else self.locks
        return getattr(service, name)(*arguments, **({"checks_writes": True} if name == "commit" else {}))


class OneByOne:
    """A store for which every unit of work is one that it knows nothing about."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def write(self, work: Any) -> Any:
        return self._store.write(lambda transaction: work(transaction))

    def read(self, work: Any) -> Any:
        return self._store.read(work)


@pytest.fixture
def store(migrated_postgres_database: str) -> Iterator[SqlStore]:
    opened = new_store(migrated_postgres_database)
    yield opened
    opened.close()


def new_store(url: str, limits: Limits | None = None) -> SqlStore:
    return open_store(url, ManualClock(), limits or Limits())


def begin(call: Deferred[Any], key: CallKey | None = None) -> Awaitable[Any]:
    """A call as the gateway makes it; it has begun when this returns."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[Result] = loop.create_future()

    def tell(given: Result) -> None:
        if not told.done():
            told.set_result(given)

    async def finish() -> Any:
        return call.go_on(await asyncio.wait_for(told, PATIENCE_SECONDS))

    with answering(key):
        call.store.start(call.work, tell)
    return asyncio.ensure_future(finish())


async def connected(store: SqlStore) -> None:
    """The first call is written by the thread and has the connection opened, which is there soon."""
    writer = store._writer._event_loop
    assert writer is not None
    for _ in range(int(PATIENCE_SECONDS * 100)):
        await begin(Services(store).call("unlock", 0))
        if writer._pipeline is not None:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("no connection")


def refuse_hand_overs(store: SqlStore) -> None:
    """A call that the event loop does not write fails from now on."""

    def refuse(job: Job) -> None:
        raise StoreUnavailable("the thread is to run it")

    writer = store._writer._event_loop
    assert writer is not None
    writer._hand_over = refuse
    store._writer._submit = refuse  # type: ignore[method-assign]


def shown(outcome: Any) -> str:
    return repr(outcome)


async def outcome_of(call: Awaitable[Any]) -> str:
    try:
        return shown(await call)
    except Exception as error:
        return shown(error)


def outcome_of_plain(call: Callable[[], Any]) -> str:
    try:
        return shown(call())
    except Exception as error:
        return shown(error)


def rows(url: str) -> dict[str, list[Any]]:
    """Without times, which are the database's."""
    engine = writing_engine(parse_url(url))
    with engine.connect() as connection:
        found = {
            table.name: sorted(
                repr(row)
                for row in connection.execute(select(*(c for c in table.c if not c.name.endswith(("_ms", "_at")))))
            )
            for table in METADATA.sorted_tables
        }
    engine.dispose()
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_together_is_as_one_by_one(
    seed: int, migrated_postgres_database: str, postgres_database_of_module: str
) -> None:
    dice = random.Random(seed)
    url, other_url = migrated_postgres_database, postgres_database_of_module
    store, other = new_store(url), new_store(other_url)
    with psycopg.connect(other_url.replace("+psycopg", ""), autocommit=True) as connection:
        for table in METADATA.sorted_tables:
            if table.name not in ("catalog", "alembic_version"):
                connection.execute(f"TRUNCATE {table.name} RESTART IDENTITY CASCADE")  # type: ignore[arg-type]
    together, alone = Services(store), Services(OneByOne(other))

    async def run() -> None:
        await connected(store)
        for number in range(ROUNDS):
            calls = [random_call(dice, 25) for _ in range(dice.randint(1, 9))]
            # One after the other, since what is handed over to the thread comes after what is not.
            for call in calls:
                expected = outcome_of_plain(alone.call(*call).result)
                assert await outcome_of(begin(together.call(*call))) == expected, call
            assert number % 7 or rows(url) == rows(other_url), calls
        many = [("open", 1, WHO), *[("heartbeat", 0, txn_id) for txn_id in range(1, 9)]]
        many += [("commit", txn_id) for txn_id in range(1, 9)]
        expected = [outcome_of_plain(alone.call(*call).result) for call in many]
        begun = [begin(together.call(*call)) for call in many]
        assert [await outcome_of(one) for one in begun] == expected
        assert rows(url) == rows(other_url)

    asyncio.run(run())
    store.close()
    other.close()


def test_calls_of_one_turn_are_one_batch_and_no_thread_runs_them(store: SqlStore) -> None:
    services = Services(store)

    async def run() -> None:
        await connected(store)
        # Those that are open are counted by the thread, when the first one is opened.
        await begin(services.txns.open(1, WHO))
        refuse_hand_overs(store)
        transactions = [await one for one in [begin(services.txns.open(1, WHO)) for _ in range(600)]]
        assert [txn_id for (txn_id,) in transactions] == list(range(2, 602))
        (lock, other) = [await one for one in [begin(services.locks.lock(EXCLUSIVE)) for _ in range(2)]]
        assert (lock.state, other.state) == (LockState.ACQUIRED, LockState.WAITING)
        await begin(services.locks.unlock(lock.lock_id))
        assert (await begin(services.locks.check_lock(other.lock_id))).state is LockState.ACQUIRED
        await begin(services.txns.heartbeat(other.lock_id, 0))

    asyncio.run(run())


def test_assumed_rights_are_looked_at_by_the_event_loop_too(store: SqlStore) -> None:
    services = Services(store)

    def assuming(call: Deferred[Any], user: str, version: int, *known: str) -> Deferred[Any]:
        def holds(events: Sequence[StoredEvent]) -> bool:
            return [stored.event.table_name for stored in events] == [*known]

        return call._replace(work=msgspec.structs.replace(call.work, assumed=Assumption(user, version, holds)))

    async def run() -> None:
        await connected(store)
        held = await begin(services.locks.lock(EXCLUSIVE))
        (txn_id,) = await begin(services.txns.open(1, WHO))
        version = store.version()
        for name in ("t", "u"):
            event = Event("ALTER_TABLE", "d", name, "{}")
            await asyncio.to_thread(store.write, lambda transaction, event=event: transaction.append_event(event))  # type: ignore[misc]
        refuse_hand_overs(store)
        check, beat = services.locks.check_lock(held.lock_id), services.txns.heartbeat(held.lock_id, txn_id)
        for call in (check, beat):
            await begin(assuming(call, WHO.user, version + 2))
            with pytest.raises(Outdated):
                await begin(assuming(call, "another", version + 2))
        await begin(assuming(check, WHO.user, version, "t", "u"))
        await begin(assuming(check, WHO.user, version + 1, "u"))
        for at, known in ((version, "t"), (version + 3, "")):
            with pytest.raises(Outdated):
                await begin(assuming(check, WHO.user, at, known))

    asyncio.run(run())


def test_a_call_that_is_traced_gets_the_statements_of_its_batch(store: SqlStore) -> None:
    services, notes = Services(store), TraceSpans()

    async def run() -> None:
        await connected(store)
        # The first id of its kind is given by the thread.
        await begin(services.locks.lock(EXCLUSIVE))
        set_notes(notes)
        traced = begin(services.locks.lock(EXCLUSIVE))
        set_notes(None)
        await asyncio.gather(traced, begin(services.locks.lock(EXCLUSIVE)))

    asyncio.run(run())
    reading, *_, writing, commit = notes.parts
    assert [note.name for note in notes.parts].index("commit") == len(notes.parts) - 1
    assert reading.text.startswith("BEGIN ISOLATION LEVEL READ COMMITTED; ")
    assert writing.text.endswith("; COMMIT")
    assert "$1" in writing.text
    assert writing.statement_count == writing.text.count("; ") + 1
    assert commit.begin <= writing.begin <= writing.end <= commit.end


def test_commits_of_write_ids_are_logged_by_the_event_loop_too(store: SqlStore) -> None:
    services = Services(store)
    write_ids = WriteIdService(store, TxnSettings())
    opened = services.txns.open(4, WHO).result()
    write_ids.allocate(PLACE, opened[:2])

    async def run() -> None:
        await connected(store)
        before = store.version()
        refuse_hand_overs(store)
        for one in [begin(services.txns.commit(at, checks_writes=True)) for at in opened]:
            await one
        commits = [one.event for one in store.changes_since(before)]
        assert [committed_write_ids(one) for one in commits] == [[("d", "t", 1)], [("d", "t", 2)]]
        assert store.version() == before + 2

    asyncio.run(run())


def test_a_call_with_a_used_key_is_refused_and_the_first_keeps_its_value(store: SqlStore) -> None:
    services = Services(store)

    def key(text: str) -> CallKey:
        return CallKey("who", text, "open_txns", b"hash", keeps_value=True)

    async def run() -> None:
        await connected(store)
        first = key('it\'s a \\ "key"')
        assert await begin(services.txns.open(2, WHO), first) == [1, 2]
        assert first.is_concluded
        for _ in range(2):
            with pytest.raises(AlreadyConcluded):
                await begin(services.txns.open(2, WHO), key(first.text))
        assert await begin(services.txns.open(1, WHO), key("other")) == [3]
        found = store.find("who", first.text)
        assert found is not None
        assert found.message_hash == b"hash"
        assert found.value is not None
        assert found.value.value == [1, 2]

    asyncio.run(run())


def test_what_cannot_be_sent_is_a_failure_and_no_more(store: SqlStore) -> None:
    services = Services(store)

    async def run() -> None:
        await connected(store)
        with pytest.raises(UnicodeEncodeError):
            await begin(services.txns.open(1, WHO), CallKey("who", "\ud800", "open_txns", keeps_value=True))
        await connected(store)
        assert await begin(services.txns.open(1, WHO)) == [1]

    asyncio.run(run())


def test_refusals_are_the_callers_and_take_nothing_along(store: SqlStore) -> None:
    services = Services(store)

    async def run() -> None:
        await connected(store)
        begun = [
            begin(services.txns.open(1, WHO)),
            begin(services.txns.commit(99, checks_writes=True)),
            begin(services.txns.open(1, WHO)),
        ]
        assert await begun[0] == [1]
        with pytest.raises(NoSuchTxnException):
            await begun[1]
        assert await begun[2] == [2]

    asyncio.run(run())


def test_a_connection_that_is_lost_is_not_noticed(store: SqlStore, postgres_server: PrivatePostgres) -> None:
    services = Services(store)

    async def run() -> None:
        for number in range(3):
            await connected(store)
            cut_connections(postgres_server)
            # Noticed when it is used, or before.
            if number:
                await asyncio.sleep(0.05)
            (txn_id,) = await begin(services.txns.open(1, WHO))
            assert txn_id == number + 1

    asyncio.run(run())


def test_a_connection_lost_before_the_commit_is_answered_leaves_the_outcome_unknown(
    store: SqlStore, postgres_server: PrivatePostgres
) -> None:
    services = Services(store)

    def cuts(txns: Any) -> None:
        txns.next_lock_id()
        cut_connections(postgres_server)

    async def run() -> None:
        await connected(store)
        begun = [begin(Deferred(store, TxnWork(cuts, opens=True))), begin(services.txns.open(1, WHO))]
        for one in begun:
            with pytest.raises(OutcomeUnknown, match="while committing"):
                await one
        assert await begin(services.txns.open(1, WHO)) == [1]

    asyncio.run(run())


def test_a_lock_that_is_never_given_back_is_an_answer(
    migrated_postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer of the event loop answers: the other one would wait as long again."""
    monkeypatch.setattr("hms_gateway.storage.dialects.postgres_pipeline.BUSY_SECONDS_MAX", 0.05)
    store = new_store(migrated_postgres_database)
    services = Services(store)

    handed_over: list[Job] = []

    def pass_on(writer: PipelinedWriter, jobs: Sequence[Job]) -> None:
        handed_over.extend(jobs)
        pass_on_really(writer, jobs)

    pass_on_really = PipelinedWriter._pass_on
    monkeypatch.setattr(PipelinedWriter, "_pass_on", pass_on)

    async def run() -> None:
        await connected(store)
        with psycopg.connect(migrated_postgres_database.replace("+psycopg", "")) as other:
            other.execute("SELECT 1 FROM catalog FOR UPDATE")
            first = begin(services.txns.open(1, WHO))
            await asyncio.sleep(0)
            second = begin(services.txns.open(1, WHO))  # waits for the first one's batch
            for outcome in (first, second):
                with pytest.raises(StoreUnavailable, match="for too long"):
                    await outcome
        assert handed_over == []
        assert await begin(services.txns.open(1, WHO)) == [1]

    asyncio.run(run())
    store.close()


def test_a_change_waits_for_the_other_writer(store: SqlStore) -> None:
    """Both take turns by the lock on the catalog, so neither sees the other's work half done."""
    services = Services(store)

    async def run() -> None:
        await connected(store)
        for _ in range(10):
            thread = [asyncio.to_thread(Services(OneByOne(store)).txns.open(1, WHO).result) for _ in range(4)]
            loop = [begin(services.txns.open(1, WHO)) for _ in range(4)]
            await asyncio.gather(*thread, *loop)
        last = await begin(services.txns.open(1, WHO))
        assert last == [81]

    asyncio.run(run())


def test_too_many_that_wait_are_refused(migrated_postgres_database: str) -> None:
    store = new_store(migrated_postgres_database, Limits(write_queue_max=3))
    services = Services(store)

    async def run() -> None:
        await connected(store)
        begun = [begin(services.txns.open(1, WHO)) for _ in range(3)]
        with pytest.raises(StoreUnavailable, match="write_queue_max"):
            begin(services.txns.open(1, WHO))
        assert [await one for one in begun] == [[1], [2], [3]]

    asyncio.run(run())
    store.close()


def test_closing_finishes_what_waits(migrated_postgres_database: str) -> None:
    store = new_store(migrated_postgres_database)
    services = Services(store)

    async def run() -> None:
        await connected(store)
        begun = [begin(services.txns.open(1, WHO)) for _ in range(3)]
        store.close()
        assert sorted([await one for one in begun]) == [[1], [2], [3]]
        with pytest.raises(StoreUnavailable, match="closed"):
            begin(services.txns.open(1, WHO))

    asyncio.run(run())


def test_another_event_loop_gets_a_connection_of_its_own(store: SqlStore) -> None:
    async def run() -> Any:
        await connected(store)
        return await begin(Services(store).txns.open(1, WHO))

    assert [asyncio.run(run()), asyncio.run(run())] == [[1], [2]]
