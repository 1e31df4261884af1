"""Functions, types, indexes, delegation tokens, master keys, partition marks, properties, compressed messages."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import BINARY_TEXT, ID, LONG_BINARY, LONG_TEXT

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("functions", sa.Column("extra", LONG_TEXT))
    op.add_column("notifications", sa.Column("compressed_message", LONG_BINARY))
    op.create_table(
        "types",
        sa.Column("type_id", ID, primary_key=True),
        sa.Column("name", BINARY_TEXT, nullable=False, unique=True),
        sa.Column("extra", LONG_TEXT),
    )
    op.create_table(
        "table_indexes",
        sa.Column("index_id", ID, primary_key=True),
        table_reference(),
        required("name", BINARY_TEXT),
        sa.Column("index_table_name", LONG_TEXT),
        sa.Column("extra", LONG_TEXT),
        sa.UniqueConstraint("table_id", "name", name="table_indexes_name"),
    )
    op.create_table(
        "partition_marks",
        sa.Column("mark_id", ID, primary_key=True),
        table_reference(),
        required("values_hash", BINARY_TEXT),
        required("event_type", sa.Integer),
        required("event_time", sa.BigInteger),
    )
    op.create_index("partition_marks_values", "partition_marks", ["table_id", "values_hash"])
    op.create_index("partition_marks_time", "partition_marks", ["event_time"])
    op.create_table(
        "delegation_tokens",
        sa.Column("identifier_hash", BINARY_TEXT, primary_key=True),
        required("content", LONG_TEXT),
    )
    op.create_table(
        "master_keys",
        sa.Column("key_id", ID, primary_key=True),
        required("content", LONG_TEXT),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "properties",
        sa.Column("path_hash", BINARY_TEXT, primary_key=True),
        required("namespace", LONG_TEXT),
        required("path", LONG_TEXT),
        required("value", LONG_TEXT),
    )


def required(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def table_reference() -> sa.Column[Any]:
    return sa.Column("table_id", ID, sa.ForeignKey("tables.table_id"), nullable=False)
