"""The tables of transactions, locks, write ids and compactions.

Absent names are empty texts here, not NULL, so that one index finds a lock's object and everything it overlaps.
"""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, SmallInteger, Table

from hms_gateway.storage.schema.catalog import METADATA
from hms_gateway.storage.schema.column_types import BINARY_TEXT, DATABASE_NAME, ID, LONG_TEXT, SHORT_TEXT, TABLE_NAME

# The newest id of each kind that was ever given; a missing row is 0.
TXN_COUNTERS: Final = Table(
    "txn_counters",
    METADATA,
    Column("name", BINARY_TEXT, primary_key=True),
    Column("last_id", BigInteger, nullable=False),
)
COUNTERS: Final = ("txn", "lock", "compaction", "lease", "lease_ticket")

# Open, aborted and, for a while, committed ones. Times in milliseconds of the database's clock.
TXNS: Final = Table(
    "txns",
    METADATA,
    Column("txn_id", BigInteger, primary_key=True, autoincrement=False),
    Column("state", BINARY_TEXT, nullable=False),
    Column("txn_type", Integer, nullable=False),
    Column("user_name", LONG_TEXT, nullable=False),
    Column("host_name", LONG_TEXT, nullable=False),
    Column("agent_info", LONG_TEXT),
    Column("started_ms", BigInteger, nullable=False),
    Column("last_heartbeat_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    # The oldest transaction that was open when this one began.
    Column("min_open_txn", BigInteger, nullable=False),
    Column("reason", LONG_TEXT),
    Column("refused_lock", BigInteger),
    # Whether it was given a write id of any table; a commit of the others asks for nothing.
    Column("has_write_ids", Boolean),
    Index("txns_state", "state", "txn_id"),
)


def _object_columns() -> tuple[Column[str], Column[str], Column[str]]:
    return (
        Column("db_name", DATABASE_NAME, nullable=False),
        Column("table_name", TABLE_NAME, nullable=False),
        Column("partition_name", BINARY_TEXT, nullable=False),
    )


# What open and aborted transactions work on; the rows of aborted ones stay until a compaction has cleaned up.
TXN_COMPONENTS: Final = Table(
    "txn_components",
    METADATA,
    Column("component_id", ID, primary_key=True),
    Column("txn_id", BigInteger, nullable=False),
    *_object_columns(),
    Column("operation", BINARY_TEXT, nullable=False),
    Column("write_id", BigInteger),
    Index("txn_components_txn", "txn_id"),
    Index("txn_components_object", "db_name", "table_name"),
)

COMPLETED_COMPONENTS: Final = Table(
    "completed_txn_components",
    METADATA,
    Column("component_id", ID, primary_key=True),
    Column("txn_id", BigInteger, nullable=False),
    *_object_columns(),
    Column("operation", BINARY_TEXT, nullable=False),
    Column("write_id", BigInteger),
    Index("completed_txn_components_txn", "txn_id"),
    Index("completed_txn_components_object", "db_name", "table_name"),
)

# Updates and deletes of committed transactions, for first-committer-wins.
WRITE_SETS: Final = Table(
    "write_sets",
    METADATA,
    Column("write_set_id", ID, primary_key=True),
    Column("txn_id", BigInteger, nullable=False),
    Column("commit_id", BigInteger, nullable=False),
    *_object_columns(),
    Column("operation", BINARY_TEXT, nullable=False),
    Index("write_sets_object", "db_name", "table_name", "commit_id"),
    Index("write_sets_commit", "commit_id"),
)

# One row for each component of a lock request. Strength is the lock type, weak to strong.
LOCKS: Final = Table(
    "locks",
    METADATA,
    Column("lock_id", BigInteger, primary_key=True, autoincrement=False),
    Column("component_number", Integer, primary_key=True, autoincrement=False),
    Column("txn_id", BigInteger, nullable=False),
    *_object_columns(),
    Column("strength", SmallInteger, nullable=False),
    Column("is_acquired", Boolean, nullable=False),
    Column("shares_writes", Boolean, nullable=False),
    # 0 when it belongs to a transaction, whose heartbeat counts then.
    Column("last_heartbeat_ms", BigInteger, nullable=False),
    # Since when it is acquired, or waits; NULL for a request that waits since before version 0.2.
    Column("acquired_ms", BigInteger),
    Column("user_name", LONG_TEXT, nullable=False),
    Column("host_name", LONG_TEXT, nullable=False),
    Column("agent_info", LONG_TEXT, nullable=False),
    Column("blocked_by_lock", BigInteger),
    Column("blocked_by_component", Integer),
    # Who asked for it, as authenticated, and from where; unknown for those of older servers.
    Column("principal", LONG_TEXT),
    Column("client_address", LONG_TEXT),
    Index("locks_table", "db_name", "table_name", "strength"),
)

# Write ids of a table by transaction, and the newest one given to each table.
TXN_WRITE_IDS: Final = Table(
    "txn_write_ids",
    METADATA,
    Column("txn_id", BigInteger, primary_key=True, autoincrement=False),
    Column("db_name", DATABASE_NAME, primary_key=True),
    Column("table_name", TABLE_NAME, primary_key=True),
    Column("write_id", BigInteger, nullable=False),
    Index("txn_write_ids_table", "db_name", "table_name", "write_id"),
)

TABLE_WRITE_IDS: Final = Table(
    "table_write_ids",
    METADATA,
    Column("db_name", DATABASE_NAME, primary_key=True),
    Column("table_name", TABLE_NAME, primary_key=True),
    Column("last_write_id", BigInteger, nullable=False),
)

# Transactions that replication opened here for those of another metastore.
REPLICATED_TXNS: Final = Table(
    "replicated_txns",
    METADATA,
    Column("policy", BINARY_TEXT, primary_key=True),
    Column("source_txn_id", BigInteger, primary_key=True, autoincrement=False),
    Column("txn_id", BigInteger, nullable=False),
    Index("replicated_txns_txn", "txn_id"),
)

# Who rebuilds a materialized view.
REBUILDS: Final = Table(
    "materialization_rebuilds",
    METADATA,
    Column("db_name", DATABASE_NAME, primary_key=True),
    Column("table_name", TABLE_NAME, primary_key=True),
    Column("txn_id", BigInteger, nullable=False),
    Column("last_heartbeat_ms", BigInteger, nullable=False),
)

# The queue and the history of compactions, distinguished by state.
COMPACTIONS: Final = Table(
    "compactions",
    METADATA,
    Column("compaction_id", BigInteger, primary_key=True, autoincrement=False),
    *_object_columns(),
    Column("compaction_type", Integer, nullable=False),
    Column("state", BINARY_TEXT, nullable=False),
    # The rest is kept as one JSON object: nothing is searched by it.
    Column("details", LONG_TEXT, nullable=False),
    Index("compactions_state", "state", "compaction_id"),
)

# One row for each object of a lease. Times in milliseconds of the database's clock.
LEASES: Final = Table(
    "leases",
    METADATA,
    Column("lease_id", BigInteger, primary_key=True, autoincrement=False),
    Column("object_number", Integer, primary_key=True, autoincrement=False),
    *_object_columns(),
    Column("type", SHORT_TEXT, nullable=False),
    Column("user_name", LONG_TEXT, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("end_ms", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Index("leases_end", "end_ms"),
)

# Requests that wait for leases, in order of their tickets.
LEASE_WAITERS: Final = Table(
    "lease_waiters",
    METADATA,
    Column("ticket", BigInteger, primary_key=True, autoincrement=False),
    Column("object_number", Integer, primary_key=True, autoincrement=False),
    *_object_columns(),
    Column("type", SHORT_TEXT, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    Index("lease_waiters_until", "until_ms"),
)
