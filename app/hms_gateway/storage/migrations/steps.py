"""The steps that make the tables of the database, one for each revision, in their order. A step that is released stays."""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa

from hms_gateway.storage.migrations.operations import Operations
from hms_gateway.storage.schema.column_types import (
    BINARY_TEXT,
    CALL_KEY_CHARACTERS,
    DATABASE_NAME,
    ID,
    LONG_BINARY,
    LONG_TEXT,
    PRINCIPAL_CHARACTERS,
    SHORT_TEXT,
    TABLE_NAME,
    binary_text,
    index_lengths,
)


def required(name: str, kind: Any = None, *references: sa.ForeignKey, index: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger() if kind is None else kind, *references, nullable=False, index=index)


KEY_COLUMN_COUNT = 8


def initial(op: Operations) -> None:
    """The first schema: databases, tables, partitions with shared descriptors, notifications, pending moves."""
    catalog = op.create_table(
        "catalog",
        sa.Column("catalog_id", sa.Integer, primary_key=True, autoincrement=False),
        required("last_event_id", sa.BigInteger),
    )
    op.connection.execute(sa.insert(catalog).values(catalog_id=1, last_event_id=0))
    op.create_table(
        "databases",
        sa.Column("database_id", ID, primary_key=True),
        sa.Column("name", DATABASE_NAME, nullable=False, unique=True),
        *texts("description", "location", "owner_name"),
        sa.Column("owner_type", sa.Integer),
        *texts("parameters"),
        sa.Column("create_time", sa.Integer),
        *texts("extra"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "functions",
        sa.Column("function_id", ID, primary_key=True),
        parent("databases.database_id"),
        required("name", BINARY_TEXT),
        sa.UniqueConstraint("database_id", "name", name="functions_name"),
    )
    op.create_table(
        "tables",
        sa.Column("table_id", ID, primary_key=True),
        parent("databases.database_id"),
        required("name", TABLE_NAME),
        sa.Column("table_type", BINARY_TEXT),
        *texts("owner"),
        required("create_time", sa.Integer),
        required("last_access_time", sa.Integer),
        required("retention", sa.Integer),
        *texts("location", "descriptor", "columns", "skew_locations", "partition_keys", "parameters"),
        *texts("view_original_text", "view_expanded_text", "extra"),
        required("partition_count", sa.BigInteger),
        sa.UniqueConstraint("database_id", "name", name="tables_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "descriptors",
        sa.Column("descriptor_id", sa.BigInteger, primary_key=True, autoincrement=False),
        parent("tables.table_id"),
        required("content_hash", BINARY_TEXT),
        *texts("columns"),
        required("rest", LONG_TEXT),
        *texts("skew_locations", "base_location"),
        required("partition_count", sa.BigInteger),
    )
    op.create_index("descriptors_content", "descriptors", ["table_id", "content_hash"])
    op.create_table(
        "partitions",
        sa.Column("partition_id", ID, primary_key=True),
        parent("tables.table_id"),
        required("part_name", BINARY_TEXT),
        sa.Column("descriptor_id", sa.BigInteger),
        required("part_values", LONG_TEXT),
        required("create_time", sa.Integer),
        required("last_access_time", sa.Integer),
        required("parameters", LONG_TEXT),
        *texts("location", "extra"),
        *(sa.Column(f"key_{number}", BINARY_TEXT) for number in range(KEY_COLUMN_COUNT)),
        sa.UniqueConstraint("table_id", "part_name", name="partitions_name"),
    )
    for number in range(KEY_COLUMN_COUNT):
        present = sa.text(f"key_{number} IS NOT NULL")
        keys = [f"key_{position}" for position in range(number, min(number + 2, KEY_COLUMN_COUNT))]
        op.create_index(
            f"partitions_key_{number}",
            "partitions",
            ["table_id", *keys],
            sqlite_where=present,
            postgresql_where=present,
            **index_lengths(*keys),
        )
    op.create_table(
        "further_keys",
        sa.Column("partition_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        parent("tables.table_id"),
        sa.Column("sort_key", BINARY_TEXT),
    )
    op.create_index("ix_further_keys_table_id", "further_keys", ["table_id"])
    op.create_table(
        "notifications",
        sa.Column("event_id", sa.BigInteger, primary_key=True, autoincrement=False),
        required("event_time", sa.BigInteger),
        required("event_type", LONG_TEXT),
        required("db_name", LONG_TEXT),
        *texts("table_name", "renamed_from_db", "renamed_from_table"),
        required("message", LONG_TEXT),
    )
    op.create_table(
        "pending_moves",
        sa.Column("move_id", ID, primary_key=True),
        required("table_id", sa.BigInteger),
        required("source", LONG_TEXT),
        required("target", LONG_TEXT),
        sqlite_autoincrement=True,
    )


def parent(target: str) -> sa.Column[Any]:
    return sa.Column(target.partition(".")[2], ID, sa.ForeignKey(target), nullable=False)


def texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, LONG_TEXT) for name in names]


def transactions(op: Operations) -> None:
    """Transactions, locks, write ids and the compaction queue."""
    op.create_table("txn_counters", number_key("name", BINARY_TEXT), required("last_id"))
    op.create_table(
        "txns",
        number_key("txn_id"),
        required("state", BINARY_TEXT),
        required("txn_type", sa.Integer),
        required("user_name", LONG_TEXT),
        required("host_name", LONG_TEXT),
        sa.Column("agent_info", LONG_TEXT),
        required("started_ms"),
        required("last_heartbeat_ms"),
        sa.Column("ended_ms", sa.BigInteger),
        required("min_open_txn"),
        sa.Column("reason", LONG_TEXT),
        sa.Column("refused_lock", sa.BigInteger),
    )
    op.create_index("txns_state", "txns", ["state", "txn_id"])
    partial_index(op, "txns_silent", "txns", "last_heartbeat_ms", "state = 'o'")
    partial_index(op, "txns_ended", "txns", "ended_ms", "state = 'c'")
    partial_index(op, "txns_refused", "txns", "refused_lock", "refused_lock IS NOT NULL")
    for table in ("txn_components", "completed_txn_components"):
        op.create_table(
            table,
            sa.Column("component_id", ID, primary_key=True),
            required("txn_id"),
            *object_columns(),
            required("operation", BINARY_TEXT),
            sa.Column("write_id", sa.BigInteger),
        )
        op.create_index(f"{table}_txn", table, ["txn_id"])
        op.create_index(f"{table}_object", table, ["db_name", "table_name"])
    op.create_table(
        "write_sets",
        sa.Column("write_set_id", ID, primary_key=True),
        required("txn_id"),
        required("commit_id"),
        *object_columns(),
        required("operation", BINARY_TEXT),
    )
    op.create_index("write_sets_object", "write_sets", ["db_name", "table_name", "commit_id"])
    op.create_index("write_sets_commit", "write_sets", ["commit_id"])
    op.create_table(
        "locks",
        number_key("lock_id"),
        number_key("component_number", sa.Integer),
        required("txn_id"),
        *object_columns(),
        required("strength", sa.SmallInteger),
        required("is_acquired", sa.Boolean),
        required("shares_writes", sa.Boolean),
        required("last_heartbeat_ms"),
        sa.Column("acquired_ms", sa.BigInteger),
        required("user_name", LONG_TEXT),
        required("host_name", LONG_TEXT),
        required("agent_info", LONG_TEXT),
        sa.Column("blocked_by_lock", sa.BigInteger),
        sa.Column("blocked_by_component", sa.Integer),
    )
    op.create_index("locks_table", "locks", ["db_name", "table_name", "strength"])
    op.create_index(
        "locks_partition",
        "locks",
        ["db_name", "table_name", "partition_name", "strength"],
        **index_lengths("partition_name"),
    )
    partial_index(op, "locks_txn", "locks", "txn_id", "txn_id > 0")
    partial_index(op, "locks_silent", "locks", "last_heartbeat_ms", "txn_id = 0")
    op.create_table(
        "txn_write_ids",
        number_key("txn_id"),
        number_key("db_name", DATABASE_NAME),
        number_key("table_name", TABLE_NAME),
        required("write_id"),
    )
    op.create_index("txn_write_ids_table", "txn_write_ids", ["db_name", "table_name", "write_id"])
    op.create_table(
        "table_write_ids",
        number_key("db_name", DATABASE_NAME),
        number_key("table_name", TABLE_NAME),
        required("last_write_id"),
    )
    op.create_table(
        "replicated_txns",
        number_key("policy", BINARY_TEXT),
        number_key("source_txn_id"),
        required("txn_id"),
    )
    op.create_index("replicated_txns_txn", "replicated_txns", ["txn_id"])
    op.create_table(
        "materialization_rebuilds",
        number_key("db_name", DATABASE_NAME),
        number_key("table_name", TABLE_NAME),
        required("txn_id"),
        required("last_heartbeat_ms"),
    )
    op.create_table(
        "compactions",
        number_key("compaction_id"),
        *object_columns(),
        required("compaction_type", sa.Integer),
        required("state", BINARY_TEXT),
        required("details", LONG_TEXT),
    )
    op.create_index(
        "compactions_object",
        "compactions",
        ["db_name", "table_name", "partition_name"],
        **index_lengths("partition_name"),
    )
    op.create_index("compactions_state", "compactions", ["state", "compaction_id"])


def number_key(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def object_columns() -> list[sa.Column[Any]]:
    return [
        required("db_name", DATABASE_NAME),
        required("table_name", TABLE_NAME),
        required("partition_name", BINARY_TEXT),
    ]


def partial_index(op: Operations, name: str, table: str, column: str, condition: str) -> None:
    op.create_index(name, table, [column], sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))


def functions(op: Operations) -> None:
    """Functions, types, indexes, delegation tokens, master keys, partition marks, properties, compressed messages."""
    op.add_column("functions", sa.Column("extra", LONG_TEXT))
    op.add_column("notifications", sa.Column("compressed_message", LONG_BINARY))
    op.create_table(
        "types",
        sa.Column("type_id", ID, primary_key=True),
        sa.Column("name", BINARY_TEXT, nullable=False, unique=True),
        sa.Column("extra", LONG_TEXT),
    )
    op.create_table(
        "table_indexes",
        sa.Column("index_id", ID, primary_key=True),
        parent("tables.table_id"),
        required("name", BINARY_TEXT),
        sa.Column("index_table_name", LONG_TEXT),
        sa.Column("extra", LONG_TEXT),
        sa.UniqueConstraint("table_id", "name", name="table_indexes_name"),
    )
    op.create_table(
        "partition_marks",
        sa.Column("mark_id", ID, primary_key=True),
        parent("tables.table_id"),
        required("values_hash", BINARY_TEXT),
        required("event_type", sa.Integer),
        required("event_time", sa.BigInteger),
    )
    op.create_index("partition_marks_values", "partition_marks", ["table_id", "values_hash"])
    op.create_index("partition_marks_time", "partition_marks", ["event_time"])
    op.create_table(
        "delegation_tokens",
        sa.Column("identifier_hash", BINARY_TEXT, primary_key=True),
        required("content", LONG_TEXT),
    )
    op.create_table(
        "master_keys",
        sa.Column("key_id", ID, primary_key=True),
        required("content", LONG_TEXT),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "properties",
        sa.Column("path_hash", BINARY_TEXT, primary_key=True),
        required("namespace", LONG_TEXT),
        required("path", LONG_TEXT),
        required("value", LONG_TEXT),
    )


def statistics_and_constraints(op: Operations) -> None:
    """Column statistics and constraints."""
    op.create_table(
        "table_statistics",
        sa.Column("table_id", ID, reference("tables.table_id"), primary_key=True, autoincrement=False),
        *column_key(),
        *statistics(),
    )
    op.create_table(
        "partition_statistics",
        sa.Column("partition_id", sa.BigInteger, primary_key=True, autoincrement=False),
        *column_key(),
        sa.Column("table_id", ID, reference("tables.table_id"), nullable=False),
        *statistics(),
    )
    op.create_index("ix_partition_statistics_table_id", "partition_statistics", ["table_id"])
    op.create_table(
        "constraints",
        sa.Column("constraint_id", ID, primary_key=True),
        sa.Column("table_id", ID, reference("tables.table_id"), nullable=False),
        sa.Column("parent_table_id", ID, reference("tables.table_id")),
        required("kind", sa.Integer),
        required("name", BINARY_TEXT),
        required("position", sa.Integer),
        required("column_name", BINARY_TEXT),
        sa.Column("parent_column_name", BINARY_TEXT),
        sa.Column("extra", LONG_TEXT),
    )
    for column in ("table_id", "parent_table_id"):
        op.create_index(f"ix_constraints_{column}", "constraints", [column])


def column_key() -> list[sa.Column[Any]]:
    return [
        sa.Column("engine", SHORT_TEXT, primary_key=True),
        sa.Column("column_name", BINARY_TEXT, primary_key=True),
    ]


def statistics() -> list[sa.Column[Any]]:
    return [
        required("column_type", LONG_TEXT),
        required("data", LONG_TEXT),
        required("last_analyzed", sa.BigInteger),
    ]


def privileges(op: Operations) -> None:
    """Roles and privileges."""
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


def outcomes(op: Operations) -> None:
    """Outcomes of calls that clients may repeat."""
    op.create_table(
        "outcomes",
        sa.Column("principal", binary_text(PRINCIPAL_CHARACTERS), primary_key=True),
        sa.Column("call_key", binary_text(CALL_KEY_CHARACTERS), primary_key=True),
        sa.Column("method", LONG_TEXT, nullable=False),
        sa.Column("concluded_at", sa.BigInteger, nullable=False),
        sa.Column("codec_name", LONG_TEXT),
        sa.Column("payload", LONG_BINARY),
    )
    op.create_index("ix_outcomes_concluded_at", "outcomes", ["concluded_at"])


def leases(op: Operations) -> None:
    """Leases, and requests that wait for them."""
    op.create_table(
        "leases",
        *lease_key("lease_id"),
        *leased_object(),
        required("user_name", LONG_TEXT),
        required("start_ms"),
        required("end_ms"),
        required("duration_ms"),
    )
    op.create_index(
        "leases_object", "leases", ["db_name", "table_name", "partition_name"], **index_lengths("partition_name")
    )
    op.create_index("leases_end", "leases", ["end_ms"])
    op.create_table("lease_waiters", *lease_key("ticket"), *leased_object(), required("until_ms"))
    op.create_index(
        "lease_waiters_object",
        "lease_waiters",
        ["db_name", "table_name", "partition_name"],
        **index_lengths("partition_name"),
    )
    op.create_index("lease_waiters_until", "lease_waiters", ["until_ms"])


def lease_key(name: str) -> list[sa.Column[Any]]:
    return [
        sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("object_number", sa.Integer, primary_key=True, autoincrement=False),
    ]


def leased_object() -> list[sa.Column[Any]]:
    return [*object_columns(), required("type", SHORT_TEXT)]


def registry_and_plans(op: Operations) -> None:
    """Serdes, the schema registry, resource plans, notes of query engines, sources of materialized views, write events."""
    make_registry(op)
    make_plans_and_notes(op)
    make_scheduled_queries(op)
    make_views_and_write_events(op)


def make_registry(op: Operations) -> None:
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


def make_plans_and_notes(op: Operations) -> None:
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


def make_scheduled_queries(op: Operations) -> None:
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


def make_views_and_write_events(op: Operations) -> None:
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


def reference(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE")


def of_schema() -> list[sa.Column[Any]]:
    return [given_key("schema_id", ID, reference("registry_schemas.schema_id"))]


def share_of_a_table(op: Operations) -> None:
    """PostgreSQL takes every table for the same small share of all partitions.

    Its figures about `table_id` are older than a table that was just filled. For a table they do not name it expects a
    single row, and any index serves to find one: it then reads all partitions of the table for a filter that selects one.
    Without figures it expects a two-hundredth of all partitions, and takes the index of the key.
    """
    if op.connection.dialect.name != "postgresql":
        return
    op.execute("ALTER TABLE partitions ALTER COLUMN table_id TYPE bigint")  # the only way to forget what it has
    op.execute("ALTER TABLE partitions ALTER COLUMN table_id SET STATISTICS 0")
    # A key that no partition had when the figures were gathered misleads it, too: not for a tenth of all, as is usual.
    op.execute("ALTER TABLE partitions SET (autovacuum_analyze_scale_factor = 0.01)")


def messages_of_keys(op: Operations) -> None:
    """The key of a call belongs to one message, and calls that failed keep theirs."""
    op.add_column("outcomes", sa.Column("message_hash", LONG_BINARY))
    op.add_column("outcomes", sa.Column("is_exception", sa.Boolean))


def holders_of_locks(op: Operations) -> None:
    """Who asked for a lock, as authenticated, and from which address."""
    op.add_column("locks", sa.Column("principal", LONG_TEXT))
    op.add_column("locks", sa.Column("client_address", LONG_TEXT))


def write_ids_of_transactions(op: Operations) -> None:
    """A transaction knows whether it has write ids."""
    op.add_column("txns", sa.Column("has_write_ids", sa.Boolean))


def who_changed_what(op: Operations) -> None:
    """Who made the change of an event, and what is kept of that when the event is forgotten."""
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


def write_ids_of_statistics(op: Operations) -> None:
    """Column statistics know the write id that they were computed under."""
    op.add_column("table_statistics", sa.Column("write_id", sa.BigInteger))
    op.add_column("partition_statistics", sa.Column("write_id", sa.BigInteger))


def tables_dropped_first(op: Operations) -> None:
    """A table with many partitions may go before them: it is noted that they are still to be deleted."""
    op.create_table("dropped_tables", sa.Column("table_id", sa.BigInteger, primary_key=True, autoincrement=False))
    connection = op.connection
    if connection.dialect.name not in ("mysql", "mariadb"):
        return
    # Only there partitions stay without their table for a while.
    inspector = sa.inspect(connection)
    for table in ("further_keys", "partitions", "descriptors"):
        for key in inspector.get_foreign_keys(table):
            op.execute(f"ALTER TABLE {table} DROP FOREIGN KEY {key['name']}")


def gateways(op: Operations) -> None:
    """Gateways that share a database say that they are there, and how far they have followed its log."""
    op.create_table(
        "gateways",
        sa.Column("gateway_id", SHORT_TEXT, primary_key=True),
        sa.Column("name", LONG_TEXT, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("version", LONG_TEXT, nullable=False),
        sa.Column("started_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_ms", sa.BigInteger, nullable=False),
        sa.Column("event_id", sa.BigInteger, nullable=False),
        sa.Column("newest_event_id", sa.BigInteger, nullable=False),
        sa.Column("behind_since", sa.BigInteger),
    )


def where_tables_lie(op: Operations) -> None:
    """Tables are found by where they lie."""
    # PostgreSQL's other index of texts has a longest one.
    op.create_index("tables_location", "tables", ["location"], postgresql_using="spgist", **index_lengths("location"))


def catalogs(op: Operations) -> None:
    """There may be other catalogs beside the default one."""
    op.create_table(
        "catalogs",
        sa.Column("name", DATABASE_NAME, primary_key=True),
        sa.Column("description", LONG_TEXT),
        sa.Column("location", LONG_TEXT, nullable=False),
        sa.Column("create_time", sa.Integer),
    )


def readable_by(op: Operations) -> None:
    """The database says which older programs can use it (`READABLE_BY`)."""
    op.add_column("alembic_version", sa.Column("readable_by", sa.String(32)))


STEPS: Final[dict[str, Callable[[Operations], None]]] = {
    "0001": initial,
    "0002": transactions,
    "0003": functions,
    "0004": statistics_and_constraints,
    "0005": privileges,
    "0006": outcomes,
    "0007": leases,
    "0008": registry_and_plans,
    "0009": share_of_a_table,
    "0010": messages_of_keys,
    "0011": holders_of_locks,
    "0012": write_ids_of_transactions,
    "0013": who_changed_what,
    "0014": write_ids_of_statistics,
    "0015": tables_dropped_first,
    "0016": gateways,
    "0017": where_tables_lie,
    "0018": catalogs,
    "0019": readable_by,
}
