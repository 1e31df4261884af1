"""GRANT and REVOKE of privileges and roles, and what was granted."""

from collections.abc import Sequence
from typing import Any, Final

import hms_gateway.rpc.structs as structs
from hms_gateway.cli.hiveql.shell_state import (
    CommandRefused,
    PlaceName,
    PrincipalName,
    QualifiedName,
    ResultRows,
    ShellState,
    keys_of,
    partition_values,
    statement,
    table_of,
)
from hms_gateway.metastore.vocabulary.texts import time_text

_AUTHORIZER: Final = "SQL"


@statement
def show_grants(
    state: ShellState,
    principal: PrincipalName | None,
    kind: structs.HiveObjectType | None,
    place: PlaceName | None = None,
) -> ResultRows:
    if principal is None and place is None:
        raise CommandRefused("SHOW GRANT needs USER, GROUP or ROLE and a name, or ON and an object")
    party, name = (None, None) if principal is None else principal
    target = structs.HiveObjectRef() if kind is None or place is None else _object(state, kind, place)
    return table_of(
        state.call("list_privileges", name, party, target),
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


@statement
def show_roles(state: ShellState, principal: PrincipalName | None = None) -> ResultRows:
    """All, or those that were granted to one."""
    if principal is None:
        return ResultRows(("role",), ((name,) for name in state.call("get_role_names")))
    request = structs.GetRoleGrantsForPrincipalRequest(principal.name, principal.kind)
    found = state.call("get_role_grants_for_principal", request).principalGrants or []
    return table_of(
        found,
        role="roleName",
        grant_option=lambda each: bool(each.grantOption),
        grant_time=lambda each: time_text(each.grantTime),
        grantor="grantorName",
    )


@statement
def show_principals(state: ShellState, role: str) -> ResultRows:
    found = state.call("get_principals_in_role", structs.GetPrincipalsInRoleRequest(role)).principalGrants or []
    return table_of(
        found,
        principal_name="principalName",
        principal_type=_principal_type,
        grant_option=lambda each: bool(each.grantOption),
        grantor="grantorName",
        grant_time=lambda each: time_text(each.grantTime),
    )


@statement
def grant_privileges(
    state: ShellState,
    privileges: Sequence[str],
    kind: structs.HiveObjectType,
    place: PlaceName,
    principals: Sequence[PrincipalName],
    is_revoked: bool = False,
    is_option: bool = False,
) -> None:
    """`is_option` is WITH GRANT OPTION, or GRANT OPTION FOR where they are revoked."""
    target = _object(state, kind, place)
    granted = [
        structs.HiveObjectPrivilege(
            hiveObject=target,
            principalName=principal.name,
            principalType=principal.kind,
            grantInfo=structs.PrivilegeGrantInfo(
                privilege=privilege,
                createTime=0,
                grantor=state.user,
                grantorType=structs.PrincipalType.USER,
                grantOption=is_option and not is_revoked,
            ),
            authorizer=_AUTHORIZER,
        )
        for principal in principals
        for privilege in privileges
    ]
    only_option = is_option if is_revoked else None
    request = structs.GrantRevokePrivilegeRequest(
        _change(is_revoked), structs.PrivilegeBag(privileges=granted), only_option
    )
    try:
        state.call("grant_revoke_privileges", request)
    except structs.MetaException as error:
        if "is already granted" not in (error.message or ""):
            raise
        raise CommandRefused(f"{error.message}; to change its grant option, REVOKE it first") from error


@statement
def grant_roles(
    state: ShellState,
    roles: Sequence[str],
    principals: Sequence[PrincipalName],
    is_revoked: bool = False,
    is_option: bool = False,
) -> None:
    for role in roles:
        for principal in principals:
            request = structs.GrantRevokeRoleRequest(
                requestType=_change(is_revoked),
                roleName=role,
                principalName=principal.name,
                principalType=principal.kind,
                grantor=state.user,
                grantorType=structs.PrincipalType.USER,
                grantOption=is_option,
            )
            state.call("grant_revoke_role", request)


@statement
def create_role(state: ShellState, role: str) -> None:
    state.call("create_role", structs.Role(roleName=role, ownerName=state.user))


@statement
def drop_role(state: ShellState, role: str) -> None:
    state.call("drop_role", role)


def _change(is_revoked: bool) -> structs.GrantRevokeType:
    return structs.GrantRevokeType.REVOKE if is_revoked else structs.GrantRevokeType.GRANT


def _object(state: ShellState, kind: structs.HiveObjectType, place: PlaceName) -> structs.HiveObjectRef:
    values = None
    if place.spec and place.table_name is not None:
        name = QualifiedName(place.db_name, place.table_name)
        values = partition_values(name, keys_of(state.table(name)), place.spec)
    return structs.HiveObjectRef(
        objectType=kind, dbName=place.db_name or None, objectName=place.table_name, partValues=values
    )


def _principal_type(held: Any) -> str:
    return structs.PrincipalType(held.principalType or structs.PrincipalType.USER).name
