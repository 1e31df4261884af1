"""Outcomes of calls that clients may repeat."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

BINARY_TEXT = (
    sa.Text()
    .with_variant(postgresql.TEXT(collation="C"), "postgresql")
    .with_variant(mysql.VARCHAR(700, collation="utf8mb4_bin"), "mysql", "mariadb")
)
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(collation="utf8mb4_bin"), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "outcomes",
        sa.Column("principal", BINARY_TEXT, primary_key=True),
        sa.Column("call_key", BINARY_TEXT, primary_key=True),
        sa.Column("method", LONG_TEXT, nullable=False),
        sa.Column("concluded_at", sa.BigInteger, nullable=False),
        sa.Column("codec_name", LONG_TEXT),
        sa.Column("payload", sa.LargeBinary),
    )
    op.create_index("ix_outcomes_concluded_at", "outcomes", ["concluded_at"])
