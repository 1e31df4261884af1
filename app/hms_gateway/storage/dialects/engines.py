"""SQLAlchemy engines for every kind of database, each connection set up the way its use needs."""

import contextlib
import os
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DisconnectionError

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.storage.sql.errors import MYSQL_KINDS

BUSY_SECONDS_MAX = 20
# A process that hangs inside a unit of work loses its connection, and with it the lock the others wait for.
STUCK_SECONDS_MAX = 60
CONNECT_SECONDS_MAX = 10
POOL_WAIT_SECONDS_MAX = 30
# PostgreSQL keeps the plan of a statement that comes often until it has counted the table anew, a minute after. A table
# that was empty then and is not now would be read whole by every batch.
PLANS_KEPT_SECONDS = 1.0
# Readers are many and keep SQLite's default of 2 MiB each; what they share is the operating system's page cache.
WRITER_CACHE_KIB = 16_384
_EXAMPLES = (
    "sqlite:///folder/metastore.db or postgresql+psycopg://user:password@host/name"
    " or mariadb+pymysql://user:password@host/name"
)
# With the driver we use where the URL names none.
_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
# To what the write-ahead log is cut back after a large transaction.
LOG_BYTES_KEPT = 64 * 1024 * 1024


def parse_url(url: str) -> URL:
    """Check that `url` names a database we support. Raises StoreError."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreError(f"the database URL cannot be read: it looks like {_EXAMPLES}") from error
    backend = parsed.get_backend_name()
    if backend == "sqlite" and (not parsed.database or parsed.database == ":memory:"):
        raise StoreError("SQLite needs a file, such as sqlite:///var/catalog.sqlite")
    if backend == "sqlite" and "uri" in parsed.query:
        # The file of a URI is whatever SQLite decodes from it, and it would be protected under another name.
        raise StoreError(
            "the database URL of SQLite has uri=true; write the path itself: sqlite:////folder/metastore.db"
        )
    parsed = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", *_DRIVERS.values()):
        raise StoreError(f"databases of kind {parsed.drivername} are not supported: use {_EXAMPLES}")
    if backend in MYSQL_KINDS and not parsed.database:
        raise StoreError("the database URL names no database: it ends with /name")
    if backend in MYSQL_KINDS and find_spec("pymysql") is None:
        raise StoreError("MariaDB and MySQL need a driver: pip install 'hms-gateway[mysql]'")
    return parsed


def writing_engine(url: URL) -> Engine:
    """For the one thread that changes things, and for migrations. Use its own URL from then on.

    With MariaDB or MySQL it connects. Raises StoreUnavailable, and StoreError for a server that is too old.
    """
    if url.get_backend_name() == "sqlite":
        _make_private_file(Path(str(url.database)))
        return _sqlite_engine(url, "BEGIN IMMEDIATE", read_only=False, pool_size=1)
    if url.get_backend_name() in MYSQL_KINDS:
        from hms_gateway.storage.dialects.mysql_engines import mysql_writing_engine

        return mysql_writing_engine(
            url, busy_seconds=BUSY_SECONDS_MAX, stuck_seconds=STUCK_SECONDS_MAX, connect_seconds=CONNECT_SECONDS_MAX
        )
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_size=1,
        max_overflow=1,
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": CONNECT_SECONDS_MAX},
    )

    @event.listens_for(engine, "checkout")
    def _plans_again(connection: Any, record: Any, proxy: Any) -> None:
        now = monotonic()
        if now - record.info.setdefault("planned_at", now) >= PLANS_KEPT_SECONDS:
            record.info["planned_at"] = now
            try:
                connection.execute("DISCARD PLANS")
            except engine.dialect.loaded_dbapi.OperationalError as error:
                # The connection was lost while it was idle: the pool then makes a new one.
                raise DisconnectionError(str(error)) from error

    @event.listens_for(engine, "connect")
    def _bounded_waits(connection: Any, record: Any) -> None:
        bound_waits(connection)
        connection.commit()

    return engine


def bound_waits(connection: Any) -> None:
    """Bound what a connection to PostgreSQL that writes waits for, and what others wait for because of it."""
    connection.execute(f"SET lock_timeout = {int(BUSY_SECONDS_MAX * 1000)}")
    connection.execute(f"SET idle_in_transaction_session_timeout = '{STUCK_SECONDS_MAX}s'")


def reading_engine(url: URL, connections_max: int) -> Engine:
    """For snapshots: read-only connections, each transaction one consistent state."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, "BEGIN", read_only=True, pool_size=connections_max)
    if url.get_backend_name() in MYSQL_KINDS:
        from hms_gateway.storage.dialects.mysql_engines import mysql_reading_engine

        return mysql_reading_engine(
            url,
            connect_seconds=CONNECT_SECONDS_MAX,
            connections_max=connections_max,
            pool_seconds=POOL_WAIT_SECONDS_MAX,
        )
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS_MAX,
        pool_use_lifo=True,
        isolation_level="REPEATABLE READ",
        connect_args={"connect_timeout": CONNECT_SECONDS_MAX},
    )

    @event.listens_for(engine, "connect")
    def _read_only(connection: Any, record: Any) -> None:
        connection.read_only = True

    return engine


def watching_connection(url: URL) -> sqlite3.Connection | None:
    """A connection that only asks SQLite whether anybody else committed; None for other databases."""
    if url.get_backend_name() != "sqlite":
        return None
    connection = sqlite3.connect(str(url.database), check_same_thread=False, isolation_level=None)
    _set_up_sqlite(connection, read_only=True)
    return connection


def run_on_driver(connection: Connection, statement: str) -> None:
    """Run a statement that controls the transaction, on SQLite without SQLAlchemy's share of the time."""
    if connection.dialect.name == "sqlite":
        connection.connection.cursor().execute(statement)
    else:
        connection.exec_driver_sql(statement)


def _make_private_file(path: Path) -> None:
    """A first database only its owner can read: it holds tokens and keys, too. SQLite makes its other files alike."""
    with contextlib.suppress(OSError):  # what is wrong with the place SQLite tells
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _sqlite_engine(url: URL, begin: str, *, read_only: bool, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS_MAX,
        pool_use_lifo=True,
        # No implicit BEGIN by the driver: a DDL statement or a SAVEPOINT belongs to our transaction as well.
        connect_args={"check_same_thread": False, "isolation_level": None, "timeout": BUSY_SECONDS_MAX},
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: DBAPIConnection, record: Any) -> None:
        _set_up_sqlite(connection, read_only=read_only)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        run_on_driver(connection, begin)

    return engine


def _set_up_sqlite(connection: Any, *, read_only: bool) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS_MAX * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    else:
        connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
