"""MariaDB and MySQL, by PyMySQL."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, Column, ColumnElement, Connection, Engine, Select, Table, and_, bindparam, literal, text
from sqlalchemy.types import NULLTYPE

from hms_gateway.metastore.ports.store import StoreError, StoreUnavailable, UnstorableText, VersionWatch
from hms_gateway.storage.dialects.base import (
    BUSY_SECONDS_MAX,
    TOO_BUSY,
    Dialect,
    LongRows,
    NoAnswer,
    Retryable,
)
from hms_gateway.storage.dialects.statements import ChangesQuery
from hms_gateway.storage.schema.column_types import DATABASE_CHARACTERS, NAME_CHARACTERS, TABLE_CHARACTERS

if TYPE_CHECKING:
    from hms_gateway.storage.dialects.view_sql import ViewSql

PAGE_ROWS: Final = 10_000
_AUTO_INCREMENT: Final = re.compile(r" AUTO_INCREMENT=([0-9]+)")
_LIKE_PREFIX: Final = re.compile("([^%_!]|!.)*", re.DOTALL)
_LIKE_ESCAPE: Final = re.compile("!(.)", re.DOTALL)


class PagedRows:
    """Like the driver's cursor. The rows are in order of `key`, which is unique among them and their first column."""

    def __init__(self, connection: Connection, statement: Select[Any], key: Column[str]) -> None:
        self._connection = connection
        self._statement: Select[Any] | None = statement
        self._key = key
        self._limit = _limit_of(statement)
        self._page: Sequence[Any] = ()
        self._start = 0

    def fetchmany(self, count: int) -> Sequence[Any]:
        """So many rows or fewer; none at the end only."""
        if self._start == len(self._page):
            self._read_page()
        rows = self._page[self._start : self._start + count]
        self._start += len(rows)
        return rows

    def close(self) -> None:
        self._statement, self._page, self._start = None, (), 0

    def _read_page(self) -> None:
        if self._statement is None:
            return
        statement = self._statement
        if self._page:
            statement = statement.where(self._key > self._page[-1][0])
        asked = PAGE_ROWS if self._limit is None else min(PAGE_ROWS, self._limit)
        self._page = self._connection.execute(statement.limit(asked)).cursor.fetchall()
        self._start = 0
        if self._limit is not None:
            self._limit -= len(self._page)
        if len(self._page) < asked or self._limit == 0:
            self._statement = None


def _limit_of(statement: Select[Any]) -> int | None:
    limit: Any = statement._limit
    return None if limit is None else int(limit)


_CHARACTERS_MAX: Final = {"database": DATABASE_CHARACTERS, "table": TABLE_CHARACTERS}
# Deadlock; the row has changed since it was read; the savepoint is gone, as after a deadlock.
_RETRYABLE: Final = frozenset({1213, 1020, 1305})
_LOCK_TIMEOUT: Final = 1205
# With "timed out" in its text: connecting took too long, or the first answer did.
_NO_ANSWER: Final = frozenset({2003, 2013})
_READ_ONLY: Final = frozenset({1290, 1792, 1836})
_FULL: Final = frozenset({1021, 1114})
_TOO_LONG: Final = 1406
_PACKET_TOO_LARGE: Final = 1153
# An established connection is lost: ended by the server, the network or an administrator.
_GONE: Final = frozenset({0, 1053, 1317, 1927, 2006, 2013, 2014, 2045, 2055, 4031})
# There is none to be had: too many, the server does not listen, is starting or not ready, host refused.
_LOGIN_REFUSED: Final = frozenset({1044, 1045, 1698})
_CONNECTIONS_ALLOWED: Final = text(
    "SELECT LEAST(@@max_connections, COALESCE(NULLIF(@@max_user_connections, 0), @@max_connections))"
)
_UNREACHABLE: Final = frozenset({1040, 1047, 1129, 1130, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 2002, 2003})


class MysqlDialect(Dialect):
    undoes_migrations = False
    # InnoDB takes 12 µs for each, since it is also in the indexes of all eight keys.
    deleted_with_table_max = 200

    def check_url(self, url: URL) -> None:
        if not url.database:
            raise StoreError("the database URL names no database: it ends with /name")
        if find_spec("pymysql") is None:
            raise StoreError("MariaDB and MySQL need a driver: pip install 'hms-gateway[mysql]'")

    # The driver is loaded when it is needed: some commands need no connection.

    def writing_engine(self, url: URL) -> Engine:
        from hms_gateway.storage.dialects.mysql_engines import mysql_writing_engine

        return mysql_writing_engine(url)

    def reading_engine(self, url: URL) -> Engine:
        from hms_gateway.storage.dialects.mysql_engines import mysql_reading_engine

        return mysql_reading_engine(url)

    def version_watch(self, engine: Engine, url: URL, changes: ChangesQuery) -> VersionWatch:
        from hms_gateway.storage.dialects.mysql_engines import open_mysql_watch

        return open_mysql_watch(engine, url)

    @contextmanager
    def migrating(self, connection: Connection) -> Iterator[None]:
        # Of the session, since every change of a table ends the transaction; the name is one of the whole server.
        name = {"name": sha256(f"hms-gateway {connection.engine.url.database}".encode()).hexdigest()}
        lock = text("SELECT GET_LOCK(:name, :seconds)")
        if not connection.execute(lock, {**name, "seconds": BUSY_SECONDS_MAX}).scalar():
            raise StoreUnavailable("another process has been migrating the database for too long")
        try:
            yield
        finally:
            connection.execute(text("SELECT RELEASE_LOCK(:name)"), name)

    def view_sql(self, connection: Connection) -> "ViewSql | None":
        from hms_gateway.storage.dialects.view_sql import MariadbViewSql

        is_mariadb: bool = getattr(connection.dialect, "is_mariadb", False)
        return MariadbViewSql() if is_mariadb else None

    def translation(self, original: BaseException) -> Exception | None:
        code = _code(original)
        if code in _NO_ANSWER and "timed out" in str(original):
            return NoAnswer(original)
        if code in _RETRYABLE:
            return Retryable()
        if code == _LOCK_TIMEOUT:
            return StoreUnavailable(TOO_BUSY)
        if code in _READ_ONLY:
            return StoreUnavailable("the database takes no changes: it is read-only")
        if code in _FULL:
            return StoreUnavailable("the database's disk is full")
        if code == _TOO_LONG:
            return UnstorableText("a text is longer than this database can keep where it belongs")
        if code == _PACKET_TOO_LARGE:
            return StoreError("the change is larger than the database takes at once: its setting max_allowed_packet")
        return None

    def is_lost(self, original: BaseException | None) -> bool:
        return _code(original) in _GONE

    def is_unreachable(self, original: BaseException) -> bool:
        return _code(original) in _GONE | _UNREACHABLE

    def refuses_login(self, original: BaseException) -> bool:
        return _code(original) in _LOGIN_REFUSED

    def connections_allowed(self, connection: Connection) -> int:
        return int(connection.execute(_CONNECTIONS_ALLOWED).scalar_one())

    def error_code(self, original: BaseException) -> str:
        code = _code(original)
        return "" if code is None else str(code)

    def characters_max(self, kind: str) -> int | None:
        return _CHARACTERS_MAX.get(kind, NAME_CHARACTERS)

    def is_in_list(self, column: ColumnElement[Any], name: str | None, value: object = None) -> ColumnElement[bool]:
        # One parameter, which the connection writes out: SQLAlchemy takes several times as long for one for each value.
        bound: Any = bindparam(name, type_=NULLTYPE) if name is not None else bindparam(None, value, type_=NULLTYPE)
        return column.op("IN", is_comparison=True)(bound)

    def like(self, column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
        # The range of an index that MariaDB makes of a pattern ends before U+10000: here it gets a range of its own.
        condition = super().like(column.concat(""), text)
        prefix = _LIKE_ESCAPE.sub(r"\1", _LIKE_PREFIX.match(text)[0])  # type: ignore[index]
        return and_(self.begins_with(column, literal(prefix)), condition) if prefix else condition

    def raise_ids(self, connection: Connection, tables: Iterable[Table], least: int) -> None:
        quote = connection.dialect.identifier_preparer.format_table
        for table in tables:
            made = connection.exec_driver_sql(f"SHOW CREATE TABLE {quote(table)}").one()[1]
            following = _AUTO_INCREMENT.search(made)
            # It would lower it as well, where the rows with the ids in between are gone.
            if following is None or int(following[1]) <= least:
                connection.exec_driver_sql(f"ALTER TABLE {quote(table)} AUTO_INCREMENT = {least + 1}")

    def long_rows(self, connection: Connection, rows: Select[Any], key: Column[str], at_once: int) -> LongRows:
        return PagedRows(connection, rows, key)


def _code(error: BaseException | None) -> int | None:
    """The number of an error of PyMySQL; 0 where it has none, as when its connection is closed already."""
    if error is None or not type(error).__module__.startswith("pymysql"):
        return None
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


DIALECT: Final = MysqlDialect()
