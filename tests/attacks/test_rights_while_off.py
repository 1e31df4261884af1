"""Without authorization, a user prepares rights that would count as soon as it is switched on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    AlterDatabaseRequest,
    AlterTableRequest,
    Database,
    Function,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    Table,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.support.catalog import new_table, place_empty_database

USER, ROLE = int(PrincipalType.USER), int(PrincipalType.ROLE)
# What an attacker may not have changed.
STANDING = ("roles", "role_members", "privileges")


class Users:
    """The administrator and another user, by clients of Hive 4 unless said otherwise."""

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore
        self.admin = self.named("admin")
        self.mallory = self.named("mallory")

    def named(self, user: str, dialect: Dialect = Dialect.HIVE_4) -> Peer:
        return Peer(self.metastore, self.metastore.codecs.binary, dialect, user)

    def standing(self) -> list[Any]:
        with self.metastore.store._reading.connect() as connection:
            return [connection.exec_driver_sql(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in STANDING]

    def owner(self, name: str) -> tuple[str | None, int | None]:
        found = self.admin.ask("get_table", "sales", name)
        return found.owner, found.ownerType


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Users]:
    place_empty_database(tmp_path / DATABASE_FILE)
    metastore = build_metastore(Settings(data_dir=tmp_path, file_systems={"file": "ignore"}, authorization="off"))
    made = Users(metastore)
    made.admin.ask("create_database", Database(name="sales", ownerName="victor", ownerType=USER))
    made.admin.ask("create_table", owned("orders", "victor"))
    made.admin.ask("create_function", function("victor"))
    made.admin.ask("grant_privileges", bag(HiveObjectRef(HiveObjectType.DATABASE, "sales"), "victor"))
    yield made
    metastore.store.close()


def owned(name: str, owner: str | None, kind: int | None = USER, **fields: Any) -> Table:
    table = new_table(name, "sales", location=f"file:/w/sales.db/{name}", **fields)
    table.owner, table.ownerType = owner, kind
    return table


def function(owner: str | None) -> Function:
    return Function(functionName="f", dbName="sales", className="C", ownerName=owner, ownerType=USER, functionType=1)


def bag(on: HiveObjectRef | None, to: str, kind: int = USER) -> PrivilegeBag:
    return PrivilegeBag([HiveObjectPrivilege(on, to, kind, PrivilegeGrantInfo("all", 0, "admin", USER, True))])


EVERYTHING = HiveObjectRef(HiveObjectType.GLOBAL)
SALES = HiveObjectRef(HiveObjectType.DATABASE, "sales")
CHANGES = {
    "create_role": [Role(roleName="r")],
    "drop_role": ["r"],
    "grant_role": ["admin", "mallory", USER, "admin", USER, True],
    "revoke_role": ["admin", "victor", USER],
    "grant_revoke_role": [GrantRevokeRoleRequest(GrantRevokeType.GRANT, "admin", "mallory", USER, "admin", USER, True)],
    "grant_privileges": [bag(EVERYTHING, "mallory")],
    "revoke_privileges": [bag(SALES, "victor")],
    "grant_revoke_privileges": [GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, bag(SALES, "public", ROLE))],
    "refresh_privileges": [SALES, "a", GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, bag(SALES, "mallory"))],
    "setMetaConf": ["hive.metastore.try.direct.sql", "true"],
    "setOption": ["key", "value"],
}


@pytest.mark.parametrize("name", CHANGES)
def test_roles_grants_and_settings_are_the_administrators(users: Users, name: str) -> None:
    before = users.standing()
    for user in ("mallory", "", "anonymous", "victor"):
        payload = users.named(user).reply(name, *CHANGES[name]).payload
        assert f"Permission denied: user {user} lacks ADMIN on the whole catalog".encode() in payload
    assert users.standing() == before
    assert b"Permission denied" not in users.admin.reply(name, *CHANGES[name]).payload


@pytest.mark.parametrize("entry", [None, HiveObjectPrivilege(), HiveObjectPrivilege(None, "mallory", USER)])
def test_no_shape_of_a_grant_gets_by(users: Users, entry: HiveObjectPrivilege | None) -> None:
    for given in (PrivilegeBag(None), PrivilegeBag([]), None, *([PrivilegeBag([entry])] if entry else [])):
        with pytest.raises(MetaException, match="Permission denied"):
            users.mallory.ask("grant_privileges", given)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(("owner", "kind"), [("mallory", USER), ("victor", ROLE), ("", USER)])
def test_a_table_is_not_given_away(users: Users, dialect: Dialect, owner: str, kind: int) -> None:
    with pytest.raises(MetaException, match=r"Permission denied: user mallory lacks OWNERSHIP on table sales\.orders"):
        users.named("mallory", dialect).ask("alter_table", "sales", "orders", owned("orders", owner, kind))
    assert users.owner("orders") == ("victor", USER)


def test_nor_by_any_other_method_of_change(users: Users) -> None:
    taken = owned("orders", "mallory")
    for name, *arguments in (
        ("alter_table_with_cascade", "sales", "orders", taken, True),
        ("alter_table_with_environment_context", "sales", "orders", taken, None),
        ("alter_table_req", AlterTableRequest(dbName="sales", tableName="orders", table=taken)),
        ("alter_table", "sales", "orders", owned("renamed", "mallory")),
        ("alter_database", "sales", Database(name="sales", ownerName="mallory", ownerType=USER)),
        ("alter_database_req", AlterDatabaseRequest("sales", Database(name="sales", ownerName="mallory"))),
        ("alter_function", "sales", "f", function("mallory")),
    ):
        with pytest.raises(MetaException, match="lacks OWNERSHIP"):
            users.mallory.ask(name, *arguments)
    assert users.admin.ask("get_database", "sales").ownerName == "victor"
    assert users.admin.ask("get_function", "sales", "f").ownerName == "victor"
    users.admin.ask("alter_table", "sales", "orders", taken)
    assert users.owner("orders") == ("mallory", USER)


def test_what_engines_send_passes(users: Users) -> None:
    """The table as it was read, or without an owner: it stays; what has none is not taken by the name of an account."""
    mallory = users.mallory
    changed = mallory.ask("get_table", "sales", "orders")
    changed.parameters["a"] = "b"
    mallory.ask("alter_table", "sales", "orders", changed)
    mallory.ask("alter_table", "sales", "orders", owned("orders", None, None))
    assert users.owner("orders") == ("victor", USER)
    mallory.ask("alter_database", "sales", Database(name="sales", parameters={"a": "b"}))
    assert users.admin.ask("get_database", "sales").ownerName == "victor"
    # Spark names an owner without its kind.
    mallory.ask("alter_database", "default", Database(name="default", ownerName="public"))
    assert users.admin.ask("get_database", "default").ownerType == ROLE
    users.admin.ask("create_table", owned("nobodys", None))
    mallory.ask("alter_table", "sales", "nobodys", owned("nobodys", "hadoop"))
    assert users.owner("nobodys")[0] is None
    with pytest.raises(Exception, match=r"doesn't exist|not found"):
        mallory.ask("alter_table", "sales", "missing", owned("missing", "hadoop"))


def test_who_makes_a_table_says_who_owns_it_and_grants_no_one_else_anything(users: Users) -> None:
    grants = {"hadoop": [PrivilegeGrantInfo("select", 0, "hadoop", USER, True)]}
    users.mallory.ask("create_table", owned("a", "hadoop", privileges=PrincipalPrivilegeSet(userPrivileges=grants)))
    assert users.owner("a") == ("hadoop", USER)
    before = users.standing()
    for given in (
        PrincipalPrivilegeSet(userPrivileges={"mallory": grants["hadoop"]}),
        PrincipalPrivilegeSet(groupPrivileges=grants),
        PrincipalPrivilegeSet(rolePrivileges={"public": grants["hadoop"]}),
    ):
        with pytest.raises(MetaException, match="lacks ADMIN"):
            users.mallory.ask("create_table", owned("b", "hadoop", privileges=given))
        users.mallory.ask("create_table", owned("c", "hadoop", privileges=PrincipalPrivilegeSet({}, {}, {})))
        users.mallory.ask("drop_table", "sales", "c", False)
    assert users.standing() == before
