"""Members of roles, owners, and who made transactions and locks: what decisions on rights are made from, as rows."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, Text, bindparam, exists, or_, select

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import DATABASES, PRIVILEGES, ROLE_MEMBERS, ROLES, TABLES
from hms_gateway.storage.schema.txn import LEASES, LOCKS, TXNS
from hms_gateway.storage.sql.filter_sql import has_id_among, is_among
from hms_gateway.storage.sql.fragments import decode_extra
from hms_gateway.storage.sql.repository import AggregateRows, is_storable
from hms_gateway.structs import PrincipalType, Table

_HAS_GRANTS: Final = exists().where(PRIVILEGES.c.table_id == TABLES.c.table_id)
_OWNERS: Final = select(DATABASES.c.name, TABLES.c.name, TABLES.c.owner, TABLES.c.extra, _HAS_GRANTS).join_from(
    TABLES, DATABASES, DATABASES.c.database_id == TABLES.c.database_id
)
_OWNER_OF: Final = _OWNERS.where(DATABASES.c.name == bindparam("db_name"), TABLES.c.name == bindparam("tbl_name"))


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


class RightsRows(AggregateRows):
    def role_members(self) -> list[RoleMember]:
        columns = (ROLES.c.name, ROLE_MEMBERS.c.principal_name, ROLE_MEMBERS.c.principal_type)
        statement = select(*columns, ROLE_MEMBERS.c.grant_option).join(ROLES, ROLES.c.role_id == ROLE_MEMBERS.c.role_id)
        return [RoleMember(*row) for row in self._connection.execute(statement)]

    def database_owners(self) -> list[DatabaseOwner]:
        statement = select(DATABASES.c.name, DATABASES.c.owner_name, DATABASES.c.owner_type, DATABASES.c.location)
        return [DatabaseOwner(*row) for row in self._connection.execute(statement)]

    def table_owners(self, tables: Sequence[tuple[str, str]]) -> list[TableOwner]:
        """Owners of the tables that exist."""
        found = []
        for db_name, tbl_name in tables:
            if is_storable(db_name) and is_storable(tbl_name):
                rows = self._connection.execute(_OWNER_OF, {"db_name": db_name, "tbl_name": tbl_name})
                found += [_table_owner(row) for row in rows]
        return found

    def tables_owned_by(self, names: Sequence[str]) -> list[TableOwner]:
        """Tables with an owner of one of the names, whatever kind of owner it is."""
        statement = _OWNERS.where(is_among(TABLES.c.owner, names, self._dialect))
        return [_table_owner(row) for row in self._connection.execute(statement)]

    def tables_placed(self, directory: str) -> list[tuple[TableOwner, str]]:
        """The tables of all databases that lie at or below a directory, with their locations."""
        if not is_storable(directory):
            return []
        rows = self._connection.execute(_placed(self._dialect), {"directory": directory, "below": f"{directory}/"})
        return [(_table_owner(row), location) for *row, location in rows]

    def txn_users(self, txn_ids: Sequence[int]) -> dict[int, str]:
        """Users of the transactions that are known."""
        statement = select(TXNS.c.txn_id, TXNS.c.user_name).where(has_id_among(TXNS.c.txn_id, txn_ids, self._dialect))
        return {row.txn_id: row.user_name for row in self._connection.execute(statement)}

    def txn_users_between(self, first: int, last: int) -> dict[int, str]:
        statement = select(TXNS.c.txn_id, TXNS.c.user_name).where(TXNS.c.txn_id >= first, TXNS.c.txn_id <= last)
        return {row.txn_id: row.user_name for row in self._connection.execute(statement)}

    def lock_user(self, lock_id: int) -> str | None:
        found: str | None = self._connection.execute(
            select(LOCKS.c.user_name).where(LOCKS.c.lock_id == lock_id).limit(1)
        ).scalar()
        return found

    def lease_user(self, lease_id: int) -> str | None:
        found: str | None = self._connection.execute(
            select(LEASES.c.user_name).where(LEASES.c.lease_id == lease_id).limit(1)
        ).scalar()
        return found


@cache
def _placed(dialect: Dialect) -> Select[Any]:
    place, below = TABLES.c.location, bindparam("below", type_=Text)
    return _OWNERS.add_columns(place).where(or_(place == bindparam("directory"), dialect.begins_with(place, below)))


def _table_owner(row: Any) -> TableOwner:
    db_name, tbl_name, owner, extra, has_grants = row
    kind = None if extra is None or owner is None else decode_extra(Table, extra).ownerType
    return TableOwner(
        db_name, tbl_name, owner, int(PrincipalType.USER) if kind is None else int(kind), bool(has_grants)
    )
