"""Roles and who has them, as rows (semantics §2.18)."""

from typing import Any

from sqlalchemy import Row, Select, and_, delete, insert, select, update

from hms_gateway.metastore.ports.store import DuplicateKey
from hms_gateway.metastore.ports.values import RoleId
from hms_gateway.storage.schema.catalog import PRIVILEGES, ROLE_MEMBERS, ROLES
from hms_gateway.storage.sql.repository import AggregateRows
from hms_gateway.storage.sql.texts import check_name, check_text, is_storable
from hms_gateway.structs import PrincipalType, Role, RolePrincipalGrant


class RoleRows(AggregateRows):
    """`statistics_ports.RoleWrites`."""

    def find(self, name: str) -> RoleId | None:
        if not is_storable(name):
            return None
        found = self._connection.execute(select(ROLES.c.role_id).where(ROLES.c.name == name)).scalar()
        return None if found is None else RoleId(found)

    def names(self) -> list[str]:
        return list(self._connection.execute(select(ROLES.c.name).order_by(ROLES.c.name)).scalars())

    def of_principal(self, name: str, principal_type: int) -> list[Role]:
        """The roles granted directly, ordered by name."""
        if not is_storable(name):
            return []
        statement = (
            select(ROLES.c.name, ROLES.c.create_time, ROLES.c.owner_name)
            .join(ROLE_MEMBERS, ROLE_MEMBERS.c.role_id == ROLES.c.role_id)
            .where(ROLE_MEMBERS.c.principal_name == name, ROLE_MEMBERS.c.principal_type == principal_type)
            .order_by(ROLES.c.name)
        )
        return [Role(*row) for row in self._connection.execute(statement)]

    def grants_of_principal(self, name: str, principal_type: int) -> list[RolePrincipalGrant]:
        if not is_storable(name):
            return []
        return self._grants(
            _grants().where(ROLE_MEMBERS.c.principal_name == name, ROLE_MEMBERS.c.principal_type == principal_type)
        )

    def grants_of_role(self, role_id: RoleId) -> list[RolePrincipalGrant]:
        return self._grants(_grants().where(ROLE_MEMBERS.c.role_id == role_id))

    def all_grants_between_roles(self) -> list[tuple[str, str]]:
        """(role, role it was granted to)."""
        statement = (
            select(ROLES.c.name, ROLE_MEMBERS.c.principal_name)
            .join(ROLE_MEMBERS, ROLE_MEMBERS.c.role_id == ROLES.c.role_id)
            .where(ROLE_MEMBERS.c.principal_type == int(PrincipalType.ROLE))
        )
        return [(role, member) for role, member in self._connection.execute(statement)]

    def insert(self, role: Role) -> RoleId:
        """Raises DuplicateKey."""
        name = role.roleName or ""
        check_name("role", name, self._dialect)
        check_text("owner of role", role.ownerName)
        if self.find(name) is not None:
            raise DuplicateKey(name)
        values = {"name": name, "owner_name": role.ownerName, "create_time": role.createTime or 0}
        return RoleId(self._inserted_id(insert(ROLES).values(values)))

    def delete(self, role_id: RoleId) -> None:
        """With its members, its own memberships and everything granted to it."""
        name = self._connection.execute(select(ROLES.c.name).where(ROLES.c.role_id == role_id)).scalar_one()
        for held in (ROLE_MEMBERS, PRIVILEGES):
            is_role = and_(held.c.principal_name == name, held.c.principal_type == int(PrincipalType.ROLE))
            self._connection.execute(delete(held).where(is_role))
        self._connection.execute(delete(ROLE_MEMBERS).where(ROLE_MEMBERS.c.role_id == role_id))
        self._connection.execute(delete(ROLES).where(ROLES.c.role_id == role_id))

    def insert_grant(self, role_id: RoleId, grant: RolePrincipalGrant) -> None:
        check_name("principal", grant.principalName or "", self._dialect)
        check_text("grantor", grant.grantorName)
        self._connection.execute(
            insert(ROLE_MEMBERS).values(
                role_id=role_id,
                principal_name=grant.principalName,
                principal_type=grant.principalType,
                grant_option=bool(grant.grantOption),
                grant_time=grant.grantTime or 0,
                grantor_name=grant.grantorName,
                grantor_type=grant.grantorPrincipalType,
            )
        )

    def delete_grant(self, role_id: RoleId, name: str, principal_type: int) -> bool:
        if not is_storable(name):
            return False
        statement = delete(ROLE_MEMBERS).where(*_is_grant(role_id, name, principal_type))
        return self._connection.execute(statement).rowcount > 0

    def clear_grant_option(self, role_id: RoleId, name: str, principal_type: int) -> bool:
        if not is_storable(name):
            return False
        has_option = (*_is_grant(role_id, name, principal_type), ROLE_MEMBERS.c.grant_option)
        return self._connection.execute(update(ROLE_MEMBERS).where(*has_option).values(grant_option=False)).rowcount > 0

    def _grants(self, statement: Select[Any]) -> list[RolePrincipalGrant]:
        return [_grant(row) for row in self._connection.execute(statement)]


def _is_grant(role_id: RoleId, name: str, principal_type: int) -> Any:
    return (
        ROLE_MEMBERS.c.role_id == role_id,
        ROLE_MEMBERS.c.principal_name == name,
        ROLE_MEMBERS.c.principal_type == principal_type,
    )


def _grants() -> Select[Any]:
    statement = select(ROLE_MEMBERS, ROLES.c.name.label("role_name"))
    return statement.join(ROLES, ROLES.c.role_id == ROLE_MEMBERS.c.role_id).order_by(ROLE_MEMBERS.c.member_id)


def _grant(row: Row[Any]) -> RolePrincipalGrant:
    return RolePrincipalGrant(
        roleName=row.role_name,
        principalName=row.principal_name,
        principalType=row.principal_type,
        grantOption=row.grant_option,
        grantTime=row.grant_time,
        grantorName=row.grantor_name,
        grantorPrincipalType=row.grantor_type,
    )
