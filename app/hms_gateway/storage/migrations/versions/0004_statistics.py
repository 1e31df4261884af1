"""Column statistics and constraints."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import BINARY_TEXT, ID, LONG_TEXT, SHORT_TEXT

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "table_statistics",
        sa.Column("table_id", ID, of_table(), primary_key=True, autoincrement=False),
        *column_key(),
        *statistics(),
    )
    op.create_table(
        "partition_statistics",
        sa.Column("partition_id", sa.BigInteger, primary_key=True, autoincrement=False),
        *column_key(),
        sa.Column("table_id", ID, of_table(), nullable=False),
        *statistics(),
    )
    op.create_index("ix_partition_statistics_table_id", "partition_statistics", ["table_id"])
    op.create_table(
        "constraints",
        sa.Column("constraint_id", ID, primary_key=True),
        sa.Column("table_id", ID, of_table(), nullable=False),
        sa.Column("parent_table_id", ID, of_table()),
        required("kind", sa.Integer),
        required("name", BINARY_TEXT),
        required("position", sa.Integer),
        required("column_name", BINARY_TEXT),
        sa.Column("parent_column_name", BINARY_TEXT),
        sa.Column("extra", LONG_TEXT),
    )
    for column in ("table_id", "parent_table_id"):
        op.create_index(f"ix_constraints_{column}", "constraints", [column])


def required(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def of_table() -> sa.ForeignKey:
    return sa.ForeignKey("tables.table_id", ondelete="CASCADE")


def column_key() -> list[sa.Column[Any]]:
    return [
        sa.Column("engine", SHORT_TEXT, primary_key=True),
        sa.Column("column_name", BINARY_TEXT, primary_key=True),
    ]


def statistics() -> list[sa.Column[Any]]:
    return [
        required("column_type", LONG_TEXT),
        required("data", LONG_TEXT),
        required("last_analyzed", sa.BigInteger),
    ]
