"""Every test of this folder runs on a new, empty store of each kind."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.schema.catalog import METADATA
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.support.manual_clock import ManualClock
from tests.support.private_mariadb import PrivateMariadb
from tests.support.private_postgres import PrivatePostgres

# What dialects answer for themselves: texts and their order, conditions, plans, locks, time, processes.
ON_MARIADB = {
    f"test_{name}.py" for name in ("names_for_people", "random_filters", "query_plans", "lease_races", "units_of_work")
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rules are the same on every database: in `make test` MariaDB has the tests of its own answers."""
    for item in items:
        is_here = item.path.parent == Path(__file__).parent
        if is_here and item.get_closest_marker("mariadb") and item.path.name not in ON_MARIADB:
            item.add_marker(pytest.mark.whole)


@pytest.fixture(scope="session")
def migrated_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "empty.sqlite"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def contract_postgres(postgres_server: PrivatePostgres) -> str:
    with psycopg.connect(postgres_server.url().replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE DATABASE contract")
    url = postgres_server.url("contract")
    migrate(url)
    return url


@pytest.fixture(scope="session")
def emptying_postgres(contract_postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that is kept: the server starts a process for each."""
    with psycopg.connect(contract_postgres.replace("+psycopg", ""), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def contract_mariadb(mariadb_server: PrivateMariadb) -> str:
    mariadb_server.administer("CREATE DATABASE contract")
    url = mariadb_server.url("contract")
    migrate(url)
    return url


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated database without content."""
    if request.param == "sqlite":
        path = shutil.copy(request.getfixturevalue("migrated_sqlite_file"), tmp_path / "catalog.sqlite")
        return f"sqlite:///{path}"
    if request.param == "mariadb":
        url: str = request.getfixturevalue("contract_mariadb")
        server: PrivateMariadb = request.getfixturevalue("mariadb_server")
        with server.connect("contract") as mariadb, mariadb.cursor() as cursor:
            empty(cursor)
        return url
    url = request.getfixturevalue("contract_postgres")
    empty_postgres(request.getfixturevalue("emptying_postgres"))
    return url


def filled_tables(quote: str) -> str:
    """A query for the names of those that have rows. To empty all, which have none mostly, takes longer than a test."""
    names = (table.name for table in METADATA.sorted_tables)
    return " UNION ALL ".join(f"(SELECT '{name}' FROM {quote}{name}{quote} LIMIT 1)" for name in names)


def empty_postgres(connection: psycopg.Connection[Any]) -> None:
    """Delete every row, and number rows from 1 again."""
    tables = ", ".join(f'"{name}"' for (name,) in connection.execute(filled_tables('"')))  # type: ignore[arg-type]
    connection.execute(f"TRUNCATE {tables} CASCADE")
    connection.execute("SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'")
    connection.execute("INSERT INTO catalog VALUES (1, 0)")


def empty(cursor: Any) -> None:
    """Delete every row. TRUNCATE would make each table anew, which takes longer than most tests."""
    cursor.execute(filled_tables("`"))
    for statement in (
        "SET foreign_key_checks = 0",
        *(f"DELETE FROM `{name}`" for (name,) in cursor.fetchall()),
        "INSERT INTO catalog VALUES (1, 0)",
    ):
        cursor.execute(statement)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(database_url: str, clock: ManualClock) -> Iterator[SqlStore]:
    opened = open_store(database_url, clock, Limits())
    yield opened
    opened.close()
