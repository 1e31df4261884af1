"""The connection on which PostgreSQL is asked for the newest event without blocking.

Below psycopg's cursors, whose share of the time is several times the question's own; the calls are libpq's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from sqlalchemy import URL, Engine

from hms_gateway.metastore.ports.store import EventId, StoreUnavailable
from hms_gateway.storage.dialects.base import CONNECT_SECONDS_MAX

_STATEMENT: Final = b"newest_event"
_QUERY: Final = b"SELECT last_event_id FROM catalog"


class PostgresVersionWatch:
    """See `cache.freshness.VersionWatch`."""

    sees_lasting_only = True

    def __init__(self, connection: psycopg.Connection) -> None:
        """`connection` commits by itself and belongs to the watch from now on. Raises StoreUnavailable."""
        self._connection = connection
        self._pgconn = connection.pgconn
        self._loaders = Transformer(connection)
        # Kept, since libpq forgets the number of a socket it lost, and who waits for the socket has to name it to stop.
        self._socket = connection.fileno()
        with _unavailable():
            prepared = self._pgconn.prepare(_STATEMENT, _QUERY)
        if prepared.status != pq.ExecStatus.COMMAND_OK:
            raise StoreUnavailable("the database cannot be asked for its newest event")
        self._pgconn.nonblocking = 1

    def fileno(self) -> int:
        return self._socket

    def ask(self) -> None:
        with _unavailable():
            self._pgconn.send_query_prepared(_STATEMENT, None)
            # So few bytes, one question at a time: they always fit into the socket's buffer.
            self._pgconn.flush()

    def answer(self) -> EventId | None:
        with _unavailable():
            self._pgconn.consume_input()
            if self._pgconn.is_busy():
                return None
            version: EventId | None = None
            while (result := self._pgconn.get_result()) is not None:
                version = self._version_in(result)
            return version

    def close(self) -> None:
        self._connection.close()

    def _version_in(self, result: pq.abc.PGresult) -> EventId:
        self._loaders.set_pgresult(result)
        row = self._loaders.load_row(0, list) if result.status == pq.ExecStatus.TUPLES_OK else None
        if row is None:
            raise StoreUnavailable("the database did not return its newest event")
        return EventId(row[0])


def open_watch(engine: Engine, url: URL) -> PostgresVersionWatch:
    """Connect as `engine` would. Raises StoreUnavailable."""
    positional, named = engine.dialect.create_connect_args(url)
    with _unavailable():
        connection = psycopg.connect(*positional, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX, **named)
    try:
        return PostgresVersionWatch(connection)
    except BaseException:
        connection.close()
        raise


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StoreUnavailable("the connection that watches for changes is lost") from error
