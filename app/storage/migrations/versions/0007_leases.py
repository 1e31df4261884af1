"""Leases, and requests that wait for them."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BINARY_TEXT = (
    sa.Text()
    .with_variant(postgresql.TEXT(collation="C"), "postgresql")
    .with_variant(mysql.VARCHAR(700, collation="utf8mb4_bin"), "mysql", "mariadb")
)
SHORT_TEXT = (
    sa.Text()
    .with_variant(postgresql.TEXT(collation="C"), "postgresql")
    .with_variant(mysql.VARCHAR(64, collation="utf8mb4_bin"), "mysql", "mariadb")
)
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(collation="utf8mb4_bin"), "mysql", "mariadb")


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
    op.create_index("leases_object", "leases", ["db_name", "table_name", "partition_name"])
    op.create_index("leases_end", "leases", ["end_ms"])
    op.create_table("lease_waiters", *key("ticket"), *object_columns(), required("until_ms"))
    op.create_index("lease_waiters_object", "lease_waiters", ["db_name", "table_name", "partition_name"])
    op.create_index("lease_waiters_until", "lease_waiters", ["until_ms"])


def key(name: str) -> list[sa.Column[Any]]:
    return [
        sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("object_number", sa.Integer, primary_key=True, autoincrement=False),
    ]


def required(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def object_columns() -> list[sa.Column[Any]]:
    names = [required(name, BINARY_TEXT) for name in ("db_name", "table_name", "partition_name")]
    return [*names, required("type", SHORT_TEXT)]
