"""Roles, and who has them (semantics §2.18). Names keep their case. `catalog.rights` enforces what they mean."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NewType

from sqlalchemy import Row, Select, and_, delete, insert, select, update

from hms_gateway.catalog.access.grant_rows import Grant, Grantee, GrantObject, GrantRows, note_changed_rights
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import DuplicateKey, Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    GetPrincipalsInRoleRequest,
    GetPrincipalsInRoleResponse,
    GetRoleGrantsForPrincipalRequest,
    GetRoleGrantsForPrincipalResponse,
    GrantRevokeRoleRequest,
    GrantRevokeRoleResponse,
    GrantRevokeType,
    HiveObjectType,
    MetaException,
    PrincipalType,
    Role,
    RolePrincipalGrant,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import creation_seconds
from hms_gateway.storage.schema.catalog import PRIVILEGES, ROLE_MEMBERS, ROLES
from hms_gateway.storage.sql.repository import AggregateRows, check_name, check_text, is_storable

ADMIN: Final = "admin"
PUBLIC: Final = "public"
_EVERYTHING: Final = GrantObject(HiveObjectType.GLOBAL)
_ADMINS_KEY: Final = "hive.users.in.admin.role"
RoleId = NewType("RoleId", int)


class RoleRows(AggregateRows):
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
        """Delete the role with its members, its own memberships and everything granted to it."""
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


class Roles:
    """Methods on roles.

    Every refusal is a MetaException, the only exception these methods declare (semantics §13 row 20).
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create_role(self, call: Call, role: Role) -> bool:
        """Refused for a role that exists, as `public` always does."""
        given = required(role, "role")
        name = required(given.roleName, "role name")
        if name == PUBLIC:
            raise MetaException(f"{PUBLIC} role implictly exists. It can't be created.")
        created = creation_seconds(given.createTime, self._clock.seconds())
        new = Role(roleName=name, createTime=created, ownerName=given.ownerName)

        def work(tx: Transaction) -> None:
            RoleRows(tx).insert(new)
            note_changed_rights(tx)

        try:
            self._write(work)
        except DuplicateKey as error:
            raise MetaException(f"Role {name} already exists.") from error
        return True

    def drop_role(self, call: Call, role_name: str) -> bool:
        """Drop a role with members and grants; a missing one is ignored."""
        if required(role_name, "role name") in (ADMIN, PUBLIC):
            raise MetaException(f"{PUBLIC},{ADMIN} roles can't be dropped.")

        def work(tx: Transaction) -> None:
            role_id = RoleRows(tx).find(role_name)
            if role_id is not None:
                RoleRows(tx).delete(role_id)
                note_changed_rights(tx)

        self._write(work)
        return True

    def get_role_names(self, call: Call) -> list[str]:
        """Sorted in byte order."""
        return self._store.read(lambda snapshot: RoleRows(snapshot).names())

    def grant_role(
        self,
        call: Call,
        role_name: str | None,
        principal_name: str | None,
        principal_type: int | None,
        grantor: str | None,
        grantorType: int | None,
        grant_option: bool | None,
    ) -> bool:
        """Refused for `public`, an unknown role, a grant that is there, and one that closes a cycle."""
        name = required(role_name, "role name")
        to = principal(principal_name, principal_type)
        if name == PUBLIC:
            raise MetaException(f"No user can be added to {PUBLIC}. Since all users implictly belong to {PUBLIC} role.")
        granted = creation_seconds(None, self._clock.seconds())

        def work(tx: Transaction) -> None:
            role_id = _known(tx, name)
            if to.principal_type == PrincipalType.ROLE:
                _check_no_cycle(tx, name, to.name)
            if _has_role(tx, name, to):
                raise MetaException(f"Principal {to.name} already has the role {name}")
            if to.principal_type == PrincipalType.ROLE:
                check_role(tx, to.name)
            RoleRows(tx).insert_grant(
                role_id,
                RolePrincipalGrant(
                    roleName=name,
                    principalName=to.name,
                    principalType=to.principal_type,
                    grantOption=bool(grant_option),
                    grantTime=granted,
                    grantorName=grantor,
                    grantorPrincipalType=grantorType,
                ),
            )
            note_changed_rights(tx)

        self._write(work)
        return True

    def revoke_role(self, call: Call, role_name: str, principal_name: str, principal_type: int) -> bool:
        self._revoke(role_name, principal_name, principal_type)
        return True

    def list_roles(self, call: Call, principal_name: str, principal_type: int) -> list[Role]:
        """The roles granted directly; a user always has `public`, too."""
        of = principal(principal_name, principal_type)
        roles = self._store.read(lambda snapshot: RoleRows(snapshot).of_principal(of.name, of.principal_type))
        public = [Role(roleName=PUBLIC, createTime=0, ownerName=PUBLIC)]
        return roles + public if of.principal_type == PrincipalType.USER else roles

    def grant_revoke_role(self, call: Call, request: GrantRevokeRoleRequest) -> GrantRevokeRoleResponse:
        given = required(request, "request")
        role, name, kind = given.roleName, given.principalName, given.principalType
        if is_grant(given.requestType):
            self.grant_role(call, role, name, kind, given.grantor, given.grantorType, given.grantOption)
        else:
            self._revoke(role, name, kind, grant_option_only=bool(given.grantOption))
        return GrantRevokeRoleResponse(success=True)

    def get_principals_in_role(self, call: Call, request: GetPrincipalsInRoleRequest) -> GetPrincipalsInRoleResponse:
        """The principals that have the role: none for an unknown one, nor for `public`, which is not listed."""
        name = required(required(request, "request").roleName, "role name")

        def work(snapshot: Snapshot) -> list[RolePrincipalGrant]:
            role_id = RoleRows(snapshot).find(name)
            return [] if role_id is None else RoleRows(snapshot).grants_of_role(role_id)

        return GetPrincipalsInRoleResponse(principalGrants=self._store.read(work))

    def get_role_grants_for_principal(
        self, call: Call, request: GetRoleGrantsForPrincipalRequest
    ) -> GetRoleGrantsForPrincipalResponse:
        """The roles of `list_roles` with who granted them and when."""
        given = required(request, "request")
        of = principal(given.principal_name, given.principal_type)
        grants = self._store.read(lambda snapshot: RoleRows(snapshot).grants_of_principal(of.name, of.principal_type))
        if of.principal_type == PrincipalType.USER:
            grants.append(RolePrincipalGrant(PUBLIC, of.name, of.principal_type, grantOption=False, grantTime=0))
        return GetRoleGrantsForPrincipalResponse(principalGrants=grants)

    def _revoke(
        self,
        role_name: str | None,
        principal_name: str | None,
        principal_type: int | None,
        *,
        grant_option_only: bool = False,
    ) -> None:
        """A missing grant is ignored, unless only its option is revoked."""
        name = required(role_name, "role name")
        of = principal(principal_name, principal_type)
        if name == PUBLIC:
            raise MetaException(f"{PUBLIC} role can't be revoked.")

        def work(tx: Transaction) -> None:
            role_id = RoleRows(tx).find(name)
            if role_id is None:
                return
            if not grant_option_only:
                if not RoleRows(tx).delete_grant(role_id, of.name, of.principal_type):
                    return
            elif not RoleRows(tx).clear_grant_option(role_id, of.name, of.principal_type):
                raise MetaException(f"User {of.name} does not have grant option with role {name}")
            note_changed_rights(tx)

        self._write(work)

    def _write(self, work: Callable[[Transaction], None]) -> None:
        with unstorable_as_meta():
            self._store.write(work)


def create_default_roles(store: Store, clock: Clock, settings: MetastoreSettings) -> None:
    """Make sure that the two roles every catalog has are there (semantics §1.3); for the start of a server."""
    admins = {name.strip() for name in settings.hive_configuration.get(_ADMINS_KEY, "").split(",")} - {""}

    def are_there(snapshot: Snapshot) -> bool:
        if RoleRows(snapshot).find(ADMIN) is None or RoleRows(snapshot).find(PUBLIC) is None:
            return False
        return all(_has_role(snapshot, ADMIN, Grantee(name, PrincipalType.USER)) for name in admins)

    if not store.read(are_there):
        store.write(lambda tx: _create_defaults(tx, admins, clock.seconds()))


def _create_defaults(tx: Transaction, admins: Iterable[str], now: int) -> None:
    is_first_start = RoleRows(tx).find(PUBLIC) is None
    for name in (ADMIN, PUBLIC):
        if RoleRows(tx).find(name) is None:
            RoleRows(tx).insert(Role(roleName=name, createTime=now, ownerName=name))
    admin = Grantee(ADMIN, PrincipalType.ROLE)
    if not GrantRows(tx).of_principal(admin, HiveObjectType.GLOBAL):
        GrantRows(tx).insert(
            [Grant(_EVERYTHING, admin, "All", now, True, grantor=ADMIN, grantor_type=PrincipalType.ROLE)]
        )
    for name in sorted(admins):
        user = Grantee(name, PrincipalType.USER)
        if not _has_role(tx, ADMIN, user):
            grant = RolePrincipalGrant(ADMIN, name, user.principal_type, True, now, ADMIN, PrincipalType.ROLE)
            RoleRows(tx).insert_grant(_known(tx, ADMIN), grant)
    if not is_first_start:
        # Another gateway may know the catalog as it was.
        note_changed_rights(tx)


def principal(name: str | None, principal_type: int | None) -> Grantee:
    """A principal as a request names it. Raises MetaException."""
    kind = required(principal_type, "principal type")
    if kind not in list(PrincipalType):
        raise MetaException(f"There is no principal type {kind}")
    return Grantee(required(name, "principal name"), int(kind))


def check_role(snapshot: Snapshot, name: str) -> None:
    """Raises MetaException for a role that is not there."""
    if RoleRows(snapshot).find(name) is None:
        raise MetaException(f"Role {name} does not exist")


def all_roles_of(snapshot: Snapshot, user: str | None, groups: Iterable[str]) -> list[str]:
    """The roles a user and their groups have, directly or by another role; `public` is every user's."""
    direct = [] if user is None else [PUBLIC]
    members = [] if user is None else [Grantee(user, PrincipalType.USER)]
    members += [Grantee(group, PrincipalType.GROUP) for group in groups]
    for member in members:
        direct += [role.roleName or "" for role in RoleRows(snapshot).of_principal(member.name, member.principal_type)]
    return ancestors(direct, _roles_by_member(snapshot))


def ancestors(roles: Iterable[str], roles_of: Mapping[str, Iterable[str]]) -> list[str]:
    """`roles` and all they have been granted, each once, the nearest first."""
    found = dict.fromkeys(roles)
    waiting = list(found)
    while waiting:
        for role in roles_of.get(waiting.pop(0), ()):
            if role not in found:
                found[role] = None
                waiting.append(role)
    return list(found)


def _check_no_cycle(snapshot: Snapshot, role: str, member: str) -> None:
    if member in ancestors([role], _roles_by_member(snapshot)):
        raise MetaException(
            f"Cannot grant role {member} to {role} as {role} already belongs to the role {member}. (no cycles allowed)"
        )


def _roles_by_member(snapshot: Snapshot) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for role, member in RoleRows(snapshot).all_grants_between_roles():
        found.setdefault(member, []).append(role)
    return found


def _has_role(snapshot: Snapshot, role: str, of: Grantee) -> bool:
    return any(found.roleName == role for found in RoleRows(snapshot).of_principal(of.name, of.principal_type))


def _known(tx: Transaction, name: str) -> RoleId:
    role_id = RoleRows(tx).find(name)
    if role_id is None:
        raise MetaException(f"{name} role can not be found.")
    return role_id


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


def is_grant(request_type: int | None) -> bool:
    kind = required(request_type, "request type")
    if kind not in list(GrantRevokeType):
        raise MetaException(f"Unknown request type {kind}")
    return kind == GrantRevokeType.GRANT
