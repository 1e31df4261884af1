"""Transactions' rows follow the objects they name: gone with what is dropped, renamed with what is renamed.

Locks stay as they are (semantics §3.7): they are on names, whatever is behind them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Table, and_, bindparam, delete, select, update

from hms_gateway.storage.schema.catalog import DATABASES, TABLES
from hms_gateway.storage.schema.txn import (
    COMPACTIONS,
    COMPLETED_COMPONENTS,
    REBUILDS,
    TABLE_WRITE_IDS,
    TXN_COMPONENTS,
    TXN_WRITE_IDS,
    WRITE_SETS,
)
from hms_gateway.storage.sql.filter_sql import is_among
from hms_gateway.storage.sql.repository import Repository

OF_PARTITIONS: Final = (TXN_COMPONENTS, COMPLETED_COMPONENTS, COMPACTIONS)
# A table that is made again begins with its first write id.
WRITE_IDS: Final = (TXN_WRITE_IDS, TABLE_WRITE_IDS)
PURGED: Final = (*OF_PARTITIONS, *WRITE_IDS)
RENAMED: Final = (*PURGED, WRITE_SETS, REBUILDS)

_OLD_NAMES: Final = (
    select(DATABASES.c.name, TABLES.c.name)
    .join(TABLES, TABLES.c.database_id == DATABASES.c.database_id)
    .where(TABLES.c.table_id == bindparam("the_table_id"))
)
_DATABASE_NAME: Final = select(DATABASES.c.name).where(DATABASES.c.database_id == bindparam("the_database_id"))


class TxnNames(Repository):
    """Called before the change of the object itself."""

    def drop_database(self, database_id: int) -> None:
        name = self._connection.execute(_DATABASE_NAME, {"the_database_id": database_id}).scalar()
        for table in PURGED:
            self._connection.execute(delete(table).where(table.c.db_name == name))

    def drop_partitions(self, db_name: str, table_name: str, partition_names: Sequence[str]) -> None:
        for table in OF_PARTITIONS:
            among = is_among(table.c.partition_name, partition_names, self._dialect)
            of_table = and_(table.c.db_name == db_name, table.c.table_name == table_name)
            self._connection.execute(delete(table).where(of_table, among))

    def rename_table(self, table_id: int, database_id: int, new_name: str) -> None:
        """Harmless for a table that keeps its name and database."""
        old = self._connection.execute(_OLD_NAMES, {"the_table_id": table_id}).first()
        new_db = self._connection.execute(_DATABASE_NAME, {"the_database_id": database_id}).scalar()
        if old is None or (old[0], old[1]) == (new_db, new_name):
            return
        # What was allocated under the new name before the table existed.
        self._delete(WRITE_IDS, new_db or "", new_name)
        for table in RENAMED:
            is_old = and_(table.c.db_name == old[0], table.c.table_name == old[1])
            self._connection.execute(update(table).where(is_old).values(db_name=new_db, table_name=new_name))

    def rename_partitions(self, db_name: str, table_name: str, new_names: Mapping[str, str]) -> None:
        """New names by old names."""
        if not new_names:
            return
        # In two steps, or a name that is given on within the same call would be taken along.
        steps = [{old: f"\1{new}" for old, new in new_names.items()}, {f"\1{new}": new for new in new_names.values()}]
        for table in (*OF_PARTITIONS, WRITE_SETS):
            statement = (
                update(table)
                .where(
                    table.c.db_name == db_name,
                    table.c.table_name == table_name,
                    table.c.partition_name == bindparam("old_name"),
                )
                .values(partition_name=bindparam("new_name"))
            )
            for step in steps:
                rows = [{"old_name": old, "new_name": new} for old, new in step.items()]
                self._connection.execute(statement, rows)

    def _delete(self, tables: Iterable[Table], db_name: str, table_name: str) -> None:
        for table in tables:
            is_it = and_(table.c.db_name == db_name, table.c.table_name == table_name)
            self._connection.execute(delete(table).where(is_it))
