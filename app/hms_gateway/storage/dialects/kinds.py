"""The kinds of databases by SQLAlchemy's names of them, each loaded when it is first asked for; the seam where the
drivers' errors become the store's own. No SQL text and no value ever gets into a message.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Final

from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from hms_gateway.metastore.ports.store import StoreError, StoreFailure, StoreUnavailable
from hms_gateway.storage.dialects.base import Dialect, NoAnswer, Retryable

# The module of each kind.
_MODULES: Final = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
# With the driver we use where the URL names none.
_DRIVERS: Final = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
_EXAMPLES: Final = (
    "sqlite:///folder/metastore.db or postgresql+psycopg://user:password@host/name"
    " or mariadb+pymysql://user:password@host/name"
)
# What SQLAlchemy takes for host, database and options.
_BEHIND_LOGIN: Final = re.compile(r"[^:]*://(?:[^:/]*(?::[^@]*)?@)?(.*)")


def parse_url(url: str) -> URL:
    """Check that `url` names a database we support. Raises StoreError, whose text has nothing of the URL."""
    behind = _BEHIND_LOGIN.match(url)
    if behind is not None and "@" in behind[1] and not url.startswith("sqlite"):
        # The rest of the password would be a host, which errors name.
        raise StoreError("the database URL has an @ behind user and password; write an @ in the password as %40")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Not chained: SQLAlchemy shows what it took for a port.
        raise StoreError(f"the database URL cannot be read: it looks like {_EXAMPLES}") from None
    parsed = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", *_DRIVERS.values()):
        raise StoreError(f"databases of kind {parsed.drivername} are not supported: use {_EXAMPLES}")
    dialect_of_url(parsed).check_url(parsed)
    return parsed


def writing_engine(url: URL) -> Engine:
    """See `Dialect.writing_engine`."""
    return dialect_of_url(url).writing_engine(url)


def dialect_of(bind: Engine | Connection) -> Dialect:
    """The kind of the database that `bind` belongs to."""
    return _dialect(bind.dialect.name)


def dialect_of_url(url: URL) -> Dialect:
    """The kind of the database at a URL of `parse_url`."""
    return _dialect(url.get_backend_name())


def system_of(url: URL) -> str:
    """The database's name in traces (`db.system` of OpenTelemetry)."""
    return url.get_backend_name()


@cache
def _dialect(name: str) -> Dialect:
    dialect: Dialect = import_module(f"{__package__}.{_MODULES[name]}").DIALECT
    return dialect


_DETAIL_CHARACTERS_MAX: Final = 500


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turn whatever the driver raises inside into StoreError, StoreUnavailable or Retryable."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _translation(engine, error) from error
    except Exception as error:
        if not is_driver_error(engine, error):
            raise
        raise _translation(engine, error) from error


def is_driver_error(engine: Engine, error: BaseException) -> bool:
    """True if the driver itself raised it, past SQLAlchemy."""
    return isinstance(error, engine.dialect.loaded_dbapi.Error)


def is_disconnect(engine: Engine, error: BaseException | None) -> bool:
    """True if the error is the loss of an established connection."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated
    if error is None or not is_driver_error(engine, error):
        return False
    return dialect_of(engine).is_lost(error)


def is_worth_another_try(engine: Engine, error: StoreError | Retryable) -> bool:
    """True if a unit of work that changed nothing may succeed at once: on a new connection, or without the rival."""
    if isinstance(error, NoAnswer):
        return False
    return isinstance(error, Retryable) or is_disconnect(engine, error.__cause__)


def not_connected(engine: Engine, original: Exception) -> StoreUnavailable:
    """The error where no connection could be made, and `Dialect.translation` does not know what the driver raised."""
    detail = _detail(original)
    if dialect_of(engine).refuses_login(original):
        user = f'user "{engine.url.username or ""}" of database_url (HMS_GATEWAY_DATABASE_URL)'
        return StoreUnavailable("the database refuses the gateway's login", f"{user}: {detail}")
    return StoreUnavailable("the database cannot be reached", detail)


def as_unavailable(error: StoreUnavailable | Retryable) -> StoreUnavailable:
    """A new exception of what was tried in vain: each caller gets one with a traceback of its own."""
    if isinstance(error, Retryable):
        return StoreUnavailable(str(error))
    return StoreUnavailable(str(error), error.detail, error.limit)


def _detail(error: Exception) -> str:
    """Text of the driver about a connection; there is nothing of a statement or of its values in it."""
    told = error if str(error) or error.__cause__ is None else error.__cause__
    # psycopg's text goes on with what PostgreSQL was doing, such as the row of a COPY.
    text = getattr(getattr(told, "diag", None), "message_primary", None) or str(told)
    return " ".join(text.split())[:_DETAIL_CHARACTERS_MAX]


def _translation(engine: Engine, error: Exception) -> Exception:
    original = (error.orig if isinstance(error, DBAPIError) else None) or error
    dialect = dialect_of(engine)
    known = dialect.translation(original)
    if known is not None:
        return known
    if _never_connected(engine, error):
        return not_connected(engine, original)
    if dialect.is_unreachable(original) or is_disconnect(engine, error):
        return StoreUnavailable("the database cannot be reached", _detail(original))
    code = dialect.error_code(original) or type(original).__name__
    return StoreFailure(f"the database refused a statement ({code})")


def _never_connected(engine: Engine, error: Exception) -> bool:
    if not isinstance(error, DBAPIError) or error.statement is not None:
        return False
    return isinstance(error.orig, engine.dialect.loaded_dbapi.OperationalError)
