"""Delegation tokens as logins, at a Thrift port, a bridge and over HTTPS: whose they are, and what does not let in."""

import base64
import contextlib
import http.client
import json
import time
from collections.abc import Callable, Iterator

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TSaslClientTransport

from hms_gateway.client.metastore_client import MetastoreClient, TokenAuth
from hms_gateway.gateway.auth.tokens import create_token
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.rpc.structs import MetaException
from hms_gateway.runtime.logins.delegation_token import Proof, TokenName, read_token_text, token_text
from tests.bridge.bridge_process import ApacheClient, BridgeProcess
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.sasl_client import (
    DigestTransport,
    Fields,
    PlainTransport,
    Refused,
    logged_in,
    response,
    whose,
)
from tests.support.server import API_PATH, PASSWORD, USER, GatewayServer, basic, free_port, trusting

ANN, BO = ("ann", "ann's password"), ("bo", "bo's password")
DOORS = ("port", "bridge")
# What was let in before is asked for again after a second.


class Doors:
    def __init__(self, gateway: GatewayServer, thrift_port: int, bridge_port: int) -> None:
        self.gateway = gateway
        self.ports = {"port": thrift_port, "bridge": bridge_port}

    def as_user(self, door: str, user: str, password: str) -> contextlib.AbstractContextManager[ApacheClient]:
        return logged_in(PlainTransport(self.ports[door], user, password))

    def token(self, door: str = "port", renewer: str = "yarn") -> str:
        """One of ann's."""
        with self.as_user(door, *ANN) as client:
            token: str = client.get_delegation_token("ann", renewer)
        return token

    def cancel(self, token: str) -> None:
        with self.as_user("port", *ANN) as client:
            client.cancel_delegation_token(token)

    def wait_for_audit(self, **fields: object) -> None:
        """Until there is a line with these."""
        path = self.gateway.data_dir / "audit.log"

        def is_there() -> bool:
            whole = path.read_text().rpartition("\n")[0].splitlines()
            return any({name: json.loads(line).get(name, 0) for name in fields} == fields for line in whole)

        until(is_there)

    def with_token(self, door: str, token: str) -> contextlib.AbstractContextManager[ApacheClient]:
        return logged_in(DigestTransport(self.ports[door], token))

    def post(self, headers: dict[str, str], query: str = "") -> tuple[int, str]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.gateway.port, timeout=PATIENCE_SECONDS, context=trusting()
        )
        with contextlib.closing(connection):
            connection.request("POST", API_PATH + query, b'[1,"getName",1,1,{}]', headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp("delegation")
    for user, password in ((USER, PASSWORD), ANN, BO):
        add_user(folder / "users", user, password)
    thrift_port = free_port()
    settings: dict[str, object] = {
        "thrift_port": thrift_port,
        "thrift_sasl": "require",
        "delegation_tokens": True,
        "audit_log": str(folder / "audit.log"),
        "proxy_users.admin.users": ["ann"],
    }
    with (
        GatewayServer(folder, settings=settings) as gateway,
        BridgeProcess(gateway, "--cacert", str(folder / "certificate.pem"), "--sasl", "require") as bridge,
    ):
        yield Doors(gateway, thrift_port, bridge.port)


@pytest.fixture(scope="module")
def token(doors: Doors) -> str:
    return doors.token()


@pytest.mark.parametrize("door", DOORS)
def test_a_token_is_its_owners_login_and_gives_no_other_one(doors: Doors, door: str) -> None:
    token = doors.token(door)
    with doors.with_token(door, token) as client:
        client.set_ugi("admin", [])
        assert whose(client) == "ann"
        with pytest.raises(MetaException, match="needs a login of the user's own, not a name or a token"):
            client.get_delegation_token("ann", "yarn")


@pytest.mark.parametrize("door", DOORS)
def test_the_digest_is_that_of_another_implementation(doors: Doors, token: str, door: str) -> None:
    name, password = (base64.b64encode(part).decode() for part in read_token_text(token))
    sock = TSocket("127.0.0.1", doors.ports[door])
    sock.setTimeout(30_000)
    transport = TSaslClientTransport(sock, "default", "null", "DIGEST-MD5", username=name, password=password)
    transport.open()
    with contextlib.closing(transport):
        assert whose(ApacheClient(transport)) == "ann"


def changed(**fields: str) -> Callable[[Fields], Fields]:
    """Of a response, and its digest stays."""
    return lambda sent: {**sent, **{name.replace("_", "-"): value for name, value in fields.items()}}


def without(name: str) -> Callable[[Fields], Fields]:
    return lambda sent: {field: value for field, value in sent.items() if field != name}


def of_a_client_with(**fields: str) -> Callable[[Fields], Fields]:
    """The digest is right for what is wrong."""
    others = {name.replace("_", "-"): value for name, value in fields.items()}
    return lambda sent: response(sent["username"], "password", **{"nonce": sent["nonce"], **others})


RESPONSES = {
    "wrong password": (of_a_client_with(), "its password is wrong"),
    "wrong digest": (changed(response="0" * 32), "its password is wrong"),
    "not ASCII": (changed(response="é" * 16), "its password is wrong"),
    "quality": (of_a_client_with(qop="auth-conf"), "its qop is 'auth-conf' and has to be 'auth'"),
    "realm": (of_a_client_with(realm="LAKE.TEST"), "its realm is 'LAKE.TEST' and has to be 'default'"),
    "no realm": (without("realm"), "its realm is '' and has to be 'default'"),
    "another service": (of_a_client_with(digest_uri="ldap/default"), "its digest-uri is 'ldap/default' and has to be"),
    "counted twice": (of_a_client_with(nc="00000002"), "its nc is '00000002' and has to be '00000001'"),
    "nonce of its own": (of_a_client_with(nonce="mine"), "its nonce is not the one of this login"),
    "in another name": (changed(authzid="admin"), "it asks to act for another user"),
    "no token": (changed(username="admin"), "is not the name of a delegation token"),
    "a name that is not one": (changed(username="AAAA"), "the token is not complete"),
    "no response": (without("response"), "the response has no response"),
    "no nonce": (without("nonce"), "the response has no nonce"),
    "garbage": (lambda sent: {"": ""}, "the response cannot be read"),
    "long": (changed(cnonce="x" * 20_000), "the response is longer than 16384 bytes"),
    "a long nonce": (of_a_client_with(cnonce="x" * 257), "its cnonce is longer than 256 characters"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", RESPONSES)
def test_what_is_not_a_right_response_is_refused_with_the_reason(
    doors: Doors, token: str, door: str, kind: str
) -> None:
    change, text = RESPONSES[kind]
    with pytest.raises(Refused) as refused:
        DigestTransport(doors.ports[door], token, change)
    assert text in str(refused.value)


@pytest.mark.parametrize("door", DOORS)
def test_a_response_that_was_overheard_is_refused(doors: Doors, token: str, door: str) -> None:
    before = DigestTransport(doors.ports[door], token)
    before.close()
    with pytest.raises(Refused, match="its nonce is not the one of this login: a response counts once"):
        DigestTransport(doors.ports[door], token, lambda sent: before.response)


@pytest.mark.parametrize("door", DOORS)
def test_a_forged_token_is_refused(doors: Doors, token: str, door: str) -> None:
    now_ms = round(time.time() * 1000)
    made = TokenName("admin", "", "", now_ms, now_ms + 60_000, 1).encode()
    for forged in (token_text(made, b"x" * 32), token_text(read_token_text(token)[0], b"x" * 32)):
        with pytest.raises(Refused, match=r"it is not known; it was cancelled, or has ended|its password is wrong"):
            DigestTransport(doors.ports[door], forged)


def test_a_cancelled_token_is_refused_at_once_and_ends_what_it_began(doors: Doors) -> None:
    token = doors.token()
    with contextlib.ExitStack() as connections:
        clients = [connections.enter_context(doors.with_token(door, token)) for door in DOORS]
        assert [whose(client) for client in clients] == ["ann", "ann"]
        assert doors.post({"Authorization": f"Bearer {token}"})[0] == 200
        doors.cancel(token)
        for door in DOORS:
            with pytest.raises(Refused, match="it is not known; it was cancelled, or has ended"):
                doors.with_token(door, token)
        for client in clients:
            assert "it is not known; it was cancelled" in ending(client.get_all_databases)
        with MetastoreClient(doors.gateway.url, TokenAuth(token), verify=False) as client:
            assert "it is not known; it was cancelled" in ending(lambda: client.call("getName"))
    with pytest.raises(MetaException, match="the delegation token is not known"):
        doors.cancel(token)


def ending(ask: Callable[[], object]) -> str:
    """Why it is refused, when it is."""
    said: list[str] = []

    def is_refused() -> bool:
        try:
            ask()
        except Exception as error:
            said.append(str(error))
        return bool(said)

    until(is_refused, "it was never refused")
    return said[0]


def test_over_https_a_token_is_a_bearer_token(doors: Doors, token: str) -> None:
    with MetastoreClient(doors.gateway.url, TokenAuth(token), verify=False) as client:
        assert whose(Calls(client)) == "ann"
        with pytest.raises(MetaException, match="needs a login of the user's own"):
            client.call("get_delegation_token", "ann", "yarn")
    forged = token_text(read_token_text(token)[0], b"x" * 32)
    status, text = doors.post({"Authorization": f"Bearer {forged}"})
    assert (status, "The delegation token is not accepted: its password is wrong" in text) == (401, True)
    personal, _ = create_token(doors.gateway.data_dir / "tokens", "ann", now=int(time.time()), seconds=60)
    with (
        MetastoreClient(doors.gateway.url, TokenAuth(personal), verify=False) as client,
        pytest.raises(MetaException, match="needs a login of the user's own"),
    ):
        client.call("get_delegation_token", "ann", "yarn")


class Calls:
    """Methods of a client by attribute."""

    def __init__(self, client: MetastoreClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., object]:
        return lambda *arguments: self._client.call(name, *arguments)


def test_a_repeated_call_gets_the_same_token_and_the_database_cannot_be_read(doors: Doors) -> None:
    with MetastoreClient(doors.gateway.url, ANN, verify=False) as client:
        tokens = {client.call("get_delegation_token", "ann", "yarn", idempotency_key="again") for _ in range(2)}
    (token,) = tokens
    with doors.with_token("port", token) as client:
        assert whose(client) == "ann"
    _, password = read_token_text(token)
    files = [file.read_bytes() for file in doors.gateway.data_dir.glob("metastore.db*")]
    assert files
    for shown in (password, base64.b64encode(password), token.encode()):
        assert not any(shown in content for content in files)


def test_what_a_bridge_shows_counts_for_who_may_act_for_the_owner_only(doors: Doors, token: str) -> None:
    name, password = (base64.b64encode(part).decode() for part in read_token_text(token))
    right = response(name, password, "of a bridge")
    proof = Proof(name, "of a bridge", right["cnonce"], right["response"])

    def ask(user: tuple[str, str], query: str, header: bytes) -> tuple[int, str]:
        return doors.post({**basic(*user), "X-Hms-Token-Proof": header.decode()}, query)

    admin = (USER, PASSWORD)
    assert ask(admin, "?doAs=ann", proof.header)[0] == 200
    assert ask(BO, "?doAs=ann", proof.header)[0] == 403
    for user, query, header, text in (
        (admin, "?doAs=admin", proof.header, "it is not that of the user for whom the call is made"),
        (admin, "?doAs=ann", b"AAAA", "the header x-hms-token-proof cannot be read"),
        (admin, "?doAs=ann", b"\xff", "the header x-hms-token-proof cannot be read"),
        (admin, "?doAs=ann", Proof(name, "of a bridge", "other", right["response"]).header, "its password is wrong"),
    ):
        status, said = ask(user, query, header.decode("latin-1").encode())
        assert (status, text in said) == (401, True), said


def test_tokens_are_given_to_their_owners_and_who_may_act_for_them(doors: Doors) -> None:
    with doors.as_user("port", *BO) as client:
        with pytest.raises(
            MetaException, match=r"a delegation token of user ann@LAKE\.TEST: the rule proxy_users\.bo does"
        ):
            client.get_delegation_token("ann@LAKE.TEST", "yarn")
        token = client.get_delegation_token("bo@LAKE.TEST", "yarn")
    with doors.with_token("port", token) as client:
        assert whose(client) == "bo"
    with pytest.raises(Refused, match=r"may not act for user bo: the rule proxy_users\.admin does not name bo"):
        doors.with_token("bridge", token)
    with doors.as_user("port", USER, PASSWORD) as client:
        with pytest.raises(MetaException, match=r"the rule proxy_users\.admin does not name ann@LAKE\.TEST"):
            client.get_delegation_token("ann@LAKE.TEST", "yarn")
        token = client.get_delegation_token("ann", "yarn")
    assert TokenName.decode(read_token_text(token)[0]).real_user == "admin"
    for door in DOORS:
        with doors.with_token(door, token) as client:
            assert whose(client) == "ann"
    for status in (0, 200):
        doors.wait_for_audit(method="grab_lease", user="ann", real_user="admin", status=status)


def test_only_its_renewer_renews_and_only_its_users_cancel(doors: Doors) -> None:
    token = doors.token(renewer="bo/host.test@LAKE.TEST")
    other = doors.token(renewer="")
    with doors.as_user("port", *ANN) as client, pytest.raises(MetaException, match="user ann may not renew"):
        client.renew_delegation_token(token)
    with doors.as_user("port", *BO) as client:
        assert client.renew_delegation_token(token) > time.time() * 1000
        with pytest.raises(MetaException, match="user bo may not cancel"):
            client.cancel_delegation_token(other)
        with pytest.raises(MetaException, match="user bo may not renew"):
            client.renew_delegation_token(other)
        with pytest.raises(MetaException, match="its password is wrong"):
            client.renew_delegation_token(token_text(read_token_text(token)[0], b"x" * 32))
        client.cancel_delegation_token(token)
        with pytest.raises(MetaException, match="token_str_form is not a delegation token: the token is not base64"):
            client.cancel_delegation_token("!")


def test_a_wrong_password_at_the_port_is_audited_as_tried_and_not_as_its_users(doors: Doors) -> None:
    client = ApacheClient(PlainTransport(doors.ports["port"], "ann", "wrong"))
    assert "password is wrong" in ending(client.get_all_functions)
    doors.wait_for_audit(method="get_all_functions", user="", tried_user="ann")


def test_administrators_neither_read_nor_make_logins(doors: Doors, token: str) -> None:
    key = "login:" + base64.b64encode(read_token_text(token)[0]).decode()
    with doors.as_user("port", USER, PASSWORD) as client:
        assert client.get_all_token_identifiers() == []
        assert client.get_token(key) is None
        assert client.remove_token(key) is False
        with pytest.raises(TApplicationException, match="token identifier begins with login:"):
            client.add_token("login:AAAA", "x")
