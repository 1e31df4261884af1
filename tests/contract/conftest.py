"""Every test of this folder runs on a new, empty store of each kind."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.writing.store import SqlStore
from tests.support.kept_store import KeptStore, empty_database, empty_sqlite, filled_tables
from tests.support.manual_clock import ManualClock
from tests.support.private_mariadb import PrivateMariadb
from tests.support.private_postgres import PrivatePostgres

# What empties the database of a URL.
Empty = Callable[[], object]

# What dialects answer for themselves: texts and their order, conditions, plans, locks, time, processes.
ON_MARIADB = {
    f"test_{name}.py" for name in ("names_for_people", "random_filters", "query_plans", "lease_races", "units_of_work")
}

# The stores on the databases that all tests share.
_kept: dict[str, KeptStore] = {}


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
    path.write_bytes(empty_database())
    return path


@pytest.fixture(scope="session")
def contract_sqlite(migrated_sqlite_file: Path) -> Iterator[tuple[str, Empty]]:
    path = migrated_sqlite_file.with_name("contract.sqlite")
    shutil.copy(migrated_sqlite_file, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield from _contract(f"sqlite:///{path}", lambda: empty_sqlite(connection))


@pytest.fixture(scope="session")
def contract_postgres(postgres_server: PrivatePostgres, postgres_catalog: str) -> Iterator[tuple[str, Empty]]:
    plain = postgres_server.url().replace("+psycopg", "")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE contract TEMPLATE {postgres_catalog}")
    url = postgres_server.url("contract")
    # A connection that is kept: the server starts a process for each.
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        yield from _contract(url, lambda: empty_postgres(connection))


@pytest.fixture(scope="session")
def contract_mariadb(mariadb_server: PrivateMariadb) -> Iterator[tuple[str, Empty]]:
    mariadb_server.administer("CREATE DATABASE contract")
    url = mariadb_server.url("contract")
    migrate(url)
    with mariadb_server.connect("contract") as connection, connection.cursor() as cursor:
        yield from _contract(url, lambda: empty_mariadb(cursor))


def _contract(url: str, empty: Empty) -> Iterator[tuple[str, Empty]]:
    _kept[url] = KeptStore(url)
    yield url, empty
    _kept.pop(url).close()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ]
)
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database without content."""
    url: str
    url, empty = request.getfixturevalue(f"contract_{request.param}")
    empty()
    return url


def empty_postgres(connection: psycopg.Connection[Any]) -> None:
    """Delete every row, and number rows from 1 again."""
    tables = ", ".join(f'"{name}"' for (name,) in connection.execute(filled_tables('"')))  # type: ignore[arg-type]
    connection.execute(f"TRUNCATE {tables} CASCADE")
    connection.execute("SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'")
    connection.execute("INSERT INTO catalog VALUES (1, 0)")


def empty_mariadb(cursor: Any) -> None:
    """Delete every row. TRUNCATE would make each table anew, which takes longer than most tests."""
    cursor.execute(filled_tables("`"))
    for statement in (
        "SET foreign_key_checks = 0",
        *(f"DELETE FROM `{name}`" for (name,) in cursor.fetchall()),
        "INSERT INTO catalog VALUES (1, 0)",
    ):
        cursor.execute(statement)


@pytest.fixture
def lent(database_url: str) -> Iterator[tuple[SqlStore, ManualClock]]:
    kept = _kept.get(database_url) or KeptStore(database_url)
    with kept.lent() as lent:
        yield lent
    if database_url not in _kept:
        kept.close()


@pytest.fixture
def store(lent: tuple[SqlStore, ManualClock]) -> SqlStore:
    return lent[0]


@pytest.fixture
def clock(lent: tuple[SqlStore, ManualClock]) -> ManualClock:
    """The clock of the store."""
    return lent[1]
