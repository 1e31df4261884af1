"""The REST catalog over HTTP: logins, errors, bounds and records are those of the gateway."""

import gzip
import json

import httpx
import pytest

from tests.iceberg_rest.conftest import SCHEMA
from tests.support.patience import until
from tests.support.server import PASSWORD, USER, GatewayServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iceberg-door")
    settings = {
        "tls": False,
        "iceberg_path": "/lake/iceberg",
        "audit_log": str(folder / "audit.log"),
        "cors_origins": ["https://lake.example"],
    }
    with GatewayServer(
        folder, settings=settings, limits={"body_bytes_max": 100_000, "decoded_bytes_max": 2_000_000}
    ) as running:
        yield running


@pytest.fixture
def client(gateway):
    url = f"http://127.0.0.1:{gateway.port}/lake/iceberg/v1"
    with httpx.Client(base_url=url, auth=(USER, PASSWORD), timeout=30) as client:
        yield client


def test_without_a_login_the_error_is_json_and_names_the_logins(client):
    answer = client.get("/config", auth=("admin", "wrong"))
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert answer.json()["error"]["type"] == "NotAuthorizedException"


def test_who_asks_for_a_token_has_no_login_yet(client):
    answer = client.post("/oauth/tokens", data={"grant_type": "client_credentials"}, auth=None)
    assert answer.status_code == 400
    assert answer.json()["error_description"].startswith("this server issues no tokens; send a password")
    assert client.get("/oauth/tokens", auth=None).json()["error"]["code"] == 405


def test_a_table_by_hand(client, gateway):
    assert client.post("/namespaces", json={"namespace": ["sales"]}).status_code == 200
    made = client.post("/namespaces/sales/tables", json={"name": "orders", "schema": SCHEMA})
    assert made.status_code == 200
    head = client.head("/namespaces/sales/tables/orders")
    assert (head.status_code, head.content) == (204, b"")
    loaded = client.get("/namespaces/sales/tables/orders", headers={"accept-encoding": "gzip"})
    assert loaded.json() == made.json()
    held = client.get("/namespaces/sales/tables/orders", headers={"if-none-match": loaded.headers["etag"]})
    assert (held.status_code, held.content) == (304, b"")
    body = json.dumps({"requirements": [], "updates": []}).encode()
    packed = client.post(
        "/namespaces/sales/tables/orders",
        content=gzip.compress(body),
        headers={"content-encoding": "gzip", "content-type": "application/json"},
    )
    assert packed.status_code == 200
    missing = client.delete("/namespaces/sales/tables/gone")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, 404)
    audit = gateway.data_dir / "audit.log"
    until(lambda: "iceberg.dropTable" in audit.read_text("utf-8"))
    assert '"method":"iceberg.loadTable"' in audit.read_text("utf-8")
    assert "sales.orders" in audit.read_text("utf-8")
    metrics = httpx.get(f"http://127.0.0.1:{gateway.port}/metrics").text
    assert 'method="iceberg.loadTable"' in metrics


@pytest.mark.parametrize(
    ("path", "status"), [("/nonsense", 404), ("/namespaces/a%1Fb", 404), ("/namespaces/%FF", 400), ("/a/b/c/d/e", 404)]
)
def test_errors_of_paths_are_json(client, path, status):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, status)


def test_bounds_are_named(client):
    answer = client.post("/namespaces", content=b"x" * 200_000)
    assert (answer.status_code, "body_bytes_max" in answer.json()["error"]["message"]) == (413, True)
    answer = client.post("/namespaces", content=b'{"namespace":[' + b"{}," * 30_000 + b"{}]}")
    assert (answer.status_code, "decoded_bytes_max" in answer.json()["error"]["message"]) == (413, True)
    answer = client.post("/namespaces", json={"namespace": ["k"]}, headers={"idempotency-key": "k" * 200})
    assert (answer.status_code, "Idempotency-Key" in answer.json()["error"]["message"]) == (400, True)


BODY = b'{"namespace": ["odd"]}'
BROKEN = [
    ({"content-encoding": "gzip"}, BODY, 400),
    ({"content-encoding": "gzip"}, gzip.compress(BODY)[:-9], 400),
    ({"content-encoding": "br"}, BODY, 415),
    ({"content-encoding": "gzip"}, gzip.compress(b"[" * 3_000_000), 413),
    ({"content-type": "application/json; charset=utf-16"}, BODY.decode().encode("utf-16"), 400),
    ({"expect": "a miracle"}, BODY, 417),
]


@pytest.mark.parametrize(("headers", "body", "status"), BROKEN, ids=range(len(BROKEN)))
def test_a_body_in_a_form_that_is_not_read(client, headers, body, status):
    sent = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    answer = client.post("/namespaces", content=body, headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, status)
    assert client.get("/namespaces/odd").status_code == 404


def test_methods_without_a_body_and_prefixes_that_are_not_there(client):
    missing = client.head("/namespaces/gone")
    assert (missing.status_code, missing.content) == (404, b"")
    asked = client.options("/namespaces")
    assert (asked.status_code, asked.content) == (204, b"")
    for path in ("/nowhere/namespaces", "/a%2Fb/namespaces", "/%00/namespaces", "/config/config"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, 404)


def test_a_key_of_another_request_is_refused(client):
    headers = {"idempotency-key": "the-same"}
    assert client.post("/namespaces", json={"namespace": ["first"]}, headers=headers).status_code == 200
    assert client.post("/namespaces", json={"namespace": ["first"]}, headers=headers).status_code == 200
    other = client.post("/namespaces", json={"namespace": ["second"]}, headers=headers)
    assert (other.status_code, other.json()["error"]["type"]) == (422, "UnprocessableEntityException")


def test_other_pages_may_not_call(client):
    answer = client.get("/config", headers={"origin": "https://elsewhere.example"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "ForbiddenException")


def test_pages_of_allowed_origins_may_send_what_iceberg_s_clients_send(client):
    asks = {"origin": "https://lake.example", "access-control-request-method": "DELETE"}
    found = client.options("/namespaces/n", headers=asks).headers
    assert "DELETE" in found["access-control-allow-methods"].split(", ")
    sent = {"authorization", "content-type", "idempotency-key", "if-none-match", "x-iceberg-access-delegation"}
    assert sent <= set(found["access-control-allow-headers"].split(", "))


def test_a_path_beside_the_catalog_is_no_part_of_it(client, gateway):
    for path in ("/lake/iceberg", "/lake/icebergs/v1/config", "/iceberg/v1/config"):
        answer = httpx.get(f"http://127.0.0.1:{gateway.port}{path}", auth=(USER, PASSWORD))
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")


def test_a_long_answer_is_compressed_too(client):
    client.post("/namespaces", json={"namespace": ["long"]})
    made = client.post("/namespaces/long/tables", json={"name": "t", "schema": SCHEMA})
    assert made.status_code == 200
    for number in range(6):
        updates = [{"action": "set-properties", "updates": {f"p{number}": "x" * 60_000}}]
        made = client.post("/namespaces/long/tables/t", json={"requirements": [], "updates": updates})
        assert made.status_code == 200
    loaded = client.get("/namespaces/long/tables/t", headers={"accept-encoding": "gzip"})
    assert loaded.headers["content-encoding"] == "gzip"
    assert "etag" in loaded.headers
    assert len(loaded.content) > 300_000
    assert loaded.json() == made.json()
