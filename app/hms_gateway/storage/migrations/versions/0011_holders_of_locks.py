"""Who asked for a lock, as authenticated, and from which address."""

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import LONG_TEXT

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("locks", sa.Column("principal", LONG_TEXT))
    op.add_column("locks", sa.Column("client_address", LONG_TEXT))
