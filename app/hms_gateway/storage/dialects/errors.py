"""The seam where the drivers' errors become the store's own; no SQL text and no value ever gets into a message."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from hms_gateway.metastore.ports.store import StoreError, StoreFailure, StoreUnavailable
from hms_gateway.storage.dialects.base import NoAnswer, Retryable
from hms_gateway.storage.dialects.kinds import dialect_of
from hms_gateway.storage.dialects.statements import StatementRefused, Values

_DETAIL_CHARACTERS_MAX: Final = 500


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turn whatever the driver raises inside into StoreError, StoreUnavailable or Retryable."""
    try:
        yield
    except PoolTimeout as error:
        name = "database_connections_max"
        raise StoreUnavailable(f"all connections for reading are in use (setting {name})", limit=name) from error
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
    return dialect_of(engine).is_lost(error)


def is_worth_another_try(engine: Engine, error: StoreError | Retryable) -> bool:
    """Whether a unit of work that changed nothing may succeed at once: on a new connection, or without the rival."""
    if isinstance(error, NoAnswer):
        return False
    return isinstance(error, Retryable) or is_disconnect(engine, error.__cause__)


def not_connected(engine: Engine, original: Exception) -> StoreUnavailable:
    """The error where no connection could be made, and `Dialect.translation` does not know what the driver raised."""
    detail = " ".join(str(original).split())[:_DETAIL_CHARACTERS_MAX]
    if dialect_of(engine).refuses_login(original):
        user = f'user "{engine.url.username or ""}" of database_url (HMS_GATEWAY_DATABASE_URL)'
        return StoreUnavailable("the database refuses the gateway's login", f"{user}: {detail}")
    return StoreUnavailable("the database cannot be reached", detail)


def refused_row(error: BaseException) -> Values | None:
    """The values that the database refused, where it says so; the same object that was handed over."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, StatementRefused):
        cause = cause.__cause__
    return None if cause is None else cause.row


def as_unavailable(error: StoreUnavailable | Retryable) -> StoreUnavailable:
    """A new exception of what was tried in vain: each caller gets one with a traceback of its own."""
    if isinstance(error, Retryable):
        return StoreUnavailable(str(error))
    return StoreUnavailable(str(error), error.detail, error.limit)


def _translation(engine: Engine, error: Exception) -> Exception:
    original = (error.orig if isinstance(error, DBAPIError) else None) or error
    dialect = dialect_of(engine)
    known = dialect.translation(original)
    if known is not None:
        return known
    if _never_connected(engine, error):
        return not_connected(engine, original)
    if dialect.is_unreachable(original) or is_disconnect(engine, error):
        return StoreUnavailable("the database cannot be reached")
    code = dialect.error_code(original) or type(original).__name__
    return StoreFailure(f"the database refused a statement ({code})")


def _never_connected(engine: Engine, error: Exception) -> bool:
    if not isinstance(error, DBAPIError) or error.statement is not None:
        return False
    return isinstance(error.orig, engine.dialect.loaded_dbapi.OperationalError)
