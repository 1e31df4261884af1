"""The kinds of databases by SQLAlchemy's names of them, each loaded when it is first asked for."""

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


def parse_url(url: str) -> URL:
    """Check that `url` names a database we support. Raises StoreError."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreError(f"the database URL cannot be read: it looks like {_EXAMPLES}") from error
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


@cache
def _dialect(name: str) -> Dialect:
    dialect: Dialect = import_module(f"{__package__}.{_MODULES[name]}").DIALECT
    return dialect
