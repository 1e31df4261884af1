"""Clients without a login (`http_networks`, `thrift_networks`) name users who need one, or come from outside."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.gateway.logins import build_authenticator
from hms_gateway.rpc.structs import ChangesRequest, Database, MetaException, PrincipalType, Role
from hms_gateway.runtime.door import Serial, ShownCertificate
from hms_gateway.runtime.settings_reading import load_settings
from tests.attacks.edge import Edge, basic, edge
from tests.attacks.test_other_accounts import answer_to_another_account, needs_root
from tests.bridge.bridge_process import ApacheClient
from tests.bridge.thrift_bytes import call
from tests.gateway.serving import CALL
from tests.support.client_authority import ClientAuthority
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer, free_port

HERE = "127.0.0.1"
INSIDE, OUTSIDE = "127.0.2.5", "127.0.3.5"
NETWORK = "127.0.2.0/24"
ANN = "x-actor-username: ann"


@pytest.fixture(scope="module")
def open_edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    settings = {"http_networks": [HERE], "proxy_users": {"etl": {"users": ["*"]}}, "administrators": ["admin", "carol"]}
    with edge(tmp_path_factory.mktemp("open"), **settings) as it:
        yield it


def test_a_program_is_who_it_says(open_edge: Edge) -> None:
    assert open_edge.ask(ANN) == "ann"
    assert not open_edge.calls[-1][1].may_get_token
    assert open_edge.ask(basic("bob"), ANN) == "bob"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ((), 401),
        (("x-actor-username: admin",), 403),
        (("x-actor-username: carol",), 403),
        (("x-actor-username: etl",), 403),
        # Has a password here.
        (("x-actor-username: bob",), 403),
        (("x-actor-username:",), 403),
        (("x-actor-username: a\tb",), 403),
        # Not UTF-8: two such names would be one.
        (("x-actor-username: a\ufffd",), 403),
        ((ANN, "x-actor-username: eve"), 401),
        (("x-actor-username: ann, eve",), 401),
        ((basic("bob", "wrong"), ANN), 401),
        (("Authorization: Bearer placeholder", ANN), 401),
        # Of a web page, and through a proxy that nobody named.
        ((ANN, "Origin: http://localhost"), 401),
        ((ANN, "Sec-Fetch-Site: none"), 401),
        *(((ANN, f"{header}: 192.0.2.1"), 401) for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP")),
    ],
)
def test_a_name_that_needs_a_login_is_refused(open_edge: Edge, lines: tuple[str, ...], status: int) -> None:
    assert open_edge.ask(*lines) == status


def test_a_name_does_not_act_for_others(open_edge: Edge) -> None:
    assert open_edge.ask(ANN, query="?doAs=eve") == 403
    assert open_edge.ask(ANN, query="?doAs=ann") == "ann"
    assert open_edge.ask(ANN, query="?user.name=eve") == "ann"


@pytest.mark.parametrize("users", [{"network_users": ["etl"]}, {"network_users": ["etl"], "network_user": "etl"}])
def test_a_name_does_not_act_for_others_though_its_user_may(tmp_path: Path, users: dict[str, object]) -> None:
    etl = "x-actor-username: etl"
    with edge(tmp_path, http_networks=[HERE], proxy_users={"etl": {"users": ["*"]}}, **users) as it:
        assert it.ask(etl) == it.ask(etl, query="?doAs=etl") == "etl"
        assert it.ask(etl, query="?doAs=admin") == it.ask(etl, query="?DOAS=admin") == 403
        assert it.ask(etl, query="?do%41s=ann") == 403


@pytest.mark.parametrize("use", ["allow", "require"])
@pytest.mark.parametrize("user", [{}, {"network_user": "spark"}])
def test_a_certificate_that_ended_is_no_name(tmp_path: Path, user: dict[str, object], use: str) -> None:
    (tmp_path / "ca.pem").write_bytes(ClientAuthority(tmp_path).pem)
    certificates = {"authority": tmp_path / "ca.pem", "use": use}
    settings = load_settings(data_dir=tmp_path, http_networks=[HERE], client_certificates=certificates, **user)
    logins, field = build_authenticator(settings), (b"x-actor-username", b"ann")
    ended = ShownCertificate("ann", 0.0, Serial(b"", 1))
    head = RequestHead(dict([field]), [field], b"", HERE, certificate=ended)
    assert logins.remembered(head) is None
    with pytest.raises(Refused, match="The client certificate has expired") as refused:
        asyncio.run(logins.authenticate(head))
    assert refused.value.status == 401
    assert logins.remembered(head._replace(certificate=None))


@pytest.mark.parametrize(
    "settings",
    [
        {"http_networks": ["192.0.2.0/24"], "host": "0.0.0.0"},
        {"http_networks": [HERE], "forwarding_proxies": [HERE]},
        {"http_networks": [HERE], "trusted_proxy": {"addresses": [HERE], "user_header": "SM_USER"}},
        {"http_networks": [HERE], "network_user": "spark", "forwarding_proxies": [HERE]},
    ],
)
def test_a_name_from_outside_or_through_a_proxy_is_no_login(tmp_path: Path, settings: dict[str, object]) -> None:
    with edge(tmp_path, **settings) as it:
        assert it.ask(ANN) == it.ask(ANN, "X-Forwarded-For: 127.0.0.1") == 401


def test_a_name_has_its_groups(tmp_path: Path) -> None:
    (tmp_path / "groups").write_text("staff: ann\n")
    with edge(tmp_path, http_networks=[HERE], groups_file=tmp_path / "groups") as it:
        assert it.ask(ANN) == "ann"
        assert it.calls[-1][1].groups == {"staff"}


def test_only_listed_names_count(tmp_path: Path) -> None:
    listed = {"network_users": ["carol", "bob"], "administrators": ["admin", "carol"]}
    with edge(tmp_path, http_networks=[HERE], **listed) as it:
        assert it.ask("x-actor-username: carol") == "carol"
        assert it.ask(ANN) == it.ask("x-actor-username: bob") == it.ask("x-actor-username: admin") == 403


def test_all_are_one_user_whatever_they_say(tmp_path: Path) -> None:
    with edge(tmp_path, http_networks=[HERE], network_user="spark") as it:
        assert it.ask() == it.ask(ANN) == it.ask("x-actor-username: admin") == "spark"
        assert it.ask(basic("bob")) == "bob"


class Port:
    """A Thrift port, and clients of it from addresses inside and outside of its networks."""

    def __init__(self, gateway: GatewayServer, port: int) -> None:
        self.gateway, self.number = gateway, port

    @contextlib.contextmanager
    def client(self, user: str = "", address: str = INSIDE) -> Iterator[ApacheClient]:
        sock = TSocket(HERE, self.number)
        sock.setHandle(socket.create_connection((HERE, self.number), PATIENCE_SECONDS, (address, 0)))
        with contextlib.closing(TBufferedTransport(sock)) as transport:
            client = ApacheClient(transport)
            if user:
                client.set_ugi(user, ["admin"])
            yield client


@contextlib.contextmanager
def thrift_port(folder: Path, **settings: object) -> Iterator[Port]:
    for user in ("admin", "bob"):
        add_user(folder / "users", user, "a long password")
    port = free_port()
    given = {"thrift_port": port, "thrift_networks": [NETWORK], "tls": False, **settings}
    with GatewayServer(folder, settings=given) as gateway:
        yield Port(gateway, port)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    settings: dict[str, object] = {
        "authorization": "grants",
        "delegation_tokens": True,
        "proxy_users.etl.users": ["*"],
        "administrators": ["admin", "carol"],
        "http_networks": [HERE],
        "network_users": ["*", "erin"],
    }
    with thrift_port(tmp_path_factory.mktemp("thrift"), **settings) as it:
        # The gateway's own account, outside of the networks.
        with it.client(address=OUTSIDE) as client:
            client.create_database(Database("lake"))
            client.create_role(Role("ops"))
            client.grant_role("admin", "ops", PrincipalType.ROLE, "admin", PrincipalType.USER, False)
            for user, role in (("dave", "admin"), ("erin", "admin"), ("fay", "ops")):
                client.grant_role(role, user, PrincipalType.USER, "admin", PrincipalType.USER, True)
        yield it


def test_the_start_says_who_gets_in(port: Port) -> None:
    [line] = [line for line in port.gateway.log_text().splitlines() if "thrift_networks: clients of these" in line]
    assert f'"networks":["{NETWORK}"]' in line
    assert '"user":"as they name it"' in line


@pytest.mark.parametrize("name", ["ann", ""])
def test_a_client_has_the_rights_of_the_name_and_no_others(port: Port, name: str) -> None:
    with port.client(name) as client:
        assert client.get_all_databases() == ["default"]
        with pytest.raises(MetaException, match=name or "anonymous"):
            client.create_database(Database("own"))


@pytest.mark.parametrize("name", ["dave", "fay"])
def test_the_role_admin_of_a_name_does_not_count(port: Port, name: str) -> None:
    with port.client(name) as client:
        assert client.get_all_databases() == ["default"]
        with pytest.raises(MetaException, match=name):
            client.create_database(Database("own"))
        role = "admin" if name == "dave" else "ops"
        with pytest.raises(MetaException, match=name):
            client.grant_role(role, "eve", PrincipalType.USER, name, PrincipalType.USER, False)
    assert over_http(port, name) == ["default"]


def test_a_listed_name_has_its_role_admin(port: Port) -> None:
    # In this order: what an administrator was shown is in the cache.
    assert over_http(port, "erin") == ["default", "lake"]
    with port.client("erin") as client:
        assert client.get_all_databases() == ["default", "lake"]
    assert over_http(port, "dave") == ["default"]


def over_http(port: Port, name: str) -> list[str]:
    with port.gateway.connection() as connection:
        connection.request("POST", API_PATH, CALL, {"x-actor-username": name})
        answer = connection.getresponse()
        _, _, *names = json.loads(answer.read())[4]["0"]["lst"]
        return names


@pytest.mark.parametrize("name", ["admin", "carol", "etl", "bob", "a\0b", "a\x1b[2J", " ann", "a\ufffd", "a" * 257])
def test_a_client_is_not_one_who_needs_a_login(port: Port, name: str) -> None:
    with port.client(name) as client, pytest.raises((MetaException, TApplicationException), match=r"[Uu]ser"):
        client.get_all_databases()


def test_a_second_name_on_a_connection_changes_nothing(port: Port) -> None:
    with port.client("ann") as client:
        assert client.set_ugi("ann", []) == []
        for name in ("eve", "admin"):
            with pytest.raises(TApplicationException, match="has a user already"):
                client.set_ugi(name, [])
        with pytest.raises(MetaException, match="ann"):
            client.create_database(Database("own"))


def test_a_name_gets_no_token_that_is_valid_elsewhere(port: Port) -> None:
    with port.client("ann") as client, pytest.raises(MetaException, match="needs a login of the user's own"):
        client.get_delegation_token("ann", "ann")


def test_records_have_the_name_beside_the_one_user(tmp_path: Path) -> None:
    with thrift_port(tmp_path, network_user="spark") as it:
        with it.client("ann") as client:
            assert client.get_all_databases() == ["default"]
            assert client.set_ugi("admin", []) == []
            client.create_database(Database("lake"))
        with it.client("admin", OUTSIDE) as client:
            newest = client.list_changes(ChangesRequest(limit=1))[0]
    assert (newest.user, newest.real_user, newest.db_name) == ("spark", "admin", "lake")


@needs_root
@pytest.mark.parametrize(("sasl", "reason"), [("off", "other_network"), ("allow", "no_login")])
def test_a_client_from_outside_is_refused_and_logged(tmp_path: Path, sasl: str, reason: str) -> None:
    with thrift_port(tmp_path, thrift_sasl=sasl) as it:
        made = call("set_ugi", "ann", []) + call("create_database", Database("by_another"))
        assert answer_to_another_account(it.number, made) == b""
        with it.client("ann") as client:
            assert client.get_all_databases() == ["default"]
        with it.gateway.connection() as connection:
            connection.request("GET", "/metrics")
            metrics = connection.getresponse().read().decode()
        assert f'thrift_connections_refused_total{{reason="{reason}"}} 1.0' in metrics
        text = "its address is in none of thrift_networks" if sasl == "off" else "this port requires SASL"
        assert text in it.gateway.log_text()
