"""A PostgreSQL that refuses what a batch asks for: once, always, or to one unit of work of it."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, make_url, select

from hms_gateway.metastore.ports.store import StoreFailure, StoreUnavailable, Transaction
from hms_gateway.storage.dialects import writing_engine
from hms_gateway.storage.schema.catalog import NOTIFICATIONS, TABLES
from hms_gateway.storage.writing import thread_writer
from hms_gateway.storage.writing.thread_writer import ThreadWriter
from tests.faults.catalog_works import alters, creates, makes_database, together
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_postgres import PrivatePostgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

OTHERS = 15
ALL = {f"table {number}": creates(f"t{number}") for number in range(OTHERS)}

# Counts by a sequence, which no rollback takes back. `times` is how often it refuses.
REFUSING = """
    CREATE SEQUENCE refusals;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.table_name LIKE '{pattern}' AND nextval('refusals') <= {times} THEN
            {action};
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON notifications FOR EACH ROW EXECUTE FUNCTION refuse()
"""
ALWAYS = 1_000_000


@pytest.fixture
def database(migrated_postgres_database: str) -> str:
    return migrated_postgres_database


def administer(database: str, statements: str) -> None:
    with psycopg.connect(database.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statements)


def refusing(database: str, action: str, pattern: str = "%", times: int = ALWAYS) -> None:
    administer(database, REFUSING.format(action=action, pattern=pattern, times=times))


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    engine = writing_engine(make_url(database))
    yield engine
    engine.dispose()


@pytest.fixture
def writer(engine: Engine) -> Iterator[ThreadWriter]:
    writer = ThreadWriter(engine, ManualClock(), 100)
    writer.write(makes_database)
    yield writer
    writer.close()


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch, writer: ThreadWriter) -> list[int]:
    """Of the batches that were run."""
    seen: list[int] = []
    run = thread_writer.Batch.run

    def running(batch: Any) -> Any:
        seen.append(len(batch._jobs))
        return run(batch)

    monkeypatch.setattr(thread_writer.Batch, "run", running)
    return seen


def made(engine: Engine) -> list[str]:
    """The tables; each has one event, and events have the numbers from 1 on."""
    with engine.connect() as connection:
        names = sorted(connection.scalars(select(TABLES.c.name)))
        events = list(connection.execute(select(NOTIFICATIONS.c.event_id, NOTIFICATIONS.c.table_name)))
    assert sorted(name for _, name in events) == names
    assert sorted(number for number, _ in events) == list(range(1, len(names) + 1))
    return names


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_what_the_database_gives_up_is_run_again(
    database: str, writer: ThreadWriter, engine: Engine, sizes: list[int], state: str
) -> None:
    refusing(database, f"RAISE EXCEPTION 'rival' USING ERRCODE = '{state}'", times=2)
    assert set(together(writer, ALL).values()) == {None}
    assert sizes == [OTHERS] * 3
    assert made(engine) == sorted(f"t{number}" for number in range(OTHERS))


def test_what_it_always_gives_up_is_refused_and_nothing_is_changed(
    database: str, writer: ThreadWriter, engine: Engine, sizes: list[int]
) -> None:
    refusing(database, "RAISE EXCEPTION 'rival' USING ERRCODE = '40001'")
    assert {type(reason) for reason in together(writer, ALL).values()} == {StoreUnavailable}
    assert sizes == [OTHERS] * thread_writer.ATTEMPTS_MAX
    assert made(engine) == []


@pytest.mark.parametrize(
    ("action", "state"),
    [("RAISE EXCEPTION 'bad' USING ERRCODE = '22000'", "22000"), ("PERFORM pg_sleep(30)", "57014")],
    ids=["refused", "statement timeout"],
)
def test_one_poisoned_unit_of_work_fails_alone(
    database: str, engine: Engine, request: pytest.FixtureRequest, action: str, state: str
) -> None:
    administer(database, f"ALTER DATABASE {make_url(database).database} SET statement_timeout = '200ms'")
    refusing(database, action, pattern="poisoned")
    writer, sizes = (request.getfixturevalue(name) for name in ("writer", "sizes"))
    outcomes = together(writer, {**ALL, "poisoned": creates("poisoned")})
    reason = outcomes.pop("poisoned")
    assert isinstance(reason, StoreFailure)
    assert state in str(reason)
    assert set(outcomes.values()) == {None}
    assert sizes[:2] == [OTHERS + 1, (OTHERS + 1) // 2]
    assert made(engine) == sorted(f"t{number}" for number in range(OTHERS))


def test_a_deadlock_with_another_program_is_lost_and_the_batch_run_again(
    database: str, writer: ThreadWriter, engine: Engine, sizes: list[int], postgres_server: PrivatePostgres
) -> None:
    """The other one holds a table's row and waits for the catalog's; the one that looks for deadlocks is ended.

    PostgreSQL looks once, when a connection has waited for a while: that is the one that began to wait last.
    """
    together(writer, {"table": creates("t")})
    administer(database, f"ALTER DATABASE {make_url(database).database} SET deadlock_timeout = '20ms'")
    engine.dispose()
    sizes.clear()
    with psycopg.connect(database.replace("+psycopg", "")) as rival:
        rival.execute("SET deadlock_timeout = '30s'")
        rival.execute("UPDATE tables SET owner = 'rival'")
        waiting = threading.Thread(target=changes_the_catalog, args=(rival,))
        alter = alters("t", "x")

        def meets(transaction: Transaction) -> None:
            """The writer has the catalog's row when a unit of work is run."""
            if waiting.ident is None:
                waiting.start()
                waits_for_a_lock(database)
            alter(transaction)

        works = {"alter": replace(alter, work=meets), "create": creates("u")}
        outcomes = together(writer, works)
        waiting.join(PATIENCE_SECONDS)
    assert outcomes == {"alter": None, "create": None}
    # Whether the other program gets the catalog's row first is PostgreSQL's choice.
    assert 1 < len(sizes) <= thread_writer.ATTEMPTS_MAX
    assert set(sizes) == {2}


def changes_the_catalog(rival: psycopg.Connection[Any]) -> None:
    rival.execute("UPDATE catalog SET last_event_id = last_event_id")
    rival.commit()


def waits_for_a_lock(database: str) -> None:
    """Until a connection waits for a row that another one has changed."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    with psycopg.connect(database.replace("+psycopg", ""), autocommit=True) as connection:
        for _ in range(10_000):
            row = connection.execute(waiting).fetchone()
            if row is not None and row[0]:
                return
            connection.execute("SELECT pg_sleep(0.002)")
    raise AssertionError("nothing waits for a lock")
