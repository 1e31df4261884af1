"""Reads that ask for a few things by their names: a snapshot without SQLAlchemy's connections and pool.

Their share of the time is larger than that of the statements. Such a read begins on one of a few connections of its own
(`Dialect.look_up_connection`). Whatever is unusual ends there, and the store runs the read again in its usual way: it
asks for something else, no connection is free, one is lost, the database refuses a statement.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection

from hms_gateway.metastore.ports.store import Snapshot
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.base import LookUpConnection
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.writing.snapshot import SqlSnapshot

CONNECTIONS_MAX: Final = 8

_log = logging.getLogger(__name__)


class _InUsualWay(BaseException):
    """The read has to be run in the usual way. Not an Exception, so that the read does not handle it."""


class LookUps:
    """`connect` gives a new connection, None where the database has none of this kind."""

    def __init__(self, connect: Callable[[], LookUpConnection | None], dialect: Dialect) -> None:
        self._connect = connect
        self._dialect = dialect
        self._lock = threading.Lock()
        self._idle: list[LookUpConnection] = []
        self._places = CONNECTIONS_MAX

    @contextmanager
    def snapshot(self, *, asks_once: bool) -> Iterator[Snapshot | None]:
        """None, or one in which a read ends early that has to be run in the usual way. As in `LookUp`."""
        connection = self._taken()
        if connection is None:
            yield None
            return
        try:
            yield _LookUpSnapshot(self._dialect, connection, asks_once=asks_once)
        except _InUsualWay:
            pass
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """No read begins this way any more."""
        with self._lock:
            idle, self._idle, self._places = self._idle, [], -CONNECTIONS_MAX
        for connection in idle:
            connection.close()

    def _taken(self) -> LookUpConnection | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._places <= 0:
                return None
            self._places -= 1
        connection = None
        try:
            connection = self._connect()
        except Exception:
            _log.debug("no connection for look-ups", exc_info=True)  # the usual way says what is wrong
        if connection is None:
            self._gone()
        return connection

    def _give_back(self, connection: LookUpConnection) -> None:
        try:
            connection.end()
        except Exception:
            # Others that were idle have probably been lost with it.
            with self._lock:
                lost, self._idle = [connection, *self._idle], []
            for each in lost:
                each.close()
                self._gone()
            return
        with self._lock:
            is_open = self._places >= 0
            if is_open:
                self._idle.append(connection)
        if not is_open:
            connection.close()

    def _gone(self) -> None:
        with self._lock:
            self._places += 1


class _LookUpSnapshot(SqlSnapshot):
    def __init__(self, dialect: Dialect, connection: LookUpConnection, *, asks_once: bool) -> None:
        self._dialect = dialect
        self._look_ups = connection
        self._asks_once = asks_once
        self._has_asked = False

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        raise _InUsualWay

    def _run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        if self._asks_once and self._has_asked:
            raise _InUsualWay
        self._has_asked = True
        try:
            return self._look_ups.run(statements, is_all=self._asks_once)
        except Exception as error:
            raise _InUsualWay from error
