"""Every test of this folder runs on a new, empty store of each kind."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.clock import ManualClock
from app.limits import Limits
from app.storage import SqlStore, migrate, open_store
from app.storage.schema import METADATA
from tests.private_postgres import PrivatePostgres


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


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated database without content."""
    if request.param == "sqlite":
        path = shutil.copy(request.getfixturevalue("migrated_sqlite_file"), tmp_path / "catalog.sqlite")
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("contract_postgres")
    tables = ", ".join(table.name for table in METADATA.sorted_tables)
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
        connection.execute("INSERT INTO catalog VALUES (1, 0)")
    return url


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(database_url: str, clock: ManualClock) -> Iterator[SqlStore]:
    opened = open_store(database_url, clock, Limits())
    yield opened
    opened.close()
