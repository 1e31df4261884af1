"""What the rules of column statistics, constraints, roles and privileges need from storage.

Each is an attribute of the units of work in `ports`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NewType, Protocol

from app.metastore.ids import DatabaseId, PartitionId, TableId
from app.metastore.stored_table import StoredTable
from app.structs import ColumnStatisticsData_v4, FieldSchema, Role, RolePrincipalGrant, Struct

RoleId = NewType("RoleId", int)
GrantId = NewType("GrantId", int)


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """The statistics of one column, computed at `last_analyzed` (seconds)."""

    column: str
    column_type: str
    data: ColumnStatisticsData_v4
    last_analyzed: int


class StatisticsReads(Protocol):
    """Column names are normalised by the caller; no columns means all. Columns come in byte order."""

    def of_table(self, table_id: TableId, engine: str, columns: Sequence[str] | None = None) -> list[ColumnFigures]: ...

    def of_partitions(
        self, table: StoredTable, engine: str, names: Sequence[str], columns: Sequence[str] | None = None
    ) -> dict[str, list[ColumnFigures]]:
        """By the name of the partition, in byte order; partitions without statistics are left out."""

    def columns_of_table(self, table_id: TableId) -> list[str]:
        """The columns with statistics of any engine, in byte order."""

    def columns_of_partition(self, table: StoredTable, name: str) -> list[str]:
        """The same for a partition; none when it is not there."""

    def partition_ids(self, table: StoredTable, names: Sequence[str]) -> dict[str, PartitionId]:
        """Those of the named partitions that exist."""


class StatisticsWrites(StatisticsReads, Protocol):
    """Every change is a fixed number of statements, however many partitions it concerns."""

    def put_of_table(self, table_id: TableId, engine: str, figures: Sequence[ColumnFigures]) -> None:
        """Insert or replace."""

    def put_of_partitions(
        self, table_id: TableId, engine: str, figures: Mapping[PartitionId, Sequence[ColumnFigures]]
    ) -> None:
        """Insert or replace, and note the columns in the partitions' COLUMN_STATS_ACCURATE."""

    def delete_of_table(self, table_id: TableId, engine: str, columns: Sequence[str] | None = None) -> int:
        """How many columns lost their statistics."""

    def delete_of_partitions(
        self, engine: str, partition_ids: Sequence[PartitionId], columns: Sequence[str] | None = None
    ) -> int:
        """The same for partitions."""

    def keep_table_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> list[str]:
        """Delete what is not about a column of one of these names and types; the names that were deleted."""

    def keep_partition_columns(
        self, table_id: TableId, columns: Sequence[FieldSchema], partition_ids: Sequence[PartitionId] | None = None
    ) -> None:
        """The same for these partitions or all of the table, also in their COLUMN_STATS_ACCURATE."""

    def delete_below(self, table_id: TableId, path: str) -> None:
        """Delete those of the partitions that lie at `path` or under it."""


class ConstraintKind(IntEnum):
    """As Hive numbers them (semantics §2.15)."""

    PRIMARY_KEY = 0
    FOREIGN_KEY = 1
    UNIQUE = 2
    NOT_NULL = 3
    DEFAULT = 4
    CHECK = 5


@dataclass(frozen=True, slots=True)
class ConstraintColumn:
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


class ConstraintReads(Protocol):
    def of_table(self, table_id: TableId, kind: ConstraintKind) -> list[Struct]:
        """The columns of a kind of constraints as the IDL's structs, in order of their constraints' creation."""

    def foreign_keys(self, table_id: TableId | None, parent_table_id: TableId | None) -> list[Struct]:
        """Those of a table, those that refer to one, or both."""

    def names(self, table_id: TableId) -> set[str]:
        """Of all constraints the table has."""


class ConstraintWrites(ConstraintReads, Protocol):
    def insert(self, columns: Sequence[ConstraintColumn]) -> None: ...

    def delete(self, table_id: TableId, name: str) -> int:
        """Of the table, or of another one that refers to it by a foreign key; the number of its columns."""

    def keep_columns(self, table_id: TableId, columns: Sequence[str]) -> None:
        """Delete every constraint that has another column of the table."""


class RoleReads(Protocol):
    def find(self, name: str) -> RoleId | None: ...

    def names(self) -> list[str]: ...

    def of_principal(self, name: str, principal_type: int) -> list[Role]:
        """The roles granted directly, ordered by name."""

    def grants_of_principal(self, name: str, principal_type: int) -> list[RolePrincipalGrant]: ...

    def grants_of_role(self, role_id: RoleId) -> list[RolePrincipalGrant]: ...

    def all_grants_between_roles(self) -> list[tuple[str, str]]:
        """(role, role it was granted to)."""


class RoleWrites(RoleReads, Protocol):
    def insert(self, role: Role) -> RoleId:
        """Raises DuplicateKey."""

    def delete(self, role_id: RoleId) -> None:
        """With its members, its own memberships and everything granted to it."""

    def insert_grant(self, role_id: RoleId, grant: RolePrincipalGrant) -> None: ...

    def delete_grant(self, role_id: RoleId, name: str, principal_type: int) -> bool: ...

    def clear_grant_option(self, role_id: RoleId, name: str, principal_type: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class GrantObject:
    """What a privilege is on: everything, or what the ids say. A column is one of a table or of a partition."""

    object_type: int
    database_id: DatabaseId | None = None
    table_id: TableId | None = None
    partition_id: PartitionId | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    name: str
    principal_type: int


@dataclass(frozen=True, slots=True)
class Grant:
    """One privilege of one principal on one object."""

    on: GrantObject
    principal: Principal
    privilege: str
    create_time: int
    grant_option: bool
    grantor: str | None = None
    grantor_type: int | None = None
    authorizer: str | None = None


@dataclass(frozen=True, slots=True)
class StoredGrant:
    """A grant with its id and the names of what it is on."""

    grant_id: GrantId
    grant: Grant
    db_name: str | None
    table_name: str | None
    partition_values: tuple[str, ...] | None


class GrantReads(Protocol):
    def on(self, target: GrantObject, *, of_any_column: bool = False) -> list[StoredGrant]:
        """All on exactly this object, in order of their making; or on all columns of the table or partition."""

    def of_principal(self, principal: Principal, object_type: int | None = None) -> list[StoredGrant]: ...

    def of_kind(self, object_type: int | None = None) -> list[StoredGrant]: ...

    def on_partitions(self, table_id: TableId) -> dict[PartitionId, list[Grant]]:
        """On whole partitions of a table."""


class GrantWrites(GrantReads, Protocol):
    def insert(self, grants: Sequence[Grant]) -> None: ...

    def copy_to_partitions(self, table: StoredTable, names: Sequence[str], now_seconds: int) -> None:
        """Grant on these partitions, and on their columns, what is granted on their table."""

    def delete(self, grant_ids: Sequence[GrantId]) -> None: ...

    def clear_grant_options(self, grant_ids: Sequence[GrantId]) -> None: ...
