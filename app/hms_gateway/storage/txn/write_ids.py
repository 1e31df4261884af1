"""Write ids of tables as rows."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import and_, bindparam, delete, insert, or_, select, update

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import DATABASES, TABLES
from hms_gateway.storage.schema.txn import TABLE_WRITE_IDS, TXN_WRITE_IDS
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.state import object_columns
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target

_OF_TABLE: Final = and_(
    TXN_WRITE_IDS.c.db_name == bindparam("the_db"), TXN_WRITE_IDS.c.table_name == bindparam("the_table")
)
_THIS_TABLE: Final = and_(
    TABLE_WRITE_IDS.c.db_name == bindparam("the_db"), TABLE_WRITE_IDS.c.table_name == bindparam("the_table")
)
_LAST: Final = select(TABLE_WRITE_IDS.c.last_write_id).where(_THIS_TABLE)
_TABLE_ID: Final = (
    select(TABLES.c.table_id)
    .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
    .where(DATABASES.c.name == bindparam("the_db"), TABLES.c.name == bindparam("the_table"))
)
_SET_LAST: Final = update(TABLE_WRITE_IDS).where(_THIS_TABLE).values(last_write_id=bindparam("new_last"))


class WriteIdReads(Repository):
    def table_id(self, table: Target) -> int | None:
        if not _is_storable(table):
            return None
        return self._connection.execute(_TABLE_ID, _names(table)).scalar()

    def last_write_id(self, table: Target) -> int | None:
        if not _is_storable(table):
            return None
        return self._connection.execute(_LAST, _names(table)).scalar()

    def hidden_write_ids(self, table: Target, high_water_mark: int, excepted: Sequence[int]) -> list[tuple[int, int]]:
        if not _is_storable(table):
            return []
        is_hidden = or_(
            TXN_WRITE_IDS.c.txn_id > high_water_mark,
            has_id_among(TXN_WRITE_IDS.c.txn_id, excepted, self._dialect),
        )
        statement = select(TXN_WRITE_IDS.c.txn_id, TXN_WRITE_IDS.c.write_id).where(_OF_TABLE, is_hidden)
        return [(txn_id, write_id) for txn_id, write_id in self._connection.execute(statement, _names(table))]


class WriteIdWrites(WriteIdReads):
    def write_ids_of(self, table: Target, txn_ids: Sequence[TxnId]) -> dict[int, int]:
        if not _is_storable(table):
            return {}
        among = has_id_among(TXN_WRITE_IDS.c.txn_id, txn_ids, self._dialect)
        statement = select(TXN_WRITE_IDS.c.txn_id, TXN_WRITE_IDS.c.write_id).where(_OF_TABLE, among)
        rows = self._connection.execute(statement, _names(table))
        return {row.txn_id: row.write_id for row in rows}

    def insert_write_ids(self, table: Target, write_ids: Mapping[TxnId, int]) -> None:
        names = _columns(table, self._dialect)
        rows = [{**names, "txn_id": txn_id, "write_id": write_id} for txn_id, write_id in write_ids.items()]
        if rows:
            self._connection.execute(insert(TXN_WRITE_IDS), rows)

    def delete_write_ids(self, table: Target, txn_ids: Sequence[TxnId]) -> None:
        among = has_id_among(TXN_WRITE_IDS.c.txn_id, txn_ids, self._dialect)
        self._connection.execute(delete(TXN_WRITE_IDS).where(_OF_TABLE, among), _names(table))

    def set_last_write_id(self, table: Target, write_id: int) -> None:
        columns = _columns(table, self._dialect)
        changed = self._connection.execute(_SET_LAST, {**_names(table), "new_last": write_id}).rowcount
        if not changed:
            self._connection.execute(insert(TABLE_WRITE_IDS).values(**columns, last_write_id=write_id))


def _names(table: Target) -> dict[str, str]:
    return {"the_db": table.db_name, "the_table": table.table_name or ""}


def _columns(table: Target, dialect: Dialect) -> dict[str, str]:
    """Raises UnstorableText."""
    columns = object_columns(table, dialect)
    del columns["partition_name"]
    return columns


def _is_storable(table: Target) -> bool:
    return all(is_storable(name) for name in table if name is not None)
