"""A base for repositories: a connection inside a transaction that others begin and commit."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Insert

from hms_gateway.metastore.ports.store import Snapshot
from hms_gateway.storage.dialects import dialect_of
from hms_gateway.storage.dialects.statements import Rows, Statement


class Repository:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)

    def _run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        """See `Dialect.run_together`."""
        return self._dialect.run_together(self._connection, statements)

    def _inserted_id(self, statement: Insert) -> int:
        """Run an insert of one row and return the id the database gave it."""
        key: Any = self._connection.execute(statement).inserted_primary_key
        return int(key[0])


class AggregateRows(Repository):
    """Rows of an aggregate, inside a unit of work."""

    def __init__(self, unit: Snapshot) -> None:
        super().__init__(unit.connection)
