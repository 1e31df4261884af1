"""The connections of snapshots, and a base for repositories: a connection inside a transaction that others end."""

import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Insert

from hms_gateway.metastore.ports.store import Snapshot, StoreUnavailable, UnstorableText
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
        self._lock = threading.Lock()
        self._is_free = threading.Condition(self._lock)
        self._waiting = 0

    def take(self, *, asks_once: bool) -> "SharedSnapshot":
        """A snapshot that nobody reads. Raises StoreUnavailable, and what `kinds.translated` knows."""
        with self._lock:
            if self.in_use >= self.connections_max:
                self._wait()
            self.in_use += 1
            snapshot = self._idle.pop() if self._idle else None
        if snapshot is None:
            try:
                snapshot = SharedSnapshot(self, self._dialect, self.engine.connect())
            except BaseException:
                self._left(None)
                raise
        snapshot.begin(asks_once=asks_once)
        return snapshot

    def give_back(self, snapshot: "SharedSnapshot", connection: Connection) -> None:
        """End the transaction, if there is one."""
        try:
            self._dialect.end_reading(connection)
        except Exception:
            connection.invalidate()
        if not connection.invalidated and not self._is_closed:
            self._left(snapshot)
            return
        self._left(None)
        connection.close()
        # When it is lost, those that are idle probably are, too.
        self.close_idle()

    def close(self) -> None:
        """Close the connections, those in use when they are given back."""
        self._is_closed = True
        self.close_idle()

    def close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for snapshot in idle:
            snapshot.close()

    def _wait(self) -> None:
        self._waiting += 1
        is_free = self._is_free.wait_for(lambda: self.in_use < self.connections_max, self.wait_seconds_max)
        self._waiting -= 1
        if not is_free:
            name = "database_connections_max"
            raise StoreUnavailable(f"all connections for reading are in use (setting {name})", limit=name)

    def _left(self, snapshot: "SharedSnapshot | None") -> None:
        with self._lock:
            self.in_use -= 1
            if snapshot is not None:
                self._idle.append(snapshot)
            if self._waiting:
                self._is_free.notify()


class AsksMore(BaseException):
    """A read that asks once has asked again. Not an Exception, so that the read does not handle it."""


class SharedSnapshot:
    """A connection for as long as it is read from: by a snapshot, and by the long lists that come from it."""

    def __init__(self, pool: ReadPool, dialect: Dialect, connection: Connection) -> None:
        self.dialect = dialect
        self._pool = pool
        self._connection = connection
        self._lock = threading.Lock()

    def begin(self, *, asks_once: bool) -> None:
        """With `asks_once` AsksMore is raised after the first statements."""
        self._asks_once = asks_once
        self._has_asked = self._is_sqlalchemys = False
        self._holders = 1

    @property
    def connection(self) -> Connection:
        """The connection for statements by SQLAlchemy."""
        if not self._is_sqlalchemys:
            self._ask()
            self.dialect.leave_driver(self._connection)
            self._is_sqlalchemys = True
        return self._connection

    def run(self, statements: Sequence[Statement]) -> list[Rows]:
        """See `Dialect.run_together`."""
        if self._is_sqlalchemys:
            return self.dialect.run_together(self._connection, statements)
        self._ask()
        return self.dialect.read(self._connection, statements, is_all=self._asks_once)

    def retain(self) -> None:
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """When the last holder does it, the transaction ends and the connection goes back to the pool."""
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            self._pool.give_back(self, self._connection)

    def close(self) -> None:
        self._connection.close()

    def _ask(self) -> None:
        if self._asks_once and self._has_asked:
            raise AsksMore
        self._has_asked = True


class Repository:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)

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
