"""The nginx files of deploy/ in front of a real gateway."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.interop.long_table import LongTable
from tests.interop.private_nginx import nginx
from tests.support.server import API_PATH, GatewayServer, basic, free_port, trusting

DEMO = "hmshttptestdatabase"


@pytest.fixture(scope="module", params=["proxy.conf", "passthrough.conf"])
def balanced(
    request: pytest.FixtureRequest, server: GatewayServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of an nginx that runs with this file. Of the two replicas behind passthrough.conf one is down."""
    ports = [server.port, free_port()]
    with nginx(request.param, ports, server.data_dir, tmp_path_factory.mktemp("nginx")) as port:
        headers = basic(server.user, server.password)
        address = f"https://127.0.0.1:{port}"
        with httpx.Client(base_url=address, headers=headers, verify=trusting(), timeout=60) as client:
            yield client


@pytest.mark.parametrize("page", ["metrics", "readyz", "healthz"])
def test_pages_of_the_monitoring_are_not_for_clients(server: GatewayServer, tmp_path: Path, page: str) -> None:
    with (
        nginx("proxy.conf", [server.port], server.data_dir, tmp_path) as port,
        httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusting()) as client,
    ):
        assert client.get(f"/{page}").status_code == 404


def test_calls_and_errors_pass(balanced: httpx.Client) -> None:
    for path in (API_PATH, "/metastore", "/metastore/*"):
        answer = balanced.post(path, content='[1,"get_databases",1,1,{"1":{"str":"default"}}]')
        assert answer.json() == [1, "get_databases", 2, 1, {"0": {"lst": ["str", 1, "default"]}}]
    wrong = balanced.post(API_PATH, content='[1,"get_all_databases",1,2,{}]', headers=basic("admin", "wrong"))
    assert (wrong.status_code, wrong.json()[1:4]) == (401, ["get_all_databases", 3, 2])
    assert balanced.get(API_PATH).status_code == 405


def test_many_calls_one_after_the_other(balanced: httpx.Client) -> None:
    for seqid in range(200):
        answer = balanced.post(API_PATH, content=f'[1,"get_all_tables",1,{seqid},{{"1":{{"str":"{DEMO}"}}}}]')
        assert answer.json()[3] == seqid


def test_a_large_body_and_one_that_asks_first(balanced: httpx.Client) -> None:
    names = json.dumps(["no_such_table_of_a_long_name"] * 100_000)[1:-1]
    body = f'[1,"get_table_objects_by_name",1,1,{{"1":{{"str":"{DEMO}"}},"2":{{"lst":["str",100000,{names}]}}}}]'
    for headers in ({}, {"Expect": "100-continue"}):
        answer = balanced.post(API_PATH, content=body, headers=headers)
        assert answer.json() == [1, "get_table_objects_by_name", 2, 1, {"0": {"lst": ["rec", 0]}}]


def test_a_long_answer_comes_whole(balanced: httpx.Client, long_table: LongTable) -> None:
    for encoding in ("identity", "gzip"):
        answer = balanced.post(API_PATH, content=long_table.request, headers={"Accept-Encoding": encoding})
        assert answer.headers.get("content-encoding", "identity") == encoding
        kind, count, *partitions = answer.json()[4]["0"]["lst"]
        assert (kind, count, len(partitions)) == ("rec", len(long_table.values), len(long_table.values))


def test_a_password_of_other_letters_passes(balanced: httpx.Client) -> None:
    login = "Basic " + b64encode("nobody:größe €".encode()).decode()
    answer = balanced.post(API_PATH, content='[1,"get_all_databases",1,1,{}]', headers={"Authorization": login})
    assert (answer.status_code, answer.json()[4]["1"]) == (401, {"str": "User name or password is wrong"})
