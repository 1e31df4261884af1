"""Roles and privileges."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import BINARY_TEXT, ID, LONG_TEXT

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "roles",
        sa.Column("role_id", ID, primary_key=True),
        sa.Column("name", BINARY_TEXT, nullable=False, unique=True),
        sa.Column("owner_name", LONG_TEXT),
        required("create_time", sa.Integer),
    )
    op.create_table(
        "role_members",
        sa.Column("member_id", ID, primary_key=True),
        sa.Column("role_id", ID, sa.ForeignKey("roles.role_id", ondelete="CASCADE"), nullable=False),
        required("principal_name", BINARY_TEXT),
        required("principal_type", sa.Integer),
        required("grant_option", sa.Boolean),
        required("grant_time", sa.Integer),
        sa.Column("grantor_name", LONG_TEXT),
        sa.Column("grantor_type", sa.Integer),
        sa.UniqueConstraint("role_id", "principal_type", "principal_name", name="role_members_once"),
    )
    op.create_index("role_members_principal", "role_members", ["principal_name", "principal_type"])
    op.create_table(
        "privileges",
        sa.Column("privilege_id", ID, primary_key=True),
        required("object_type", sa.Integer),
        sa.Column("database_id", ID, sa.ForeignKey("databases.database_id", ondelete="CASCADE")),
        sa.Column("table_id", ID, sa.ForeignKey("tables.table_id", ondelete="CASCADE")),
        sa.Column("partition_id", sa.BigInteger),
        sa.Column("column_name", BINARY_TEXT),
        required("principal_name", BINARY_TEXT),
        required("principal_type", sa.Integer),
        required("privilege", LONG_TEXT),
        required("grant_option", sa.Boolean),
        required("create_time", sa.Integer),
        sa.Column("grantor_name", LONG_TEXT),
        sa.Column("grantor_type", sa.Integer),
        sa.Column("authorizer", LONG_TEXT),
    )
    for column in ("database_id", "table_id", "partition_id"):
        op.create_index(f"ix_privileges_{column}", "privileges", [column])
    op.create_index("privileges_principal", "privileges", ["principal_name", "principal_type"])


def required(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
