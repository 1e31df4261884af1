"""What the rules of roles and privileges need from storage."""

from collections.abc import Sequence
from typing import NamedTuple, NewType, Protocol

import msgspec

from hms_gateway.metastore.ports.stored_table import StoredTable
from hms_gateway.metastore.vocabulary.names import DatabaseId, PartitionId, TableId
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


class GrantReads(Protocol):
    def on(self, target: GrantObject, *, of_any_column: bool = False) -> list[StoredGrant]:
        """All on exactly this object, in order of their making; or on all columns of the table or partition."""

    def of_principal(self, principal: Grantee, object_type: int | None = None) -> list[StoredGrant]: ...

    def of_kind(self, object_type: int | None = None) -> list[StoredGrant]: ...

    def on_partitions(self, table_id: TableId) -> dict[PartitionId, list[Grant]]:
        """On whole partitions of a table."""


class GrantWrites(GrantReads, Protocol):
    def insert(self, grants: Sequence[Grant]) -> None: ...

    def copy_to_partitions(self, table: StoredTable, names: Sequence[str], now_seconds: int) -> None:
        """Grant on these partitions, and on their columns, what is granted on their table."""

    def delete(self, grant_ids: Sequence[GrantId]) -> None: ...

    def clear_grant_options(self, grant_ids: Sequence[GrantId]) -> None: ...


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


class RightsReads(Protocol):
    """What decisions on rights are made from."""

    def role_members(self) -> list[RoleMember]: ...

    def database_owners(self) -> list[DatabaseOwner]: ...

    def table_owners(self, tables: Sequence[tuple[str, str]]) -> list[TableOwner]:
        """Of those that exist."""

    def tables_owned_by(self, names: Sequence[str]) -> list[TableOwner]:
        """Tables with an owner of one of the names, whatever kind of owner it is."""

    def tables_placed(self, directory: str) -> list[tuple[TableOwner, str]]:
        """The tables of all databases that lie at or below a directory, with their locations."""

    def txn_users(self, txn_ids: Sequence[int]) -> dict[int, str]:
        """Of those that are known."""

    def txn_users_between(self, first: int, last: int) -> dict[int, str]: ...

    def lock_user(self, lock_id: int) -> str | None: ...

    def lease_user(self, lease_id: int) -> str | None: ...
