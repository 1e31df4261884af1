"""Gateways that share a database say that they are there, and how far they have followed its log."""

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import LONG_TEXT, SHORT_TEXT

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gateways",
        sa.Column("gateway_id", SHORT_TEXT, primary_key=True),
        sa.Column("name", LONG_TEXT, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("version", LONG_TEXT, nullable=False),
        sa.Column("started_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_ms", sa.BigInteger, nullable=False),
        sa.Column("event_id", sa.BigInteger, nullable=False),
        sa.Column("newest_event_id", sa.BigInteger, nullable=False),
        sa.Column("behind_since", sa.BigInteger),
    )
