"""What reads are handed: one consistent state."""

from collections.abc import Sequence

from sqlalchemy import Connection

from hms_gateway.storage.catalog.databases import DatabaseReads, database_statement, found_database
from hms_gateway.storage.catalog.events import EventReads
from hms_gateway.storage.catalog.names import NameReads
from hms_gateway.storage.catalog.tables import TableReads, table_row, table_statement
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.partitions.reads import PartitionReads
from hms_gateway.storage.sql.repository import SharedSnapshot, is_storable
from hms_gateway.storage.txn.txns import SqlTxnReads


class Objects(NameReads):
    """The repositories of the smaller aggregates. A unit of work writes its changes whenever one is asked for."""

    @property
    def connection(self) -> Connection:
        return self._connection


class SqlSnapshot(PartitionReads, TableReads, DatabaseReads, EventReads, Objects):
    """`ports.Snapshot` inside a read-only transaction that `shared` keeps open."""

    def __init__(self, shared: SharedSnapshot) -> None:
        self._dialect = shared.dialect
        self._shared: SharedSnapshot = shared

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        return self._shared.connection

    def _run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        return self._shared.run(statements)

    def foresee(self, tables: Sequence[tuple[str, str]]) -> None:
        names = [name for name in dict.fromkeys(tables) if all(map(is_storable, name))]
        databases = dict.fromkeys(db_name for db_name, _ in names)
        statements = [*map(table_statement, names), *map(database_statement, databases)]
        answers = iter(self._run_together(statements))
        self._foreseen_tables = {name: table_row(next(answers)) for name in names}
        self._foreseen_databases = {name: found_database(next(answers)) for name in databases}

    @property
    def txns(self) -> SqlTxnReads:
        return SqlTxnReads(self._connection)
