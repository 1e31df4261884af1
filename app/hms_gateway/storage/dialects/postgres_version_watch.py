"""The connection on which PostgreSQL is asked for the newest event without blocking.

Below psycopg's cursors, whose share of the time is several times the question's own; the calls are libpq's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from sqlalchemy import URL, Engine

from hms_gateway.metastore.ports.store import EventId, StoredEvent, StoreUnavailable
from hms_gateway.storage.dialects.base import CONNECT_SECONDS_MAX
from hms_gateway.storage.dialects.errors import not_connected
from hms_gateway.storage.dialects.kinds import dialect_of
from hms_gateway.storage.dialects.postgres_pipeline import compiled
from hms_gateway.storage.dialects.statements import ChangesQuery

_STATEMENT: Final = b"newest_event"
_QUERY: Final = b"SELECT last_event_id FROM catalog"
_CHANGES_STATEMENT: Final = b"changes"


class PostgresVersionWatch:
    """See `cache.freshness.VersionWatch`."""

    sees_lasting_only = True
    knows_changes = True

    def __init__(self, connection: psycopg.Connection, changes: ChangesQuery) -> None:
        """`connection` commits by itself and belongs to the watch from now on. Raises StoreUnavailable."""
        self._connection = connection
        self._changes = changes
        self._changes_query = compiled(changes.sql, ("after",))
        self._pgconn = connection.pgconn
        self._loaders = Transformer(connection)
        # Kept, since libpq forgets the number of a socket it lost, and who waits for the socket has to name it to stop.
        self._socket = connection.fileno()
        with _unavailable():
            # By index also while PostgreSQL has no figures about the events. It would compile what has no index then.
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET jit = off")
            prepared = [
                self._pgconn.prepare(_STATEMENT, _QUERY),
                self._pgconn.prepare(_CHANGES_STATEMENT, self._changes_query.text),
            ]
        if any(each.status != pq.ExecStatus.COMMAND_OK for each in prepared):
            raise StoreUnavailable("the database cannot be asked for its newest event")
        self._pgconn.nonblocking = 1

    def fileno(self) -> int:
        return self._socket

    def ask(self) -> None:
        self._send(_STATEMENT, None)

    def answer(self) -> EventId | None:
        rows = self._rows()
        if rows is None:
            return None
        if not rows:
            raise StoreUnavailable("the database did not return its newest event")
        return EventId(rows[0][0])

    def ask_changes(self, event_id: EventId) -> None:
        parameters, _ = self._changes_query.parameters({"after": event_id})
        self._send(_CHANGES_STATEMENT, parameters)

    def changes(self) -> list[StoredEvent] | None:
        rows = self._rows()
        return None if rows is None else self._changes.read(rows)

    def close(self) -> None:
        self._connection.close()

    def _send(self, statement: bytes, parameters: list[bytes | None] | None) -> None:
        with _unavailable():
            self._pgconn.send_query_prepared(statement, parameters)
            # So few bytes, one question at a time: they always fit into the socket's buffer.
            self._pgconn.flush()

    def _rows(self) -> Sequence[Sequence[Any]] | None:
        """Of the answer, None before it is there."""
        with _unavailable():
            self._pgconn.consume_input()
            if self._pgconn.is_busy():
                return None
            rows: Sequence[Sequence[Any]] | None = None
            while (result := self._pgconn.get_result()) is not None:
                if result.status != pq.ExecStatus.TUPLES_OK:
                    raise StoreUnavailable("the database did not return its newest event")
                self._loaders.set_pgresult(result)
                rows = self._loaders.load_rows(0, result.ntuples, list)
            return rows


def open_watch(engine: Engine, url: URL, changes: ChangesQuery) -> PostgresVersionWatch:
    """Connect as `engine` would. Raises StoreUnavailable."""
    positional, named = engine.dialect.create_connect_args(url)
    try:
        connection = psycopg.connect(*positional, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX, **named)
    except psycopg.Error as error:
        raise dialect_of(engine).translation(error) or not_connected(engine, error) from error
    try:
        return PostgresVersionWatch(connection, changes)
    except BaseException:
        connection.close()
        raise


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StoreUnavailable("the connection that watches for changes is lost") from error
