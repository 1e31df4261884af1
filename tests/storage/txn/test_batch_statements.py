"""What a batch reads is looked up by index, also in tables that the database knows nothing about yet."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from hms_gateway.storage.dialects import dialect_of, parse_url, postgres, sqlite, writing_engine
from hms_gateway.storage.dialects.postgres_pipeline import compiled
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.txn.batch_statements import BatchStatements
from tests.support.catalog import place_empty_database

IDS = list(range(10))
NUMBERS = ("txn_id", "strength", "last_heartbeat_ms")
TEXTS = ("db_name", "table_name", "partition_name", "user_name", "host_name", "agent_info")
# PostgreSQL reads a table that has next to nothing in it rather than looking up what it changes.
READ_WHOLE_WHILE_SMALL = {("postgresql", name) for name in ("delete_locks", "grant", "refresh_locks")}
PAIRS = [(f"first {number}", f"second {number}") for number in IDS]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file = tmp_path_factory.mktemp("statements") / "catalog.sqlite"
    place_empty_database(file)
    postgres = request.param == "postgresql"
    url = request.getfixturevalue("postgres_database_of_module") if postgres else f"sqlite:///{file}"
    engine = writing_engine(parse_url(url))
    yield engine
    engine.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """Whatever is done on it is undone."""
    with engine.connect() as connection:
        yield connection


def insert_locks(connection: Connection, ids: range) -> None:
    """On PostgreSQL."""
    row = {
        **dict.fromkeys(NUMBERS, "0"),
        **dict.fromkeys(TEXTS, "'x'"),
        "is_acquired": "true",
        "shares_writes": "false",
    }
    columns = f"lock_id, component_number, {', '.join(row)}"
    series = f"generate_series({ids.start}, {ids.stop - 1}) AS id"
    connection.execute(text(f"INSERT INTO locks ({columns}) SELECT id, 1, {', '.join(row.values())} FROM {series}"))


def fill_locks(connection: Connection) -> None:
    """With many, in a new file of the table: the old one, which the end of the test brings back, stays small."""
    connection.execute(text("TRUNCATE locks"))
    insert_locks(connection, range(20_000))


def plan(connection: Connection, statement: Any, values: dict[str, object]) -> str:
    compiled = statement.compile(dialect=connection.dialect)
    given = {**compiled.params, **values}
    parameters = given if compiled.positiontup is None else tuple(given[name] for name in compiled.positiontup)
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    return "\n".join(str(row) for row in connection.exec_driver_sql(f"{explain} {compiled}", parameters))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(vars(BatchStatements(sqlite.DIALECT))))
def test_no_table_is_read_whole(connection: Connection, name: str) -> None:
    dialect = dialect_of(connection)
    statement = getattr(BatchStatements(dialect), name)
    if (connection.dialect.name, name) in READ_WHOLE_WHILE_SMALL:
        fill_locks(connection)
    values = {"ids": dialect.bound_list(IDS), **dialect.bound_pairs(PAIRS)}
    values |= {"least_strength": 0, "limit": 100, "now_ms": 1, "the_reason": "x", "the_refused_lock": 1}
    shown = plan(connection, statement, {key: values[key] for key in statement.compile().params if key in values})
    assert re.search(r"SEARCH|Index", shown), shown
    assert not re.search(r"SCAN (?!json_each|anon)|Seq Scan", shown), shown


@pytest.mark.postgres
@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@pytest.mark.parametrize("name", list(vars(BatchStatements(postgres.DIALECT))))
def test_no_table_is_read_whole_by_the_plan_for_all_values(connection: Connection, name: str) -> None:
    """Which is the one that the event loop's writer has made."""
    statement = getattr(BatchStatements(postgres.DIALECT), name)
    if ("postgresql", name) in READ_WHOLE_WHILE_SMALL:
        fill_locks(connection)
    sent = compiled(statement, tuple(statement.compile().params))
    connection.exec_driver_sql("SET plan_cache_mode = force_generic_plan")
    connection.exec_driver_sql(f'PREPARE "{name}" AS {sent.text.decode()}')
    nothing = ", ".join(["NULL"] * len(sent.names))
    shown = "\n".join(str(row) for row in connection.exec_driver_sql(f'EXPLAIN EXECUTE "{name}"({nothing})'))
    assert re.search(r"Index", shown), shown
    assert "Seq Scan" not in shown, shown


@pytest.mark.postgres
def test_a_plan_made_for_a_small_table_does_not_read_all_of_it_when_it_grows(
    migrated_postgres_database: str, request: pytest.FixtureRequest
) -> None:
    engine = writing_engine(parse_url(migrated_postgres_database))
    request.addfinalizer(engine.dispose)
    delete = BatchStatements(postgres.DIALECT).delete_locks

    def read_by(batches: int) -> int:
        """How many rows these batches read by reading the table."""
        before = _read_whole(engine)
        for _ in range(batches):
            with engine.begin() as connection:
                postgres.DIALECT.run_together(connection, [Statement(delete, {"ids": IDS})])
        return _read_whole(engine) - before

    with engine.begin() as connection:
        insert_locks(connection, range(100, 300))
    # Makes what else would be made, and have it plan anew, while the table grows.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM locks"))
    assert read_by(20) == 0
    with engine.begin() as connection:
        insert_locks(connection, range(300, 20_000))
    assert read_by(2) == 0


def _read_whole(engine: Engine) -> int:
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with engine.begin() as connection:
        found = text("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'locks'")
        return int(connection.execute(found).scalar_one())
