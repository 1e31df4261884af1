"""Methods on roles and privileges: the IDL's methods in its order, each one call of a service."""

from hms_gateway.catalog.access.grants import PrivilegeService
from hms_gateway.catalog.access.roles import RoleService
from hms_gateway.catalog.arguments import in_catalog, is_newer, with_fields
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    GetPrincipalsInRoleRequest,
    GetPrincipalsInRoleResponse,
    GetRoleGrantsForPrincipalRequest,
    GetRoleGrantsForPrincipalResponse,
    GrantRevokePrivilegeRequest,
    GrantRevokePrivilegeResponse,
    GrantRevokeRoleRequest,
    GrantRevokeRoleResponse,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    MetaException,
    PrincipalPrivilegeSet,
    PrivilegeBag,
    Role,
)


class Roles:
    def __init__(self, roles: RoleService) -> None:
        self._roles = roles

    def create_role(self, call: Call, role: Role) -> bool:
        self._roles.create(role)
        return True

    def drop_role(self, call: Call, role_name: str) -> bool:
        self._roles.drop(role_name)
        return True

    def get_role_names(self, call: Call) -> list[str]:
        return self._roles.names()

    def grant_role(
        self,
        call: Call,
        role_name: str,
        principal_name: str,
        principal_type: int,
        grantor: str,
        grantorType: int,
        grant_option: bool,
    ) -> bool:
        self._roles.grant(
            role_name,
            principal_name,
            principal_type,
            grantor=grantor,
            grantor_type=grantorType,
            grant_option=bool(grant_option),
        )
        return True

    def revoke_role(self, call: Call, role_name: str, principal_name: str, principal_type: int) -> bool:
        self._roles.revoke(role_name, principal_name, principal_type)
        return True

    def list_roles(self, call: Call, principal_name: str, principal_type: int) -> list[Role]:
        return self._roles.of_principal(principal_name, principal_type)

    def grant_revoke_role(self, call: Call, request: GrantRevokeRoleRequest) -> GrantRevokeRoleResponse:
        request = required(request, "request")
        if _is_grant(request.requestType):
            self._roles.grant(
                request.roleName,
                request.principalName,
                request.principalType,
                grantor=request.grantor,
                grantor_type=request.grantorType,
                grant_option=bool(request.grantOption),
            )
        else:
            self._roles.revoke(
                request.roleName,
                request.principalName,
                request.principalType,
                grant_option_only=bool(request.grantOption),
            )
        return GrantRevokeRoleResponse(success=True)

    def get_principals_in_role(self, call: Call, request: GetPrincipalsInRoleRequest) -> GetPrincipalsInRoleResponse:
        grants = self._roles.grants_of_role(required(request, "request").roleName)
        return GetPrincipalsInRoleResponse(principalGrants=grants)

    def get_role_grants_for_principal(
        self, call: Call, request: GetRoleGrantsForPrincipalRequest
    ) -> GetRoleGrantsForPrincipalResponse:
        request = required(request, "request")
        grants = self._roles.grants_of_principal(request.principal_name, request.principal_type)
        return GetRoleGrantsForPrincipalResponse(principalGrants=grants)


class Privileges:
    def __init__(self, privileges: PrivilegeService) -> None:
        self._privileges = privileges

    def get_privilege_set(
        self, call: Call, hiveObject: HiveObjectRef, user_name: str, group_names: list[str]
    ) -> PrincipalPrivilegeSet:
        return self._privileges.privilege_set(_plain(hiveObject), user_name, group_names)

    def list_privileges(
        self, call: Call, principal_name: str, principal_type: int, hiveObject: HiveObjectRef
    ) -> list[HiveObjectPrivilege]:
        found = self._privileges.find(principal_name, principal_type, _plain(hiveObject))
        if not is_newer(call) and (hiveObject.catName is None and not is_newer(call, hiveObject.dbName)):
            return found
        return [
            with_fields(one, hiveObject=with_fields(required(one.hiveObject, "object"), catName=DEFAULT_CATALOG))
            for one in found
        ]

    def grant_privileges(self, call: Call, privileges: PrivilegeBag) -> bool:
        self._privileges.grant(_plain_bag(privileges))
        return True

    def revoke_privileges(self, call: Call, privileges: PrivilegeBag) -> bool:
        self._privileges.revoke(_plain_bag(privileges))
        return True

    def grant_revoke_privileges(self, call: Call, request: GrantRevokePrivilegeRequest) -> GrantRevokePrivilegeResponse:
        request = required(request, "request")
        bag = _plain_bag(request.privileges)
        if _is_grant(request.requestType):
            self._privileges.grant(bag)
        else:
            self._privileges.revoke(bag, grant_option_only=bool(request.revokeGrantOption))
        return GrantRevokePrivilegeResponse(success=True)

    def refresh_privileges(
        self,
        call: Call,
        objToRefresh: HiveObjectRef,
        authorizer: str,
        grantRequest: GrantRevokePrivilegeRequest,
    ) -> GrantRevokePrivilegeResponse:
        bag = _plain_bag(required(grantRequest, "grantRequest").privileges)
        self._privileges.refresh(_plain(objToRefresh), authorizer, bag)
        return GrantRevokePrivilegeResponse(success=True)


def _is_grant(request_type: int | None) -> bool:
    kind = required(request_type, "request type")
    if kind not in list(GrantRevokeType):
        raise MetaException(f"Unknown request type {kind}")
    return kind == GrantRevokeType.GRANT


def _plain(ref: HiveObjectRef | None) -> HiveObjectRef | None:
    """A reference sent by a client, its database under the name it has within the one catalog."""
    if ref is None or ref.dbName is None:
        return ref
    return with_fields(ref, dbName=in_catalog(ref.catName, ref.dbName))


def _plain_bag(bag: PrivilegeBag | None) -> PrivilegeBag | None:
    if bag is None:
        return None
    entries = [required(entry, "privilege") for entry in bag.privileges or ()]
    return PrivilegeBag(privileges=[with_fields(entry, hiveObject=_plain(entry.hiveObject)) for entry in entries])
