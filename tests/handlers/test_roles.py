"""The Thrift methods on roles and privileges, old spellings and new."""

import pytest

from hms_gateway.catalog.access.grants import Privileges
from hms_gateway.catalog.access.roles import Roles, create_default_roles
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    GetPartitionsPsWithAuthRequest,
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokePrivilegeResponse,
    GrantRevokeRoleRequest,
    GrantRevokeRoleResponse,
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
from hms_gateway.rpc.structs.base import items_of
from tests.metastore.statistics_world import add_partitions, partitions, refusal
from tests.support.catalog import Catalog, columns, new_table

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)
USER, ROLE = PrincipalType.USER, PrincipalType.ROLE
GRANT, REVOKE = GrantRevokeType.GRANT, GrantRevokeType.REVOKE
TABLE = HiveObjectRef(HiveObjectType.TABLE, "@hive#default", "t")
PARTITION = HiveObjectRef(HiveObjectType.PARTITION, "default", "p", ["a", "1"])


@pytest.fixture
def roles(catalog: Catalog) -> Roles:
    create_default_roles(catalog.store, catalog.clock, catalog.settings)
    return Roles(catalog.store, catalog.clock)


@pytest.fixture
def privileges(catalog: Catalog, roles: Roles) -> Privileges:
    catalog.tables.create(new_table())
    return Privileges(catalog.store, catalog.clock)


def bag(on: HiveObjectRef, *, option: bool = False) -> PrivilegeBag:
    info = PrivilegeGrantInfo("SELECT", 0, "root", USER, option)
    return PrivilegeBag([HiveObjectPrivilege(on, "anna", USER, info)])


def has_it(roles: Roles) -> list[tuple[str, bool]]:
    found = roles.get_principals_in_role(CALL, GetPrincipalsInRoleRequest("r")).principalGrants
    return [(one.principalName, one.grantOption) for one in found]


def test_roles(roles: Roles) -> None:
    assert roles.create_role(CALL, Role("r")) is True
    assert roles.get_role_names(CALL) == ["admin", "public", "r"]
    assert roles.grant_role(CALL, "r", "anna", USER, "root", USER, None) is True
    assert has_it(roles) == [("anna", False)]
    assert [role.roleName for role in roles.list_roles(CALL, "anna", USER)] == ["r", "public"]
    request = GetRoleGrantsForPrincipalRequest("anna", USER)
    found = roles.get_role_grants_for_principal(CALL, request).principalGrants
    assert [one.roleName for one in found] == ["r", "public"]
    assert roles.revoke_role(CALL, "r", "anna", USER) is True
    assert has_it(roles) == []
    assert roles.drop_role(CALL, "r") is True


def test_granting_and_revoking_roles_by_request(roles: Roles) -> None:
    roles.create_role(CALL, Role("r"))
    grant = GrantRevokeRoleRequest(GRANT, "r", "anna", USER, "root", USER, grantOption=True)
    assert roles.grant_revoke_role(CALL, grant) == GrantRevokeRoleResponse(success=True)
    assert has_it(roles) == [("anna", True)]
    option = GrantRevokeRoleRequest(REVOKE, "r", "anna", USER, grantOption=True)
    assert roles.grant_revoke_role(CALL, option) == GrantRevokeRoleResponse(success=True)
    assert has_it(roles) == [("anna", False)]
    assert roles.grant_revoke_role(CALL, GrantRevokeRoleRequest(REVOKE, "r", "anna", USER)).success is True
    assert has_it(roles) == []
    for wrong in (None, 7):
        request = GrantRevokeRoleRequest(wrong, "r", "anna", USER)
        assert isinstance(refusal(lambda request=request: roles.grant_revoke_role(CALL, request)), MetaException)


def test_privileges(privileges: Privileges) -> None:
    assert privileges.grant_privileges(CALL, bag(TABLE)) is True
    assert privileges.get_privilege_set(CALL, TABLE, "anna", []).userPrivileges["anna"][0].privilege == "SELECT"
    assert privileges.revoke_privileges(CALL, bag(TABLE)) is True
    assert privileges.list_privileges(CALL, "anna", USER, TABLE) == []


def test_granting_and_revoking_privileges_by_request(privileges: Privileges) -> None:
    done = GrantRevokePrivilegeResponse(success=True)

    def options() -> list[bool]:
        return [one.grantInfo.grantOption for one in privileges.list_privileges(CALL, "anna", USER, TABLE)]

    def ask(kind: int, only_option: bool | None = None) -> GrantRevokePrivilegeResponse:
        request = GrantRevokePrivilegeRequest(kind, bag(TABLE, option=True), only_option)
        return privileges.grant_revoke_privileges(CALL, request)

    assert (ask(GRANT), options()) == (done, [True])
    assert (ask(REVOKE, True), options()) == (done, [False])
    assert (ask(REVOKE), options()) == (done, [])
    request = GrantRevokePrivilegeRequest(GRANT, bag(TABLE))
    assert privileges.refresh_privileges(NEWER, TABLE, "x", request) == done
    assert [one.authorizer for one in privileges.list_privileges(CALL, "anna", USER, TABLE)] == ["x"]
    assert isinstance(refusal(lambda: ask(9)), MetaException)


def test_the_catalog_is_shown_to_newer_callers_only(privileges: Privileges) -> None:
    privileges.grant_privileges(CALL, bag(TABLE))
    plain = HiveObjectRef(HiveObjectType.TABLE, "default", "t")

    def catalogs(call: Call, on: HiveObjectRef) -> list[str | None]:
        return [one.hiveObject.catName for one in privileges.list_privileges(call, "anna", USER, on)]

    assert catalogs(CALL, plain) == [None]
    assert catalogs(NEWER, plain) == catalogs(CALL, TABLE) == ["hive"]
    in_catalog = HiveObjectRef(HiveObjectType.TABLE, "default", "t", catName="hive")
    assert catalogs(CALL, in_catalog) == ["hive"]
    elsewhere = HiveObjectRef(HiveObjectType.TABLE, "default", "t", catName="spark")
    assert catalogs(CALL, elsewhere) == []


def test_what_is_left_out_is_a_meta_exception(roles: Roles, privileges: Privileges) -> None:
    for action in (
        lambda: roles.create_role(CALL, None),
        lambda: roles.grant_revoke_role(CALL, None),
        lambda: roles.get_principals_in_role(CALL, None),
        lambda: roles.get_role_grants_for_principal(CALL, None),
        lambda: privileges.get_privilege_set(CALL, None, None, None),
        lambda: privileges.list_privileges(CALL, None, None, None),
        lambda: privileges.grant_privileges(CALL, None),
        lambda: privileges.grant_privileges(CALL, PrivilegeBag([None])),
        lambda: privileges.revoke_privileges(CALL, None),
        lambda: privileges.grant_revoke_privileges(CALL, None),
        lambda: privileges.refresh_privileges(CALL, None, None, None),
        lambda: privileges.refresh_privileges(CALL, None, None, GrantRevokePrivilegeRequest(GRANT, bag(TABLE))),
    ):
        assert isinstance(refusal(action), MetaException)


def test_partitions_with_privileges(catalog: Catalog, privileges: Privileges) -> None:
    parameters = {"PARTITION_LEVEL_PRIVILEGE": "TRUE"}
    catalog.tables.create(new_table("p", keys=columns("ds string", "hr int"), parameters=parameters))
    add_partitions(catalog, ["a", "1"], ["b", "1"])
    privileges.grant_privileges(CALL, bag(PARTITION))
    methods = partitions(catalog).reads
    request = GetPartitionsPsWithAuthRequest(dbName="default", tblName="p", userName="anna", groupNames=[])
    lists = (
        methods.get_partitions_with_auth(CALL, "default", "p", -1, "anna", []).answer,
        methods.get_partitions_ps_with_auth(CALL, "default", "p", [""], -1, "anna", []).answer,
        methods.get_partitions_ps_with_auth_req(CALL, request).answer.partitions,
    )
    for found in lists:
        first, second = found
        assert [one.privilege for one in first.privileges.userPrivileges["anna"]] == ["SELECT"]
        assert second.privileges.userPrivileges == {"anna": []}
    one = methods.get_partition_with_auth(CALL, "default", "p", ["a", "1"], "anna", []).answer
    assert list(one.privileges.userPrivileges) == ["anna"]
    assert methods.get_partition(CALL, "default", "p", ["a", "1"]).privileges is None
    for unsaid in ((None, []), ("anna", None)):
        found = items_of(methods.get_partitions_ps_with_auth(CALL, "default", "p", [""], -1, *unsaid))
        assert [one.privileges for one in found] == [None, None]


def test_a_limit_of_zero_partitions_with_privileges_is_none_to_2_3(catalog: Catalog) -> None:
    catalog.tables.create(new_table("p", keys=columns("ds string", "hr int")))
    add_partitions(catalog, ["a", "1"], ["b", "1"])
    methods = partitions(catalog).reads
    found = methods.get_partitions_with_auth(CALL, "default", "p", 0, "anna", [])
    assert [one.values[0] for one in items_of(found)] == ["a", "b"]
    newer = Call("tester", dialect=Dialect.HIVE_4)
    assert items_of(methods.get_partitions_with_auth(newer, "default", "p", 0, "anna", [])) == []
