"""Requests of HTTP clients as they write them: Hive 4's client, Trino, hms-client-go, and one made for Databricks.

Headers and paths are those of the clients' sources (clients §4.4); the body is binary Thrift.
"""

import base64
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from hms_gateway.gateway.auth.tokens import create_token
from tests.bridge.thrift_bytes import call, result_of
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import PASSWORD, USER, GatewayServer

DATABRICKS = "/api/2.0/unity-hms-proxy/metadata"
OWN = "/gateway/default/hmshttpthrift/api/hms"
TABLE = ("hmshttptestdatabase", "test_table")
APACHE = {
    "Content-Type": "application/x-thrift",
    "Accept": "application/x-thrift",
    "User-Agent": "Java/THttpClient/HC",
    "Connection": "Keep-Alive",
    "Accept-Encoding": "gzip,deflate",
}
TRINO = {
    "Content-Type": "application/x-thrift",
    "Accept": "application/x-thrift",
    "User-Agent": "Java/THttpClient",
    "Accept-Encoding": "gzip, x-gzip, deflate",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    settings: dict[str, object] = {
        f'paths."{OWN}"': "2.3",
        'paths."/metastore"': "4",
        f'paths."{DATABRICKS}"': "4",
        "http_networks": ["127.0.2.0/24"],
        "tls": False,
    }
    with GatewayServer(tmp_path_factory.mktemp("hive4"), demo=True, settings=settings) as it:
        yield it


@pytest.fixture(scope="module")
def token(gateway: GatewayServer) -> str:
    return create_token(gateway.data_dir / "tokens", USER, now=int(time.time()), seconds=600)[0]


def ask(
    gateway: GatewayServer,
    path: str,
    headers: list[tuple[str, str]],
    body: bytes = call("get_all_databases"),
    address: str = "127.0.0.1",
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, PATIENCE_SECONDS, (address, 0))
    with closing(connection):
        connection.putrequest("POST", path, skip_accept_encoding=True)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize(
    "path", ["/metastore/*", "/metastore", "/metastore/", "//metastore", "/metastore//", f"{DATABRICKS}/*"]
)
def test_a_hive_4_client_of_a_named_network_is_the_user_it_names(gateway: GatewayServer, path: str) -> None:
    request_id = f"named-{path.replace('*', '-')}"
    headers = [*APACHE.items(), ("x-actor-username", "ann")]
    marked = [*headers, ("X-Request-Id", request_id)]
    status, body = ask(gateway, path, marked, address="127.0.2.9")
    assert (status, result_of(body).success) == (200, ["default", "hmshttptestdatabase"])
    assert user_of(gateway, request_id) == "ann"
    assert ask(gateway, path, headers)[0] == 401


def user_of(gateway: GatewayServer, request_id: str) -> str:
    """User of a call, by the access log."""

    def found() -> list[str]:
        lines = gateway.log_text().rpartition("\n")[0].splitlines()
        records = (json.loads(line) for line in lines if request_id in line)
        return [record["user"] for record in records if record["request_id"] == request_id]

    until(found)
    return found()[0]


def additional_headers(setting: str) -> list[tuple[str, str]]:
    """Headers of hive.metastore.client.http.additional.headers, as Hive reads them: at every `=`."""
    return [(parts[0].strip(), parts[1].strip()) for parts in (one.split("=") for one in setting.split(","))]


def test_a_configured_login_that_loses_its_padding_counts_and_not_the_name(gateway: GatewayServer) -> None:
    assert BASIC.endswith("=")
    sent = additional_headers(f"Authorization={BASIC},X-Request-Id=padding")
    assert not sent[0][1].endswith("=")
    headers = [*APACHE.items(), ("x-actor-username", "ann"), *sent]
    assert ask(gateway, "/metastore/*", headers, address="127.0.2.9")[0] == 200
    assert user_of(gateway, "padding") == USER


def test_a_configured_name_beside_the_clients_own_is_refused(gateway: GatewayServer) -> None:
    headers = [*APACHE.items(), ("x-actor-username", "ann"), *additional_headers("x-actor-username=eve")]
    assert ask(gateway, "/metastore/*", headers, address="127.0.2.9")[0] == 401


def test_hms_jwt_is_a_login_and_beside_another_one_is_refused(gateway: GatewayServer, token: str) -> None:
    bearer = [*APACHE.items(), ("Authorization", f"Bearer {token}")]
    assert ask(gateway, "/metastore/*", bearer)[0] == 200
    for other in (BASIC, f"Bearer {token}"):
        status, body = ask(gateway, "/metastore/*", [*bearer, *additional_headers(f"Authorization={other}")])
        assert (status, body) == (400, b"The header Authorization is repeated; send it once\n")


@pytest.mark.parametrize("path", ["/metastore", DATABRICKS])
@pytest.mark.parametrize("header", ["X-Databricks-Catalog-Name", "X-Databricks-Unity-Catalog-Name"])
def test_trino_and_what_is_made_for_databricks(gateway: GatewayServer, token: str, path: str, header: str) -> None:
    headers = [*TRINO.items(), ("Authorization", f"Bearer {token}"), (header, "main")]
    status, body = ask(gateway, path, headers)
    assert (status, result_of(body).success) == (200, ["default", "hmshttptestdatabase"])


@pytest.mark.parametrize(("path", "names"), [(OWN, 2), ("/metastore", 0), (DATABRICKS, 0), (f"{DATABRICKS}/*", 0)])
def test_each_path_has_its_dialect(gateway: GatewayServer, token: str, path: str, names: int) -> None:
    """Of at most 0 partitions Hive 2.3 gives all, and Hive 4 none (semantics §10.1)."""
    body = call("get_partition_names", *TABLE, 0)
    status, answer = ask(gateway, path, [*APACHE.items(), ("Authorization", f"Bearer {token}")], body)
    assert (status, len(result_of(answer).success)) == (200, names)


@pytest.mark.parametrize("path", ["/", "/*", "/api/2.0/unity-hms-proxy", "/metastore/x", f"/x{OWN}"])
def test_other_paths_are_not_found_and_the_right_ones_named(gateway: GatewayServer, token: str, path: str) -> None:
    status, body = ask(gateway, path, [*APACHE.items(), ("Authorization", f"Bearer {token}")])
    assert status == 404
    assert body.decode() == f"Not found: Thrift messages go to {OWN} or /metastore or {DATABRICKS}\n"
