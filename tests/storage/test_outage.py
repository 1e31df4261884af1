"""A database that goes away: callers are told, nothing is half done, and all goes on when it is back."""

import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import OperationalError

from hms_gateway.metastore.ports.store import Event, OutcomeUnknown, Snapshot, StoreError, StoreUnavailable, Transaction
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.tracebacks import forget_frames
from hms_gateway.storage.dialects import dialect_of, parse_url, postgres_pipeline, writing_engine
from hms_gateway.storage.dialects.kinds import translated
from hms_gateway.storage.dialects.statements import ConnectionLost
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.storage.writing.thread_writer import Batch
from tests.support.manual_clock import ManualClock
from tests.support.private_mariadb import DURABLE, PrivateMariadb
from tests.support.private_postgres import PrivatePostgres

Server: TypeAlias = PrivatePostgres | PrivateMariadb

EVENT = Event("X", "d", None, "{}")


def append(transaction: Transaction) -> int:
    return transaction.append_event(EVENT)


@pytest.fixture
def store(migrated_server_database: str) -> Iterator[SqlStore]:
    opened = open_store(migrated_server_database, ManualClock(), Limits())
    yield opened
    opened.close()


def administer(server: PrivatePostgres, statement: str) -> None:
    with psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)


def cut_connections(server: PrivatePostgres | PrivateMariadb) -> None:
    """Those to databases of single tests: what the shared ones have are kept for the tests of other rooms."""
    if isinstance(server, PrivateMariadb):
        cut_connections_of_mariadb(server)
        return
    others = "pid <> pg_backend_pid() AND datname LIKE 'test%'"
    administer(server, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")


def cut_connections_of_mariadb(server: PrivateMariadb) -> None:
    others = "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND db LIKE 'test%'"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(others)
        for (number,) in cursor.fetchall():
            cursor.execute(f"KILL {number}")
        while cursor.execute(others):
            pass


def test_broken_connections_are_not_noticed(store: SqlStore, database_server: Server) -> None:
    store.write(append)
    for _ in range(3):
        cut_connections(database_server)
        assert store.version() == store.write(append) - 1
    assert store.read(lambda snapshot: len(snapshot.events_after(0))) == 4  # type: ignore[arg-type]


def test_a_connection_cut_inside_a_unit_of_work_runs_it_again(store: SqlStore, database_server: Server) -> None:
    runs = []

    def work(transaction: Transaction) -> int:
        runs.append(transaction.append_event(EVENT))
        if len(runs) == 1:
            cut_connections(database_server)
        return transaction.append_event(EVENT)

    assert store.write(work) == 2
    assert runs == [1, 1]
    assert store.version() == 2


def test_a_connection_cut_while_committing_leaves_the_outcome_unknown(
    store: SqlStore, database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL the commit is part of a message, which is answered after it is done."""
    commit, awaited = Connection.commit, postgres_pipeline.PostgresPipeline.wait

    def cut_then_commit(connection: Connection) -> None:
        cut_connections(database_server)
        commit(connection)

    def answer_is_lost(pipeline: postgres_pipeline.PostgresPipeline) -> Any:
        answers = awaited(pipeline)
        if pipeline.is_in_transaction:
            return answers
        raise ConnectionLost

    with monkeypatch.context() as patched:
        if dialect_of(store._writing).has_pipeline:
            patched.setattr(postgres_pipeline.PostgresPipeline, "wait", answer_is_lost)
        else:
            patched.setattr(Connection, "commit", cut_then_commit)
        with pytest.raises(OutcomeUnknown, match="while committing"):
            store.write(append)
    assert store.write(append) == store.version()


@pytest.mark.postgres
@pytest.mark.slow
def test_a_postgresql_that_stops_and_starts(own_postgres: PrivatePostgres) -> None:
    # This server forgets what it has not written yet when it is stopped: it runs without fsync.
    stops_and_starts(own_postgres, own_postgres.url(), lambda: administer(own_postgres, "CHECKPOINT"))


@pytest.mark.mariadb
@pytest.mark.slow
@pytest.mark.parametrize("own_mariadb", [DURABLE], indirect=True, ids=["durable"])
def test_a_mariadb_that_stops_and_starts(own_mariadb: PrivateMariadb) -> None:
    own_mariadb.administer("CREATE DATABASE leaving")
    stops_and_starts(own_mariadb, own_mariadb.url("leaving"), lambda: None)


def stops_and_starts(server: Server, url: str, save: Callable[[], None]) -> None:
    migrate(url)
    store = open_store(url, ManualClock(), Limits())
    store.write(append)
    save()
    server.stop()
    for call in (store.ready, store.version, lambda: store.write(append), lambda: store.changes_since(0)):  # type: ignore[arg-type]
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            call()
    assert left_by([lambda: store.write(append), lambda: store.changes_since(0)]) == 0  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable):
        open_store(url, ManualClock(), Limits())
    server.start()
    store.ready()
    assert store.write(append) == 2
    assert len(store.changes_since(0)) == 2  # type: ignore[arg-type]
    store.close()


def test_a_mistake_in_a_read_keeps_its_traceback_where_the_connection_is_lost_too(
    store: SqlStore, database_server: Server
) -> None:
    def work(snapshot: Snapshot) -> None:
        snapshot.current_event_id()
        cut_connections(database_server)
        raise TypeError("a mistake")

    with pytest.raises(TypeError) as raised:
        store.read(work)
    assert raised.traceback[-1].name == "work"


def test_a_read_that_is_repeated_on_a_new_connection_leaves_nothing_of_the_lost_one(
    store: SqlStore, database_server: Server
) -> None:
    store.changes_since(0)  # type: ignore[arg-type]
    cut_connections(database_server)
    assert left_by([lambda: store.changes_since(0)]) == 0  # type: ignore[arg-type]


def left_by(calls: Sequence[Callable[[], object]]) -> int:
    """The number of the driver's errors that would wait for the garbage collector after calls that failed."""
    gc.collect()
    gc.disable()
    try:
        before = errors_of_the_driver()
        for call in calls:
            try:
                call()
            except StoreUnavailable as error:
                forget_frames(error)
        return errors_of_the_driver() - before
    finally:
        gc.enable()


def errors_of_the_driver() -> int:
    return sum(issubclass(type(each), OperationalError) for each in gc.get_objects())


def test_serialization_failures_run_the_work_again(store: SqlStore) -> None:
    runs = []

    def work(transaction: Any) -> int:
        runs.append(1)
        if len(runs) < 3:
            raise_state(transaction, "40001")
        return len(runs)

    assert store.write(work) == 3
    with pytest.raises(StoreUnavailable, match="again"):
        store.write(lambda transaction: raise_state(transaction, "40P01"))
    assert store.write(append) == 1


def raise_state(transaction: Any, state: str) -> None:
    connection = transaction._connection
    if connection.dialect.name == "mariadb":
        connection.exec_driver_sql("SIGNAL SQLSTATE '40001' SET mysql_errno = 1213")
    connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$")


def test_a_lock_that_is_never_given_back_is_an_answer(
    migrated_server_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("postgres_pipeline", "mysql_engines"):
        monkeypatch.setattr(f"hms_gateway.storage.dialects.{module}.BUSY_SECONDS_MAX", 0.05)
    store = open_store(migrated_server_database, ManualClock(), Limits())
    engine = create_engine(migrated_server_database)
    with engine.connect() as other:
        other.exec_driver_sql("SELECT 1 FROM catalog FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="for too long"):
            store.write(append)
        assert store.version() == 0
    engine.dispose()
    assert store.write(append) == 1
    store.close()


@pytest.mark.postgres
def test_a_lost_connection_says_nothing_of_the_row_it_was_at(migrated_postgres_database: str) -> None:
    engine = writing_engine(parse_url(migrated_postgres_database))
    with engine.begin() as connection:
        ends = "SELECT pg_terminate_backend(pg_backend_pid())"
        connection.exec_driver_sql(f"CREATE FUNCTION ends(text) RETURNS boolean LANGUAGE sql AS '{ends}'")
        connection.exec_driver_sql("CREATE TABLE lost (place text CHECK (ends(place)))")

    def copy() -> None:
        with translated(engine), engine.connect() as connection:
            copying: Any = connection.connection.cursor()
            with copying.copy("COPY lost FROM STDIN") as rows:
                rows.write_row(("secret",))

    with pytest.raises(StoreUnavailable) as raised:
        copy()
    engine.dispose()
    assert raised.value.detail == "terminating connection due to administrator command"


def test_a_statement_that_fails_says_nothing_of_its_text(store: SqlStore) -> None:
    def work(transaction: Any) -> None:
        transaction._connection.exec_driver_sql("SELECT secret FROM nowhere")

    with pytest.raises(StoreError) as caught:
        store.write(work)
    assert str(caught.value) in [f"the database refused a statement ({state})" for state in ("42P01", 1146)]
    assert store.write(append) == 1


def test_a_locked_sqlite_file_is_said_to_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_gateway.storage.dialects.sqlite.BUSY_SECONDS_MAX", 0)
    url = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    store = open_store(url, ManualClock(), Limits())
    engine = create_engine(url, connect_args={"isolation_level": None})
    with engine.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked by another process"):
            store.write(append)
        assert left_by([lambda: store.write(append)]) == 0
        assert store.version() == 0
        other.exec_driver_sql("ROLLBACK")
    engine.dispose()
    assert store.write(append) == 1
    store.close()


def test_a_commit_that_fails_is_everybodys_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'catalog.sqlite'}", ManualClock(), Limits())

    def fail(batch: Batch, connection: Any) -> None:
        raise OperationalError("COMMIT", None, Exception("disk full"))

    with monkeypatch.context() as patched:
        patched.setattr(Batch, "_commit", fail)
        with pytest.raises(StoreError):
            store.write(append)
    assert store.version() == 0
    assert store.write(append) == 1
    store.close()
