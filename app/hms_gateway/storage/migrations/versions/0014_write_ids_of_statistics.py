"""Column statistics know the write id that they were computed under."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("table_statistics", sa.Column("write_id", sa.BigInteger))
    op.add_column("partition_statistics", sa.Column("write_id", sa.BigInteger))
