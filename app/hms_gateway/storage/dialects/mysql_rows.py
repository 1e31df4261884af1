"""Rows as MariaDB and MySQL send them, read in one loop.

PyMySQL makes an object of each packet and calls a method for each value, which takes twice to three times as long. A
test names the version whose inner methods are used.
"""

from typing import Any, Final

import pymysql
from pymysql.connections import MySQLResult
from pymysql.constants import CR
from pymysql.protocol import MysqlPacket

_PACKET_BYTES_MAX: Final = 0xFFFFFF
_ERROR, _END, _NULL = 0xFF, 0xFE, 0xFB
# How many bytes say the length of a longer value.
_LENGTH_BYTES: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}


class RowsInOneLoop(MySQLResult):  # type: ignore[misc]
    connection: Any

    def _read_rowdata_packet(self) -> None:
        connection = self.connection
        encodings = self.converters
        rows: list[tuple[Any, ...]] = []
        while True:
            packet = _packet(connection)
            first = packet[0]
            if first == _ERROR:
                MysqlPacket(packet, connection.encoding).raise_for_error()
            if first == _END and len(packet) < 9:
                self._check_packet_is_eof(MysqlPacket(packet, connection.encoding))
                break
            rows.append(_row(packet, encodings))
        self.connection = None
        self.affected_rows = len(rows)
        self.rows = tuple(rows)


def _packet(connection: Any) -> bytes:
    """The next one. Raises OperationalError when the connection is lost."""
    packet = b""
    try:
        while True:
            header = connection._rfile.read(4)
            if len(header) < 4 or header[3] != connection._next_seq_id:
                raise _lost()
            connection._next_seq_id = (header[3] + 1) % 256
            length = header[0] | header[1] << 8 | header[2] << 16
            part: bytes = connection._rfile.read(length)
            if len(part) < length:
                raise _lost()
            packet += part
            if length < _PACKET_BYTES_MAX:
                return packet
    except BaseException as error:
        connection._force_close()
        if isinstance(error, OSError):
            raise _lost() from error
        raise


def _row(packet: bytes, encodings: Any) -> tuple[Any, ...]:
    values: list[Any] = []
    at = 0
    for encoding, converter in encodings:
        length = packet[at]
        at += 1
        if length == _NULL:
            values.append(None)
            continue
        if length > _NULL:
            count = _LENGTH_BYTES[length]
            length = int.from_bytes(packet[at : at + count], "little")
            at += count
        end = at + length
        value: Any = packet[at:end]
        at = end
        if encoding is not None:
            value = value.decode(encoding)
        values.append(value if converter is None else converter(value))
    return tuple(values)


def _lost() -> Exception:
    error: Exception = pymysql.err.OperationalError(CR.CR_SERVER_LOST, "Lost connection to the server during a query")
    return error
