"""A table with many partitions may go before them: it is noted that they are still to be deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("dropped_tables", sa.Column("table_id", sa.BigInteger, primary_key=True, autoincrement=False))
    connection = op.get_bind()
    if connection.dialect.name not in ("mysql", "mariadb"):
        return
    # Only there partitions stay without their table for a while.
    inspector = sa.inspect(connection)
    for table in ("further_keys", "partitions", "descriptors"):
        for key in inspector.get_foreign_keys(table):
            op.drop_constraint(str(key["name"]), table, type_="foreignkey")
