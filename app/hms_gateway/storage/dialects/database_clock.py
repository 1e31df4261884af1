"""The database's own clock as an expression, in milliseconds since 1970: the same for every server of a catalog."""

from typing import Any, Final

from sqlalchemy import BigInteger, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


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
