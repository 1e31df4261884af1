"""Partitions whose table is dropped already, deleted some at a time.

Only where a database takes long for it (`Dialect.deleted_with_table_max`). Nothing finds them meanwhile: partitions are
asked for by the ids of tables, which are not given again.
"""

from typing import Final

from sqlalchemy import Connection, delete, select

from hms_gateway.storage.dialects import dialect_of
from hms_gateway.storage.schema.catalog import DESCRIPTORS, DROPPED_TABLES, FURTHER_KEYS, PARTITIONS
from hms_gateway.storage.sql.filter_sql import has_id_among

PIECE_ROWS: Final = 1_000


def first_dropped(connection: Connection) -> int | None:
    """The id of a table whose partitions are still to be deleted."""
    return connection.execute(select(DROPPED_TABLES.c.table_id).order_by(DROPPED_TABLES.c.table_id).limit(1)).scalar()


def delete_piece(connection: Connection, table_id: int) -> None:
    """Delete the next partitions of a dropped table, with the last ones everything else that it has left."""
    of_table = PARTITIONS.c.table_id == table_id
    next_ones = select(PARTITIONS.c.partition_id).where(of_table).order_by(PARTITIONS.c.part_name).limit(PIECE_ROWS)
    ids = connection.scalars(next_ones).all()
    for table in (FURTHER_KEYS, PARTITIONS):
        connection.execute(delete(table).where(has_id_among(table.c.partition_id, ids, dialect_of(connection))))
    if len(ids) < PIECE_ROWS:
        for table in (DESCRIPTORS, DROPPED_TABLES):
            connection.execute(delete(table).where(table.c.table_id == table_id))
