"""The files of deploy/ for nginx, HAProxy and Envoy in front of a real gateway."""

import contextlib
import json
import ssl
import subprocess
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.interop.long_table import LongTable
from tests.interop.private_proxies import proxy
from tests.support.client_authority import ClientAuthority
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer, basic, free_port, trusting

DEMO = "hmshttptestdatabase"
# Those that end TLS.
NAMES = ["nginx", "haproxy", pytest.param("envoy", marks=pytest.mark.whole)]


@pytest.fixture(
    scope="module",
    params=[
        *("nginx", "nginx-passthrough", "haproxy"),
        *(pytest.param(name, marks=pytest.mark.whole) for name in ("envoy", "haproxy-passthrough")),
    ],
)
def balanced(
    request: pytest.FixtureRequest, server: GatewayServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of this proxy. Of the two replicas behind it one is down."""
    ports = [server.port, free_port()]
    with proxy(request.param, ports, server.data_dir, tmp_path_factory.mktemp("proxy")) as port:
        headers = {**basic(server.user, server.password), "X-Test-Proxy": request.param}
        address = f"https://127.0.0.1:{port}"
        with httpx.Client(base_url=address, headers=headers, verify=trusting(), timeout=60) as client:
            yield client


def passes_tls_through(balanced: httpx.Client) -> bool:
    return balanced.headers["X-Test-Proxy"].endswith("-passthrough")


@pytest.mark.parametrize("page", ["metrics", "readyz", "healthz"])
@pytest.mark.parametrize("form", ["/{}", "/{}/", "/{}%2f", "/{}%0a", "/{}?", "/{}#all", "https://any.example/{}"])
def test_pages_of_the_monitoring_are_not_for_clients(balanced: httpx.Client, page: str, form: str) -> None:
    for name in (page, f"%{ord(page[0]):x}{page[1:]}"):
        answer = balanced.get("/", extensions={"target": form.format(name).encode()})
        # Some proxies refuse forms that no client needs, and the gateway itself one.
        is_page = passes_tls_through(balanced) and not form.endswith("%0a")
        assert answer.status_code in ((200,) if is_page else (404, 400)), name


@pytest.mark.curl
def test_clients_may_speak_http_2_to_haproxy_and_envoy(balanced: httpx.Client, server: GatewayServer) -> None:
    said = {"haproxy": "2", "envoy": "2"}.get(balanced.headers["X-Test-Proxy"], "1.1")
    body = json.dumps([1, "get_table_objects_by_name", 1, 1, {"1": {"str": DEMO}, "2": {"lst": ["str", 0]}}])
    command = [
        *("curl", "--silent", "--http2", "--insecure", "--user", f"{server.user}:{server.password}"),
        *("--header", "Content-Type: application/x-thrift", "--data-binary", body, "--write-out", " %{http_version}"),
        f"{balanced.base_url}{API_PATH}",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    answer, _, version = ended.stdout.rpartition(" ")
    assert (json.loads(answer)[4], version) == ({"0": {"lst": ["rec", 0]}}, said)


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


@pytest.mark.parametrize("name", ["nginx-passthrough", pytest.param("haproxy-passthrough", marks=pytest.mark.whole)])
def test_a_client_certificate_passes_where_tls_does(tmp_path: Path, name: str) -> None:
    authority = ClientAuthority(tmp_path)
    (tmp_path / "clients.pem").write_bytes(authority.pem)
    settings = {"client_certificates.authority": str(tmp_path / "clients.pem"), "users_by_other_logins": None}
    with (
        GatewayServer(tmp_path / "data", settings=settings) as server,
        proxy(name, [server.port], server.data_dir, tmp_path) as port,
    ):
        for context, status in ((authority.issue("ann")[0], 200), (trusting(), 401)):
            with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=context, timeout=60) as client:
                assert client.post(API_PATH, content='[1,"get_all_databases",1,1,{}]').status_code == status


@contextlib.contextmanager
def losing_answers(certificate_folder: Path) -> Iterator[tuple[int, Counter[str]]]:
    """A stand-in for a gateway that is ready, and dies in each call; its port, and its calls by their methods."""
    calls: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            calls[self.command] += 1
            self.close_connection = True

        do_DELETE = do_POST

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", free_port()), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate_folder / "certificate.pem", certificate_folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], calls
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("name", NAMES)
def test_a_call_whose_answer_is_lost_is_not_sent_again(name: str, server: GatewayServer, tmp_path: Path) -> None:
    with (
        losing_answers(server.data_dir) as (first, calls),
        losing_answers(server.data_dir) as (second, more),
        proxy(name, [first, second], server.data_dir, tmp_path) as port,
    ):
        for method in ("POST", "DELETE"):
            answer = httpx.request(method, f"https://127.0.0.1:{port}/metastore", verify=trusting(), timeout=60)
            assert (answer.status_code in (502, 503), "x-call-outcome" in answer.headers) == (True, False)
    # nginx takes the word of HTTP for it that DELETE may be repeated.
    assert calls + more == {"POST": 1, "DELETE": 2 if name == "nginx" else 1}


@pytest.mark.parametrize("name", NAMES[1:])
def test_without_a_gateway_the_call_was_not_tried(name: str, server: GatewayServer, tmp_path: Path) -> None:
    with proxy(name, [free_port(), free_port()], server.data_dir, tmp_path) as port:
        answer = httpx.post(f"https://127.0.0.1:{port}/metastore", verify=trusting(), timeout=60)
    outcome = [answer.headers[name] for name in ("retry-after", "x-call-outcome")]
    assert (answer.status_code, outcome) == (503, ["2", "not-tried"])
