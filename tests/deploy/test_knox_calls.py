"""Calls through a stand-in of Knox (knox.py), which runs on the files of deploy/knox, to a real gateway."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.deploy.knox import Account, knox
from tests.support.certificates import write_certificate
from tests.support.patience import until
from tests.support.server import API_PATH, GatewayServer, basic, trusting

ANN = basic("ann", "of Knox")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    settings = {"trusted_proxy.addresses": ["127.0.0.1"], "trusted_proxy.user_header": "X-Knox-Actor-ID"}
    with GatewayServer(tmp_path_factory.mktemp("behind-knox"), settings=settings) as server:
        yield server


@pytest.fixture(scope="module")
def client(gateway: GatewayServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("knox")
    write_certificate(folder / "tls.crt", folder / "tls.key")
    accounts = {"ann": Account("of Knox", ("analysts", "staff"))}
    with (
        knox(lambda: gateway.url, accounts, folder) as port,
        httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusting(), timeout=60) as made,
    ):
        yield made


def logged(gateway: GatewayServer, request_id: str) -> dict[str, object]:
    """The line of a call, which comes after its answer."""
    found: list[str] = []

    def is_there() -> bool:
        found[:] = [line for line in gateway.log_text().splitlines() if f'"request_id":"{request_id}"' in line]
        return bool(found)

    until(is_there, f"{request_id} is not logged")
    return json.loads(found[0])


def message(method: str, **arguments: object) -> str:
    return json.dumps([1, method, 1, 1, arguments])


@pytest.mark.parametrize("kind", ["application/x-thrift", "application/x-www-form-urlencoded", "application/json"])
def test_a_call_is_the_users_whatever_its_content_type(gateway: GatewayServer, client: httpx.Client, kind: str) -> None:
    named = f"by_{len(kind)}"
    database = {"1": {"str": named}, "2": {"str": "a = ünser"}}
    headers = {**ANN, "Content-Type": kind, "X-Request-Id": named}
    made = client.post(API_PATH, content=message("create_database", **{"1": {"rec": database}}), headers=headers)
    assert (made.status_code, made.json()[4]) == (200, {})
    assert logged(gateway, named)["user"] == "ann"
    read = client.post(API_PATH, content=message("get_database", **{"1": {"str": named}}), headers=ANN)
    assert read.json()[4]["0"]["rec"]["2"] == {"str": "a = ünser"}


def test_a_form_that_knox_cuts_is_refused(client: httpx.Client) -> None:
    asked = message("create_database", **{"1": {"rec": {"1": {"str": "cut"}, "2": {"str": "a & b"}}}})
    headers = {**ANN, "Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post(API_PATH, content=asked, headers=headers)
    text = "The body has an & and came as application/x-www-form-urlencoded; send Content-Type: application/x-thrift\n"
    assert (answer.status_code, answer.text) == (400, text)
    for kind in ("application/x-thrift", "application/json"):
        assert client.post(API_PATH, content=asked, headers={**ANN, "Content-Type": kind}).status_code == 200


def test_knox_refuses_before_the_gateway_is_asked(gateway: GatewayServer, client: httpx.Client) -> None:
    for login, name in ((basic("ann", "wrong"), "refused"), (ANN, "accepted")):
        answer = client.post(API_PATH, content=message("get_all_databases"), headers={**login, "X-Request-Id": name})
        refused = (401, 'BASIC realm="application"')
        seen = (answer.status_code, answer.headers.get("www-authenticate"))
        assert seen == (refused if name == "refused" else (200, None))
    logged(gateway, "accepted")
    assert '"refused"' not in gateway.log_text()


@pytest.mark.parametrize("spelling", ["X-Knox-Actor-ID", "x-knox-actor-id"])
def test_a_user_that_the_client_names_is_refused_since_knox_sends_it_too(client: httpx.Client, spelling: str) -> None:
    headers = {**ANN, spelling: "admin"}
    assert client.post(API_PATH, content=message("get_all_databases"), headers=headers).status_code == 401


def test_a_large_body_that_asks_first_and_a_long_answer_pass(client: httpx.Client) -> None:
    names = [f"table_{number}_that_does_not_exist" for number in range(10_000)]
    asked = message("get_table_objects_by_name", **{"1": {"str": "default"}, "2": {"lst": ["str", len(names), *names]}})
    answer = client.post(API_PATH, content=asked, headers={**ANN, "Expect": "100-continue"})
    assert answer.json()[4] == {"0": {"lst": ["rec", 0]}}
    text = "x" * 300_000
    long = {"rec": {"1": {"str": "long"}, "2": {"str": "d"}, "4": {"map": ["str", "str", 1, {"text": text}]}}}
    client.post(API_PATH, content=message("create_database", **{"1": long}), headers=ANN)
    for encoding in ("identity", "gzip"):
        headers = {**ANN, "Accept-Encoding": encoding}
        read = client.post(API_PATH, content=message("get_database", **{"1": {"str": "long"}}), headers=headers)
        assert read.headers.get("content-encoding", "identity") == encoding
        assert read.json()[4]["0"]["rec"]["4"]["map"][3]["text"] == text
