"""Transactions, locks, write ids and the compaction queue."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import BINARY_TEXT, DATABASE_NAME, ID, LONG_TEXT, TABLE_NAME, index_lengths

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("txn_counters", key("name", BINARY_TEXT), required("last_id"))
    op.create_table(
        "txns",
        key("txn_id"),
        required("state", BINARY_TEXT),
        required("txn_type", sa.Integer),
        required("user_name", LONG_TEXT),
        required("host_name", LONG_TEXT),
        sa.Column("agent_info", LONG_TEXT),
        required("started_ms"),
        required("last_heartbeat_ms"),
        sa.Column("ended_ms", sa.BigInteger),
        required("min_open_txn"),
        sa.Column("reason", LONG_TEXT),
        sa.Column("refused_lock", sa.BigInteger),
    )
    op.create_index("txns_state", "txns", ["state", "txn_id"])
    partial_index("txns_silent", "txns", "last_heartbeat_ms", "state = 'o'")
    partial_index("txns_ended", "txns", "ended_ms", "state = 'c'")
    partial_index("txns_refused", "txns", "refused_lock", "refused_lock IS NOT NULL")
    for table in ("txn_components", "completed_txn_components"):
        op.create_table(
            table,
            sa.Column("component_id", ID, primary_key=True),
            required("txn_id"),
            *object_columns(),
            required("operation", BINARY_TEXT),
            sa.Column("write_id", sa.BigInteger),
        )
        op.create_index(f"{table}_txn", table, ["txn_id"])
        op.create_index(f"{table}_object", table, ["db_name", "table_name"])
    op.create_table(
        "write_sets",
        sa.Column("write_set_id", ID, primary_key=True),
        required("txn_id"),
        required("commit_id"),
        *object_columns(),
        required("operation", BINARY_TEXT),
    )
    op.create_index("write_sets_object", "write_sets", ["db_name", "table_name", "commit_id"])
    op.create_index("write_sets_commit", "write_sets", ["commit_id"])
    op.create_table(
        "locks",
        key("lock_id"),
        key("component_number", sa.Integer),
        required("txn_id"),
        *object_columns(),
        required("strength", sa.SmallInteger),
        required("is_acquired", sa.Boolean),
        required("shares_writes", sa.Boolean),
        required("last_heartbeat_ms"),
        sa.Column("acquired_ms", sa.BigInteger),
        required("user_name", LONG_TEXT),
        required("host_name", LONG_TEXT),
        required("agent_info", LONG_TEXT),
        sa.Column("blocked_by_lock", sa.BigInteger),
        sa.Column("blocked_by_component", sa.Integer),
    )
    op.create_index("locks_table", "locks", ["db_name", "table_name", "strength"])
    op.create_index(
        "locks_partition",
        "locks",
        ["db_name", "table_name", "partition_name", "strength"],
        **index_lengths("partition_name"),
    )
    partial_index("locks_txn", "locks", "txn_id", "txn_id > 0")
    partial_index("locks_silent", "locks", "last_heartbeat_ms", "txn_id = 0")
    op.create_table(
        "txn_write_ids",
        key("txn_id"),
        key("db_name", DATABASE_NAME),
        key("table_name", TABLE_NAME),
        required("write_id"),
    )
    op.create_index("txn_write_ids_table", "txn_write_ids", ["db_name", "table_name", "write_id"])
    op.create_table(
        "table_write_ids",
        key("db_name", DATABASE_NAME),
        key("table_name", TABLE_NAME),
        required("last_write_id"),
    )
    op.create_table(
        "replicated_txns",
        key("policy", BINARY_TEXT),
        key("source_txn_id"),
        required("txn_id"),
    )
    op.create_index("replicated_txns_txn", "replicated_txns", ["txn_id"])
    op.create_table(
        "materialization_rebuilds",
        key("db_name", DATABASE_NAME),
        key("table_name", TABLE_NAME),
        required("txn_id"),
        required("last_heartbeat_ms"),
    )
    op.create_table(
        "compactions",
        key("compaction_id"),
        *object_columns(),
        required("compaction_type", sa.Integer),
        required("state", BINARY_TEXT),
        required("details", LONG_TEXT),
    )
    op.create_index(
        "compactions_object",
        "compactions",
        ["db_name", "table_name", "partition_name"],
        **index_lengths("partition_name"),
    )
    op.create_index("compactions_state", "compactions", ["state", "compaction_id"])


def key(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def required(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def object_columns() -> list[sa.Column[Any]]:
    return [
        required("db_name", DATABASE_NAME),
        required("table_name", TABLE_NAME),
        required("partition_name", BINARY_TEXT),
    ]


def partial_index(name: str, table: str, column: str, condition: str) -> None:
    op.create_index(name, table, [column], sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))
