"""The key of a call belongs to one message, and calls that failed keep theirs."""

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import LONG_BINARY

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("outcomes", sa.Column("message_hash", LONG_BINARY))
    op.add_column("outcomes", sa.Column("is_exception", sa.Boolean))
