"""Outcomes of calls that clients may repeat."""

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import (
    CALL_KEY_CHARACTERS,
    LONG_BINARY,
    LONG_TEXT,
    PRINCIPAL_CHARACTERS,
    binary_text,
)

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "outcomes",
        sa.Column("principal", binary_text(PRINCIPAL_CHARACTERS), primary_key=True),
        sa.Column("call_key", binary_text(CALL_KEY_CHARACTERS), primary_key=True),
        sa.Column("method", LONG_TEXT, nullable=False),
        sa.Column("concluded_at", sa.BigInteger, nullable=False),
        sa.Column("codec_name", LONG_TEXT),
        sa.Column("payload", LONG_BINARY),
    )
    op.create_index("ix_outcomes_concluded_at", "outcomes", ["concluded_at"])
