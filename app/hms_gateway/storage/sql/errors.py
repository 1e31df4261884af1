"""The seam where the drivers' errors become the store's own; no SQL text and no value ever gets into a message."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from hms_gateway.metastore.ports.store import StoreError, StoreFailure, StoreUnavailable, UnstorableText
from hms_gateway.storage.schema.catalog import NAME_BYTES_MAX
from hms_gateway.storage.schema.column_types import DATABASE_CHARACTERS, NAME_CHARACTERS, TABLE_CHARACTERS

# SQLAlchemy's names of them.
MYSQL_KINDS: Final = frozenset({"mysql", "mariadb"})
_CHARACTERS_MAX: Final = {"database": DATABASE_CHARACTERS, "table": TABLE_CHARACTERS}

_RETRYABLE_STATES: Final = frozenset({"40001", "40P01"})  # serialization failure, deadlock detected
_LOCK_TIMEOUT: Final = "55P03"
# MySQL and MariaDB: deadlock; the row has changed since it was read; the savepoint is gone, as after a deadlock.
_MYSQL_RETRYABLE: Final = frozenset({1213, 1020, 1305})
_MYSQL_LOCK_TIMEOUT: Final = 1205
_MYSQL_READ_ONLY: Final = frozenset({1290, 1792, 1836})
_MYSQL_FULL: Final = frozenset({1021, 1114})
_MYSQL_TOO_LONG: Final = 1406
MYSQL_PACKET_TOO_LARGE: Final = 1153
# A connection that was there is lost: by the server, by the network, by somebody who ended it.
_MYSQL_GONE: Final = frozenset({0, 1053, 1317, 1927, 2006, 2013, 2014, 2045, 2055, 4031})
# There is none to be had: too many, the server does not listen, is starting or not ready, host refused.
_MYSQL_UNREACHABLE: Final = frozenset(
    {1040, 1047, 1129, 1130, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 2002, 2003}
)
# Connection exceptions, server starting up or shutting down, too many connections.
_LOST_STATES: Final = ("08", "57P0", "53300")
_SQLITE_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_SQLITE_UNAVAILABLE: Final = {
    "SQLITE_CANTOPEN": "it cannot be opened or made",
    "SQLITE_IOERR": "reading or writing it failed",
    "SQLITE_FULL": "its disk is full",
    "SQLITE_READONLY": "it cannot be written",
    "SQLITE_NOMEM": "there is not enough memory",
}
_SQLITE_BROKEN: Final = {"SQLITE_NOTADB": "it is not a SQLite database", "SQLITE_CORRUPT": "it is damaged"}
_DETAIL_CHARACTERS_MAX: Final = 500
_AGAIN: Final = "the database asked to run the transaction again"
_BUSY: Final = "another process has been changing the catalog for too long"


class Retryable(Exception):
    """The database gave up a unit of work that may succeed when it is run again; nothing was changed."""


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turn whatever the driver raises inside into StoreError, StoreUnavailable or Retryable."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreUnavailable("all connections for reading are in use") from error
    except SQLAlchemyError as error:
        raise _translation(engine, error) from error
    except Exception as error:
        if not is_driver_error(engine, error):
            raise
        raise _translation(engine, error) from error


def is_driver_error(engine: Engine, error: BaseException) -> bool:
    """Whether the driver itself raised it, past SQLAlchemy."""
    return isinstance(error, engine.dialect.loaded_dbapi.Error)


def is_disconnect(engine: Engine, error: BaseException | None) -> bool:
    """Whether the error is that an established connection is lost."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated
    if error is None or not is_driver_error(engine, error):
        return False
    return _state(error).startswith(_LOST_STATES) or _mysql_code(error) in _MYSQL_GONE


def may_have_committed(engine: Engine, error: DBAPIError) -> bool:
    """Whether a commit that ended with this error may have happened nevertheless."""
    return is_disconnect(engine, error) or _mysql_code(error.orig) in _MYSQL_GONE


def is_lost_state(state: str) -> bool:
    """Whether PostgreSQL's state of an error says that the connection is at its end."""
    return state.startswith(_LOST_STATES)


def is_worth_another_try(engine: Engine, error: StoreError | Retryable) -> bool:
    """Whether a unit of work that changed nothing may succeed at once: on a new connection, or without the rival."""
    return isinstance(error, Retryable) or is_disconnect(engine, error.__cause__)


def detail_of(error: Exception) -> str:
    """What the driver said, where it may be told to the operator."""
    return error.detail if isinstance(error, StoreUnavailable) else ""


def check_name(kind: str, name: str, dialect_name: str) -> None:
    """Raise UnstorableText unless `name` can be stored and indexed on a database of this kind."""
    check_text(kind, name)
    if dialect_name in MYSQL_KINDS and len(name) > (longest := _CHARACTERS_MAX.get(kind, NAME_CHARACTERS)):
        raise UnstorableText(f"{kind} {name[:80]}… is longer than {longest} characters")
    if len(name) * 4 > NAME_BYTES_MAX and len(name.encode()) > NAME_BYTES_MAX:
        raise UnstorableText(f"{kind} {name[:80]}… is longer than {NAME_BYTES_MAX} bytes")


def check_text(kind: str, text: str | None) -> None:
    """Raise UnstorableText for what no database can keep on its own; inside encoded fragments it is escaped."""
    if text is not None and not is_storable(text):
        shown = text.replace("\0", "\\0").encode(errors="backslashreplace").decode()
        raise UnstorableText(f"{kind} {shown[:80]} contains a NUL character or half of a surrogate pair")


def is_storable(text: str) -> bool:
    """Whether a database can hold the text as it is."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _translation(engine: Engine, error: Exception) -> Exception:
    original = error.orig if isinstance(error, DBAPIError) else error
    code = _mysql_code(original)
    if code is not None:
        return _mysql_translation(engine, error, code)
    state, name = _state(original), getattr(original, "sqlite_errorname", None) or ""
    if state in _RETRYABLE_STATES:
        return Retryable(_AGAIN)
    if state == _LOCK_TIMEOUT:
        return StoreUnavailable(_BUSY)
    if name.startswith(_SQLITE_BUSY):
        return StoreUnavailable("the database file is locked by another process")
    for kind, reason in _SQLITE_UNAVAILABLE.items():
        if name.startswith(kind):
            return StoreUnavailable(f"the database file cannot be used: {reason} ({name})")
    for kind, reason in _SQLITE_BROKEN.items():
        if name.startswith(kind):
            return StoreFailure(f"the database file cannot be used: {reason} ({name})")
    if _never_connected(error):
        return _unreachable(original)
    if state.startswith(_LOST_STATES) or is_disconnect(engine, error):
        return StoreUnavailable("the database cannot be reached")
    return StoreFailure(f"the database refused a statement ({state or name or type(original).__name__})")


def _mysql_translation(engine: Engine, error: Exception, code: int) -> Exception:
    if code in _MYSQL_RETRYABLE:
        return Retryable(_AGAIN)
    if code == _MYSQL_LOCK_TIMEOUT:
        return StoreUnavailable(_BUSY)
    if code in _MYSQL_READ_ONLY:
        return StoreUnavailable("the database takes no changes: it is read-only")
    if code in _MYSQL_FULL:
        return StoreUnavailable("the database's disk is full")
    if code == _MYSQL_TOO_LONG:
        return UnstorableText("a text is longer than this database can keep where it belongs")
    if code == MYSQL_PACKET_TOO_LARGE:
        return StoreError("the change is larger than the database takes at once: its setting max_allowed_packet")
    if _never_connected(error):
        return _unreachable(error.orig if isinstance(error, DBAPIError) else error)
    if code in _MYSQL_GONE or code in _MYSQL_UNREACHABLE or is_disconnect(engine, error):
        return StoreUnavailable("the database cannot be reached")
    return StoreFailure(f"the database refused a statement ({code})")


def _unreachable(original: BaseException | None) -> StoreUnavailable:
    detail = " ".join(str(original).split())[:_DETAIL_CHARACTERS_MAX]
    return StoreUnavailable("the database cannot be reached", detail)


def _mysql_code(error: BaseException | None) -> int | None:
    """The number of an error of PyMySQL; 0 where it has none, as when its connection is closed already."""
    if error is None or not type(error).__module__.startswith("pymysql"):
        return None
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def _state(error: BaseException | None) -> str:
    return getattr(error, "sqlstate", None) or ""


def _never_connected(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and error.statement is None and type(error.orig).__name__ == "OperationalError"
