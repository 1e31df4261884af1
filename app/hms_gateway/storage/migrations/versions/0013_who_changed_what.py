"""Who made the change of an event, and what is kept of that when the event is forgotten."""

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import LONG_TEXT

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("notifications", sa.Column("principal", LONG_TEXT))
    op.add_column("notifications", sa.Column("actor", LONG_TEXT))
    op.create_table(
        "changes",
        sa.Column("event_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("event_time", sa.BigInteger, nullable=False),
        sa.Column("event_type", LONG_TEXT, nullable=False),
        sa.Column("db_name", LONG_TEXT, nullable=False),
        sa.Column("table_name", LONG_TEXT),
        sa.Column("principal", LONG_TEXT),
        sa.Column("actor", LONG_TEXT),
        sa.Index("changes_time", "event_time"),
    )
