"""Tables are found by where they lie."""

from alembic import op

from hms_gateway.storage.schema.column_types import index_lengths

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # PostgreSQL's other index of texts has a longest one.
    op.create_index("tables_location", "tables", ["location"], postgresql_using="spgist", **index_lengths("location"))
