"""The first schema: databases, tables, partitions with shared descriptors, notifications, pending moves."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import BINARY_TEXT, DATABASE_NAME, ID, LONG_TEXT, TABLE_NAME, index_lengths

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY_COLUMN_COUNT = 8


def upgrade() -> None:
    catalog = op.create_table(
        "catalog",
        sa.Column("catalog_id", sa.Integer, primary_key=True, autoincrement=False),
        required("last_event_id", sa.BigInteger),
    )
    op.bulk_insert(catalog, [{"catalog_id": 1, "last_event_id": 0}])
    op.create_table(
        "databases",
        sa.Column("database_id", ID, primary_key=True),
        sa.Column("name", DATABASE_NAME, nullable=False, unique=True),
        *texts("description", "location", "owner_name"),
        sa.Column("owner_type", sa.Integer),
        *texts("parameters"),
        sa.Column("create_time", sa.Integer),
        *texts("extra"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "functions",
        sa.Column("function_id", ID, primary_key=True),
        reference("databases.database_id"),
        required("name", BINARY_TEXT),
        sa.UniqueConstraint("database_id", "name", name="functions_name"),
    )
    op.create_table(
        "tables",
        sa.Column("table_id", ID, primary_key=True),
        reference("databases.database_id"),
        required("name", TABLE_NAME),
        sa.Column("table_type", BINARY_TEXT),
        *texts("owner"),
        required("create_time", sa.Integer),
        required("last_access_time", sa.Integer),
        required("retention", sa.Integer),
        *texts("location", "descriptor", "columns", "skew_locations", "partition_keys", "parameters"),
        *texts("view_original_text", "view_expanded_text", "extra"),
        required("partition_count", sa.BigInteger),
        sa.UniqueConstraint("database_id", "name", name="tables_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "descriptors",
        sa.Column("descriptor_id", sa.BigInteger, primary_key=True, autoincrement=False),
        reference("tables.table_id"),
        required("content_hash", BINARY_TEXT),
        *texts("columns"),
        required("rest", LONG_TEXT),
        *texts("skew_locations", "base_location"),
        required("partition_count", sa.BigInteger),
    )
    op.create_index("descriptors_content", "descriptors", ["table_id", "content_hash"])
    op.create_table(
        "partitions",
        sa.Column("partition_id", ID, primary_key=True),
        reference("tables.table_id"),
        required("part_name", BINARY_TEXT),
        sa.Column("descriptor_id", sa.BigInteger),
        required("part_values", LONG_TEXT),
        required("create_time", sa.Integer),
        required("last_access_time", sa.Integer),
        required("parameters", LONG_TEXT),
        *texts("location", "extra"),
        *(sa.Column(f"key_{number}", BINARY_TEXT) for number in range(KEY_COLUMN_COUNT)),
        sa.UniqueConstraint("table_id", "part_name", name="partitions_name"),
    )
    for number in range(KEY_COLUMN_COUNT):
        present = sa.text(f"key_{number} IS NOT NULL")
        keys = [f"key_{position}" for position in range(number, min(number + 2, KEY_COLUMN_COUNT))]
        op.create_index(
            f"partitions_key_{number}",
            "partitions",
            ["table_id", *keys],
            sqlite_where=present,
            postgresql_where=present,
            **index_lengths(*keys),
        )
    op.create_table(
        "further_keys",
        sa.Column("partition_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        reference("tables.table_id"),
        sa.Column("sort_key", BINARY_TEXT),
    )
    op.create_index("ix_further_keys_table_id", "further_keys", ["table_id"])
    op.create_table(
        "notifications",
        sa.Column("event_id", sa.BigInteger, primary_key=True, autoincrement=False),
        required("event_time", sa.BigInteger),
        required("event_type", LONG_TEXT),
        required("db_name", LONG_TEXT),
        *texts("table_name", "renamed_from_db", "renamed_from_table"),
        required("message", LONG_TEXT),
    )
    op.create_table(
        "pending_moves",
        sa.Column("move_id", ID, primary_key=True),
        required("table_id", sa.BigInteger),
        required("source", LONG_TEXT),
        required("target", LONG_TEXT),
        sqlite_autoincrement=True,
    )


def required(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def reference(target: str) -> sa.Column[Any]:
    return sa.Column(target.partition(".")[2], ID, sa.ForeignKey(target), nullable=False)


def texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, LONG_TEXT) for name in names]
