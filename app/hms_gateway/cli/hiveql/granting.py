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
    time_text,
)
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
        found = state.call("list_privileges", name, kind, target)
        columns = (
            "database", "table", "partition", "column", "principal_name", "principal_type", "privilege", "grant_option",
            "grant_time", "grantor",
        )  # fmt: skip
        return ResultRows(columns, map(_grant_cells, found))


class ShowRoles(Statement, frozen=True):
    """All, or those that were granted to one."""

    principal: PrincipalName | None = None

    def run(self, state: ShellState) -> ResultRows:
        if self.principal is None:
            return ResultRows(("role",), ((name,) for name in state.call("get_role_names")))
        request = GetRoleGrantsForPrincipalRequest(self.principal.name, self.principal.kind)
        found = state.call("get_role_grants_for_principal", request).principalGrants or []
        return ResultRows(
            ("role", "grant_option", "grant_time", "grantor"),
            ((each.roleName, bool(each.grantOption), time_text(each.grantTime), each.grantorName) for each in found),
        )


class ShowPrincipals(Statement, frozen=True):
    role: str

    def run(self, state: ShellState) -> ResultRows:
        found = state.call("get_principals_in_role", GetPrincipalsInRoleRequest(self.role)).principalGrants or []
        return ResultRows(
            ("principal_name", "principal_type", "grant_option", "grantor", "grant_time"),
            (
                (
                    each.principalName,
                    PrincipalType(each.principalType or PrincipalType.USER).name,
                    bool(each.grantOption),
                    each.grantorName,
                    time_text(each.grantTime),
                )
                for each in found
            ),
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


def _grant_cells(granted: HiveObjectPrivilege) -> tuple[Any, ...]:
    target, info = granted.hiveObject, granted.grantInfo
    assert target is not None
    assert info is not None
    return (
        target.dbName,
        target.objectName,
        ", ".join(target.partValues) if target.partValues else None,
        target.columnName,
        granted.principalName,
        PrincipalType(granted.principalType or PrincipalType.USER).name,
        info.privilege,
        bool(info.grantOption),
        time_text(info.createTime),
        info.grantor,
    )
