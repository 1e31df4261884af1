"""PostgreSQL takes every table for the same small share of all partitions.

Its figures about `table_id` are older than a table that was just filled. For a table they do not name it expects a
single row, and any index serves to find one: it then reads all partitions of the table for a filter that selects one.
Without figures it expects a two-hundredth of all partitions, and takes the index of the key.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute("ALTER TABLE partitions ALTER COLUMN table_id TYPE bigint")  # the only way to forget what it has
    op.execute("ALTER TABLE partitions ALTER COLUMN table_id SET STATISTICS 0")
    # A key that no partition had when the figures were gathered misleads it, too: not for a tenth of all, as is usual.
    op.execute("ALTER TABLE partitions SET (autovacuum_analyze_scale_factor = 0.01)")
