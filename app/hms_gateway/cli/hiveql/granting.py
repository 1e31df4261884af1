"""GRANT and REVOKE of privileges and roles, and what was granted."""

from collections.abc import Sequence
from typing import Any, Final

from hms_gateway.cli.hiveql.shell_state import (
    CommandRefused,
    PlaceName,
    PrincipalName,
    QualifiedName,
    ResultRows,
    ShellState,
    Statement,
    keys_of,
    partition_values,
    table_of,
)
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.structs import (
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)

_AUTHORIZER: Final = "SQL"


class ShowGrants(Statement, frozen=True):
    principal: PrincipalName | None
    kind: HiveObjectType | None
    place: PlaceName | None = None

    def run(self, state: ShellState) -> ResultRows:
        if self.principal is None and self.place is None:
            raise CommandRefused("SHOW GRANT needs USER, GROUP or ROLE and a name, or ON and an object")
        kind, name = (None, None) if self.principal is None else self.principal
        target = HiveObjectRef()
        if self.kind is not None and self.place is not None:
            target = _object(state, self.kind, self.place)
        return table_of(
            state.call("list_privileges", name, kind, target),
            database="hiveObject.dbName",
            table="hiveObject.objectName",
            partition=lambda granted: ", ".join(granted.hiveObject.partValues or ()) or None,
            column="hiveObject.columnName",
            principal_name="principalName",
            principal_type=_principal_type,
            privilege="grantInfo.privilege",
            grant_option=lambda granted: bool(granted.grantInfo.grantOption),
            grant_time=lambda granted: time_text(granted.grantInfo.createTime),
            grantor="grantInfo.grantor",
        )


class ShowRoles(Statement, frozen=True):
    """All, or those that were granted to one."""

    principal: PrincipalName | None = None

    def run(self, state: ShellState) -> ResultRows:
        if self.principal is None:
            return ResultRows(("role",), ((name,) for name in state.call("get_role_names")))
        request = GetRoleGrantsForPrincipalRequest(self.principal.name, self.principal.kind)
        found = state.call("get_role_grants_for_principal", request).principalGrants or []
        return table_of(
            found,
            role="roleName",
            grant_option=lambda each: bool(each.grantOption),
            grant_time=lambda each: time_text(each.grantTime),
            grantor="grantorName",
        )


class ShowPrincipals(Statement, frozen=True):
    role: str

    def run(self, state: ShellState) -> ResultRows:
        found = state.call("get_principals_in_role", GetPrincipalsInRoleRequest(self.role)).principalGrants or []
        return table_of(
            found,
            principal_name="principalName",
            principal_type=_principal_type,
            grant_option=lambda each: bool(each.grantOption),
            grantor="grantorName",
            grant_time=lambda each: time_text(each.grantTime),
        )


class GrantPrivileges(Statement, frozen=True):
    """`is_option` is WITH GRANT OPTION, or GRANT OPTION FOR where they are revoked."""

    privileges: Sequence[str]
    kind: HiveObjectType
    place: PlaceName
    principals: Sequence[PrincipalName]
    is_revoked: bool = False
    is_option: bool = False

    def run(self, state: ShellState) -> None:
        target = _object(state, self.kind, self.place)
        granted = [
            HiveObjectPrivilege(
                hiveObject=target,
                principalName=principal.name,
                principalType=principal.kind,
                grantInfo=PrivilegeGrantInfo(
                    privilege=privilege,
                    createTime=0,
                    grantor=state.user,
                    grantorType=PrincipalType.USER,
                    grantOption=self.is_option and not self.is_revoked,
                ),
                authorizer=_AUTHORIZER,
            )
            for principal in self.principals
            for privilege in self.privileges
        ]
        kind = GrantRevokeType.REVOKE if self.is_revoked else GrantRevokeType.GRANT
        only_option = self.is_option if self.is_revoked else None
        request = GrantRevokePrivilegeRequest(kind, PrivilegeBag(privileges=granted), only_option)
        try:
            state.call("grant_revoke_privileges", request)
        except MetaException as error:
            if "is already granted" not in (error.message or ""):
                raise
            raise CommandRefused(f"{error.message}; to change its grant option, REVOKE it first") from error


class GrantRoles(Statement, frozen=True):
    roles: Sequence[str]
    principals: Sequence[PrincipalName]
    is_revoked: bool = False
    is_option: bool = False

    def run(self, state: ShellState) -> None:
        kind = GrantRevokeType.REVOKE if self.is_revoked else GrantRevokeType.GRANT
        for role in self.roles:
            for principal in self.principals:
                request = GrantRevokeRoleRequest(
                    requestType=kind,
                    roleName=role,
                    principalName=principal.name,
                    principalType=principal.kind,
                    grantor=state.user,
                    grantorType=PrincipalType.USER,
                    grantOption=self.is_option,
                )
                state.call("grant_revoke_role", request)


class CreateRole(Statement, frozen=True):
    role: str

    def run(self, state: ShellState) -> None:
        state.call("create_role", Role(roleName=self.role, ownerName=state.user))


class DropRole(Statement, frozen=True):
    role: str

    def run(self, state: ShellState) -> None:
        state.call("drop_role", self.role)


def _object(state: ShellState, kind: HiveObjectType, place: PlaceName) -> HiveObjectRef:
    values = None
    if place.spec and place.table_name is not None:
        name = QualifiedName(place.db_name, place.table_name)
        values = partition_values(name, keys_of(state.table(name)), place.spec)
    return HiveObjectRef(objectType=kind, dbName=place.db_name or None, objectName=place.table_name, partValues=values)


def _principal_type(held: Any) -> str:
    return PrincipalType(held.principalType or PrincipalType.USER).name
