"""A transaction knows whether it has write ids."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("txns", sa.Column("has_write_ids", sa.Boolean))
