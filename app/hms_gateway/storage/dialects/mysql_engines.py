"""Connections to MariaDB and MySQL, and that on which they are asked for the newest event without blocking.

Loaded only for those, as is their driver.

MariaDB is what this runs on in the tests; MySQL differs in its collation and in how a stuck process is got rid of.
"""

import socket
import ssl
from functools import cache
from typing import Any, Final

import pymysql
from pymysql.connections import MySQLResult
from pymysql.constants import CR, ER
from pymysql.constants.COMMAND import COM_QUERY
from pymysql.protocol import MysqlPacket
from sqlalchemy import URL, Engine, NullPool, create_engine, event
from sqlalchemy.exc import ArgumentError

from hms_gateway.metastore.ports.store import EventId, StoreError, StoreUnavailable
from hms_gateway.storage.dialects.base import (
    BUSY_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    STUCK_SECONDS_MAX,
)
from hms_gateway.storage.dialects.kinds import translated

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


OLDEST_MARIADB: Final = (10, 6)
OLDEST_MYSQL: Final = (8, 0, 17)
# Division by zero, dates and the like do not occur; too long texts must be refused, not cut.
_SQL_MODE: Final = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
_NOBODY_LISTENS: Final = 2002
_EMPTY_LIST: Final = "(SELECT NULL FROM DUAL WHERE 1 = 0)"
_TLS_OPTIONS: Final = (
    "ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password", "ssl_verify_cert", "ssl_verify_identity", "ssl_disabled"
)  # fmt: skip
_TRUTHS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Connection(pymysql.connections.Connection):  # type: ignore[misc]
    """PyMySQL's, which knows how long a statement may be. The server would hang up on a longer one without a word."""

    statement_bytes_max: int | None = None

    def connect(self, sock: socket.socket | None = None) -> None:
        if sock is None and self.unix_socket:
            sock = _connected(self.unix_socket, self.connect_timeout)
            self._secure = True
        # PyMySQL bounds how long the network takes, and not the server, whose greeting may never come.
        timeout: Any = self._read_timeout
        self._read_timeout: Any = self.connect_timeout
        super().connect(sock)
        self._read_timeout = timeout

    def fileno(self) -> int:
        return int(self._sock.fileno())

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        # Of no options PyMySQL would make a context for each connection, which takes longer than to connect.
        return super()._create_ssl_ctx(sslp) if sslp else _unchecked_context()

    def escape(self, obj: Any, mapping: Any = None) -> Any:
        """A list is what IN looks in. PyMySQL writes it out, an empty one as what no statement may have."""
        return _EMPTY_LIST if type(obj) is list and not obj else super().escape(obj, mapping)

    def query(self, sql: str | bytes, unbuffered: bool = False) -> Any:
        if self.statement_bytes_max is not None and len(sql) * 4 > self.statement_bytes_max:
            length = len(sql if isinstance(sql, bytes) else sql.encode(self.encoding, "surrogateescape"))
            if length >= self.statement_bytes_max:
                raise pymysql.err.DataError(ER.NET_PACKET_TOO_LARGE, "longer than max_allowed_packet")
        return super().query(sql, unbuffered)

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        if unbuffered:
            return super()._read_query_result(unbuffered)
        self._result: Any = None
        result: Any = RowsInOneLoop(self)
        result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows


def mysql_writing_engine(url: URL) -> Engine:
    """For the one thread that changes things. Its URL says which of the two the server is.

    Connects. Raises StoreUnavailable, and StoreError for a server that is too old.
    """
    engine = _writing_engine(url)
    try:
        with translated(engine), engine.connect():
            kind = _checked_kind(engine)
    except BaseException:
        engine.dispose()
        raise
    if kind == engine.dialect.name:
        return engine
    engine.dispose()
    return _writing_engine(url.set(drivername=f"{kind}+pymysql"))


def mysql_reading_engine(url: URL) -> Engine:
    """For snapshots: each transaction is one consistent state, and changes nothing."""
    engine = _engine(url, poolclass=NullPool, isolation_level="REPEATABLE READ")

    @event.listens_for(engine, "connect")
    def _read_only(connection: Any, record: Any) -> None:
        _run(connection, "SET SESSION TRANSACTION READ ONLY")

    return engine


def connect_arguments(url: URL) -> dict[str, Any]:
    """Options for PyMySQL beside those that SQLAlchemy passes. Raises StoreError for useless options."""
    return {**_tls_arguments(url), "charset": "utf8mb4", "connect_timeout": CONNECT_SECONDS_MAX, "local_infile": False}


def without_tls_options(url: URL) -> URL:
    """They are ours to read: SQLAlchemy and PyMySQL do not agree on which of them make it check the server."""
    return url.difference_update_query(_TLS_OPTIONS)


def set_up_session(connection: Connection) -> None:
    """Make a new connection behave the same whatever the server's settings are."""
    _run(connection, f"SET SESSION sql_mode = '{_SQL_MODE}', time_zone = '+00:00', default_storage_engine = InnoDB")
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        connection.statement_bytes_max = int(cursor.fetchone()[0])


def _tls_arguments(url: URL) -> dict[str, Any]:
    """Without options TLS is used where a server on the network has it, and not checked, which is PyMySQL's way."""
    unknown = [name for name in url.query if name.startswith("ssl") and name not in _TLS_OPTIONS]
    if unknown:
        raise StoreError(f"the database URL has the option {unknown[0]}; those of TLS are {', '.join(_TLS_OPTIONS)}")
    options = {name: str(url.query[name]) for name in _TLS_OPTIONS if name in url.query}
    if _truth(options, "ssl_disabled", default=not options and "unix_socket" in url.query):
        return {"ssl_disabled": True}
    options.pop("ssl_disabled", None)
    if not options:
        return {}
    try:
        return {"ssl": _checking_context(options)}
    except OSError as error:
        raise StoreError(f"the TLS files of the database URL cannot be used: {error}") from error


def _checking_context(options: dict[str, str]) -> ssl.SSLContext:
    """Certificate and name of the server are checked unless the options say otherwise."""
    context = ssl.create_default_context(cafile=options.get("ssl_ca"))
    # MySQL makes certificates for itself that newer Pythons would not take.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    is_checked = _truth(options, "ssl_verify_cert", default=True)
    context.check_hostname = _truth(options, "ssl_verify_identity", default=is_checked) and is_checked
    if not is_checked:
        context.verify_mode = ssl.CERT_NONE
    if "ssl_cert" in options:
        context.load_cert_chain(options["ssl_cert"], options.get("ssl_key"), options.get("ssl_key_password"))
    return context


@cache
def _unchecked_context() -> ssl.SSLContext:
    """As PyMySQL makes one of no options."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _truth(options: dict[str, str], name: str, *, default: bool) -> bool:
    if name not in options:
        return default
    truth = _TRUTHS.get(options[name].lower())
    if truth is None:
        raise StoreError(f"the option {name} of the database URL has to be true or false")
    return truth


def _writing_engine(url: URL) -> Engine:
    engine = _engine(url, pool_size=1, max_overflow=1, isolation_level="READ COMMITTED")
    wait_seconds = max(1, int(BUSY_SECONDS_MAX))

    @event.listens_for(engine, "connect")
    def _bounded_waits(connection: Any, record: Any) -> None:
        _run(connection, f"SET SESSION innodb_lock_wait_timeout = {wait_seconds}, lock_wait_timeout = {wait_seconds}")
        # MySQL only knows how long nothing was asked, so there a new connection is made after every long pause.
        silence = "idle_transaction_timeout" if _is_mariadb(connection) else "wait_timeout"
        _run(connection, f"SET SESSION {silence} = {STUCK_SECONDS_MAX}")

    return engine


def _engine(url: URL, **options: Any) -> Engine:
    arguments = connect_arguments(url)
    try:
        engine = create_engine(without_tls_options(url), hide_parameters=True, connect_args=arguments, **options)
    except (ArgumentError, TypeError, ValueError) as error:
        raise _bad_option(error) from error

    def connect(*positional: Any, **named: Any) -> Any:
        # At once: from its first connection SQLAlchemy learns how names are to be quoted.
        connection = _new_connection(*positional, **named)
        set_up_session(connection)
        return connection

    # No listener of `do_connect`, so that those of the store come first.
    engine.dialect.connect = connect  # type: ignore[method-assign]
    return engine


def _checked_kind(engine: Engine) -> str:
    """SQLAlchemy's name of the server's kind. Raises StoreError for a version that is too old."""
    dialect: Any = engine.dialect
    name, oldest = ("MariaDB", OLDEST_MARIADB) if dialect.is_mariadb else ("MySQL", OLDEST_MYSQL)
    version = tuple(part for part in dialect.server_version_info if isinstance(part, int))
    if version < oldest:
        found, needed = (".".join(map(str, numbers)) for numbers in (version, oldest))
        raise StoreError(f"{name} {found} is too old: {needed} or newer is needed")
    return name.lower()


def _connected(path: str, connect_seconds: float) -> socket.socket:
    """PyMySQL would leave the socket open when the server does not listen."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(connect_seconds)
        connection.connect(path)
    except OSError as error:
        connection.close()
        raise pymysql.err.OperationalError(_NOBODY_LISTENS, f"no connection to {path} ({error})") from error
    return connection


def _new_connection(*positional: Any, **named: Any) -> Connection:
    try:
        return Connection(*positional, **named)
    except (TypeError, ValueError, ssl.SSLError) as error:
        raise _bad_option(error) from error


def _bad_option(error: Exception) -> StoreError:
    return StoreError(f"the database URL has an option that cannot be used: {' '.join(str(error).split())}")


def _is_mariadb(connection: Any) -> bool:
    return "mariadb" in str(connection.get_server_info()).lower()


def _run(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


_QUERY: Final = "SELECT last_event_id FROM catalog"
# The event loop would wait so long for the rest of an answer that the network has cut in two.
_READ_SECONDS_MAX: Final = 5


class _WatchConnection(Connection):
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

    def __init__(self, connection: _WatchConnection) -> None:
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
            raise _watch_lost() from error
        self._is_asked = True

    def answer(self) -> EventId | None:
        # What a server sends without a question is why it closes the connection.
        if not self._is_asked:
            raise _watch_lost()
        self._is_asked = False
        try:
            rows = self._connection.receive()
        except pymysql.Error as error:
            raise _watch_lost() from error
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
        connection = _WatchConnection(*positional, **{**named, **ours})
        set_up_session(connection)
    return MysqlVersionWatch(connection)


def _watch_lost() -> StoreUnavailable:
    return StoreUnavailable("the connection that watches for changes is lost")
