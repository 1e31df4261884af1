"""The connection on which MariaDB and MySQL are asked for the newest event without blocking.

PyMySQL sends a query and waits for its answer. Here it sends, and reads when the answer has arrived: the server sends
the one row of it in one piece.
"""

from typing import Any, Final

import pymysql
from pymysql.constants.COMMAND import COM_QUERY
from sqlalchemy import URL, Engine

from hms_gateway.metastore.ports.store import EventId, StoreUnavailable
from hms_gateway.storage.dialects.errors import translated
from hms_gateway.storage.dialects.mysql_engines import (
    Connection,
    connect_arguments,
    set_up_session,
    without_tls_options,
)

_QUERY: Final = "SELECT last_event_id FROM catalog"
# The event loop would wait so long for the rest of an answer that the network has cut in two.
_READ_SECONDS_MAX: Final = 5


class _Connection(Connection):
    """Sends and reads apart, by methods that PyMySQL calls itself; a test names the version it was tried with."""

    def send(self, statement: str) -> None:
        self._execute_command(COM_QUERY, statement)

    def receive(self) -> Any:
        """The rows."""
        self.next_result()
        return self._result.rows


class MysqlVersionWatch:
    """See `cache.freshness.VersionWatch`."""

    # InnoDB shows a change to others before it has written it to the disk.
    sees_lasting_only = False
    knows_changes = False

    def __init__(self, connection: _Connection) -> None:
        """`connection` commits by itself and belongs to the watch from now on."""
        self._connection = connection
        # Kept, since a reader of the socket is removed by its number, also when the connection is lost.
        self._number = connection.fileno()
        self._is_asked = False

    def fileno(self) -> int:
        return self._number

    def ask(self) -> None:
        try:
            self._connection.send(_QUERY)
        except pymysql.Error as error:
            raise _lost() from error
        self._is_asked = True

    def answer(self) -> EventId | None:
        # What a server sends without a question is why it closes the connection.
        if not self._is_asked:
            raise _lost()
        self._is_asked = False
        try:
            rows = self._connection.receive()
        except pymysql.Error as error:
            raise _lost() from error
        if not rows:
            raise StoreUnavailable("the catalog in the database has no newest event; restore the database")
        return EventId(rows[0][0])

    def ask_changes(self, event_id: EventId) -> None:
        raise NotImplementedError

    def changes(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        if self._connection.open:
            self._connection.close()


def open_mysql_watch(engine: Engine, url: URL) -> MysqlVersionWatch:
    """Connect as `engine` would. Raises StoreUnavailable."""
    positional, named = engine.dialect.create_connect_args(without_tls_options(url))
    ours = {**connect_arguments(url), "autocommit": True, "read_timeout": _READ_SECONDS_MAX}
    with translated(engine):
        connection = _Connection(*positional, **{**named, **ours})
        set_up_session(connection)
    return MysqlVersionWatch(connection)


def _lost() -> StoreUnavailable:
    return StoreUnavailable("the connection that watches for changes is lost")
