"""Values of rules and storage: stored tables, roles and grants, constraints, column statistics, made changes."""

from enum import IntEnum
from typing import NamedTuple, NewType, Protocol

import msgspec

from hms_gateway.metastore.vocabulary.names import DatabaseId, EventId, PartitionId, TableId
from hms_gateway.runtime.presented import Actor
from hms_gateway.structs import ColumnStatisticsData_v4, Struct, Table


class StoredTable(msgspec.Struct, frozen=True):
    """A table as get_table returns it, its ids, the exact number of its partitions, and whether it has indexes.

    `as_stored` is storage's own, by which it sees whether the table has changed since.
    """

    table_id: TableId
    database_id: DatabaseId
    table: Table
    partition_count: int
    has_indexes: bool
    as_stored: object = None

    @property
    def key_names(self) -> list[str]:
        return [key.name or "" for key in self.table.partitionKeys or []]


RoleId = NewType("RoleId", int)


GrantId = NewType("GrantId", int)


class GrantObject(msgspec.Struct, frozen=True):
    """What a privilege is on: everything, or what the ids say. A column is one of a table or of a partition."""

    object_type: int
    database_id: DatabaseId | None = None
    table_id: TableId | None = None
    partition_id: PartitionId | None = None
    column: str | None = None


class Grantee(msgspec.Struct, frozen=True):
    name: str
    principal_type: int


class Grant(msgspec.Struct, frozen=True):
    """One privilege of one principal on one object."""

    on: GrantObject
    principal: Grantee
    privilege: str
    create_time: int
    grant_option: bool
    grantor: str | None = None
    grantor_type: int | None = None
    authorizer: str | None = None


class StoredGrant(msgspec.Struct, frozen=True):
    """A grant with its id and the names of what it is on."""

    grant_id: GrantId
    grant: Grant
    db_name: str | None
    table_name: str | None
    partition_values: tuple[str, ...] | None


class RoleMember(NamedTuple):
    role: str
    name: str
    principal_type: int
    with_admin_option: bool


class DatabaseOwner(NamedTuple):
    database: str
    owner: str | None
    owner_type: int | None
    location: str | None


class TableOwner(NamedTuple):
    """`has_grants`: on the table, its columns or its partitions."""

    database: str
    table: str
    owner: str | None
    owner_type: int
    has_grants: bool


class ConstraintKind(IntEnum):
    """As Hive numbers them (semantics §2.15)."""

    PRIMARY_KEY = 0
    FOREIGN_KEY = 1
    UNIQUE = 2
    NOT_NULL = 3
    DEFAULT = 4
    CHECK = 5


class ConstraintColumn(msgspec.Struct, frozen=True):
    """One column of a constraint.

    `extra` is the IDL's struct (SQLPrimaryKey, …); what the other fields say counts where it says something else.
    """

    kind: ConstraintKind
    name: str
    table_id: TableId
    column: str
    position: int
    extra: Struct
    parent_table_id: TableId | None = None
    parent_column: str | None = None


class ColumnFigures(msgspec.Struct, frozen=True):
    """The statistics of one column, computed at `last_analyzed` (seconds); `write_id` is for transactional tables."""

    column: str
    column_type: str
    data: ColumnStatisticsData_v4
    last_analyzed: int
    write_id: int | None = None


class ChangeSelection(msgspec.Struct, frozen=True):
    """Which changes: times in seconds since 1970, both included; `before` is an event, which is not."""

    user: str | None = None
    db_name: str | None = None
    table_name: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None
    limit: int = 100


class MadeChange(msgspec.Struct, frozen=True):
    """A change as its event names it, and who made it."""

    event_id: EventId
    seconds: int
    event_type: str
    db_name: str
    table_name: str | None
    actor: Actor


class ChangeTrail(Protocol):
    """Where it is kept; a store."""

    def changes_made(self, selection: ChangeSelection) -> list[MadeChange]:
        """The newest first. Raises StoreUnavailable."""
