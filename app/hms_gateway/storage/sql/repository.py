"""The connections of snapshots, and a base for repositories: a connection inside a transaction that others end."""

import sys
import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Insert

from hms_gateway.metastore.ports.store import Snapshot, StoreUnavailable, UnstorableText
from hms_gateway.runtime.tracebacks import forget_frames
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.dialects.base import POOL_WAIT_SECONDS_MAX
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.schema.catalog import NAME_BYTES_MAX


def check_name(kind: str, name: str, dialect: Dialect) -> None:
    """Raise UnstorableText unless `name` can be stored and indexed on a database of this kind."""
    check_text(kind, name)
    longest = dialect.characters_max(kind)
    if longest is not None and len(name) > longest:
        raise UnstorableText(f"{kind} {name[:80]}… is longer than {longest} characters")
    if len(name) * 4 > NAME_BYTES_MAX and len(name.encode()) > NAME_BYTES_MAX:
        raise UnstorableText(f"{kind} {name[:80]}… is longer than {NAME_BYTES_MAX} bytes")


def check_text(kind: str, text: str | None) -> None:
    """Raise UnstorableText for what no database can keep on its own; inside encoded fragments it is escaped."""
    if text is not None and not is_storable(text):
        shown = text.replace("\0", "\\0").encode(errors="backslashreplace").decode()
        raise UnstorableText(f"{kind} {shown[:80]} contains a NUL character or half of a surrogate pair")


def is_storable(text: str) -> bool:
    """Tell whether a database can hold the text as it is."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class ReadPool:
    """The connections for reading. Those that are idle stay open, and that used last is taken first.

    Taking one of SQLAlchemy's pool and giving it back takes as long as a look-up by name.
    """

    def __init__(self, engine: Engine, connections_max: int) -> None:
        self.engine = engine
        self.connections_max = connections_max
        self.in_use = 0
        self.wait_seconds_max: float = POOL_WAIT_SECONDS_MAX
        self._dialect = dialect_of(engine)
        self._idle: list[SharedSnapshot] = []
        self._is_closed = False
        # Lists that are forgotten give back wherever they are collected.
        self._lock = threading.RLock()
        self._is_free = threading.Condition(self._lock)
        self._waiting = 0

    def take(self, *, asks_once: bool) -> "SharedSnapshot":
        """A snapshot that nobody reads. Raises StoreUnavailable, and what `kinds.translated` knows."""
        with self._lock:
            if self.in_use >= self.connections_max:
                self._wait()
            self.in_use += 1
            snapshot = self._idle.pop() if self._idle else None
        try:
            snapshot = snapshot or SharedSnapshot(self, self._dialect, self.engine.connect())
        except BaseException:
            with self._lock:
                self.in_use -= 1
                self._is_free.notify()
            raise
        snapshot.holders, snapshot.asks_once = 1, asks_once
        snapshot.has_asked = snapshot.is_sqlalchemys = False
        return snapshot

    def give_back(self, snapshot: "SharedSnapshot") -> None:
        """When the last holder does it, the transaction ends, and others may have the connection."""
        with self._lock:
            snapshot.holders -= 1
            if snapshot.holders:
                return
        before = sys.exception()
        try:
            self._dialect.end_reading(snapshot.any_connection)
        except Exception as error:
            forget_frames(error, before)
            snapshot.any_connection.invalidate()
        with self._lock:
            is_kept = not snapshot.any_connection.invalidated and not self._is_closed
            self.in_use -= 1
            if is_kept:
                self._idle.append(snapshot)
            if self._waiting:
                self._is_free.notify()
        if not is_kept:
            snapshot.any_connection.close()
            # When it is lost, those that are idle probably are, too.
            self.close_idle()

    def retain(self, snapshot: "SharedSnapshot") -> None:
        """One holder more."""
        with self._lock:
            snapshot.holders += 1

    def close(self) -> None:
        """Close the connections, those in use when they are given back."""
        with self._lock:
            self._is_closed = True
        self.close_idle()

    def close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for snapshot in idle:
            snapshot.any_connection.close()

    def _wait(self) -> None:
        self._waiting += 1
        is_free = self._is_free.wait_for(lambda: self.in_use < self.connections_max, self.wait_seconds_max)
        self._waiting -= 1
        if not is_free:
            name = "database_connections_max"
            raise StoreUnavailable(f"all connections for reading are in use (setting {name})", limit=name)


class AsksMore(BaseException):
    """A read that asks once has asked again. Not an Exception, so that the read does not handle it."""


class SharedSnapshot:
    """A connection for as long as it is read from: by a snapshot, and by the long lists that come from it.

    With `asks_once` AsksMore is raised after the first statements. Statements by SQLAlchemy go over `connection`.
    """

    def __init__(self, pool: ReadPool, dialect: Dialect, connection: Connection) -> None:
        self.dialect = dialect
        self.any_connection = connection
        self.holders = 0
        self.asks_once = self.has_asked = self.is_sqlalchemys = False
        self._pool = pool

    @property
    def connection(self) -> Connection:
        if not self.is_sqlalchemys:
            if self.asks_once and self.has_asked:
                raise AsksMore
            self.dialect.leave_driver(self.any_connection)
            self.is_sqlalchemys = True
        return self.any_connection

    def run(self, statements: Sequence[Statement]) -> list[Rows]:
        """See `Dialect.run_together`."""
        if self.is_sqlalchemys:
            return self.dialect.run_together(self.any_connection, statements)
        if self.asks_once and self.has_asked:
            raise AsksMore
        self.has_asked = True
        return self.dialect.read(self.any_connection, statements, is_all=self.asks_once)

    def retain(self) -> None:
        self._pool.retain(self)

    def release(self) -> None:
        self._pool.give_back(self)


class Repository:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)

    @property
    def connection(self) -> Connection:
        """The connection for the rows of an aggregate. A unit of work writes its changes whenever it is asked for."""
        return self._connection

    def _run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        """See `Dialect.run_together`."""
        return self._dialect.run_together(self._connection, statements)

    def _inserted_id(self, statement: Insert) -> int:
        """Run an insert of one row and return the id the database gave it."""
        key: Any = self._connection.execute(statement).inserted_primary_key
        return int(key[0])


class AggregateRows(Repository):
    """Rows of an aggregate, inside a unit of work."""

    def __init__(self, unit: Snapshot) -> None:
        super().__init__(unit.connection)
