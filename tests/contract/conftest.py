"""Every test of this folder runs on a new, empty store of each kind."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hms_gateway.storage.writing.store import SqlStore
from tests.support.kept_store import Empty, KeptStore, empty_database, empty_sqlite
from tests.support.manual_clock import ManualClock

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
def contract_postgres(emptied_postgres: tuple[str, Empty]) -> Iterator[tuple[str, Empty]]:
    yield from _contract(*emptied_postgres)


@pytest.fixture(scope="session")
def contract_mariadb(emptied_mariadb: tuple[str, Empty]) -> Iterator[tuple[str, Empty]]:
    yield from _contract(*emptied_mariadb)


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
