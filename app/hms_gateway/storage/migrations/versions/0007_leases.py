"""Leases, and requests that wait for them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import (
    BINARY_TEXT,
    DATABASE_NAME,
    LONG_TEXT,
    SHORT_TEXT,
    TABLE_NAME,
    index_lengths,
)

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "leases",
        *key("lease_id"),
        *object_columns(),
        required("user_name", LONG_TEXT),
        required("start_ms"),
        required("end_ms"),
        required("duration_ms"),
    )
    op.create_index(
        "leases_object", "leases", ["db_name", "table_name", "partition_name"], **index_lengths("partition_name")
    )
    op.create_index("leases_end", "leases", ["end_ms"])
    op.create_table("lease_waiters", *key("ticket"), *object_columns(), required("until_ms"))
    op.create_index(
        "lease_waiters_object",
        "lease_waiters",
        ["db_name", "table_name", "partition_name"],
        **index_lengths("partition_name"),
    )
    op.create_index("lease_waiters_until", "lease_waiters", ["until_ms"])


def key(name: str) -> list[sa.Column[Any]]:
    return [
        sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("object_number", sa.Integer, primary_key=True, autoincrement=False),
    ]


def required(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def object_columns() -> list[sa.Column[Any]]:
    return [
        required("db_name", DATABASE_NAME),
        required("table_name", TABLE_NAME),
        required("partition_name", BINARY_TEXT),
        required("type", SHORT_TEXT),
    ]
