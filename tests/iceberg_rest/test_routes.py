"""Operations of the REST catalog by their answers (Iceberg REST OpenAPI document)."""

import gc
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.gateway.auth.issuers import REFETCH_EVERY_SECONDS, TokenEndpoint
from hms_gateway.iceberg import METHODS
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.files import MetadataFile, MetadataFiles
from hms_gateway.iceberg.metastore import Metastore
from hms_gateway.iceberg.processor import KEPT_BYTES_MAX
from hms_gateway.iceberg.routes import OPERATIONS
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import Catalog, CreateCatalogRequest, NoSuchObjectException
from hms_gateway.runtime.settings import Settings, TokenIssuer
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import SCHEMA, Rest, kind_of
from tests.support.kept_store import empty_database
from tests.support.manual_clock import ManualClock
from tests.support.token_issuer import token_issuer

SET = {"action": "set-properties", "updates": {"a": "b"}}
BESIDE = Path(__file__).parents[3] / "shared" / "iceberg" / "rest-catalog-open-api.yaml"
DOCUMENT = Path(os.environ.get("HMS_TESTS_ICEBERG_DOCUMENT", BESIDE))
# What is not served, and why.
LEFT_OUT = {
    "planTableScan": "clients plan",
    "fetchPlanningResult": "clients plan",
    "cancelPlanning": "clients plan",
    "fetchScanTasks": "clients plan",
    "loadCredentials": "no access to storage is handed out",
    "signRequest": "no access to storage is handed out",
    "listFunctions": "functions of Iceberg are not stored",
    "loadFunction": "functions of Iceberg are not stored",
}


def test_the_document_has_no_operation_that_is_neither_served_nor_left_out():
    if not DOCUMENT.exists():
        pytest.skip("no OpenAPI document of Iceberg's REST catalog (HMS_TESTS_ICEBERG_DOCUMENT)")
    named = set(re.findall(r"operationId: (\w+)", DOCUMENT.read_text("utf-8")))
    served = {one.id for one in OPERATIONS} | {"getConfig", "getToken"}
    assert named - served == set(LEFT_OUT)
    assert served <= named


def test_operations_have_names_in_metrics():
    assert {f"iceberg.{one.id}" for one in OPERATIONS} | {"iceberg.getConfig", "iceberg.getToken"} == METHODS


def test_config_lists_the_operations_and_the_prefix_of_a_catalog(rest, metastore):
    status, found = rest.get("config")
    assert status == 200
    assert found["overrides"] == {}
    assert "POST /v1/{prefix}/transactions/commit" in found["endpoints"]
    assert len(found["endpoints"]) == len(OPERATIONS)
    assert found["idempotency-key-lifetime"] == "PT1440M"
    assert rest.get("config", query={"warehouse": "file:/srv/warehouse"})[1]["overrides"] == {}
    assert kind_of(rest.get("config", query={"warehouse": "nowhere"})) == (404, "NoSuchWarehouseException")
    assert kind_of(rest.get("nowhere/namespaces")) == (404, "NoSuchWarehouseException")


def asked(folder, *issuers):
    """What `config` says of tokens, and what is answered to who asks for one."""
    (folder / DATABASE_FILE).write_bytes(empty_database())
    named = {f"issuer{number}": TokenIssuer(issuer, ["lake"]) for number, issuer in enumerate(issuers)}
    metastore = build_metastore(Settings(data_dir=folder, token_issuers=named))
    rest = Rest(metastore.iceberg())
    found = rest.get("config")[1]["defaults"]
    status, refused = rest.post("oauth/tokens")
    metastore.store.close()
    assert (status, refused["error"]) == (400, "unsupported_grant_type")
    return found, refused["error_description"]


def test_a_token_is_asked_of_the_issuer(tmp_path):
    found, text = asked(tmp_path)
    assert found == {}
    assert text.startswith("this server issues no tokens; send a password")
    with token_issuer() as issuer, token_issuer() as other:
        found, text = asked(tmp_path, issuer.url)
        assert found == {"oauth2-server-uri": f"{issuer.url}/token"}
        assert f"set oauth2-server-uri to {issuer.url}/token, or send a password" in text
        assert issuer.asked == ["/.well-known/openid-configuration"]
        other.answers["/.well-known/openid-configuration"] = 500, b""
        assert asked(tmp_path, other.url)[0] == {}
        found, text = asked(tmp_path, issuer.url, other.url)
        assert found == {}
        assert f"set oauth2-server-uri to {issuer.url}/token or {other.url}, or send" in text


def test_a_token_endpoint_is_asked_for_again_later_and_is_never_an_unsafe_one():
    clock = ManualClock()
    with token_issuer() as issuer:
        document = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys", "token_endpoint": "http://198.51.100.1/t"}
        place = "/.well-known/openid-configuration"
        issuer.answers[place] = 500, b""
        find = TokenEndpoint(TokenIssuer(issuer.url, ["lake"]), clock.seconds)
        assert (find(), find(), len(issuer.asked)) == (None, None, 1)
        del issuer.answers[place]
        clock.advance(round(REFETCH_EVERY_SECONDS))
        assert (find(), find(), len(issuer.asked)) == (f"{issuer.url}/token", f"{issuer.url}/token", 2)
        clock.advance(300)
        issuer.answers[place] = 500, b""
        assert find() == f"{issuer.url}/token"
        clock.advance(round(REFETCH_EVERY_SECONDS))
        issuer.answers[place] = 200, json.dumps(document).encode()
        assert find() is None


def test_namespaces_are_databases(rest):
    properties = {"comment": "of the shop", "team": "till"}
    assert rest.post("namespaces", {"namespace": ["shop"], "properties": properties})[0] == 200
    assert kind_of(rest.post("namespaces", {"namespace": ["shop"]})) == (409, "AlreadyExistsException")
    assert rest.get("namespaces")[1] == {"namespaces": [["default"], ["sales"], ["shop"]]}
    found = rest.get("namespaces/shop")[1]
    assert found["properties"].items() >= {**properties, "hive.metastore.database.owner": "rosa"}.items()
    assert found["properties"]["location"].endswith("/shop.db")
    change = {"removals": ["team", "gone"], "updates": {"comment": "new"}}
    assert rest.post("namespaces/shop/properties", change)[1] == {
        "updated": ["comment"],
        "removed": ["team"],
        "missing": ["gone"],
    }
    found = rest.get("namespaces/shop")[1]["properties"]
    assert found["comment"] == "new"
    assert "team" not in found
    both = {"removals": ["comment"], "updates": {"comment": "x"}}
    assert kind_of(rest.post("namespaces/shop/properties", both)) == (422, "UnprocessableEntityException")
    located = rest.post("namespaces/shop/properties", {"removals": ["location"]})
    assert kind_of(located) == (400, "BadRequestException")
    assert rest.send("HEAD", "namespaces/shop") == (204, None)
    assert rest.send("DELETE", "namespaces/shop") == (204, None)
    assert kind_of(rest.get("namespaces/shop")) == (404, "NoSuchNamespaceException")
    assert kind_of(rest.send("DELETE", "namespaces/shop")) == (404, "NoSuchNamespaceException")


def test_clients_that_change_properties_at_once_lose_none(rest, anew):
    def change(client, key):
        answers = [
            client.post(
                "namespaces/sales/properties", {"removals": [f"{key}{number - 1}"], "updates": {f"{key}{number}": "x"}}
            )
            for number in range(10)
        ]
        return [answer["removed"] for _, answer in answers]

    with ThreadPoolExecutor(4) as threads:
        removed = threads.map(change, (rest, anew(), rest, anew()), "abcd")
        assert [*removed] == [[[], *([f"{key}{number}"] for number in range(9))] for key in "abcd"]
    found = rest.get("namespaces/sales")[1]["properties"]
    assert {key for key, value in found.items() if value == "x"} == {"a9", "b9", "c9", "d9"}


def test_a_comment_is_removed_and_a_location_is_not(rest):
    rest.post("namespaces", {"namespace": ["shop"], "properties": {"comment": "of the shop"}})
    change = {"removals": ["comment", "gone"]}
    assert rest.post("namespaces/shop/properties", change)[1]["removed"] == ["comment"]
    assert "comment" not in rest.get("namespaces/shop")[1]["properties"]
    empty = rest.post("namespaces/shop/properties", {"updates": {"location": ""}})
    assert kind_of(empty) == (400, "BadRequestException")


def test_a_namespace_with_a_table_is_not_dropped(rest):
    rest.table()
    assert kind_of(rest.send("DELETE", "namespaces/sales")) == (409, "NamespaceNotEmptyException")


def test_a_dropped_namespace_leaves_the_files_of_dropped_tables(rest, tmp_path):
    made = rest.table()
    rest.send("DELETE", "namespaces/sales/tables/orders")
    assert rest.send("DELETE", "namespaces/sales") == (204, None)
    assert Path(made["metadata-location"].removeprefix("file:")).exists()
    place = rest.post("namespaces", {"namespace": ["empty"]})[1]["properties"]["location"].removeprefix("file:")
    assert Path(place).is_dir()
    assert rest.send("DELETE", "namespaces/empty") == (204, None)
    assert not Path(place).exists()


@pytest.mark.parametrize("namespace", [["a", "b"], [], [""], ["@spark#x"], ["a\0"], "sales", [1]])
def test_a_namespace_that_is_no_database_is_refused(rest, namespace):
    assert kind_of(rest.post("namespaces", {"namespace": namespace})) == (400, "BadRequestException")


def test_a_nested_namespace_does_not_exist(rest):
    """Java's clients seek the metadata table `sales.orders.files` in `sales.orders` first; it has to be missing."""
    rest.table()
    inner = "namespaces/sales%1Forders"
    assert kind_of(rest.get(f"{inner}/tables/files")) == (404, "NoSuchTableException")
    assert rest.send("HEAD", f"{inner}/tables/files")[0] == 404
    assert kind_of(rest.get(f"{inner}/views/files")) == (404, "NoSuchViewException")
    for path in (inner, f"{inner}/tables", f"{inner}/views"):
        assert kind_of(rest.get(path)) == (404, "NoSuchNamespaceException")
    assert kind_of(rest.get("namespaces", query={"parent": "a\x1fb"})) == (404, "NoSuchNamespaceException")
    into = {"source": {"namespace": ["sales"], "name": "orders"}, "destination": {"namespace": ["a", "b"], "name": "t"}}
    assert kind_of(rest.post("tables/rename", into)) == (404, "NoSuchNamespaceException")
    assert rest.get("namespaces", query={"parent": "sales"}) == (200, {"namespaces": []})
    assert kind_of(rest.get("namespaces", query={"parent": "gone"})) == (404, "NoSuchNamespaceException")


def test_lists_come_in_pages(rest):
    for name in ("a", "b", "c"):
        rest.table(name)
    first = rest.get("namespaces/sales/tables", query={"pageSize": "2", "pageToken": ""})[1]
    assert [one["name"] for one in first["identifiers"]] == ["a", "b"]
    token = first["next-page-token"]
    rest.send("DELETE", "namespaces/sales/tables/b")
    second = rest.get("namespaces/sales/tables", query={"pageSize": "2", "pageToken": token})[1]
    assert [one["name"] for one in second["identifiers"]] == ["c"]
    assert "next-page-token" not in second
    assert kind_of(rest.get("namespaces", query={"pageSize": "0"})) == (400, "BadRequestException")


def test_a_table_is_made_loaded_renamed_and_dropped(rest):
    made = rest.table()
    assert made["metadata-location"].startswith(made["metadata"]["location"])
    assert rest.get("namespaces/sales/tables/orders") == (200, made)
    assert rest.send("HEAD", "namespaces/sales/tables/orders") == (204, None)
    again = rest.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})
    assert kind_of(again) == (409, "AlreadyExistsException")
    new = {"namespace": ["sales"], "name": "bills"}
    old = {"namespace": ["sales"], "name": "orders"}
    assert rest.post("tables/rename", {"source": old, "destination": new}) == (204, None)
    assert rest.get("namespaces/sales/tables/bills") == (200, made)
    assert kind_of(rest.post("tables/rename", {"source": old, "destination": new})) == (404, "NoSuchTableException")
    rest.table()
    assert kind_of(rest.post("tables/rename", {"source": old, "destination": new})) == (409, "AlreadyExistsException")
    gone = {"namespace": ["gone"], "name": "x"}
    assert kind_of(rest.post("tables/rename", {"source": old, "destination": gone})) == (
        404,
        "NoSuchNamespaceException",
    )
    assert rest.send("DELETE", "namespaces/sales/tables/bills") == (204, None)
    assert kind_of(rest.send("DELETE", "namespaces/sales/tables/bills")) == (404, "NoSuchTableException")


def test_a_purge_takes_the_directory_and_a_drop_does_not(rest, tmp_path):
    for name in ("kept", "gone"):
        rest.table(name)
    folder = tmp_path / "warehouse" / "sales.db"
    rest.send("DELETE", "namespaces/sales/tables/kept")
    rest.send("DELETE", "namespaces/sales/tables/gone", query={"purgeRequested": "true"})
    assert [one.name for one in folder.iterdir()] == ["kept"]


def test_a_new_table_does_not_lie_where_the_old_one_did(rest):
    first = rest.table()["metadata"]["location"]
    rest.send("DELETE", "namespaces/sales/tables/orders")
    second = rest.table()["metadata"]["location"]
    assert second.startswith(f"{first}-")


@pytest.mark.parametrize("ending", ["", "/", "/inside", "/../orders"])
def test_a_place_of_another_table_is_refused(rest, ending):
    place = rest.table()["metadata"]["location"]
    body = {"name": "other", "schema": SCHEMA, "location": place + ending}
    assert kind_of(rest.post("namespaces/sales/tables", body))[0] == 400
    around = {"name": "other", "schema": SCHEMA, "location": place.rpartition("/")[0]}
    assert kind_of(rest.post("namespaces/sales/tables", around)) == (400, "BadRequestException")
    move = {"action": "set-location", "location": place}
    rest.table("third")
    assert kind_of(rest.commit("third", move)) == (400, "BadRequestException")


def test_two_tables_are_not_made_at_one_place_at_once(rest, tmp_path, monkeypatch):
    place = f"file:{tmp_path}/warehouse/sales.db/shared"
    write, first = MetadataFiles.write, []

    def other_before(files, location, value):
        written = write(files, location, value)
        if not first:
            first.append(location)
            assert rest.table_answer("faster", location=place)[0] == 200
        return written

    monkeypatch.setattr(MetadataFiles, "write", other_before)
    assert kind_of(rest.table_answer("slower", location=place)) == (400, "BadRequestException")
    kept = rest.get("namespaces/sales/tables/faster")[1]["metadata-location"]
    folder = tmp_path / "warehouse" / "sales.db" / "shared" / "metadata"
    assert [f"file:{one}" for one in folder.iterdir()] == [kept]
    made = [
        {
            "identifier": {"namespace": ["sales"], "name": name},
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "set-location", "location": f"{place}2"},
            ],
        }
        for name in ("one", "other")
    ]
    assert kind_of(rest.post("transactions/commit", {"table-changes": made})) == (400, "BadRequestException")
    assert rest.get("namespaces/sales/tables")[1]["identifiers"] == [{"namespace": ["sales"], "name": "faster"}]


@pytest.mark.parametrize("location", ["file:/etc/tables", "nowhere://x/y", "relative", "s3://bucket/x", ""])
def test_a_place_outside_of_the_roots_is_refused(rest, location):
    body = {"name": "other", "schema": SCHEMA, "location": location}
    assert rest.post("namespaces/sales/tables", body)[0] == 400
    assert kind_of(rest.get("namespaces/sales/tables/other")) == (404, "NoSuchTableException")


def test_a_staged_table_is_made_by_its_commit(rest):
    staged = rest.table("staged", **{"stage-create": True})
    assert "metadata-location" not in staged
    assert kind_of(rest.get("namespaces/sales/tables/staged")) == (404, "NoSuchTableException")
    metadata = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    change = {
        "identifier": {"namespace": ["sales"], "name": "staged"},
        "requirements": [{"type": "assert-create"}],
        "updates": updates,
    }
    assert rest.post("transactions/commit", {"table-changes": [change]}) == (204, None)
    assert rest.get("namespaces/sales/tables/staged")[1]["metadata"]["table-uuid"] == metadata["table-uuid"]
    assert kind_of(rest.post("transactions/commit", {"table-changes": [change]})) == (409, "CommitFailedException")


def test_a_commit_over_several_tables_is_all_or_nothing(rest):
    for name in ("a", "b"):
        rest.table(name)
    before = {name: rest.get(f"namespaces/sales/tables/{name}")[1] for name in ("a", "b")}

    def change(name, *requirements):
        identifier = {"namespace": ["sales"], "name": name}
        return {"identifier": identifier, "requirements": list(requirements), "updates": [SET]}

    fails = {"type": "assert-current-schema-id", "current-schema-id": 7}
    refused = rest.post("transactions/commit", {"table-changes": [change("a"), change("b", fails)]})
    assert kind_of(refused) == (409, "CommitFailedException")
    assert {name: rest.get(f"namespaces/sales/tables/{name}")[1] for name in ("a", "b")} == before
    twice = rest.post("transactions/commit", {"table-changes": [change("a"), change("a")]})
    assert kind_of(twice) == (400, "BadRequestException")
    assert rest.post("transactions/commit", {"table-changes": [change("a"), change("b")]}) == (204, None)
    for name in ("a", "b"):
        assert rest.get(f"namespaces/sales/tables/{name}")[1]["metadata"]["properties"] == {"a": "b"}


def test_a_commit_over_many_tables(rest):
    names = [f"t{number}" for number in range(120)]
    for name in names:
        rest.table(name)
    changes = [
        {"identifier": {"namespace": ["sales"], "name": name}, "requirements": [], "updates": [SET]} for name in names
    ]
    assert rest.post("transactions/commit", {"table-changes": changes}) == (204, None)
    assert rest.get("namespaces/sales/tables/t119")[1]["metadata"]["properties"] == {"a": "b"}


@pytest.mark.parametrize("path", ["sales/tables/%20orders", "%20SALES/tables/Orders%20"])
def test_names_are_those_of_the_metastore(rest, path):
    rest.table()
    assert rest.post(f"namespaces/{path}", {"requirements": [], "updates": [SET]})[0] == 200
    assert rest.get(f"namespaces/{path}")[1]["metadata"]["properties"] == {"a": "b"}


def test_a_rename_does_not_undo_a_faster_commit(rest, monkeypatch):
    rest.table()
    renamed = []
    perform = Metastore.perform

    def commit_before(metastore, method, handler=None, /, **arguments):
        if method == "alter_table_req" and handler is None and not renamed:
            renamed.append(method)
            assert rest.commit("orders", SET)[0] == 200
        return perform(metastore, method, handler, **arguments)

    monkeypatch.setattr(Metastore, "perform", commit_before)
    new = {"namespace": ["sales"], "name": "bills"}
    assert rest.post("tables/rename", {"source": {**new, "name": "orders"}, "destination": new}) == (204, None)
    assert renamed
    assert rest.get("namespaces/sales/tables/bills")[1]["metadata"]["properties"] == {"a": "b"}


def test_a_held_answer_is_not_sent_again(rest):
    rest.table()
    rest.get("namespaces/sales/tables/orders")
    tag = rest.headers["etag"]
    assert rest.get("namespaces/sales/tables/orders", held=tag) == (304, None)
    assert rest.get("namespaces/sales/tables/orders", held=tag, query={"snapshots": "refs"})[0] == 200
    rest.commit("orders", SET)
    committed = rest.headers["etag"]
    assert rest.get("namespaces/sales/tables/orders", held=tag)[0] == 200
    assert rest.get("namespaces/sales/tables/orders", held=f'"x", W/{committed}') == (304, None)


def test_a_repeated_request_is_answered_as_the_first_time(rest):
    body = {"name": "orders", "schema": SCHEMA}
    first = rest.post("namespaces/sales/tables", body, key="k1")
    assert first[0] == 200
    assert rest.post("namespaces/sales/tables", body, key="k1") == first
    assert kind_of(rest.post("namespaces/sales/tables", body)) == (409, "AlreadyExistsException")
    refused = rest.post("namespaces/sales/tables", body, key="k2")
    assert rest.post("namespaces/sales/tables", body, key="k2") == refused
    other = rest.as_user("other").post("namespaces/sales/tables", {**body, "name": "of_other"}, key="k1")
    assert other[0] == 200


def test_a_long_answer_is_not_kept_and_is_there_for_a_repetition(rest, metastore):
    rest.table()
    path, long = "namespaces/sales/tables/orders", {"action": "set-properties", "updates": {"a": "x" * KEPT_BYTES_MAX}}
    first = rest.post(path, {"requirements": [], "updates": [long]}, key="k1")
    assert first[0] == 200
    assert metastore.store.find("rosa", "k1").answer is None
    assert rest.post(path, {"requirements": [], "updates": [long]}, key="k1") == first
    assert rest.commit("orders", {"action": "set-properties", "updates": {"a": "short"}})[0] == 200
    status, found = rest.post(path, {"requirements": [], "updates": [long]}, key="k1")
    assert (status, found["metadata"]["properties"]) == (200, {"a": "short"})
    rest.send("DELETE", path)
    again = rest.post(path, {"requirements": [], "updates": [long]}, key="k1")
    assert kind_of(again) == (500, "CommitStateUnknownException")


def test_a_folder_for_metadata_lies_in_the_table(rest):
    for place in ("file:/etc", rest.table()["metadata"]["location"] + "/../other"):
        change = {"action": "set-properties", "updates": {"write.metadata.path": place}}
        assert kind_of(rest.commit("orders", change)) == (400, "ValidationException")
    inside = rest.get("namespaces/sales/tables/orders")[1]["metadata"]["location"] + "/meta"
    change = {"action": "set-properties", "updates": {"write.metadata.path": inside}}
    assert rest.commit("orders", change)[1]["metadata-location"].startswith(f"{inside}/00001-")


def test_only_files_of_the_table_are_deleted_with_their_entries_of_the_log(rest, tmp_path):
    made = rest.table()
    other = rest.table("other")["metadata-location"].removeprefix("file:")
    rest.post("namespaces/sales/tables/orders/unregister")
    forged = made["metadata"] | {"metadata-log": [{"timestamp-ms": 1, "metadata-file": f"file:{other}"}]}
    forged["properties"] = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    file = Path(made["metadata-location"].removeprefix("file:")).with_name("forged.metadata.json")
    file.write_text(json.dumps(forged), "utf-8")
    assert rest.post("namespaces/sales/register", {"name": "orders", "metadata-location": f"file:{file}"})[0] == 200
    for _ in range(2):
        assert rest.commit("orders", {"action": "set-properties", "updates": {"n": "1"}})[0] == 200
    assert Path(other).exists()
    assert not file.exists()


def test_catalogs_are_apart(rest, metastore, tmp_path):
    peer = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4)
    place = "file:" + str(tmp_path / "warehouse" / "spark")
    peer.ask("create_catalog", CreateCatalogRequest(Catalog("spark", "", place)))
    assert rest.get("config", query={"warehouse": "spark"})[1]["overrides"] == {"prefix": "spark"}
    assert rest.post("spark/namespaces", {"namespace": ["lake"]})[0] == 200
    assert rest.get("spark/namespaces")[1]["namespaces"] == [["default"], ["lake"]]
    assert ["lake"] not in rest.get("namespaces")[1]["namespaces"]
    made = rest.post("spark/namespaces/lake/tables", {"name": "orders", "schema": SCHEMA})
    assert made[0] == 200, made
    assert rest.get("spark/namespaces/lake/tables")[1]["identifiers"] == [{"namespace": ["lake"], "name": "orders"}]
    assert rest.post("spark/namespaces/lake/tables/orders", {"requirements": [], "updates": [SET]})[0] == 200
    answer = rest.get("spark/namespaces/lake/tables/gone")
    assert kind_of(answer) == (404, "NoSuchTableException")
    assert "@" not in answer[1]["error"]["message"]
    assert rest.send("DELETE", "spark/namespaces/lake/tables/orders") == (204, None)
    assert rest.send("DELETE", "spark/namespaces/lake") == (204, None)


def test_registered_tables_point_to_their_file(rest):
    made = rest.table()
    body = {"name": "again", "metadata-location": made["metadata-location"]}
    assert kind_of(rest.post("namespaces/sales/register", {**body, "name": "orders"})) == (
        409,
        "AlreadyExistsException",
    )
    assert kind_of(rest.post("namespaces/sales/register", body)) == (400, "BadRequestException")
    status, dropped = rest.post("namespaces/sales/tables/orders/unregister")
    assert (status, dropped) == (200, made)
    assert rest.post("namespaces/sales/register", body) == (200, made)
    rest.commit("again", SET)
    assert rest.post("namespaces/sales/register", {**body, "overwrite": True}) == (200, made)
    assert rest.get("namespaces/sales/tables/again") == (200, made)


VIEW = {
    "name": "big",
    "schema": SCHEMA,
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "default-namespace": ["sales"],
        "representations": [{"type": "sql", "sql": "select * from orders", "dialect": "spark"}],
    },
    "properties": {"comment": "x"},
}


def test_views(rest):
    status, made = rest.post("namespaces/sales/views", VIEW)
    assert status == 200, made
    assert rest.get("namespaces/sales/views/big") == (200, made)
    assert rest.get("namespaces/sales/views")[1] == {"identifiers": [{"namespace": ["sales"], "name": "big"}]}
    assert rest.get("namespaces/sales/tables")[1] == {"identifiers": []}
    assert kind_of(rest.get("namespaces/sales/tables/big")) == (404, "NoSuchTableException")
    assert kind_of(rest.post("namespaces/sales/views", VIEW)) == (409, "AlreadyExistsException")
    taken = rest.post("namespaces/sales/tables", {"name": "big", "schema": SCHEMA})
    assert kind_of(taken) == (409, "AlreadyExistsException")
    version = {**VIEW["view-version"], "representations": [{"type": "sql", "sql": "select 2", "dialect": "trino"}]}
    updates = [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    status, replaced = rest.post("namespaces/sales/views/big", {"requirements": [], "updates": updates})
    assert replaced["metadata"]["current-version-id"] == 2
    assert [one["version-id"] for one in replaced["metadata"]["version-log"]] == [1, 2]
    uuid = {"type": "assert-view-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    refused = rest.post("namespaces/sales/views/big", {"requirements": [uuid], "updates": updates})
    assert kind_of(refused) == (409, "CommitFailedException")
    names = {"source": {"namespace": ["sales"], "name": "big"}, "destination": {"namespace": ["sales"], "name": "b2"}}
    assert rest.post("views/rename", names) == (204, None)
    assert rest.send("DELETE", "namespaces/sales/views/b2") == (204, None)
    assert kind_of(rest.send("DELETE", "namespaces/sales/views/b2")) == (404, "NoSuchViewException")
    file = {"name": "back", "metadata-location": replaced["metadata-location"]}
    assert rest.post("namespaces/sales/register-view", file) == (200, replaced)


def test_a_name_that_is_taken_is_told_with_what_has_it(rest):
    """In the words that Iceberg's compatibility kit expects."""
    rest.post("namespaces/sales/views", VIEW)
    rest.table()

    def text(answer):
        assert kind_of(answer) == (409, "AlreadyExistsException")
        return answer[1]["error"]["message"]

    def renamed(kind, source, target):
        names = [{"namespace": ["sales"], "name": each} for each in (source, target)]
        return text(rest.post(f"{kind}/rename", dict(zip(("source", "destination"), names, strict=True))))

    assert text(rest.table_answer("orders")) == "Table already exists: sales.orders"
    assert text(rest.table_answer("big")) == "View with same name already exists: sales.big"
    assert text(rest.commit("big", requirements=[{"type": "assert-create"}])) == text(rest.table_answer("big"))
    assert text(rest.post("namespaces/sales/views", VIEW)) == "View already exists: sales.big"
    of_a_table = {**VIEW, "name": "orders"}
    expected = "Table with same name already exists: sales.orders"
    assert text(rest.post("namespaces/sales/views", of_a_table)) == expected
    assert renamed("tables", "orders", "big") == "Cannot rename sales.orders to sales.big. View already exists"
    assert renamed("views", "big", "orders") == "Cannot rename sales.big to sales.orders. Table already exists"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_method_that_a_route_does_not_have(rest, method):
    assert kind_of(rest.send(method, "namespaces")) == (405, "MethodNotAllowedException")


@pytest.mark.parametrize("path", ["", "nonsense", "namespaces/sales/nonsense", "namespaces/sales/tables/a/b/c"])
def test_a_path_that_is_no_route(rest, path):
    assert kind_of(rest.get(path)) == (404, "NotFoundException")


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b"{", b'"x"', b"\xff", b'{"namespace": ' + b"[" * 100_000, b'{"namespace": 1}']
)
def test_a_body_that_is_no_request(rest, content):
    assert kind_of(rest.post("namespaces", content=content)) == (400, "BadRequestException")


ACTIONS = (
    *("add-schema", "add-spec", "add-sort-order", "add-snapshot", "set-statistics", "set-partition-statistics"),
    *("add-encryption-key", "set-snapshot-ref", "remove-snapshots", "remove-schemas", "set-location", "assign-uuid"),
)
FIELDS = ("schema", "spec", "sort-order", "snapshot", "statistics", "snapshot-ids", "location", "uuid", "ref-name")
HOSTILE = [None, 1, True, "", "x", [], {}, [None], {"a": None}, 1.5, -1, 10**30, "\0", "é" * 300]


@pytest.mark.parametrize("value", HOSTILE)
def test_fields_of_another_kind_are_refused(rest, value):
    rest.table()
    body = {"name": "t", "schema": SCHEMA}
    answers = [
        rest.post("namespaces/sales/tables", {**body, field: value})
        for field in ("name", "schema", "location", "partition-spec", "write-order", "properties")
    ]
    answers += [rest.post("namespaces/sales/tables/orders", {field: value}) for field in ("requirements", "updates")]
    answers += [rest.commit("orders", {"action": value}), rest.commit("orders", value)]
    answers += [rest.commit("orders", requirements=[{"type": value}]), rest.commit("orders", requirements=[value])]
    for action in ACTIONS:
        answers += [rest.commit("orders", {"action": action, field: value}) for field in FIELDS]
    assert {status for status, _ in answers} <= {200, 400, 404, 409}


def files_in_memory():
    gc.collect()
    return sum(isinstance(each, MetadataFile) for each in gc.get_objects())


def test_files_that_no_table_points_to_any_more_stay_on_disk_and_not_in_memory(rest, tmp_path):
    rest.table()
    counts = []
    for number in range(10):
        assert rest.commit("orders", {"action": "set-properties", "updates": {"at": str(number)}})[0] == 200
        counts.append(files_in_memory())
    assert counts[0] == counts[-1]
    assert len(list(tmp_path.rglob("*.metadata.json"))) == 11
    assert rest.send("DELETE", "namespaces/sales/tables/orders")[0] == 204
    assert files_in_memory() < counts[0]


def test_a_table_that_another_gateway_changes_and_makes_anew_has_one_file_in_memory(rest, anew):
    other, counts = anew(), []
    for number in range(3):
        # Elsewhere, since the directory of the last one stays.
        rest.table(properties={"at": "new"})
        assert other.get("namespaces/sales/tables/orders")[1]["metadata"]["properties"]["at"] == "new"
        assert rest.commit("orders", {"action": "set-properties", "updates": {"at": str(number)}})[0] == 200
        assert other.get("namespaces/sales/tables/orders")[1]["metadata"]["properties"]["at"] == str(number)
        counts.append(files_in_memory())
        assert rest.send("DELETE", "namespaces/sales/tables/orders")[0] == 204
    assert counts[0] == counts[-1]


def test_nothing_of_a_refused_request_waits_for_the_garbage_collector(rest):
    gc.collect()
    gc.disable()
    try:
        assert rest.get("namespaces/sales/tables/never_there")[0] == 404
        raised = [it for it in gc.get_objects() if isinstance(it, (IcebergError, NoSuchObjectException))]
    finally:
        gc.enable()
    assert [it for it in raised if "never_there" in str(it)] == []
