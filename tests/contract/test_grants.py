"""Roles, who has them, and privileges on every kind of object."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hms_gateway.catalog.access.grant_rows import Grant, Grantee, GrantObject, GrantRows
from hms_gateway.catalog.access.roles import RoleRows
from hms_gateway.metastore.ports.store import DuplicateKey, UnstorableText
from hms_gateway.rpc.structs import HiveObjectType, PrincipalType, Role, RolePrincipalGrant
from hms_gateway.storage.catalog.statistics import StatisticsRows
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create

ANNA, STAFF = Grantee("anna", PrincipalType.USER), Grantee("staff", PrincipalType.GROUP)


def grant(on: GrantObject, to: Grantee = ANNA, **fields: Any) -> Grant:
    return Grant(on, to, **{"privilege": "SELECT", "create_time": 5, "grant_option": False, **fields})


def test_roles_and_their_members(store: SqlStore) -> None:
    role_id = store.write(lambda tx: RoleRows(tx).insert(Role("R", 5, "owner")))
    other_id = store.write(lambda tx: RoleRows(tx).insert(Role("r", None, None)))
    with pytest.raises(DuplicateKey):
        store.write(lambda tx: RoleRows(tx).insert(Role("r", 6)))
    given = RolePrincipalGrant("R", "anna", PrincipalType.USER, True, 7, "root", PrincipalType.ROLE)
    inner = RolePrincipalGrant("R", "r", PrincipalType.ROLE, False, 0, None, None)
    for each in (given, inner):
        store.write(lambda tx, each=each: RoleRows(tx).insert_grant(role_id, each))

    def read(ask: Callable[[Any], Any]) -> Any:
        return store.read(lambda snapshot: ask(RoleRows(snapshot)))

    assert read(lambda roles: (roles.find("R"), roles.find("x"), roles.find("x\0y"))) == (role_id, None, None)
    assert read(lambda roles: roles.names()) == ["R", "r"]
    assert read(lambda roles: roles.of_principal("anna", PrincipalType.USER)) == [Role("R", 5, "owner")]
    assert read(lambda roles: roles.of_principal("anna", PrincipalType.GROUP)) == []
    assert read(lambda roles: roles.grants_of_principal("anna", PrincipalType.USER)) == [given]
    assert read(lambda roles: roles.grants_of_role(role_id)) == [given, inner]
    assert read(lambda roles: roles.all_grants_between_roles()) == [("R", "r")]
    cleared = store.write(lambda tx: RoleRows(tx).clear_grant_option(role_id, "anna", PrincipalType.USER))
    again = store.write(lambda tx: RoleRows(tx).clear_grant_option(role_id, "anna", PrincipalType.USER))
    assert (cleared, again) == (True, False)
    assert store.write(lambda tx: RoleRows(tx).delete_grant(role_id, "x\0y", PrincipalType.USER)) is False
    store.write(lambda tx: RoleRows(tx).delete(other_id))
    assert store.read(lambda snapshot: len(RoleRows(snapshot).grants_of_role(role_id))) == 1
    assert store.write(lambda tx: RoleRows(tx).delete_grant(role_id, "anna", PrincipalType.USER)) is True
    store.write(lambda tx: RoleRows(tx).delete(role_id))
    assert store.read(lambda snapshot: RoleRows(snapshot).names()) == []


def test_grants_on_every_kind_of_object(store: SqlStore) -> None:
    stored = create(store, values=[["a", "1"], ["b", "2"]])
    ids = store.read(lambda snapshot: StatisticsRows(snapshot).partition_ids(stored, ["k0=a/k1=1", "k0=b/k1=2"]))
    table_id, partition_id = stored.table_id, ids["k0=a/k1=1"]
    objects = {
        GrantObject(HiveObjectType.GLOBAL): (None, None, None),
        GrantObject(HiveObjectType.DATABASE, database_id=stored.database_id): ("sales", None, None),
        GrantObject(HiveObjectType.TABLE, table_id=table_id): ("sales", "orders", None),
        GrantObject(HiveObjectType.PARTITION, table_id=table_id, partition_id=partition_id): (
            *("sales", "orders"),
            ("a", "1"),
        ),
        GrantObject(HiveObjectType.COLUMN, table_id=table_id, column="id"): ("sales", "orders", None),
        GrantObject(HiveObjectType.COLUMN, None, table_id, partition_id, "id"): ("sales", "orders", ("a", "1")),
    }
    given = [
        grant(on, grantor="root", grantor_type=1, authorizer="x", grant_option=True, create_time=2**31 - 1)
        for on in objects
    ]
    store.write(lambda tx: GrantRows(tx).insert(given))
    for one, (on, names) in zip(given, objects.items(), strict=True):
        [found] = store.read(lambda snapshot, on=on: GrantRows(snapshot).on(on))
        assert found.grant == one
        assert (found.db_name, found.table_name, found.partition_values) == names
    everything = store.read(lambda snapshot: GrantRows(snapshot).of_principal(ANNA))
    assert [found.grant for found in everything] == given
    assert store.read(lambda snapshot: GrantRows(snapshot).of_principal(STAFF)) == []
    assert len(store.read(lambda snapshot: GrantRows(snapshot).of_kind(HiveObjectType.COLUMN))) == 2
    assert len(store.read(lambda snapshot: GrantRows(snapshot).of_kind())) == 6
    any_column = GrantObject(HiveObjectType.COLUMN, table_id=table_id)
    assert len(store.read(lambda snapshot: GrantRows(snapshot).on(any_column, of_any_column=True))) == 1
    assert store.read(lambda snapshot: GrantRows(snapshot).on_partitions(table_id)) == {partition_id: [given[3]]}
    store.write(lambda tx: GrantRows(tx).clear_grant_options([found.grant_id for found in everything[:1]]))
    [first] = store.read(lambda snapshot: GrantRows(snapshot).of_kind(HiveObjectType.GLOBAL))
    assert first.grant == replace(given[0], grant_option=False)
    store.write(lambda tx: GrantRows(tx).delete([first.grant_id]))
    store.write(lambda tx: tx.delete_partitions(stored, ["k0=a/k1=1"]))
    assert len(store.read(lambda snapshot: GrantRows(snapshot).of_kind())) == 3
    store.write(lambda tx: tx.delete_table(table_id))
    assert len(store.read(lambda snapshot: GrantRows(snapshot).of_kind())) == 1
    store.write(lambda tx: tx.delete_database(stored.database_id))
    assert store.read(lambda snapshot: GrantRows(snapshot).of_kind()) == []


def test_partitions_inherit(store: SqlStore) -> None:
    stored = create(store, values=[["a", "1"], ["b", "2"]])
    on_table = GrantObject(HiveObjectType.TABLE, table_id=stored.table_id)
    on_column = GrantObject(HiveObjectType.COLUMN, table_id=stored.table_id, column="id")
    store.write(lambda tx: GrantRows(tx).insert([grant(on_table, STAFF), grant(on_column)]))
    for _ in range(2):
        # What partitions have is not inherited by others.
        store.write(lambda tx: GrantRows(tx).copy_to_partitions(stored, ["k0=a/k1=1"], 9))
    ids = store.read(lambda snapshot: StatisticsRows(snapshot).partition_ids(stored, ["k0=a/k1=1"]))
    [partition_id] = ids.values()
    on_partition = GrantObject(HiveObjectType.PARTITION, table_id=stored.table_id, partition_id=partition_id)
    inherited = grant(on_partition, STAFF, create_time=9)
    assert store.read(lambda snapshot: GrantRows(snapshot).on_partitions(stored.table_id)) == {
        partition_id: [inherited] * 2
    }
    assert len(store.read(lambda snapshot: GrantRows(snapshot).of_kind(HiveObjectType.COLUMN))) == 3


@pytest.mark.parametrize("text", ["x\0y", "\udfff"])
def test_texts_nobody_can_keep(store: SqlStore, text: str) -> None:
    on = GrantObject(HiveObjectType.GLOBAL)
    for wrong in (
        grant(on, Grantee(text, 1)),
        grant(on, privilege=text),
        grant(on, grantor=text),
        grant(on, authorizer=text),
        grant(replace(on, column=text)),
    ):
        with pytest.raises(UnstorableText):
            store.write(lambda tx, wrong=wrong: GrantRows(tx).insert([wrong]))
    for role in (Role(text), Role("r", 1, text)):
        with pytest.raises(UnstorableText):
            store.write(lambda tx, role=role: RoleRows(tx).insert(role))
    assert store.read(lambda snapshot: GrantRows(snapshot).of_principal(Grantee(text, 1))) == []
    assert store.read(lambda snapshot: RoleRows(snapshot).grants_of_principal(text, 1)) == []
    assert store.read(lambda snapshot: GrantRows(snapshot).on(replace(on, column=text))) == []
    store.write(lambda tx: GrantRows(tx).insert([]))
