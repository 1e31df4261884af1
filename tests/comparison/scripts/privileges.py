"""Roles and privileges: create, grant, list, revoke, both generations of calls."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from tests.comparison.objects import SOME_KEYS, database, table
from tests.comparison.servers import Step, call

USER, ROLE, GROUP = 1, 2, 3
GLOBAL, DATABASE, TABLE, PARTITION, COLUMN = 1, 2, 3, 4, 5
OBJECTS = (
    HiveObjectRef(GLOBAL),
    HiveObjectRef(DATABASE, "sales"),
    HiveObjectRef(TABLE, "sales", "orders"),
    HiveObjectRef(COLUMN, "sales", "orders", None, "id"),
)


def steps() -> Iterator[Step]:
    yield call("create_database", database("sales"))
    yield call("create_table", table("sales", "orders", SOME_KEYS))
    yield from _roles()
    yield from _privileges()
    yield call("drop_role", "reader")
    yield call("drop_role", "writer")
    yield call("drop_database", "sales", True, True)


def _roles() -> Iterator[Step]:
    for name in ("reader", "writer", "reader", "public", "Reader"):
        yield call("create_role", Role(name, 0, "somebody"))
    yield call("get_role_names")
    for name in ("Reader", "admin", "public", "nosuch"):
        yield call("drop_role", name)
    for role, who, kind in (
        ("reader", "ann", USER),
        ("reader", "ann", USER),
        ("public", "ann", USER),
        ("nosuch", "ann", USER),
        ("reader", "writer", ROLE),
        ("writer", "reader", ROLE),
        ("READER", "ben", USER),
    ):
        yield call("grant_role", role, who, kind, "admin", USER, True)
    for who, kind in (("ann", USER), ("writer", ROLE), ("nobody", USER), ("g", GROUP)):
        yield call("list_roles", who, kind)
        yield call("get_role_grants_for_principal", GetRoleGrantsForPrincipalRequest(who, kind))
    for name in ("reader", "public", "nosuch"):
        yield call("get_principals_in_role", GetPrincipalsInRoleRequest(name))
    for kind in (1, 2):
        yield call("grant_revoke_role", GrantRevokeRoleRequest(kind, "writer", "cid", USER, "admin", USER, False))
    for name in ("reader", "nosuch"):
        yield call("revoke_role", name, "ann", USER)


def _bag(*privileges: tuple[HiveObjectRef, str, int, str]) -> PrivilegeBag:
    return PrivilegeBag(
        [
            HiveObjectPrivilege(thing, who, kind, PrivilegeGrantInfo(name, 0, "admin", USER, True))
            for thing, who, kind, name in privileges
        ]
    )


def _privileges() -> Iterator[Step]:
    for thing in OBJECTS:
        for who, kind in (("ann", USER), ("reader", ROLE), ("staff", GROUP)):
            yield call("grant_privileges", _bag((thing, who, kind, "select,insert")))
        yield call("grant_privileges", _bag((thing, "ann", USER, "select")))
    yield call("grant_privileges", _bag((HiveObjectRef(TABLE, "sales", "nosuch"), "ann", USER, "select")))
    yield call("grant_privileges", PrivilegeBag([]))
    yield call("grant_role", "reader", "ann", USER, "admin", USER, False)
    for thing in (*OBJECTS, HiveObjectRef(TABLE, "sales", "nosuch")):
        yield call("get_privilege_set", thing, "ann", ["staff"])
        yield call("list_privileges", "ann", USER, thing)
        yield call("list_privileges", "reader", ROLE, thing)
        yield call("list_privileges", None, USER, thing)
    yield call("list_privileges", "ann", USER, HiveObjectRef())
    for thing in OBJECTS:
        yield call("revoke_privileges", _bag((thing, "ann", USER, "select")))
        yield call("revoke_privileges", _bag((thing, "ann", USER, "select")))
        yield call("list_privileges", "ann", USER, thing)
    bag = _bag((OBJECTS[2], "dora", USER, "update"))
    yield call("grant_revoke_privileges", GrantRevokePrivilegeRequest(1, bag))
    yield call("grant_revoke_privileges", GrantRevokePrivilegeRequest(2, bag, True))
    yield call("list_privileges", "dora", USER, OBJECTS[2])
    yield call("grant_revoke_privileges", GrantRevokePrivilegeRequest(2, bag, False))
    yield call("list_privileges", "dora", USER, OBJECTS[2])
    for thing in OBJECTS[:1]:
        for who, kind in (("ann", USER), ("reader", ROLE), ("staff", GROUP)):
            yield call("revoke_privileges", _bag((thing, who, kind, "select,insert")))
            yield call("revoke_privileges", _bag((thing, who, kind, "insert")))
            yield call("list_privileges", who, kind, thing)
