"""Statements with the values of their parameters, several of which a database is sent together."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import BigInteger, Executable, select, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from hms_gateway.metastore.ports.store import StoredEvent

Values: TypeAlias = Mapping[str, object]
Rows: TypeAlias = Sequence[Sequence[Any]]


class Statement(NamedTuple):
    """A statement and the values of its parameters. What changes rows may have several rows of them."""

    sql: Executable
    values: Values | Sequence[Values]


class ChangesQuery(NamedTuple):
    """Asks for the events after the one with the id `after`; `read` makes them of rows."""

    sql: Executable
    read: Callable[[Rows], list[StoredEvent]]


# Where the beginning and the end of a transaction are sent with the rest.
BEGIN: Final = Statement(text("BEGIN ISOLATION LEVEL READ COMMITTED"), {})
COMMIT: Final = Statement(text("COMMIT"), {})


class ConnectionLost(Exception):
    """What was sent last may have been done or not."""


class ConnectionEnded(ConnectionLost):
    """The database said so before it did the last of what was sent."""


class StatementRefused(Exception):
    """The database did not do a statement, nor what was sent after it, a commit included. The text is its state."""


class _DatabaseNow(FunctionElement[int]):
    name = "database_now"
    type = BigInteger()
    inherit_cache = True


@compiles(_DatabaseNow)
def _unknown(element: Any, compiler: Any, **_: Any) -> str:
    raise NotImplementedError("this database has no clock of its own")


@compiles(_DatabaseNow, "postgresql")
def _postgresql(element: Any, compiler: Any, **_: Any) -> str:
    return "CAST(EXTRACT(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"


@compiles(_DatabaseNow, "mysql")
@compiles(_DatabaseNow, "mariadb")
def _mysql(element: Any, compiler: Any, **_: Any) -> str:
    # Of no time zone, and without the end in 2038 that UNIX_TIMESTAMP has.
    return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000"


# One row. SQLite has no server whose clock that would be.
DATABASE_NOW: Final = select(_DatabaseNow())
