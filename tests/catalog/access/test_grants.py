"""Privileges as the service keeps them, with the texts of semantics §2.18."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.catalog.access.grants import Privileges, with_privileges
from hms_gateway.catalog.access.roles import Roles, create_default_roles
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    Database,
    GrantRevokePrivilegeRequest,
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
)
from hms_gateway.rpc.structs.base import items_of
from tests.metastore.statistics_world import P, T, add_partitions, partitions, refusal
from tests.support.catalog import NOW, Catalog, columns, new_table, open_catalog

CALL = Call("tester")
USER, ROLE, GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP
ALL = HiveObjectRef(HiveObjectType.GLOBAL)
DATABASE = HiveObjectRef(HiveObjectType.DATABASE, "default")
TABLE = HiveObjectRef(HiveObjectType.TABLE, "default", "t")
PARTITION = HiveObjectRef(HiveObjectType.PARTITION, "default", "p", ["a", "1"])
COLUMN = HiveObjectRef(HiveObjectType.COLUMN, "default", "t", None, "a")
PARTITION_COLUMN = HiveObjectRef(HiveObjectType.COLUMN, "default", "p", ["a", "1"], "a")
OBJECTS = {
    "user": ALL,
    "database": DATABASE,
    "table": TABLE,
    "partition": PARTITION,
    "column": COLUMN,
    "partition column": PARTITION_COLUMN,
}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as opened:
        opened.tables.create(new_table())
        parameters = {"PARTITION_LEVEL_PRIVILEGE": "true"}
        opened.tables.create(new_table("p", keys=columns("ds string", "hr int"), parameters=parameters))
        add_partitions(opened, ["a", "1"], ["b", "1"])
        yield opened


@pytest.fixture
def roles(catalog: Catalog) -> Roles:
    return Roles(catalog.store, catalog.clock)


@pytest.fixture
def service(catalog: Catalog) -> Privileges:
    return Privileges(catalog.store, catalog.clock)


def entry(
    on: HiveObjectRef | None,
    privilege: str | None = "SELECT",
    to: str | None = "anna",
    kind: int | None = USER,
    *,
    grantor: str = "root",
    option: bool = False,
    authorizer: str | None = None,
) -> HiveObjectPrivilege:
    info = PrivilegeGrantInfo(privilege, 5, grantor, USER, option)
    return HiveObjectPrivilege(on, to, kind, info, authorizer)


def bag(*entries: HiveObjectPrivilege) -> PrivilegeBag:
    return PrivilegeBag(list(entries))


def revoke_option(service: Privileges, bag: PrivilegeBag) -> None:
    request = GrantRevokePrivilegeRequest(GrantRevokeType.REVOKE, bag, revokeGrantOption=True)
    service.grant_revoke_privileges(CALL, request)


def refresh(service: Privileges, on: Any, authorizer: str, bag: PrivilegeBag | None) -> None:
    service.refresh_privileges(CALL, on, authorizer, GrantRevokePrivilegeRequest(privileges=bag))


def held(service: Privileges, on: HiveObjectRef, to: str | None = "anna", kind: int = USER) -> list[str]:
    return [one.grantInfo.privilege for one in service.list_privileges(CALL, to, kind, on)]


@pytest.mark.parametrize("on", OBJECTS.values(), ids=OBJECTS)
def test_granting_listing_and_revoking_on_each_kind(service: Privileges, on: HiveObjectRef) -> None:
    service.grant_privileges(CALL, bag(entry(on, option=True)))
    assert service.list_privileges(CALL, "anna", USER, on) == [
        HiveObjectPrivilege(on, "anna", USER, PrivilegeGrantInfo("SELECT", NOW, "root", USER, True))
    ]
    assert held(service, on, "bob") == held(service, on, "anna", GROUP) == []
    service.revoke_privileges(CALL, bag(entry(on)))
    assert held(service, on) == []


@pytest.mark.parametrize(("kind", "on"), OBJECTS.items(), ids=OBJECTS)
def test_revoking_what_was_not_granted(service: Privileges, kind: str, on: HiveObjectRef) -> None:
    service.grant_privileges(CALL, bag(entry(on, "ALTER")))
    for wrong in (entry(on), entry(on, "alter"), entry(on, "ALTER", "bob"), entry(on, "ALTER", kind=GROUP)):
        assert refusal(lambda wrong=wrong: service.revoke_privileges(CALL, bag(wrong))) == MetaException(
            f"No {kind.split()[-1]} grant found for privileges {wrong.grantInfo.privilege}"
        )
    assert held(service, on) == ["ALTER"]


@pytest.mark.parametrize(
    ("on", "where"),
    [
        (ALL, ""),
        (DATABASE, " on database default"),
        (TABLE, " on table [default,t]"),
        (PARTITION, " on partition [default,p,a/1]"),
        (COLUMN, " on column a [default,t]"),
        (PARTITION_COLUMN, " on column a [default,p,a/1]"),
    ],
    ids=OBJECTS,
)
def test_the_same_grant_again(service: Privileges, on: HiveObjectRef, where: str) -> None:
    service.grant_privileges(CALL, bag(entry(on)))
    error = MetaException(f"SELECT is already granted{where} by root")
    assert refusal(lambda: service.grant_privileges(CALL, bag(entry(on, "ALTER,SELECT")))) == error
    assert held(service, on) == ["SELECT"]
    service.grant_privileges(CALL, bag(entry(on, grantor="other"), entry(on, to="bob"), entry(on, authorizer="x")))
    assert held(service, on) == ["SELECT"] * 3


def test_privileges_are_split_and_trimmed(service: Privileges) -> None:
    service.grant_privileges(CALL, bag(entry(TABLE, "select, insert ,,select")))
    assert held(service, TABLE) == ["select", "insert"]
    service.revoke_privileges(CALL, bag(entry(TABLE, " insert,select")))
    assert held(service, TABLE) == []


def test_all_of_a_bag_or_nothing(service: Privileges) -> None:
    assert isinstance(refusal(lambda: service.grant_privileges(CALL, bag(entry(TABLE), entry(TABLE)))), MetaException)
    assert held(service, TABLE) == []
    service.grant_privileges(CALL, bag(entry(TABLE)))
    assert isinstance(refusal(lambda: service.revoke_privileges(CALL, bag(entry(TABLE), entry(TABLE)))), MetaException)
    assert held(service, TABLE) == ["SELECT"]
    service.grant_privileges(CALL, PrivilegeBag())
    service.grant_privileges(CALL, PrivilegeBag([]))


def test_taking_the_right_to_grant_on(service: Privileges) -> None:
    service.grant_privileges(CALL, bag(entry(TABLE, option=True)))
    revoke_option(service, bag(entry(TABLE)))
    [one] = service.list_privileges(CALL, "anna", USER, TABLE)
    assert one.grantInfo.grantOption is False
    assert refusal(lambda: revoke_option(service, bag(entry(TABLE)))) == MetaException(
        "User anna does not have grant option with privilege SELECT"
    )


@pytest.mark.parametrize("name", ["missing", "", "x\0y", "\udfff", "täble", "x" * 5000])
def test_objects_that_are_not_there(service: Privileges, name: str) -> None:
    for on in (
        HiveObjectRef(HiveObjectType.DATABASE, name),
        HiveObjectRef(HiveObjectType.TABLE, "default", name),
        HiveObjectRef(HiveObjectType.TABLE, name, "t"),
        HiveObjectRef(HiveObjectType.PARTITION, "default", name, ["a", "1"]),
        HiveObjectRef(HiveObjectType.PARTITION, "default", "p", [name, "1"]),
        HiveObjectRef(HiveObjectType.COLUMN, "default", name, None, "a"),
    ):
        if on.objectType == HiveObjectType.DATABASE:
            assert refusal(lambda on=on: service.grant_privileges(CALL, bag(entry(on)))) == MetaException(
                f"There is no database named {name}"
            )
        else:
            service.grant_privileges(CALL, bag(entry(on)))
        assert service.list_privileges(CALL, "anna", USER, on) == service.list_privileges(CALL, None, None, on) == []
        assert service.get_privilege_set(CALL, on, "anna", None).userPrivileges == {"anna": []}
        assert isinstance(refusal(lambda on=on: service.revoke_privileges(CALL, bag(entry(on)))), MetaException)
        refresh(service, HiveObjectRef(HiveObjectType.TABLE, "default", name), "x", bag(entry(on, authorizer="x")))


def test_names_are_found_in_any_case(service: Privileges) -> None:
    service.grant_privileges(CALL, bag(entry(HiveObjectRef(HiveObjectType.COLUMN, "DEFAULT", " T", None, "A "))))
    assert held(service, COLUMN) == ["SELECT"]


@pytest.mark.parametrize("name", ["x\0y", "\udfff", "x" * 5000])
def test_texts_no_database_can_keep(service: Privileges, name: str) -> None:
    given = [entry(TABLE, to=name), entry(HiveObjectRef(HiveObjectType.COLUMN, "default", "t", None, name))]
    if len(name) < 100:
        given += [entry(TABLE, name), entry(TABLE, grantor=name), entry(TABLE, authorizer=name)]
    for one in given:
        assert isinstance(refusal(lambda one=one: service.grant_privileges(CALL, bag(one))), MetaException)
    assert service.list_privileges(CALL, name, USER, TABLE) == []
    assert service.get_privilege_set(CALL, TABLE, name, [name]).groupPrivileges == {name: []}


@pytest.mark.parametrize("values", [None, [], ["a"], ["a", "1", "2"], [None, "1"]])
def test_partitions_with_wrong_values(service: Privileges, values: Any) -> None:
    on = HiveObjectRef(HiveObjectType.PARTITION, "default", "p", values)
    for action in (
        lambda: service.grant_privileges(CALL, bag(entry(on))),
        lambda: service.list_privileges(CALL, "anna", USER, on),
        lambda: service.get_privilege_set(CALL, on, "anna", None),
    ):
        assert isinstance(refusal(action), MetaException)


def test_partitions_need_a_table_that_wants_privileges_for_them(catalog: Catalog, service: Privileges) -> None:
    catalog.tables.create(new_table("q", keys=columns("ds string", "hr int")))
    add_partitions(catalog, ["a", "1"], table=TableName("default", "q"))
    on = HiveObjectRef(HiveObjectType.PARTITION, "default", "q", ["a", "1"])
    assert refusal(lambda: service.grant_privileges(CALL, bag(entry(on)))) == MetaException(
        "PARTITION_LEVEL_PRIVILEGE is not set for table default.q"
    )


def test_what_is_left_out(service: Privileges) -> None:
    without_info = entry(TABLE)
    without_info.grantInfo = None
    for wrong in (
        entry(None),
        entry(HiveObjectRef()),
        entry(HiveObjectRef(6, "x")),
        entry(HiveObjectRef(HiveObjectType.TABLE, None, "t")),
        entry(HiveObjectRef(HiveObjectType.TABLE, "default", None)),
        entry(HiveObjectRef(HiveObjectType.DATABASE)),
        entry(HiveObjectRef(HiveObjectType.COLUMN, "default", "t")),
        entry(TABLE, None),
        entry(TABLE, " , "),
        entry(TABLE, to=None),
        entry(TABLE, kind=None),
        entry(TABLE, kind=77),
        without_info,
    ):
        for change in (service.grant_privileges, service.revoke_privileges):
            assert isinstance(refusal(lambda change=change, wrong=wrong: change(CALL, bag(wrong))), MetaException)
    for action in (
        lambda: service.grant_privileges(CALL, None),
        lambda: service.grant_privileges(CALL, PrivilegeBag([None])),
        lambda: service.revoke_privileges(CALL, None),
        lambda: service.list_privileges(CALL, "anna", USER, None),
        lambda: service.list_privileges(CALL, "anna", None, TABLE),
        lambda: service.get_privilege_set(CALL, None, "anna", None),
        lambda: service.get_privilege_set(CALL, HiveObjectRef(), "anna", None),
        lambda: refresh(service, None, "x", bag()),
        lambda: refresh(service, TABLE, "x", None),
    ):
        assert isinstance(refusal(action), MetaException)


def test_privileges_of_roles(service: Privileges, roles: Roles) -> None:
    assert refusal(lambda: service.grant_privileges(CALL, bag(entry(TABLE, to="r", kind=ROLE)))) == MetaException(
        "Role r does not exist"
    )
    roles.create_role(CALL, Role("r"))
    service.grant_privileges(CALL, bag(entry(TABLE, to="r", kind=ROLE)))
    assert held(service, TABLE, "r", ROLE) == ["SELECT"]
    roles.drop_role(CALL, "r")
    roles.create_role(CALL, Role("r"))
    assert held(service, TABLE, "r", ROLE) == []


@pytest.mark.slow
def test_listing_by_what_is_asked_for(service: Privileges) -> None:
    for number, on in enumerate(OBJECTS.values()):
        service.grant_privileges(CALL, bag(entry(on, f"P{number}"), entry(on, f"B{number}", "bob")))
    everything = HiveObjectRef()
    assert held(service, everything) == ["P0", "P1", "P2", "P3", "P4", "P5"]
    assert held(service, everything, None) == [f"{who}{number}" for number in range(6) for who in "PB"]
    assert held(service, HiveObjectRef(HiveObjectType.COLUMN)) == ["P4", "P5"]
    assert held(service, HiveObjectRef(HiveObjectType.TABLE), None) == ["P2", "B2"]
    assert held(service, ALL) == ["P0"]
    assert held(service, ALL, None) == ["P0", "B0"]
    assert held(service, TABLE, None) == ["P2", "B2"]
    assert held(service, HiveObjectRef(HiveObjectType.COLUMN, "default", "t")) == ["P4"]


def test_what_a_user_may_do(catalog: Catalog, service: Privileges, roles: Roles) -> None:
    create_default_roles(catalog.store, catalog.clock, catalog.settings)
    for name in ("outer", "inner", "other"):
        roles.create_role(CALL, Role(name))
    given = {"grantor": None, "grantorType": None, "grant_option": False}
    roles.grant_role(CALL, "outer", "inner", ROLE, **given)
    roles.grant_role(CALL, "inner", "staff", GROUP, **given)
    service.grant_privileges(
        CALL,
        bag(
            entry(TABLE),
            entry(TABLE, "ALTER", "staff", GROUP),
            entry(TABLE, "DROP", "outer", ROLE),
            entry(TABLE, "DROP", "other", ROLE),
        ),
    )

    def info(privilege: str) -> PrivilegeGrantInfo:
        return PrivilegeGrantInfo(privilege, NOW, "root", USER, False)

    assert service.get_privilege_set(CALL, TABLE, "anna", ["staff", "guests"]) == PrincipalPrivilegeSet(
        {"anna": [info("SELECT")]},
        {"staff": [info("ALTER")], "guests": []},
        {"public": [], "inner": [], "outer": [info("DROP")]},
    )
    assert service.get_privilege_set(CALL, TABLE, "bob", None) == PrincipalPrivilegeSet(
        {"bob": []}, None, {"public": []}
    )
    assert service.get_privilege_set(CALL, TABLE, None, []) == PrincipalPrivilegeSet()


def test_what_a_user_may_do_everywhere(service: Privileges) -> None:
    assert service.get_privilege_set(CALL, ALL, "anna", ["staff"]) == PrincipalPrivilegeSet(groupPrivileges={})
    assert service.get_privilege_set(CALL, ALL, "anna", None) == PrincipalPrivilegeSet()
    service.grant_privileges(CALL, bag(entry(ALL), entry(ALL, to="staff", kind=GROUP)))
    found = service.get_privilege_set(CALL, ALL, "anna", ["staff", "guests"])
    assert (list(found.userPrivileges), list(found.groupPrivileges)) == (["anna"], ["staff"])
    assert found.rolePrivileges is None


def test_refreshing_replaces_the_grants_of_one_authorizer(service: Privileges) -> None:
    service.grant_privileges(
        CALL, bag(entry(TABLE, "OLD", authorizer="x"), entry(TABLE, "KEPT", authorizer="x"), entry(TABLE, "FOREIGN"))
    )
    before = {one.grantInfo.privilege: one for one in service.list_privileges(CALL, "anna", USER, TABLE)}
    refresh(service, TABLE, "x", bag(entry(TABLE, "KEPT,NEW")))
    after = {one.grantInfo.privilege: one for one in service.list_privileges(CALL, "anna", USER, TABLE)}
    assert sorted(after) == ["FOREIGN", "KEPT", "NEW"]
    assert (after["KEPT"], after["FOREIGN"]) == (before["KEPT"], before["FOREIGN"])
    assert after["NEW"].authorizer == "x"


def test_refreshing_all_columns_of_a_table(service: Privileges) -> None:
    other = HiveObjectRef(HiveObjectType.COLUMN, "default", "t", None, "b")
    service.grant_privileges(CALL, bag(entry(COLUMN, authorizer="x"), entry(TABLE, authorizer="x")))
    refresh(service, HiveObjectRef(HiveObjectType.COLUMN, "default", "t"), "x", bag(entry(other)))
    assert (held(service, COLUMN), held(service, other), held(service, TABLE)) == ([], ["SELECT"], ["SELECT"])
    refresh(service, DATABASE, "x", bag(entry(DATABASE)))
    assert held(service, DATABASE) == ["SELECT"]


@pytest.mark.parametrize("on", [ALL, PARTITION])
def test_what_cannot_be_refreshed(service: Privileges, on: HiveObjectRef) -> None:
    kind = {HiveObjectType.GLOBAL: "user", HiveObjectType.PARTITION: "partition"}[on.objectType]
    assert refusal(lambda: refresh(service, on, "x", bag())) == MetaException(f"Unexpected object type {kind}")


# -- what happens to the objects


def test_privileges_that_come_with_a_new_table(catalog: Catalog, service: Privileges) -> None:
    privileges = PrincipalPrivilegeSet(
        {"anna": [PrivilegeGrantInfo("INSERT,SELECT", 5, "anna", USER, True), PrivilegeGrantInfo(None)]},
        {"staff": [PrivilegeGrantInfo("SELECT", 0, None, None, None)] * 2},
        {"anyrole": None},
    )
    catalog.tables.create(new_table("v", privileges=privileges))
    on = HiveObjectRef(HiveObjectType.TABLE, "default", "v")
    assert [(one.principalName, one.grantInfo) for one in service.list_privileges(CALL, None, None, on)] == [
        ("anna", PrivilegeGrantInfo("INSERT", 5, "anna", USER, True)),
        ("anna", PrivilegeGrantInfo("SELECT", 5, "anna", USER, True)),
        ("staff", PrivilegeGrantInfo("SELECT", NOW, None, None, False)),
    ]
    assert catalog.tables.get(TableName("default", "v")).privileges is None


def test_a_rename_takes_them_along(catalog: Catalog, service: Privileges) -> None:
    service.grant_privileges(CALL, bag(entry(TABLE), entry(COLUMN)))
    catalog.alterations.alter(T, new_table("renamed", location=""))
    assert [one.hiveObject.objectName for one in service.list_privileges(CALL, "anna", USER, HiveObjectRef())] == [
        "renamed"
    ] * 2
    assert held(service, TABLE) == []


def test_a_renamed_partition_keeps_them(catalog: Catalog, service: Privileges) -> None:
    service.grant_privileges(CALL, bag(entry(PARTITION), entry(PARTITION_COLUMN)))
    new = partitions(catalog).get(P, ["a", "1"])
    new.values = ["c", "3"]
    partitions(catalog).rename(P, ["a", "1"], new)
    found = service.list_privileges(CALL, "anna", USER, HiveObjectRef())
    assert [one.hiveObject.partValues for one in found] == [["c", "3"]] * 2


def test_what_is_dropped_takes_them_along(catalog: Catalog, service: Privileges) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("t", "d"))
    in_database = HiveObjectRef(HiveObjectType.TABLE, "d", "t")
    service.grant_privileges(CALL, bag(*(entry(on) for on in OBJECTS.values()), entry(in_database)))
    service.grant_privileges(CALL, bag(entry(HiveObjectRef(HiveObjectType.DATABASE, "d"))))
    partitions(catalog).drop(P, ["a", "1"], deletes_data=False)
    add_partitions(catalog, ["a", "1"])
    assert held(service, PARTITION) == held(service, PARTITION_COLUMN) == []
    catalog.tables.drop(T, False)
    catalog.databases.drop("d", False, True)
    assert [one.hiveObject.objectType for one in service.list_privileges(CALL, None, None, HiveObjectRef())] == [
        HiveObjectType.GLOBAL,
        HiveObjectType.DATABASE,
    ]


def test_new_partitions_inherit_from_tables_that_want_it(catalog: Catalog, service: Privileges) -> None:
    table = HiveObjectRef(HiveObjectType.TABLE, "default", "p")
    column = HiveObjectRef(HiveObjectType.COLUMN, "default", "p", None, "a")
    service.grant_privileges(CALL, bag(entry(table), entry(column, "UPDATE"), entry(PARTITION, "OWN")))
    add_partitions(catalog, ["c", "1"])
    new = HiveObjectRef(HiveObjectType.PARTITION, "default", "p", ["c", "1"])
    new_column = HiveObjectRef(HiveObjectType.COLUMN, "default", "p", ["c", "1"], "a")
    assert (held(service, new), held(service, new_column)) == (["SELECT"], ["UPDATE"])
    assert held(service, PARTITION) == ["OWN"]


def test_partitions_say_what_their_reader_may_do(catalog: Catalog, service: Privileges) -> None:
    service.grant_privileges(CALL, bag(entry(PARTITION), entry(PARTITION, "ALTER", "staff", GROUP)))
    found = partitions(catalog).list_all(P, -1)
    with_them = items_of(with_privileges(catalog.store, P, found, "anna", ["staff"]))
    info = PrivilegeGrantInfo("SELECT", NOW, "root", USER, False)
    first, second = [one.privileges for one in with_them]
    assert (first.userPrivileges, list(first.groupPrivileges)) == ({"anna": [info]}, ["staff"])
    assert second == PrincipalPrivilegeSet({"anna": []}, {"staff": []}, {"public": []})


def test_without_a_user_partitions_have_what_the_groups_may_do(catalog: Catalog, service: Privileges) -> None:
    found = partitions(catalog).list_all(P, -1)
    for groups, expected in ((None, PrincipalPrivilegeSet()), (["g"], PrincipalPrivilegeSet(None, {"g": []}))):
        shown = items_of(with_privileges(catalog.store, P, found, None, groups))
        assert [one.privileges for one in shown] == [expected] * len(shown)


def test_partitions_of_other_tables_stay_as_they_are(catalog: Catalog, service: Privileges) -> None:
    found = partitions(catalog).list_all(P, -1)
    catalog.tables.create(new_table("q", keys=columns("ds string", "hr int")))
    assert with_privileges(catalog.store, TableName("default", "q"), found, "anna", None) is found
