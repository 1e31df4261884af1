"""The indexes that not all databases have in the same form, which the migrations make; a server never asks for them."""

from typing import Any

from sqlalchemy import Column, Index, Table, text

from hms_gateway.storage.schema.catalog import KEY_COLUMNS, PARTITIONS, TABLES
from hms_gateway.storage.schema.column_types import index_lengths
from hms_gateway.storage.schema.txn import COMPACTIONS, LEASE_WAITERS, LEASES, LOCKS, TXNS


def _index(name: str, condition: str, *columns: Column[object], **lengths: Any) -> None:
    """MySQL and MariaDB have no such indexes, there it is over all rows."""
    Index(name, *columns, sqlite_where=text(condition), postgresql_where=text(condition), **lengths)


# Each with the key behind it: then a condition on two keys (a day and an hour) finds its few rows, whichever of
# them distinguishes partitions better.
for _number, _column in enumerate(KEY_COLUMNS):
    _columns = KEY_COLUMNS[_number : _number + 2]
    _index(
        f"partitions_{_column.name}",
        f"{_column.name} IS NOT NULL",
        PARTITIONS.c.table_id,
        *_columns,
        **index_lengths(*(column.name for column in _columns)),
    )

# PostgreSQL's other index of texts has a longest one.
Index("tables_location", TABLES.c.location, postgresql_using="spgist", **index_lengths("location"))

_index("txns_silent", "state = 'o'", TXNS.c.last_heartbeat_ms)
_index("txns_ended", "state = 'c'", TXNS.c.ended_ms)
_index("txns_refused", "refused_lock IS NOT NULL", TXNS.c.refused_lock)
_index("locks_txn", "txn_id > 0", LOCKS.c.txn_id)
_index("locks_silent", "txn_id = 0", LOCKS.c.last_heartbeat_ms)


def _object_index(name: str, table: Table, *further: str) -> None:
    columns = (table.c[column] for column in ("db_name", "table_name", "partition_name", *further))
    Index(name, *columns, **index_lengths("partition_name"))


_object_index("locks_partition", LOCKS, "strength")
_object_index("compactions_object", COMPACTIONS)
_object_index("leases_object", LEASES)
_object_index("lease_waiters_object", LEASE_WAITERS)
