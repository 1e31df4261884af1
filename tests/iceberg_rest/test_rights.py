"""Rights are those of the metastore: what a user may not see is missing, what it may not change is 403."""

from pathlib import Path

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import SCHEMA, Rest, kind_of
from tests.support.kept_store import empty_database

SET = {"action": "set-properties", "updates": {"a": "b"}}


@pytest.fixture
def admin(tmp_path):
    (tmp_path / DATABASE_FILE).write_bytes(empty_database())
    metastore = build_metastore(
        Settings(data_dir=tmp_path, authorization="grants", administrators=["admin"], locks_implicit="deny")
    )
    rest = Rest(metastore.iceberg(), "admin")
    rest.metastore = metastore
    rest.post("namespaces", {"namespace": ["sales"]})
    rest.table()
    yield rest
    metastore.store.close()


def grant(admin, privilege):
    """Give `rosa` the privilege on `sales.orders`."""
    table = HiveObjectRef(HiveObjectType.TABLE, "sales", "orders", None, None)
    info = PrivilegeGrantInfo(privilege, 0, "admin", PrincipalType.USER, False)
    bag = PrivilegeBag([HiveObjectPrivilege(table, "rosa", PrincipalType.USER, info)])
    Peer(admin.metastore, admin.metastore.codecs.binary, Dialect.HIVE_4, "admin").ask("grant_privileges", bag)


READS = [
    ("GET", "namespaces/sales", "NoSuchNamespaceException"),
    ("GET", "namespaces/sales/tables", "NoSuchNamespaceException"),
    ("GET", "namespaces/sales/tables/orders", "NoSuchTableException"),
    ("HEAD", "namespaces/sales/tables/orders", "NoSuchTableException"),
    ("DELETE", "namespaces/sales/tables/orders", "NoSuchTableException"),
    ("POST", "namespaces/sales/tables/orders", "NoSuchTableException"),
    ("DELETE", "namespaces/sales", "NoSuchNamespaceException"),
]


@pytest.mark.parametrize(("method", "path", "error"), READS)
def test_what_a_user_may_not_see_is_missing(admin, method, path, error):
    body = {"requirements": [], "updates": [SET]} if method == "POST" else None
    assert kind_of(admin.as_user("rosa").send(method, path, body)) == (404, error)
    assert admin.send("HEAD", "namespaces/sales/tables/orders") == (204, None)


def test_lists_show_what_a_user_may_see(admin):
    admin.table("bills")
    rosa = admin.as_user("rosa")
    assert ["sales"] not in rosa.get("namespaces")[1]["namespaces"]
    grant(admin, "SELECT")
    assert rosa.get("namespaces/sales/tables")[1]["identifiers"] == [{"namespace": ["sales"], "name": "orders"}]
    assert kind_of(rosa.get("namespaces/sales/tables/bills")) == (404, "NoSuchTableException")


def test_a_reader_changes_nothing(admin):
    grant(admin, "SELECT")
    rosa = admin.as_user("rosa")
    before = rosa.get("namespaces/sales/tables/orders")
    assert before[0] == 200
    tag = rosa.headers["etag"]
    assert rosa.get("namespaces/sales/tables/orders", held=tag)[0] == 304
    names = {"source": {"namespace": ["sales"], "name": "orders"}, "destination": {"namespace": ["sales"], "name": "x"}}
    change = {"identifier": names["source"], "requirements": [], "updates": [SET]}
    answers = [
        rosa.commit("orders", SET),
        rosa.post("transactions/commit", {"table-changes": [change]}),
        rosa.post("tables/rename", names),
        rosa.send("DELETE", "namespaces/sales/tables/orders"),
        rosa.post("namespaces/sales/tables/orders/unregister"),
        rosa.post("namespaces/sales/tables", {"name": "mine", "schema": SCHEMA}),
        rosa.post("namespaces/sales/tables", {"name": "mine", "schema": SCHEMA, "stage-create": True}),
        rosa.post("namespaces/sales/properties", {"updates": {"a": "b"}}),
        rosa.post("namespaces", {"namespace": ["mine"]}),
    ]
    assert [kind_of(each) for each in answers] == [(403, "ForbiddenException")] * len(answers)
    assert rosa.get("namespaces/sales/tables/orders") == before
    folder = before[1]["metadata"]["location"].removeprefix("file:")
    assert len(list(Path(folder, "metadata").iterdir())) == 1


def test_a_right_is_gone_for_held_answers_too(admin):
    grant(admin, "SELECT")
    rosa = admin.as_user("rosa")
    rosa.get("namespaces/sales/tables/orders")
    tag = rosa.headers["etag"]
    admin.send("DELETE", "namespaces/sales/tables/orders")
    admin.table()
    assert kind_of(rosa.get("namespaces/sales/tables/orders", held=tag)) == (404, "NoSuchTableException")


def test_who_may_alter_commits(admin):
    for privilege in ("SELECT", "ALTER"):
        grant(admin, privilege)
    status, found = admin.as_user("rosa").commit("orders", SET)
    assert (status, found["metadata"]["properties"]) == (200, {"a": "b"})


def test_a_place_that_a_user_may_not_use_is_refused(admin, tmp_path):
    for privilege in ("SELECT", "ALTER"):
        grant(admin, privilege)
    move = {"action": "set-location", "location": f"file:{tmp_path}/warehouse/other"}
    assert kind_of(admin.as_user("rosa").commit("orders", move)) == (403, "ForbiddenException")


def test_a_rename_needs_rights_at_both_ends(admin):
    for privilege in ("SELECT", "ALTER"):
        grant(admin, privilege)
    admin.post("namespaces", {"namespace": ["other"]})
    rosa = admin.as_user("rosa")
    for namespace, name in (("other", "orders"), ("sales", "bills"), ("hidden", "orders")):
        names = {
            "source": {"namespace": ["sales"], "name": "orders"},
            "destination": {"namespace": [namespace], "name": name},
        }
        assert kind_of(rosa.post("tables/rename", names))[0] in (403, 404), namespace
    assert admin.send("HEAD", "namespaces/sales/tables/orders") == (204, None)
    assert admin.get("namespaces/other/tables")[1] == {"identifiers": []}


VIEW = {
    "name": "seen", "schema": SCHEMA, "properties": {}, "view-version": {
        "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["sales"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]},
}  # fmt: skip


def test_views_have_the_rights_of_tables(admin):
    grant(admin, "SELECT")
    assert admin.post("namespaces/sales/views", VIEW)[0] == 200
    made = admin.get("namespaces/sales/views/seen")[1]
    rosa, path = admin.as_user("rosa"), "namespaces/sales/views/seen"
    assert rosa.get("namespaces/sales/views") == (200, {"identifiers": []})
    names = {name: {"namespace": ["sales"], "name": name} for name in ("seen", "moved")}
    body = {"name": "again", "metadata-location": made["metadata-location"]}
    hidden = [
        rosa.get(path),
        rosa.send("HEAD", path),
        rosa.send("DELETE", path),
        rosa.post(path, {"updates": [SET]}),
        rosa.post("views/rename", {"source": names["seen"], "destination": names["moved"]}),
    ]
    assert [kind_of(each) for each in hidden] == [(404, "NoSuchViewException")] * len(hidden)
    refused = [
        rosa.post("namespaces/sales/views", {**VIEW, "name": "mine"}),
        rosa.post("namespaces/sales/views", VIEW),
        rosa.post("namespaces/sales/tables", {"name": "seen", "schema": SCHEMA}),
        rosa.post("namespaces/sales/register-view", body),
        rosa.post("namespaces/sales/register-view", {**body, "name": "seen", "overwrite": True}),
    ]
    assert [kind_of(each) for each in refused] == [(403, "ForbiddenException")] * len(refused)
    assert admin.get(path) == (200, made)


def test_a_transaction_with_one_table_without_rights_changes_none(admin):
    for privilege in ("SELECT", "ALTER"):
        grant(admin, privilege)
    admin.table("bills")
    rosa = admin.as_user("rosa")
    changes = [
        {"identifier": {"namespace": ["sales"], "name": name}, "requirements": [], "updates": [SET]}
        for name in ("orders", "bills")
    ]
    for each in (changes, changes[::-1]):
        assert kind_of(rosa.post("transactions/commit", {"table-changes": each})) == (404, "NoSuchTableException")
    for name in ("orders", "bills"):
        assert admin.get(f"namespaces/sales/tables/{name}")[1]["metadata"]["properties"] == {}


def test_what_a_call_with_a_key_answered_is_told_to_its_user_only(admin):
    for privilege in ("SELECT", "ALTER"):
        grant(admin, privilege)
    path, body = "namespaces/sales/tables/orders", {"requirements": [], "updates": [SET]}
    first = admin.as_user("rosa").post(path, body, key="k1")
    assert first[0] == 200
    assert kind_of(admin.as_user("rolf").post(path, body, key="k1")) == (404, "NoSuchTableException")
