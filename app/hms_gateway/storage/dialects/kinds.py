"""The kinds of databases by SQLAlchemy's names of them, each loaded when it is first asked for."""

import re
from functools import cache
from importlib import import_module
from typing import Final

from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.storage.dialects.base import Dialect

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
