"""Compiled SQL statements that all engines of this process share.

Each engine has a cache of its own, and most tests open a new store: they would compile the same statements again, which
takes longer than running them on an empty database.
"""

from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.util import LRUCache

T = TypeVar("T")

STATEMENTS_MAX = 2_000


class _SharedStatements(LRUCache[Any, Any]):
    """By what the text depends on, where SQLAlchemy's keys begin with the dialect object of one engine."""

    def get(self, key: Any, default: T | None = None) -> Any:
        return super().get(_shared(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_shared(key), value)


def _shared(key: Any) -> Any:
    dialect, *statement = key
    server = type(dialect), dialect.paramstyle, dialect.server_version_info, getattr(dialect, "is_mariadb", False)
    return *server, *statement


def share_statements() -> None:
    """From now on, for every engine of this process."""
    statements = _SharedStatements(STATEMENTS_MAX)

    @event.listens_for(Engine, "engine_connect")
    def _connected(connection: Connection) -> None:
        connection.execution_options(compiled_cache=statements)
