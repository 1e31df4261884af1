"""Partitions whose table is dropped already, deleted some at a time.

Only where a database takes long for it (`Dialect.deleted_with_table_max`). Nothing finds them meanwhile: partitions are
asked for by the ids of tables, which are not given again.
"""

from typing import Final

from sqlalchemy import Connection, delete, select

from hms_gateway.storage.schema.catalog import DROPPED_TABLES, OF_PARTITIONED, PARTITIONS

PIECE_ROWS: Final = 1_000


def first_dropped(connection: Connection) -> int | None:
    """The id of a table whose partitions are still to be deleted."""
    return connection.execute(select(DROPPED_TABLES.c.table_id).order_by(DROPPED_TABLES.c.table_id).limit(1)).scalar()


def delete_piece(connection: Connection, table_id: int) -> None:
    """Delete the next partitions of a dropped table, with the last ones everything else that it has left."""
    of_table, name = PARTITIONS.c.table_id == table_id, PARTITIONS.c.part_name
    last = connection.execute(select(name).where(of_table).order_by(name).offset(PIECE_ROWS - 1).limit(1)).scalar()
    if last is not None:
        connection.execute(delete(PARTITIONS).where(of_table, name <= last))
        return
    for table in (*OF_PARTITIONED, DROPPED_TABLES):
        connection.execute(delete(table).where(table.c.table_id == table_id))
