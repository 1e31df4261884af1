"""SQLite: a file in which this process writes, often beside others."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Insert,
    NullPool,
    Pool,
    QueuePool,
    Select,
    Table,
    Text,
    bindparam,
    column,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy import table as table_clause
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine.interfaces import DBAPIConnection

from hms_gateway.metastore.ports.store import StoreError, StoreFailure, StoreUnavailable
from hms_gateway.metastore.vocabulary.patterns import Pattern
from hms_gateway.runtime.call_record import current_notes
from hms_gateway.storage.dialects.base import BUSY_SECONDS_MAX, Dialect, LongRows
from hms_gateway.storage.dialects.statements import ChangesQuery, Rows, Statement, Values

# Adding 1 to 20,000 partitions beside 500,000 others takes as long as with 16 MiB; with SQLite's default of 2, which
# readers keep, up to a fifth longer. All share the operating system's page cache.
WRITER_CACHE_KIB: Final = 4096
# To what the write-ahead log is cut back after a large transaction.
LOG_BYTES_KEPT: Final = 64 * 1024 * 1024
_COMPILING: Final = SQLiteDialect(paramstyle="qmark")
_NUMBERS: Final = func.json_each(bindparam("numbers", type_=Text)).table_valued("value")
_SEQUENCES: Final = table_clause("sqlite_sequence", column("name"), column("seq"))
_LAST_ID: Final[Select[Any]] = select(_SEQUENCES.c.seq).where(_SEQUENCES.c.name == bindparam("the_table"))
_NEW_IDS: Final = select(func.coalesce(_LAST_ID.scalar_subquery(), 0) + _NUMBERS.c.value)
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_UNAVAILABLE: Final = {
    "SQLITE_CANTOPEN": "it cannot be opened or made",
    "SQLITE_IOERR": "reading or writing it failed",
    "SQLITE_FULL": "its disk is full",
    "SQLITE_READONLY": "it cannot be written",
    "SQLITE_NOMEM": "there is not enough memory",
}
_BROKEN: Final = {"SQLITE_NOTADB": "it is not a SQLite database", "SQLITE_CORRUPT": "it is damaged"}


class SqliteDialect(Dialect):
    has_clock = False
    has_figures = False
    is_migrated_at_open = True

    def check_url(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise StoreError("SQLite needs a file, such as sqlite:///var/catalog.sqlite")
        if "uri" in url.query:
            # The file of a URI is whatever SQLite decodes from it, and it would be protected under another name.
            raise StoreError(
                "the database URL of SQLite has uri=true; write the path itself: sqlite:////folder/metastore.db"
            )

    def writing_engine(self, url: URL) -> Engine:
        _make_private_file(Path(str(url.database)))
        return self._engine(url, "BEGIN IMMEDIATE", QueuePool, read_only=False)

    def reading_engine(self, url: URL) -> Engine:
        return self._engine(url, "BEGIN", NullPool, read_only=True)

    def file(self, url: URL) -> Path:
        return Path(str(url.database))

    def watching_connection(self, url: URL) -> sqlite3.Connection:
        connection = sqlite3.connect(str(url.database), check_same_thread=False, isolation_level=None)
        _set_up(connection, read_only=True)
        return connection

    def version_watch(self, engine: Engine, url: URL, changes: ChangesQuery) -> None:
        """None: `PRAGMA data_version` answers at once."""

    def run_on_driver(self, connection: Connection, statement: str) -> None:
        # Without SQLAlchemy's share of the time, which is most of it here.
        connection.connection.cursor().execute(statement)

    def run_together(self, connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
        # Past SQLAlchemy, whose share of a statement is several times SQLite's.
        if not connection.in_transaction():
            connection.begin()
        return _run(connection.connection.driver_connection, statements)

    def read(self, connection: Connection, statements: Sequence[Statement], *, is_all: bool) -> list[Rows]:
        driver: Any = connection.connection.driver_connection
        if not driver.in_transaction and not (is_all and len(statements) == 1):
            driver.execute("BEGIN")
        return _run(driver, statements)

    def end_reading(self, connection: Connection) -> None:
        connection.rollback()
        driver: Any = connection.connection.driver_connection
        driver.rollback()

    def translation(self, original: BaseException) -> Exception | None:
        name = self.error_code(original)
        if name.startswith(_BUSY):
            return StoreUnavailable("the database file is locked by another process")
        for kind, reason in _UNAVAILABLE.items():
            if name.startswith(kind):
                return StoreUnavailable(f"the database file cannot be used: {reason} ({name})")
        for kind, reason in _BROKEN.items():
            if name.startswith(kind):
                return StoreFailure(f"the database file cannot be used: {reason} ({name})")
        return None

    def is_lost(self, original: BaseException | None) -> bool:
        return False

    def refuses_login(self, original: BaseException) -> bool:
        return False

    def error_code(self, original: BaseException) -> str:
        return getattr(original, "sqlite_errorname", None) or ""

    def bound_list(self, values: Iterable[int | str]) -> object:
        return msgspec.json.encode(list(values)).decode()

    def is_in_list(self, column: ColumnElement[Any], name: str | None, value: object = None) -> ColumnElement[bool]:
        # One JSON text, since the number of parameters is limited.
        bound: Any = bindparam(name, type_=Text) if name is not None else bindparam(None, value, type_=Text)
        return column.in_(select(func.json_each(bound).table_valued("value").c.value))

    def alternatives(self, pattern: Pattern) -> Iterable[str]:
        return pattern.glob_alternatives()

    def like(self, column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
        # Its LIKE ignores case.
        return column.op("GLOB")(text)

    def is_like(self, column: ColumnElement[Any], texts: Sequence[str | None]) -> ColumnElement[bool]:
        return self.like(column, "".join("*" if text is None else _escaped_glob(text) for text in texts))

    def characters(self, text: ColumnElement[str]) -> ColumnElement[int]:
        return func.length(text)

    def new_ids(self, table: Table, count: int) -> Statement:
        # No other connection can take them as long as this transaction writes.
        return Statement(_NEW_IDS, {"the_table": table.name, "numbers": self.bound_list(range(1, count + 1))})

    def raise_ids(self, connection: Connection, tables: Iterable[Table], least: int) -> None:
        # Other tables' ids are seen by nobody.
        names = [table.name for table in tables if table.dialect_options["sqlite"]["autoincrement"]]
        known = dict(connection.execute(select(_SEQUENCES.c.name, _SEQUENCES.c.seq)).all())
        connection.execute(_SEQUENCES.delete().where(_SEQUENCES.c.name.in_(names)))
        rows = [{"name": name, "seq": max(least, known.get(name, 0))} for name in names]
        connection.execute(_SEQUENCES.insert(), rows)

    def long_rows(self, connection: Connection, rows: Select[Any], key: Column[str], at_once: int) -> LongRows:
        # The driver's cursor reads row by row.
        cursor: Any = connection.execute(rows).cursor
        return cursor  # type: ignore[no-any-return]

    def leave_no_traces(self, connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA secure_delete = ON")

    def _engine(self, url: URL, begin: str, poolclass: type[Pool], *, read_only: bool) -> Engine:
        engine = create_engine(
            url,
            hide_parameters=True,
            poolclass=poolclass,
            # No implicit BEGIN by the driver: a DDL statement or a SAVEPOINT belongs to our transaction as well.
            connect_args={"check_same_thread": False, "isolation_level": None, "timeout": BUSY_SECONDS_MAX},
        )

        @event.listens_for(engine, "connect")
        def _connected(connection: DBAPIConnection, record: Any) -> None:
            _set_up(connection, read_only=read_only)

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            driver: Any = connection.connection.driver_connection
            if not driver.in_transaction:  # `read` may have begun
                driver.execute(begin)

        return engine


def _run(driver: Any, statements: Sequence[Statement]) -> list[Rows]:
    cursor = driver.cursor()
    answers: list[Rows] = []
    notes, begin = current_notes(), time.perf_counter()
    for sql, values in statements:
        if isinstance(values, Mapping):
            statement = _compiled(sql, tuple(values))
            rows = cursor.execute(statement.text, statement.parameters(values)).fetchall()
            answers.append(statement.read(rows) if statement.readers else rows)
        else:
            statement = _compiled(sql, tuple(values[0]))
            cursor.executemany(statement.text, [statement.parameters(row) for row in values])
            answers.append(())
        if notes is not None:
            begin = notes.add("sql", begin, statement.text)
    cursor.close()
    return answers


class _Compiled(NamedTuple):
    """A statement as the driver takes it: parameters by their numbers, and how those values are read that it does not
    know.
    """

    text: str
    names: Sequence[str]
    constants: Values
    readers: Sequence[tuple[int, Any]]

    def parameters(self, values: Values) -> list[object]:
        return [values[name] if name in values else self.constants[name] for name in self.names]

    def read(self, rows: Iterable[Sequence[Any]]) -> Rows:
        read = [list(row) for row in rows]
        for row in read:
            for position, reader in self.readers:
                row[position] = reader(row[position])
        return read


@cache
def _compiled(sql: Executable, names: tuple[str, ...]) -> _Compiled:
    made: Any = sql.compile(dialect=_COMPILING, column_keys=names, for_executemany=isinstance(sql, Insert))  # type: ignore[attr-defined]
    types = [column.type._cached_result_processor(_COMPILING, None) for column in made._result_columns]
    readers = [(position, reader) for position, reader in enumerate(types) if reader is not None]
    return _Compiled(str(made), made.positiontup or (), made.params, readers)


def _make_private_file(path: Path) -> None:
    """A first database only its owner can read: it holds tokens and keys, too. SQLite makes its other files alike.

    Root gives it the folder's owner, whose gateway is to use it.
    """
    with contextlib.suppress(OSError):  # what is wrong with the place SQLite says
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if os.geteuid() == 0:
                folder = path.parent.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
        finally:
            os.close(descriptor)


def _set_up(connection: Any, *, read_only: bool) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS_MAX * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    else:
        connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")


def _escaped_glob(text: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)


DIALECT: Final = SqliteDialect()
