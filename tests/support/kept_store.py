"""Stores that stay open from one test to the next: to open one takes longer than most tests."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.schema.catalog import METADATA
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.support.manual_clock import ManualClock

# What empties the database of a URL.
Empty = Callable[[], object]


class KeptStore:
    """A store on the database at `url`, which is opened for the first test that it is lent to."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._start = ManualClock().seconds()
        self._clock = ManualClock()
        self._store: SqlStore | None = None

    @contextmanager
    def lent(self) -> Iterator[tuple[SqlStore, ManualClock]]:
        """The store and its clock, which is at its start; not one that a test has closed or left in use."""
        self._clock.advance(self._start - self._clock.seconds())
        store, self._store = self._store or open_store(self._url, self._clock, Limits()), None
        try:
            yield store, self._clock
        finally:
            if self._store is None and _can_be_used(store):
                self._store = store
            else:
                store.close()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


class _KeptFile:
    """A SQLite file of this process with its store, and a connection that empties it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        path = Path(self._folder.name) / "kept.db"
        path.touch(0o600)
        path.write_bytes(empty_database())
        self.kept = KeptStore(f"sqlite:///{path}")
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.is_lent = False

    def close(self) -> None:
        self.kept.close()
        self.connection.close()
        self._folder.cleanup()


@cache
def _file() -> _KeptFile:
    return _KeptFile()


@contextmanager
def empty_store(*rows: str) -> Iterator[tuple[SqlStore, ManualClock]]:
    """An empty SQLite database, and the clock of its store. It is the same for one test after the other.

    `rows` are the statements that make the first rows, where it is not quite empty.
    """
    file = _file()
    assert not file.is_lent, "a test has it already"
    empty_sqlite(file.connection, *rows)
    file.is_lent = True
    try:
        with file.kept.lent() as lent:
            yield lent
    finally:
        file.is_lent = False


def close_kept_file() -> None:
    if _file.cache_info().currsize:
        _file().close()
        _file.cache_clear()


@cache
def empty_database() -> bytes:
    """A migrated database file; migrating one for every test would take longer than the test."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        open_store(f"sqlite:///{path}", ManualClock(), Limits()).close()
        return path.read_bytes()


def empty_sqlite(connection: sqlite3.Connection, *rows: str) -> None:
    """Delete every row, and number rows from 1 again; then make the first ones."""
    filled = [name for (name,) in connection.execute(filled_tables('"'))]
    connection.execute("BEGIN IMMEDIATE")
    for name in filled:
        connection.execute(f'DELETE FROM "{name}"')
    connection.execute("DELETE FROM sqlite_sequence")
    for row in rows or ["INSERT INTO catalog VALUES (1, 0)"]:
        connection.execute(row)
    connection.execute("COMMIT")


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


@cache
def filled_tables(quote: str) -> str:
    """A query for the names of those that have rows. To empty all, which have none mostly, takes longer than a test."""
    names = (table.name for table in METADATA.sorted_tables)
    return " UNION ALL ".join(
        f"SELECT * FROM (SELECT '{name}' FROM {quote}{name}{quote} LIMIT 1) {name}_" for name in names
    )


def _can_be_used(store: SqlStore) -> bool:
    try:
        store.ready()
    except StoreError:
        return False
    return not store.connections_in_use
