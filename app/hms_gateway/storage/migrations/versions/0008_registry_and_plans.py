"""Serdes, the schema registry, resource plans, notes of query engines, sources of materialized views, write events."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from hms_gateway.storage.schema.column_types import ID, LONG_BINARY, LONG_TEXT, SHORT_TEXT

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    make_registry()
    make_plans_and_notes()
    make_scheduled_queries()
    make_views_and_write_events()


def make_registry() -> None:
    op.create_table("serdes", key("name_hash", SHORT_TEXT), required("content", LONG_TEXT))
    op.create_table(
        "registry_schemas",
        key("schema_id"),
        required("database_id", ID, reference("databases.database_id")),
        required("name_hash", SHORT_TEXT),
        required("content", LONG_TEXT),
        sa.UniqueConstraint("database_id", "name_hash", name="registry_schemas_name"),
    )
    op.create_table("registry_versions", *of_schema(), given_key("version"), required("content", LONG_TEXT))
    op.create_table(
        "registry_columns",
        *of_schema(),
        given_key("version"),
        given_key("position"),
        required("name_hash", SHORT_TEXT, index=True),
        required("namespace_hash", SHORT_TEXT, index=True),
        required("type_hash", SHORT_TEXT),
    )


def make_plans_and_notes() -> None:
    op.create_table(
        "resource_plans",
        key("plan_id"),
        required("namespace_hash", SHORT_TEXT),
        required("name_hash", SHORT_TEXT),
        required("content", LONG_TEXT),
        sa.UniqueConstraint("namespace_hash", "name_hash", name="resource_plans_name"),
    )
    op.create_table(
        "runtime_statistics",
        key("statistic_id"),
        required("create_time", index=True),
        required("weight", sa.Integer()),
        required("payload", LONG_BINARY),
    )
    op.create_table(
        "replication_metrics",
        given_key("execution_id", sa.BigInteger()),
        required("policy_hash", SHORT_TEXT),
        required("dump_id"),
        required("start_time", index=True),
        required("content", LONG_TEXT),
    )
    op.create_index("replication_metrics_policy", "replication_metrics", ["policy_hash", "dump_id"])


def make_scheduled_queries() -> None:
    op.create_table(
        "scheduled_queries",
        key("query_id"),
        required("namespace_hash", SHORT_TEXT),
        required("name_hash", SHORT_TEXT),
        required("is_enabled", sa.Boolean()),
        sa.Column("next_execution", sa.BigInteger),
        sa.Column("active_execution", sa.BigInteger),
        required("failures", sa.Integer()),
        required("content", LONG_TEXT),
        sa.UniqueConstraint("namespace_hash", "name_hash", name="scheduled_queries_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("scheduled_queries_due", "scheduled_queries", ["namespace_hash", "next_execution"])
    op.create_table(
        "scheduled_executions",
        key("execution_id"),
        required("query_id", ID, reference("scheduled_queries.query_id"), index=True),
        required("state", sa.Integer()),
        required("start_time"),
        required("last_update", index=True),
        sa.Column("content", LONG_TEXT),
        sqlite_autoincrement=True,
    )


def make_views_and_write_events() -> None:
    op.create_table(
        "view_sources",
        given_key("view_id", ID, reference("tables.table_id")),
        given_key("source_id", ID, reference("tables.table_id"), index=True),
        required("inserted_count"),
        required("updated_count"),
        required("deleted_count"),
    )
    op.create_table(
        "write_events",
        key("event_id"),
        required("txn_id"),
        required("object_hash", SHORT_TEXT),
        required("event_time", index=True),
        required("content", LONG_TEXT),
        sa.UniqueConstraint("txn_id", "object_hash", name="write_events_object"),
    )


def key(name: str, kind: Any = ID) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True)


def given_key(name: str, kind: Any = None, *references: sa.ForeignKey, index: bool = False) -> sa.Column[Any]:
    kind = sa.Integer() if kind is None else kind
    return sa.Column(name, kind, *references, primary_key=True, autoincrement=False, index=index)


def required(name: str, kind: Any = None, *references: sa.ForeignKey, index: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger() if kind is None else kind, *references, nullable=False, index=index)


def reference(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE")


def of_schema() -> list[sa.Column[Any]]:
    return [given_key("schema_id", ID, reference("registry_schemas.schema_id"))]
