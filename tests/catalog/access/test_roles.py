"""Roles as the service keeps them, with the texts of semantics §2.18."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.catalog.access.grant_rows import Grantee, GrantRows
from hms_gateway.catalog.access.roles import Roles, ancestors, create_default_roles
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HiveObjectType,
    MetaException,
    PrincipalType,
    Role,
    RolePrincipalGrant,
)
from tests.metastore.statistics_world import refusal
from tests.support.catalog import NOW, Catalog, open_catalog

CALL = Call("tester")
USER, ROLE, GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP
PUBLIC = Role("public", 0, "public")
UNUSUAL_NAMES = ["", "Ä", "a b", "x" * 600]
UNSTORABLE_NAMES = ["a\0", "\udfff", "x" * 5000]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as opened:
        yield opened


@pytest.fixture
def roles(catalog: Catalog) -> Roles:
    create_default_roles(catalog.store, catalog.clock, catalog.settings)
    return Roles(catalog.store, catalog.clock)


def create(roles: Roles, *names: str) -> None:
    for name in names:
        roles.create_role(CALL, Role(roleName=name, ownerName="owner"))


def grant(roles: Roles, role: Any, to: Any, kind: Any = USER, **fields: Any) -> None:
    given = {"grantor": "root", "grantorType": USER, "grant_option": False, **fields}
    roles.grant_role(CALL, role, to, kind, **given)


def revoke_option(roles: Roles, role: str, to: str) -> None:
    roles.grant_revoke_role(CALL, GrantRevokeRoleRequest(GrantRevokeType.REVOKE, role, to, USER, grantOption=True))


def members(roles: Roles, role: Any) -> list[RolePrincipalGrant]:
    return roles.get_principals_in_role(CALL, GetPrincipalsInRoleRequest(role)).principalGrants or []


def grants_of(roles: Roles, principal: Any, kind: Any) -> list[RolePrincipalGrant]:
    request = GetRoleGrantsForPrincipalRequest(principal, kind)
    return roles.get_role_grants_for_principal(CALL, request).principalGrants or []


def names(roles: Roles, principal: str, kind: int = USER) -> list[str]:
    return [role.roleName for role in roles.list_roles(CALL, principal, kind)]


def test_the_roles_of_every_catalog(catalog: Catalog, roles: Roles) -> None:
    create_default_roles(catalog.store, catalog.clock, catalog.settings)
    assert roles.get_role_names(CALL) == ["admin", "public"]

    def work(snapshot: Any) -> Any:
        return GrantRows(snapshot).of_principal(Grantee("admin", ROLE))

    [all_of_it] = catalog.store.read(work)
    grant = all_of_it.grant
    assert (grant.on.object_type, grant.privilege, grant.grant_option) == (HiveObjectType.GLOBAL, "All", True)
    assert (grant.grantor, grant.grantor_type) == ("admin", ROLE)


def test_users_who_are_administrators_by_configuration(catalog: Catalog) -> None:
    settings = MetastoreSettings(hive_configuration={"hive.users.in.admin.role": "anna, bob,,"})
    for _ in range(2):
        create_default_roles(catalog.store, catalog.clock, settings)
    roles = Roles(catalog.store, catalog.clock)
    assert [(one.principalName, one.grantOption) for one in members(roles, "admin")] == [
        ("anna", True),
        ("bob", True),
    ]


def test_creating_and_dropping(roles: Roles) -> None:
    create(roles, "Analysts", "analysts")
    assert roles.get_role_names(CALL) == ["Analysts", "admin", "analysts", "public"]
    assert refusal(lambda: create(roles, "Analysts")) == MetaException("Role Analysts already exists.")
    roles.drop_role(CALL, "Analysts")
    roles.drop_role(CALL, "missing")
    assert roles.get_role_names(CALL) == ["admin", "analysts", "public"]


def test_roles_that_are_always_there(roles: Roles) -> None:
    assert refusal(lambda: create(roles, "public")) == MetaException(
        "public role implictly exists. It can't be created."
    )
    assert refusal(lambda: create(roles, "admin")) == MetaException("Role admin already exists.")
    for name in ("public", "admin"):
        assert refusal(lambda name=name: roles.drop_role(CALL, name)) == MetaException(
            "public,admin roles can't be dropped."
        )


def test_granting_and_revoking(roles: Roles) -> None:
    create(roles, "r")
    grant(roles, "r", "anna", grant_option=True)
    assert roles.list_roles(CALL, "anna", USER) == [Role("r", NOW, "owner"), PUBLIC]
    assert roles.list_roles(CALL, "anna", GROUP) == []
    assert grants_of(roles, "anna", USER) == [
        RolePrincipalGrant("r", "anna", USER, True, NOW, "root", USER),
        RolePrincipalGrant("public", "anna", USER, False, 0),
    ]
    assert members(roles, "r") == [RolePrincipalGrant("r", "anna", USER, True, NOW, "root", USER)]
    assert refusal(lambda: grant(roles, "r", "anna")) == MetaException("Principal anna already has the role r")
    roles.revoke_role(CALL, "r", "anna", USER)
    roles.revoke_role(CALL, "r", "anna", USER)
    roles.revoke_role(CALL, "missing", "anna", USER)
    assert names(roles, "anna") == ["public"]


def test_taking_the_right_to_grant_on(roles: Roles) -> None:
    create(roles, "r")
    grant(roles, "r", "anna", grant_option=True)
    revoke_option(roles, "r", "anna")
    assert [one.grantOption for one in members(roles, "r")] == [False]
    assert refusal(lambda: revoke_option(roles, "r", "anna")) == MetaException(
        "User anna does not have grant option with role r"
    )


def test_public_is_nobodys_to_give(roles: Roles) -> None:
    assert refusal(lambda: grant(roles, "public", "anna")) == MetaException(
        "No user can be added to public. Since all users implictly belong to public role."
    )
    assert refusal(lambda: roles.revoke_role(CALL, "public", "anna", USER)) == MetaException(
        "public role can't be revoked."
    )
    assert members(roles, "public") == []


def test_roles_that_are_not_there(roles: Roles) -> None:
    create(roles, "r")
    assert refusal(lambda: grant(roles, "R", "anna")) == MetaException("R role can not be found.")
    assert refusal(lambda: grant(roles, "r", "R", ROLE)) == MetaException("Role R does not exist")
    assert members(roles, "R") == []
    assert names(roles, "nobody", ROLE) == []


def test_circles_are_refused(roles: Roles) -> None:
    create(roles, "a", "b", "c")
    grant(roles, "a", "b", ROLE)
    grant(roles, "b", "c", ROLE)
    for member in ("a", "b", "c"):
        assert refusal(lambda member=member: grant(roles, "c", member, ROLE)) == MetaException(
            f"Cannot grant role {member} to c as c already belongs to the role {member}. (no cycles allowed)"
        )
    grant(roles, "a", "c", ROLE)
    assert names(roles, "c", ROLE) == ["a", "b"]


def test_a_dropped_role_leaves_nothing_behind(roles: Roles) -> None:
    create(roles, "a", "b")
    grant(roles, "a", "anna")
    grant(roles, "a", "b", ROLE)
    roles.drop_role(CALL, "a")
    assert names(roles, "anna") == ["public"]
    create(roles, "a")
    grant(roles, "a", "b", ROLE)
    roles.drop_role(CALL, "b")
    create(roles, "b")
    assert names(roles, "b", ROLE) == members(roles, "a") == []


@pytest.mark.parametrize("name", UNUSUAL_NAMES)
def test_unusual_names(roles: Roles, name: str) -> None:
    create(roles, name)
    grant(roles, name, name)
    assert names(roles, name) == [name, "public"]
    roles.drop_role(CALL, name)
    assert roles.get_role_names(CALL) == ["admin", "public"]


@pytest.mark.parametrize("name", UNSTORABLE_NAMES)
def test_names_no_database_can_keep(roles: Roles, name: str) -> None:
    create(roles, "r")
    assert isinstance(refusal(lambda: create(roles, name)), MetaException)
    assert isinstance(refusal(lambda: grant(roles, "r", name)), MetaException)
    assert isinstance(refusal(lambda: grant(roles, name, "anna")), MetaException)
    roles.drop_role(CALL, name)
    roles.revoke_role(CALL, name, name, USER)
    roles.revoke_role(CALL, "r", name, USER)
    assert (names(roles, name), names(roles, name, ROLE), members(roles, name)) == (["public"], [], [])


def test_what_is_left_out(roles: Roles) -> None:
    create(roles, "r")
    for action in (
        lambda: roles.create_role(CALL, None),
        lambda: roles.create_role(CALL, Role()),
        lambda: roles.drop_role(CALL, None),
        lambda: grant(roles, None, "anna"),
        lambda: grant(roles, "r", None),
        lambda: grant(roles, "r", "anna", None),
        lambda: grant(roles, "r", "anna", 9),
        lambda: roles.revoke_role(CALL, None, "anna", USER),
        lambda: roles.revoke_role(CALL, "r", None, USER),
        lambda: roles.list_roles(CALL, None, USER),
        lambda: roles.list_roles(CALL, "anna", None),
        lambda: grants_of(roles, None, None),
        lambda: members(roles, None),
    ):
        assert isinstance(refusal(action), MetaException)
    grant(roles, "r", "anna", grantor=None, grantorType=None)
    assert members(roles, "r") == [RolePrincipalGrant("r", "anna", USER, False, NOW)]


def test_ancestors_come_once_and_nearest_first() -> None:
    roles_of = {"a": ["b", "c"], "b": ["d"], "c": ["d", "a"]}
    assert ancestors(["a", "x"], roles_of) == ["a", "x", "b", "c", "d"]
    assert ancestors([], roles_of) == []
