"""The relational schema: one narrow row for each object, partitions sharing their storage descriptors (design D6).

Texts that are only handed out again are kept as compact TJSON fragments (design D5) in plain text columns; texts that
are compared lie in columns of binary collation. Indexes over some rows only are in the migrations.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    UniqueConstraint,
)

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
)

REVISION: Final = "0019"
# The lowest revision whose programs can use the newest one, beside ours. A step that only adds leaves it; one that
# changes or takes away what they use sets it to its own number.
READABLE_BY: Final = "0017"

# PostgreSQL indexes no longer entry, and a partition name is at least as long as each of its values.
NAME_BYTES_MAX: Final = 2_500

# Values of so many leading partition keys have a column and an index of their own, the rest lie in a side table.
KEY_COLUMN_COUNT: Final = 8

METADATA: Final = MetaData()

# One row: the newest event id, which is the catalog's version. Every change locks it first.
CATALOG: Final = Table(
    "catalog",
    METADATA,
    Column("catalog_id", Integer, primary_key=True, autoincrement=False),
    Column("last_event_id", BigInteger, nullable=False),
)

# Every catalog but the default one. Names of databases in others begin with `@catalog#`.
CATALOGS: Final = Table(
    "catalogs",
    METADATA,
    Column("name", DATABASE_NAME, primary_key=True),
    Column("description", LONG_TEXT),
    Column("location", LONG_TEXT, nullable=False),
    Column("create_time", Integer),
)

DATABASES: Final = Table(
    "databases",
    METADATA,
    Column("database_id", ID, primary_key=True),
    Column("name", DATABASE_NAME, nullable=False, unique=True),
    Column("description", LONG_TEXT),
    Column("location", LONG_TEXT),
    Column("owner_name", LONG_TEXT),
    Column("owner_type", Integer),
    Column("parameters", LONG_TEXT),
    Column("create_time", Integer),
    # Every further field that is set, as a Database struct of its own.
    Column("extra", LONG_TEXT),
    sqlite_autoincrement=True,
)

FUNCTIONS: Final = Table(
    "functions",
    METADATA,
    Column("function_id", ID, primary_key=True),
    Column("database_id", ID, ForeignKey("databases.database_id"), nullable=False),
    Column("name", BINARY_TEXT, nullable=False),
    # Every further field that is set, as a Function struct of its own.
    Column("extra", LONG_TEXT),
    UniqueConstraint("database_id", "name", name="functions_name"),
)

TABLES: Final = Table(
    "tables",
    METADATA,
    Column("table_id", ID, primary_key=True),
    Column("database_id", ID, ForeignKey("databases.database_id"), nullable=False),
    Column("name", TABLE_NAME, nullable=False),
    Column("table_type", BINARY_TEXT),
    Column("owner", LONG_TEXT),
    Column("create_time", Integer, nullable=False),
    Column("last_access_time", Integer, nullable=False),
    Column("retention", Integer, nullable=False),
    Column("location", LONG_TEXT),
    # The storage descriptor without columns and location, its members without braces; NULL for no descriptor.
    Column("descriptor", LONG_TEXT),
    Column("columns", LONG_TEXT),
    Column("skew_locations", LONG_TEXT),
    Column("partition_keys", LONG_TEXT),
    Column("parameters", LONG_TEXT),
    Column("view_original_text", LONG_TEXT),
    Column("view_expanded_text", LONG_TEXT),
    Column("extra", LONG_TEXT),
    # Exact, so that the header of a streamed list costs no count.
    Column("partition_count", BigInteger, nullable=False),
    UniqueConstraint("database_id", "name", name="tables_name"),
    sqlite_autoincrement=True,
)

# Storage descriptors of partitions, each shared by all partitions of its table that differ in location only.
DESCRIPTORS: Final = Table(
    "descriptors",
    METADATA,
    Column("descriptor_id", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", ID, ForeignKey("tables.table_id"), nullable=False),
    Column("content_hash", BINARY_TEXT, nullable=False),
    Column("columns", LONG_TEXT),
    Column("rest", LONG_TEXT, nullable=False),
    Column("skew_locations", LONG_TEXT),
    # What the partitions' locations are relative to; NULL when they are absolute (or absent).
    Column("base_location", LONG_TEXT),
    # How many partitions use it; at zero it goes.
    Column("partition_count", BigInteger, nullable=False),
    Index("descriptors_content", "table_id", "content_hash"),
)

PARTITIONS: Final = Table(
    "partitions",
    METADATA,
    Column("partition_id", ID, primary_key=True),
    Column("table_id", ID, ForeignKey("tables.table_id"), nullable=False),
    Column("part_name", BINARY_TEXT, nullable=False),
    Column("descriptor_id", BigInteger),
    Column("part_values", LONG_TEXT, nullable=False),
    Column("create_time", Integer, nullable=False),
    Column("last_access_time", Integer, nullable=False),
    Column("parameters", LONG_TEXT, nullable=False),
    # Below the descriptor's base: NULL is "/" + part_name, "" the base itself. Absolute without a base.
    Column("location", LONG_TEXT),
    # Further members of the struct, each with a comma before it.
    Column("extra", LONG_TEXT),
    # Sort keys of the leading values (`typed_values`); NULL for a missing key and for a value that is not of its type.
    *(Column(f"key_{number}", BINARY_TEXT) for number in range(KEY_COLUMN_COUNT)),
    UniqueConstraint("table_id", "part_name", name="partitions_name"),
)
KEY_COLUMNS: Final = tuple(PARTITIONS.c[f"key_{number}"] for number in range(KEY_COLUMN_COUNT))

# Sort keys of the values behind those that have columns.
FURTHER_KEYS: Final = Table(
    "further_keys",
    METADATA,
    Column("partition_id", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("table_id", ID, ForeignKey("tables.table_id"), nullable=False, index=True),
    Column("sort_key", BINARY_TEXT),
)

NOTIFICATIONS: Final = Table(
    "notifications",
    METADATA,
    Column("event_id", BigInteger, primary_key=True, autoincrement=False),
    Column("event_time", BigInteger, nullable=False),
    Column("event_type", LONG_TEXT, nullable=False),
    Column("db_name", LONG_TEXT, nullable=False),
    Column("table_name", LONG_TEXT),
    Column("renamed_from_db", LONG_TEXT),
    Column("renamed_from_table", LONG_TEXT),
    # A long message is kept compressed, and this is empty then.
    Column("message", LONG_TEXT, nullable=False),
    Column("compressed_message", LONG_BINARY),
    # Who made the change; NULL where that is not noted. `actor` is an `Actor` as JSON.
    Column("principal", LONG_TEXT),
    Column("actor", LONG_TEXT),
)

# Who made the changes of events that were forgotten.
CHANGES: Final = Table(
    "changes",
    METADATA,
    Column("event_id", BigInteger, primary_key=True, autoincrement=False),
    Column("event_time", BigInteger, nullable=False),
    Column("event_type", LONG_TEXT, nullable=False),
    Column("db_name", LONG_TEXT, nullable=False),
    Column("table_name", LONG_TEXT),
    Column("principal", LONG_TEXT),
    Column("actor", LONG_TEXT),
    Index("changes_time", "event_time"),
)

PENDING_MOVES: Final = Table(
    "pending_moves",
    METADATA,
    Column("move_id", ID, primary_key=True),
    Column("table_id", BigInteger, nullable=False),
    Column("source", LONG_TEXT, nullable=False),
    Column("target", LONG_TEXT, nullable=False),
    sqlite_autoincrement=True,
)

TYPES: Final = Table(
    "types",
    METADATA,
    Column("type_id", ID, primary_key=True),
    Column("name", BINARY_TEXT, nullable=False, unique=True),
    Column("extra", LONG_TEXT),
)

TABLE_INDEXES: Final = Table(
    "table_indexes",
    METADATA,
    Column("index_id", ID, primary_key=True),
    Column("table_id", ID, ForeignKey("tables.table_id"), nullable=False),
    Column("name", BINARY_TEXT, nullable=False),
    # As the index was made with; it may be `database.table`, and no such table need be there.
    Column("index_table_name", LONG_TEXT),
    Column("extra", LONG_TEXT),
    UniqueConstraint("table_id", "name", name="table_indexes_name"),
)

# What markPartitionForEvent noted. The partition need not be there, so it is known by its values.
PARTITION_MARKS: Final = Table(
    "partition_marks",
    METADATA,
    Column("mark_id", ID, primary_key=True),
    Column("table_id", ID, ForeignKey("tables.table_id"), nullable=False),
    Column("values_hash", BINARY_TEXT, nullable=False),
    Column("event_type", Integer, nullable=False),
    Column("event_time", BigInteger, nullable=False),
    Index("partition_marks_values", "table_id", "values_hash"),
    Index("partition_marks_time", "event_time"),
)

# Texts of callers that may be of any length and have any characters lie in `content`, as a TJSON list.
DELEGATION_TOKENS: Final = Table(
    "delegation_tokens",
    METADATA,
    Column("identifier_hash", BINARY_TEXT, primary_key=True),
    Column("content", LONG_TEXT, nullable=False),
)

MASTER_KEYS: Final = Table(
    "master_keys",
    METADATA,
    Column("key_id", ID, primary_key=True),
    Column("content", LONG_TEXT, nullable=False),
    sqlite_autoincrement=True,
)

PROPERTIES: Final = Table(
    "properties",
    METADATA,
    Column("path_hash", BINARY_TEXT, primary_key=True),
    Column("namespace", LONG_TEXT, nullable=False),
    Column("path", LONG_TEXT, nullable=False),
    Column("value", LONG_TEXT, nullable=False),
)

# Column statistics; `data` is a ColumnStatisticsData_v4 (semantics §2.16). Engines differ in what they compute.
TABLE_STATISTICS: Final = Table(
    "table_statistics",
    METADATA,
    Column("table_id", ID, ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("engine", SHORT_TEXT, primary_key=True),
    Column("column_name", BINARY_TEXT, primary_key=True),
    Column("column_type", LONG_TEXT, nullable=False),
    Column("data", LONG_TEXT, nullable=False),
    Column("last_analyzed", BigInteger, nullable=False),
    # Under which they were computed, of a transactional table.
    Column("write_id", BigInteger),
)

PARTITION_STATISTICS: Final = Table(
    "partition_statistics",
    METADATA,
    Column("partition_id", BigInteger, primary_key=True, autoincrement=False),
    Column("engine", SHORT_TEXT, primary_key=True),
    Column("column_name", BINARY_TEXT, primary_key=True),
    Column("table_id", ID, ForeignKey("tables.table_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("column_type", LONG_TEXT, nullable=False),
    Column("data", LONG_TEXT, nullable=False),
    Column("last_analyzed", BigInteger, nullable=False),
    # Under which they were computed, of a transactional table.
    Column("write_id", BigInteger),
)

# A row for each column of a constraint. A foreign key belongs to the table that has it, and goes with either table.
CONSTRAINTS: Final = Table(
    "constraints",
    METADATA,
    Column("constraint_id", ID, primary_key=True),
    Column("table_id", ID, ForeignKey("tables.table_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("parent_table_id", ID, ForeignKey("tables.table_id", ondelete="CASCADE"), index=True),
    Column("kind", Integer, nullable=False),
    Column("name", BINARY_TEXT, nullable=False),
    Column("position", Integer, nullable=False),
    Column("column_name", BINARY_TEXT, nullable=False),
    Column("parent_column_name", BINARY_TEXT),
    # The other fields of the SQL… struct.
    Column("extra", LONG_TEXT),
)

ROLES: Final = Table(
    "roles",
    METADATA,
    Column("role_id", ID, primary_key=True),
    Column("name", BINARY_TEXT, nullable=False, unique=True),
    Column("owner_name", LONG_TEXT),
    Column("create_time", Integer, nullable=False),
)

ROLE_MEMBERS: Final = Table(
    "role_members",
    METADATA,
    Column("member_id", ID, primary_key=True),
    Column("role_id", ID, ForeignKey("roles.role_id", ondelete="CASCADE"), nullable=False),
    Column("principal_name", BINARY_TEXT, nullable=False),
    Column("principal_type", Integer, nullable=False),
    Column("grant_option", Boolean, nullable=False),
    Column("grant_time", Integer, nullable=False),
    Column("grantor_name", LONG_TEXT),
    Column("grantor_type", Integer),
    Index("role_members_principal", "principal_name", "principal_type"),
    UniqueConstraint("role_id", "principal_type", "principal_name", name="role_members_once"),
)

# What a grant is on is said by those of the ids that are set; all unset means everything (semantics §2.18).
PRIVILEGES: Final = Table(
    "privileges",
    METADATA,
    Column("privilege_id", ID, primary_key=True),
    Column("object_type", Integer, nullable=False),
    Column("database_id", ID, ForeignKey("databases.database_id", ondelete="CASCADE"), index=True),
    Column("table_id", ID, ForeignKey("tables.table_id", ondelete="CASCADE"), index=True),
    Column("partition_id", BigInteger, index=True),
    Column("column_name", BINARY_TEXT),
    Column("principal_name", BINARY_TEXT, nullable=False),
    Column("principal_type", Integer, nullable=False),
    Column("privilege", LONG_TEXT, nullable=False),
    Column("grant_option", Boolean, nullable=False),
    Column("create_time", Integer, nullable=False),
    Column("grantor_name", LONG_TEXT),
    Column("grantor_type", Integer),
    Column("authorizer", LONG_TEXT),
    Index("privileges_principal", "principal_name", "principal_type"),
)

# Calls that their clients may repeat, by the client's own key: what was changed, and how it was answered.
OUTCOMES: Final = Table(
    "outcomes",
    METADATA,
    Column("principal", binary_text(PRINCIPAL_CHARACTERS), primary_key=True),
    Column("call_key", binary_text(CALL_KEY_CHARACTERS), primary_key=True),
    Column("method", LONG_TEXT, nullable=False),
    Column("concluded_at", BigInteger, nullable=False, index=True),
    Column("codec_name", LONG_TEXT),
    Column("payload", LONG_BINARY),
    Column("message_hash", LONG_BINARY),
    Column("is_exception", Boolean),
)

# What 3.1 and later keep besides the catalog. Names of these things may be of any length and have any characters, so
# they are found by hashes, and `content` is the struct itself.
SERDES: Final = Table(
    "serdes",
    METADATA,
    Column("name_hash", SHORT_TEXT, primary_key=True),
    Column("content", LONG_TEXT, nullable=False),
)

REGISTRY_SCHEMAS: Final = Table(
    "registry_schemas",
    METADATA,
    Column("schema_id", ID, primary_key=True),
    Column("database_id", ID, ForeignKey("databases.database_id", ondelete="CASCADE"), nullable=False),
    Column("name_hash", SHORT_TEXT, nullable=False),
    Column("content", LONG_TEXT, nullable=False),
    UniqueConstraint("database_id", "name_hash", name="registry_schemas_name"),
)


def _schema_id() -> Column[int]:
    return Column(
        "schema_id",
        ID,
        ForeignKey("registry_schemas.schema_id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )


REGISTRY_VERSIONS: Final = Table(
    "registry_versions",
    METADATA,
    _schema_id(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("content", LONG_TEXT, nullable=False),
)

REGISTRY_COLUMNS: Final = Table(
    "registry_columns",
    METADATA,
    _schema_id(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name_hash", SHORT_TEXT, nullable=False, index=True),
    Column("namespace_hash", SHORT_TEXT, nullable=False, index=True),
    Column("type_hash", SHORT_TEXT, nullable=False),
)

# Plans are few and small, and read and changed as a whole: `content` is a WMFullResourcePlan.
RESOURCE_PLANS: Final = Table(
    "resource_plans",
    METADATA,
    Column("plan_id", ID, primary_key=True),
    Column("namespace_hash", SHORT_TEXT, nullable=False),
    Column("name_hash", SHORT_TEXT, nullable=False),
    Column("content", LONG_TEXT, nullable=False),
    UniqueConstraint("namespace_hash", "name_hash", name="resource_plans_name"),
)

RUNTIME_STATISTICS: Final = Table(
    "runtime_statistics",
    METADATA,
    Column("statistic_id", ID, primary_key=True),
    Column("create_time", BigInteger, nullable=False, index=True),
    Column("weight", Integer, nullable=False),
    Column("payload", LONG_BINARY, nullable=False),
)

REPLICATION_METRICS: Final = Table(
    "replication_metrics",
    METADATA,
    Column("execution_id", BigInteger, primary_key=True, autoincrement=False),
    Column("policy_hash", SHORT_TEXT, nullable=False),
    Column("dump_id", BigInteger, nullable=False),
    Column("start_time", BigInteger, nullable=False, index=True),
    Column("content", LONG_TEXT, nullable=False),
    Index("replication_metrics_policy", "policy_hash", "dump_id"),
)

SCHEDULED_QUERIES: Final = Table(
    "scheduled_queries",
    METADATA,
    Column("query_id", ID, primary_key=True),
    Column("namespace_hash", SHORT_TEXT, nullable=False),
    Column("name_hash", SHORT_TEXT, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    # In seconds; NULL when the schedule never comes round again.
    Column("next_execution", BigInteger),
    Column("active_execution", BigInteger),
    Column("failures", Integer, nullable=False),
    Column("content", LONG_TEXT, nullable=False),
    UniqueConstraint("namespace_hash", "name_hash", name="scheduled_queries_name"),
    Index("scheduled_queries_due", "namespace_hash", "next_execution"),
    sqlite_autoincrement=True,
)

SCHEDULED_EXECUTIONS: Final = Table(
    "scheduled_executions",
    METADATA,
    Column("execution_id", ID, primary_key=True),
    Column("query_id", ID, ForeignKey("scheduled_queries.query_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("state", Integer, nullable=False),
    Column("start_time", BigInteger, nullable=False),
    Column("last_update", BigInteger, nullable=False, index=True),
    # Who executes it, and what went wrong, as a TJSON list.
    Column("content", LONG_TEXT),
    sqlite_autoincrement=True,
)


def _of_table(name: str, *, index: bool = False) -> Column[int]:
    key = ForeignKey("tables.table_id", ondelete="CASCADE")
    return Column(name, ID, key, primary_key=True, autoincrement=False, index=index)


# What was changed in the tables of a materialized view since it was built, as engines say when they commit.
VIEW_SOURCES: Final = Table(
    "view_sources",
    METADATA,
    _of_table("view_id"),
    _of_table("source_id", index=True),
    Column("inserted_count", BigInteger, nullable=False),
    Column("updated_count", BigInteger, nullable=False),
    Column("deleted_count", BigInteger, nullable=False),
)

# What a transaction wrote to a table or partition, as a WriteEventInfo; replication reads it after the commit.
WRITE_EVENTS: Final = Table(
    "write_events",
    METADATA,
    Column("event_id", ID, primary_key=True),
    Column("txn_id", BigInteger, nullable=False),
    Column("object_hash", SHORT_TEXT, nullable=False),
    Column("event_time", BigInteger, nullable=False, index=True),
    Column("content", LONG_TEXT, nullable=False),
    UniqueConstraint("txn_id", "object_hash", name="write_events_object"),
)

# Tables that are gone already while their partitions are not. On MySQL and MariaDB these have no reference to tables.
DROPPED_TABLES: Final = Table(
    "dropped_tables", METADATA, Column("table_id", BigInteger, primary_key=True, autoincrement=False)
)

# Processes of gateways, where the database is a server. Of each the newest event that its cache has seen, and as of the
# same moment the newest of the catalog and the time of the first one that it has not seen.
GATEWAYS: Final = Table(
    "gateways",
    METADATA,
    Column("gateway_id", SHORT_TEXT, primary_key=True),
    Column("name", LONG_TEXT, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("version", LONG_TEXT, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    Column("event_id", BigInteger, nullable=False),
    Column("newest_event_id", BigInteger, nullable=False),
    Column("behind_since", BigInteger),
)

# What goes with a table, in an order that keeps every reference whole; the first ones those with partitions have.
OF_PARTITIONED: Final = (FURTHER_KEYS, PARTITIONS, DESCRIPTORS)
