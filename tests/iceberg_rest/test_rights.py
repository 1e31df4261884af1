"""Rights are those of the metastore: what a user may not see is missing, what it may not change is 403."""

from pathlib import Path

import pytest

from hms_gateway.composition.main import DATABASE_FILE, build_metastore
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
