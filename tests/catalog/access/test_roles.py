"""Roles as the service keeps them, with the texts of semantics §2.18."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.catalog.access.grant_rows import Grantee, GrantRows
from hms_gateway.catalog.access.roles import RoleService, ancestors
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.structs import HiveObjectType, MetaException, PrincipalType, Role, RolePrincipalGrant
from tests.metastore.statistics_world import refusal
from tests.support.catalog import NOW, Catalog, open_catalog

USER, ROLE, GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP
PUBLIC = Role("public", 0, "public")
UNUSUAL_NAMES = ["", "Ä", "a b", "x" * 600]
UNSTORABLE_NAMES = ["a\0", "\udfff", "x" * 5000]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as opened:
        yield opened


@pytest.fixture
def roles(catalog: Catalog) -> RoleService:
    service = RoleService(catalog.store, catalog.clock, catalog.settings)
    service.create_defaults()
    return service


def create(roles: RoleService, *names: str) -> None:
    for name in names:
        roles.create(Role(roleName=name, ownerName="owner"))


def grant(roles: RoleService, role: Any, to: Any, kind: Any = USER, **fields: Any) -> None:
    given = {"grantor": "root", "grantor_type": USER, "grant_option": False, **fields}
    roles.grant(role, to, kind, **given)


def names(roles: RoleService, principal: str, kind: int = USER) -> list[str]:
    return [role.roleName for role in roles.of_principal(principal, kind)]


def test_the_roles_of_every_catalog(catalog: Catalog, roles: RoleService) -> None:
    roles.create_defaults()
    assert roles.names() == ["admin", "public"]

    def work(snapshot: Any) -> Any:
        return GrantRows(snapshot).of_principal(Grantee("admin", ROLE))

    [all_of_it] = catalog.store.read(work)
    grant = all_of_it.grant
    assert (grant.on.object_type, grant.privilege, grant.grant_option) == (HiveObjectType.GLOBAL, "All", True)
    assert (grant.grantor, grant.grantor_type) == ("admin", ROLE)


def test_users_who_are_administrators_by_configuration(catalog: Catalog) -> None:
    settings = MetastoreSettings(hive_configuration={"hive.users.in.admin.role": "anna, bob,,"})
    for _ in range(2):
        RoleService(catalog.store, catalog.clock, settings).create_defaults()
    service = RoleService(catalog.store, catalog.clock, settings)
    assert [(one.principalName, one.grantOption) for one in service.grants_of_role("admin")] == [
        ("anna", True),
        ("bob", True),
    ]


def test_creating_and_dropping(roles: RoleService) -> None:
    create(roles, "Analysts", "analysts")
    assert roles.names() == ["Analysts", "admin", "analysts", "public"]
    assert refusal(lambda: create(roles, "Analysts")) == MetaException("Role Analysts already exists.")
    roles.drop("Analysts")
    roles.drop("missing")
    assert roles.names() == ["admin", "analysts", "public"]


def test_roles_that_are_always_there(roles: RoleService) -> None:
    assert refusal(lambda: create(roles, "public")) == MetaException(
        "public role implictly exists. It can't be created."
    )
    assert refusal(lambda: create(roles, "admin")) == MetaException("Role admin already exists.")
    for name in ("public", "admin"):
        assert refusal(lambda name=name: roles.drop(name)) == MetaException("public,admin roles can't be dropped.")


def test_granting_and_revoking(roles: RoleService) -> None:
    create(roles, "r")
    grant(roles, "r", "anna", grant_option=True)
    assert roles.of_principal("anna", USER) == [Role("r", NOW, "owner"), PUBLIC]
    assert roles.of_principal("anna", GROUP) == []
    assert roles.grants_of_principal("anna", USER) == [
        RolePrincipalGrant("r", "anna", USER, True, NOW, "root", USER),
        RolePrincipalGrant("public", "anna", USER, False, 0),
    ]
    assert roles.grants_of_role("r") == [RolePrincipalGrant("r", "anna", USER, True, NOW, "root", USER)]
    assert refusal(lambda: grant(roles, "r", "anna")) == MetaException("Principal anna already has the role r")
    roles.revoke("r", "anna", USER)
    roles.revoke("r", "anna", USER)
    roles.revoke("missing", "anna", USER)
    assert names(roles, "anna") == ["public"]


def test_taking_the_right_to_grant_on(roles: RoleService) -> None:
    create(roles, "r")
    grant(roles, "r", "anna", grant_option=True)
    roles.revoke("r", "anna", USER, grant_option_only=True)
    assert [one.grantOption for one in roles.grants_of_role("r")] == [False]
    assert refusal(lambda: roles.revoke("r", "anna", USER, grant_option_only=True)) == MetaException(
        "User anna does not have grant option with role r"
    )


def test_public_is_nobodys_to_give(roles: RoleService) -> None:
    assert refusal(lambda: grant(roles, "public", "anna")) == MetaException(
        "No user can be added to public. Since all users implictly belong to public role."
    )
    assert refusal(lambda: roles.revoke("public", "anna", USER)) == MetaException("public role can't be revoked.")
    assert roles.grants_of_role("public") == []


def test_roles_that_are_not_there(roles: RoleService) -> None:
    create(roles, "r")
    assert refusal(lambda: grant(roles, "R", "anna")) == MetaException("R role can not be found.")
    assert refusal(lambda: grant(roles, "r", "R", ROLE)) == MetaException("Role R does not exist")
    assert roles.grants_of_role("R") == []
    assert names(roles, "nobody", ROLE) == []


def test_circles_are_refused(roles: RoleService) -> None:
    create(roles, "a", "b", "c")
    grant(roles, "a", "b", ROLE)
    grant(roles, "b", "c", ROLE)
    for member in ("a", "b", "c"):
        assert refusal(lambda member=member: grant(roles, "c", member, ROLE)) == MetaException(
            f"Cannot grant role {member} to c as c already belongs to the role {member}. (no cycles allowed)"
        )
    grant(roles, "a", "c", ROLE)
    assert names(roles, "c", ROLE) == ["a", "b"]


def test_a_dropped_role_leaves_nothing_behind(roles: RoleService) -> None:
    create(roles, "a", "b")
    grant(roles, "a", "anna")
    grant(roles, "a", "b", ROLE)
    roles.drop("a")
    assert names(roles, "anna") == ["public"]
    create(roles, "a")
    grant(roles, "a", "b", ROLE)
    roles.drop("b")
    create(roles, "b")
    assert names(roles, "b", ROLE) == roles.grants_of_role("a") == []


@pytest.mark.parametrize("name", UNUSUAL_NAMES)
def test_unusual_names(roles: RoleService, name: str) -> None:
    create(roles, name)
    grant(roles, name, name)
    assert names(roles, name) == [name, "public"]
    roles.drop(name)
    assert roles.names() == ["admin", "public"]


@pytest.mark.parametrize("name", UNSTORABLE_NAMES)
def test_names_no_database_can_keep(roles: RoleService, name: str) -> None:
    create(roles, "r")
    assert isinstance(refusal(lambda: create(roles, name)), MetaException)
    assert isinstance(refusal(lambda: grant(roles, "r", name)), MetaException)
    assert isinstance(refusal(lambda: grant(roles, name, "anna")), MetaException)
    roles.drop(name)
    roles.revoke(name, name, USER)
    roles.revoke("r", name, USER)
    assert (names(roles, name), names(roles, name, ROLE), roles.grants_of_role(name)) == (["public"], [], [])


def test_what_is_left_out(roles: RoleService) -> None:
    create(roles, "r")
    for action in (
        lambda: roles.create(None),
        lambda: roles.create(Role()),
        lambda: roles.drop(None),
        lambda: grant(roles, None, "anna"),
        lambda: grant(roles, "r", None),
        lambda: grant(roles, "r", "anna", None),
        lambda: grant(roles, "r", "anna", 9),
        lambda: roles.revoke(None, "anna", USER),
        lambda: roles.revoke("r", None, USER),
        lambda: roles.of_principal(None, USER),
        lambda: roles.of_principal("anna", None),
        lambda: roles.grants_of_principal(None, None),
        lambda: roles.grants_of_role(None),
    ):
        assert isinstance(refusal(action), MetaException)
    grant(roles, "r", "anna", grantor=None, grantor_type=None)
    assert roles.grants_of_role("r") == [RolePrincipalGrant("r", "anna", USER, False, NOW)]


def test_ancestors_come_once_and_nearest_first() -> None:
    roles_of = {"a": ["b", "c"], "b": ["d"], "c": ["d", "a"]}
    assert ancestors(["a", "x"], roles_of) == ["a", "x", "b", "c", "d"]
    assert ancestors([], roles_of) == []
