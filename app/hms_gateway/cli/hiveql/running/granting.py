"""GRANT and REVOKE of privileges and roles, and what was granted."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.running.shell_state import (
    CommandRefused,
    ResultRows,
    ShellState,
    keys_of,
    partition_values,
    time_text,
)
from hms_gateway.cli.hiveql.statements import PlaceName, QualifiedName, Statement
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


def _object(state: ShellState, kind: HiveObjectType, place: PlaceName) -> HiveObjectRef:
    values = None
    if place.spec and place.table_name is not None:
        name = QualifiedName(place.db_name, place.table_name)
        values = partition_values(name, keys_of(state.table(name)), place.spec)
    return HiveObjectRef(objectType=kind, dbName=place.db_name or None, objectName=place.table_name, partValues=values)


def _grant(statement: say.GrantPrivileges, state: ShellState) -> None:
    target = _object(state, statement.kind, statement.place)
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
                grantOption=statement.is_option and not statement.is_revoked,
            ),
            authorizer=_AUTHORIZER,
        )
        for principal in statement.principals
        for privilege in statement.privileges
    ]
    kind = GrantRevokeType.REVOKE if statement.is_revoked else GrantRevokeType.GRANT
    only_option = statement.is_option if statement.is_revoked else None
    request = GrantRevokePrivilegeRequest(kind, PrivilegeBag(privileges=granted), only_option)
    try:
        state.call("grant_revoke_privileges", request)
    except MetaException as error:
        if "is already granted" not in (error.message or ""):
            raise
        raise CommandRefused(f"{error.message}; to change its grant option, REVOKE it first") from error


def _grant_roles(statement: say.GrantRoles, state: ShellState) -> None:
    kind = GrantRevokeType.REVOKE if statement.is_revoked else GrantRevokeType.GRANT
    for role in statement.roles:
        for principal in statement.principals:
            request = GrantRevokeRoleRequest(
                requestType=kind,
                roleName=role,
                principalName=principal.name,
                principalType=principal.kind,
                grantor=state.user,
                grantorType=PrincipalType.USER,
                grantOption=statement.is_option,
            )
            state.call("grant_revoke_role", request)


def _show_grants(statement: say.ShowGrants, state: ShellState) -> ResultRows:
    if statement.principal is None and statement.place is None:
        raise CommandRefused("SHOW GRANT needs USER, GROUP or ROLE and a name, or ON and an object")
    kind, name = (None, None) if statement.principal is None else statement.principal
    target = HiveObjectRef()
    if statement.kind is not None and statement.place is not None:
        target = _object(state, statement.kind, statement.place)
    found = state.call("list_privileges", name, kind, target)
    columns = (
        "database", "table", "partition", "column", "principal_name", "principal_type", "privilege", "grant_option",
        "grant_time", "grantor",
    )  # fmt: skip
    return ResultRows(columns, map(_grant_cells, found))


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


def _show_roles(statement: say.ShowRoles, state: ShellState) -> ResultRows:
    if statement.principal is None:
        return ResultRows(("role",), ((name,) for name in state.call("get_role_names")))
    request = GetRoleGrantsForPrincipalRequest(statement.principal.name, statement.principal.kind)
    found = state.call("get_role_grants_for_principal", request).principalGrants or []
    return ResultRows(
        ("role", "grant_option", "grant_time", "grantor"),
        ((each.roleName, bool(each.grantOption), time_text(each.grantTime), each.grantorName) for each in found),
    )


def _show_principals(statement: say.ShowPrincipals, state: ShellState) -> ResultRows:
    found = state.call("get_principals_in_role", GetPrincipalsInRoleRequest(statement.role)).principalGrants or []
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


def _create_role(statement: say.CreateRole, state: ShellState) -> None:
    state.call("create_role", Role(roleName=statement.role, ownerName=state.user))


def _drop_role(statement: say.DropRole, state: ShellState) -> None:
    state.call("drop_role", statement.role)


RUNNERS: Final[Mapping[type[Statement], Callable[[Any, ShellState], ResultRows | None]]] = MappingProxyType(
    {
        say.GrantPrivileges: _grant,
        say.GrantRoles: _grant_roles,
        say.ShowGrants: _show_grants,
        say.ShowRoles: _show_roles,
        say.ShowPrincipals: _show_principals,
        say.CreateRole: _create_role,
        say.DropRole: _drop_role,
    }
)
