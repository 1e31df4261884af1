"""What the rules of roles and privileges need from storage."""

from collections.abc import Sequence
from typing import NewType, Protocol

import msgspec

from hms_gateway.metastore.ports.stored_table import StoredTable
from hms_gateway.metastore.vocabulary.ids import DatabaseId, PartitionId, TableId
from hms_gateway.structs import Role, RolePrincipalGrant

RoleId = NewType("RoleId", int)


GrantId = NewType("GrantId", int)


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


class GrantObject(msgspec.Struct, frozen=True):
    """What a privilege is on: everything, or what the ids say. A column is one of a table or of a partition."""

    object_type: int
    database_id: DatabaseId | None = None
    table_id: TableId | None = None
    partition_id: PartitionId | None = None
    column: str | None = None


class Principal(msgspec.Struct, frozen=True):
    name: str
    principal_type: int


class Grant(msgspec.Struct, frozen=True):
    """One privilege of one principal on one object."""

    on: GrantObject
    principal: Principal
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
