"""The connection on which MariaDB and MySQL are asked for the newest event without anybody waiting for it.

PyMySQL waits for every answer, so the question and the answer are written and read here: one packet there, five back
(how many columns, the column, an end, the row, an end), or one that says what is wrong.
"""

import ssl
from typing import Any, Final

from sqlalchemy import URL, Engine

from hms_gateway.metastore.ports.store import EventId, StoreUnavailable
from hms_gateway.storage.dialects.mysql_engines import (
    Connection,
    connect_arguments,
    set_up_session,
    without_tls_options,
)
from hms_gateway.storage.sql.errors import translated

_COMMAND: Final = b"\x03SELECT last_event_id FROM catalog"
_QUESTION: Final = len(_COMMAND).to_bytes(3, "little") + b"\x00" + _COMMAND
_HEADER_BYTES: Final = 4
_PACKETS: Final = 5
_ROW: Final = 3
_ERROR: Final = 0xFF
_END: Final = 0xFE
_READ_BYTES: Final = 4_096


class MysqlVersionWatch:
    """See `cache.freshness.VersionWatch`."""

    # InnoDB shows a change to others before it has written it to the disk.
    sees_lasting_only = False

    def __init__(self, connection: Connection) -> None:
        """`connection` commits by itself and belongs to the watch from now on."""
        self._connection = connection
        self._socket: Any = connection._sock
        # Kept, since who waits for the socket has to name it to stop when it is closed.
        self._number = int(self._socket.fileno())
        self._received = b""
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._number

    def ask(self) -> None:
        self._received = b""
        try:
            sent = self._socket.send(_QUESTION)
        except OSError as error:
            raise _lost() from error
        # So few bytes, one question at a time: they always fit into the socket's buffer.
        if sent != len(_QUESTION):
            raise _lost()

    def answer(self) -> EventId | None:
        self._receive()
        packets = _whole_packets(self._received)
        if packets and packets[0][:1] == bytes([_ERROR]):
            raise _lost()
        if len(packets) < _PACKETS:
            return None
        row = packets[_ROW]
        if not row or row[0] == _END:
            raise StoreUnavailable("the database did not return its newest event")
        return EventId(int(row[1 : 1 + row[0]]))

    def close(self) -> None:
        self._connection._force_close()

    def _receive(self) -> None:
        """All there is: what TLS has decrypted already does not make the socket readable again."""
        while True:
            try:
                read = self._socket.recv(_READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            except OSError as error:
                raise _lost() from error
            if not read:
                raise _lost()
            self._received += read


def open_mysql_watch(engine: Engine, url: URL, connect_seconds: int) -> MysqlVersionWatch:
    """Connect as `engine` would. Raises StoreUnavailable."""
    positional, named = engine.dialect.create_connect_args(without_tls_options(url))
    with translated(engine):
        connection = Connection(*positional, **{**named, **connect_arguments(url, connect_seconds), "autocommit": True})
        set_up_session(connection)
    return MysqlVersionWatch(connection)


def _whole_packets(received: bytes) -> list[bytes]:
    packets = []
    start = 0
    while len(received) >= start + _HEADER_BYTES:
        end = start + _HEADER_BYTES + int.from_bytes(received[start : start + 3], "little")
        if len(received) < end:
            break
        packets.append(received[start + _HEADER_BYTES : end])
        start = end
    return packets


def _lost() -> StoreUnavailable:
    return StoreUnavailable("the connection that watches for changes is lost")
