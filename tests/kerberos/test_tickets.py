"""Kerberos over HTTP with real tickets: curl, Java, MIT's library, our command line and the bridge."""

import base64
import http.client
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hms_gateway.client.metastore_client import MetastoreClient, NotAuthorized, TicketAuth
from hms_gateway.rpc.structs import LeaseObject
from hms_gateway.runtime.kerberos import ServiceTickets
from tests.bridge.bridge_process import BridgeProcess, connected
from tests.kerberos.conftest import SERVICE, LogIn
from tests.oracle.peer import SHORT_LIVES
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_kdc import PrivateKdc
from tests.support.server import API_PATH, GatewayServer, ServerDidNotStart, basic, trusting

pytestmark = pytest.mark.kerberos

ASK = b'[1,"get_databases",1,1,{"1":{"str":"default*"}}]'
ANSWER = b'[1,"get_databases",2,1,{"0":{"lst":["str",1,"default"]}}]'
CONTENT_TYPE = "application/vnd.apache.thrift.json"
LOGIN_OF_JAVA = """
com.sun.security.jgss.krb5.initiate {
    com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true doNotPrompt=true;
};
"""
COMMAND_SECONDS_MAX = 120


def url(gateway: GatewayServer) -> str:
    return f"https://localhost:{gateway.port}{API_PATH}"


def post(
    gateway: GatewayServer, authorization: str | None, query: str = ""
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPSConnection("localhost", gateway.port, timeout=PATIENCE_SECONDS, context=trusting())
    try:
        headers = {} if authorization is None else {"Authorization": authorization}
        connection.request("POST", API_PATH + query, ASK, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def run(*command: object, environment: Mapping[str, str], succeeds: bool = True) -> str:
    finished = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=COMMAND_SECONDS_MAX,
        env=dict(environment),
    )
    assert (finished.returncode == 0) is succeeds, finished.stdout.decode() + finished.stderr.decode()
    return (finished.stdout if succeeds else finished.stderr).decode()


def caller(gateway: GatewayServer, query: str = "") -> str:
    """Who the gateway takes us for: the owner of a lease we ask for."""
    wanted = [LeaseObject("default", "whose")]
    with MetastoreClient(url(gateway) + query, TicketAuth(), verify=False) as client:
        lease_id = client.call("grab_lease", wanted, 60, 0)
        (lease,) = client.call("list_lease", wanted)
        client.call("drop_lease", lease_id, [])
    user: str = lease.user
    return user


@pytest.mark.curl
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl (command `curl`)")
@pytest.mark.parametrize("how", ["--negotiate", "--anyauth"])
def test_curl_calls_several_times(gateway: GatewayServer, log_in: LogIn, how: str) -> None:
    options = [
        "-k",
        "--silent",
        "--show-error",
        how,
        "-u",
        ":",
        "--data",
        ASK.decode(),
        "-H",
        f"Content-Type: {CONTENT_TYPE}",
    ]
    printed = run("curl", "--disable", *options, url(gateway), url(gateway), environment=log_in("alice"))
    assert printed.encode() == ANSWER * 2


@pytest.mark.java
@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK (command javac)")
def test_java_answers_the_challenge(gateway: GatewayServer, log_in: LogIn, tmp_path: Path) -> None:
    (tmp_path / "login.conf").write_text(LOGIN_OF_JAVA)
    environment = log_in("alice")
    options = {
        "java.security.krb5.conf": environment["KRB5_CONFIG"],
        "java.security.auth.login.config": tmp_path / "login.conf",
        "javax.security.auth.useSubjectCredsOnly": "false",
    }
    words = [f"-D{name}={value}" for name, value in options.items()]
    words += [
        Path(__file__).with_name("Databases.java"),
        url(gateway),
        gateway.data_dir / "certificate.pem",
        ASK.decode(),
    ]
    assert run("java", *words, environment={**environment, **SHORT_LIVES}) == f"200 {ANSWER.decode()}\n" * 3


def test_both_sides_are_sure_of_each_other(gateway: GatewayServer, log_in: LogIn) -> None:
    gssapi = pytest.importorskip("gssapi")
    log_in("alice")
    name = gssapi.Name("HTTP@localhost", gssapi.NameType.hostbased_service)
    flags = [gssapi.RequirementFlag.mutual_authentication]
    context = gssapi.SecurityContext(name=name, usage="initiate", flags=flags)
    status, headers, body = post(gateway, f"Negotiate {base64.b64encode(context.step()).decode()}")
    assert (status, body) == (200, ANSWER)
    scheme, _, proof = headers["www-authenticate"].partition(" ")
    assert scheme == "Negotiate"
    assert not context.complete
    context.step(base64.b64decode(proof))
    assert context.complete


def test_client_and_commands(gateway: GatewayServer, log_in: LogIn) -> None:
    environment = log_in("alice")
    with MetastoreClient(url(gateway), TicketAuth(), verify=False) as client:
        for _ in range(3):
            assert client.call("get_databases", "default*") == ["default"]
    command = Path(sys.executable).with_name("hms-gateway")
    where = ("-k", "--negotiate", "--url", url(gateway))
    printed = run(command, "call", "get_databases", "default*", *where, environment=environment)
    assert json.loads(printed) == ["default"]
    assert caller(gateway) == "alice"
    run(command, "locks", "acquire", *where, "LOCK TABLE default.t EXCLUSIVE", environment=environment)
    assert "alice" in run(command, "locks", "show", *where, environment=environment)


def test_without_a_ticket_the_command_says_what_to_do(gateway: GatewayServer, log_in: LogIn) -> None:
    command = Path(sys.executable).with_name("hms-gateway")
    words = ("call", "get_all_databases", "-k", "--negotiate", "--url", url(gateway))
    said = run(command, *words, environment=log_in(None), succeeds=False)
    assert "no Kerberos ticket" in said
    assert "kinit" in said


def test_ticket_for_another_host_than_the_server_is(gateway: GatewayServer, log_in: LogIn) -> None:
    log_in("alice")
    with (
        MetastoreClient(gateway.url, TicketAuth(), verify=False) as client,
        pytest.raises(NotAuthorized, match=r"no Kerberos ticket for HTTP/127\.0\.0\.1"),
    ):
        client.call("get_all_databases")


def test_bridge_logs_in_and_acts_for_its_users(gateway: GatewayServer, log_in: LogIn) -> None:
    environment = log_in("knox/proxy")
    options = ("--insecure", "--negotiate", "--do-as", "--url", url(gateway))
    with BridgeProcess(gateway, *options, environment=environment) as bridge, connected(bridge) as client:
        client.set_ugi("alice", ["staff"])
        lease_id = client.grab_lease([LeaseObject("default", "whose")], 60, 0)
        (lease,) = client.list_lease([LeaseObject("default", "whose")])
        client.drop_lease(lease_id, [])
    assert lease.user == "alice"


def test_bridge_gets_tickets_by_a_keytab_of_its_own(
    kdc: PrivateKdc, gateway: GatewayServer, log_in: LogIn, tmp_path: Path
) -> None:
    kdc.write_keytab("alice", tmp_path / "alice.keytab")
    own = {"KRB5_CLIENT_KTNAME": str(tmp_path / "alice.keytab"), "KRB5CCNAME": f"FILE:{tmp_path}/tickets"}
    environment = {**log_in(None), **own}
    with (
        BridgeProcess(gateway, "--insecure", "--negotiate", "--url", url(gateway), environment=environment) as bridge,
        connected(bridge) as client,
    ):
        assert client.get_databases("default*") == ["default"]


def test_bridge_without_tickets_says_so(gateway: GatewayServer, log_in: LogIn) -> None:
    environment = log_in(None)
    with (
        BridgeProcess(gateway, "--insecure", "--negotiate", "--url", url(gateway), environment=environment) as bridge,
        connected(bridge) as client,
        pytest.raises(Exception, match="the bridge has no Kerberos ticket for HTTP/localhost"),
    ):
        client.get_all_databases()


def test_service_acts_for_a_user_by_its_rule(gateway: GatewayServer, log_in: LogIn) -> None:
    log_in("knox/proxy")
    assert caller(gateway) == "knox"
    assert caller(gateway, "?doAs=alice") == "alice"
    status, _, body = post(gateway, ServiceTickets("localhost").authorization(), "?doAs=bob")
    assert status == 403
    assert b"proxy_users.knox does not name bob" in body


def test_user_of_another_realm_is_not_let_in(gateway: GatewayServer, log_in: LogIn) -> None:
    log_in("bob@OTHER.TEST")
    status, _, body = post(gateway, ServiceTickets("localhost").authorization())
    assert status == 403
    assert b"Users of the realm OTHER.TEST are not let in: the setting kerberos.realms does not name it" in body


def test_named_realms_are_let_in(kdc: PrivateKdc, log_in: LogIn, tmp_path: Path) -> None:
    keytab = tmp_path / "http.keytab"
    kdc.write_keytab(SERVICE, keytab)
    settings = {"kerberos.keytab": str(keytab), "kerberos.realms": ["LAKE.TEST", "OTHER.TEST"]}
    with GatewayServer(tmp_path / "data", settings=settings, environment=kdc.environment) as server:
        for principal, user in (("bob@OTHER.TEST", "bob"), ("alice", "alice")):
            log_in(principal)
            assert caller(server) == user


def test_a_ticket_counts_once(gateway: GatewayServer, log_in: LogIn) -> None:
    log_in("alice")
    authorization = ServiceTickets("localhost").authorization()
    assert post(gateway, authorization)[0] == 200
    status, headers, body = post(gateway, authorization)
    assert (status, headers["www-authenticate"]) == (401, "Negotiate")
    assert b"The Kerberos ticket is not accepted: Request is a replay" in body


def test_new_key_in_the_keytab_is_seen(kdc: PrivateKdc, log_in: LogIn, tmp_path: Path) -> None:
    keytab = tmp_path / "other.keytab"
    kdc.add("HTTP/rotated.test")
    kdc.write_keytab("HTTP/rotated.test", keytab)
    environment = kdc.environment
    with GatewayServer(tmp_path / "data", settings={"kerberos.keytab": str(keytab)}, environment=environment) as server:
        log_in("alice")
        tickets = ServiceTickets("rotated.test")
        assert post(server, tickets.authorization())[0] == 200
        kdc.write_keytab("HTTP/rotated.test", tmp_path / "newest.keytab", new_key=True)
        log_in("alice")
        status, _, body = post(server, tickets.authorization())
        assert status == 401, "the server does not have the new key yet"
        assert b"HTTP/rotated.test@LAKE.TEST kvno 2 not found in keytab" in body
        keytab.write_bytes((tmp_path / "newest.keytab").read_bytes())
        assert post(server, tickets.authorization())[0] == 200


@pytest.mark.parametrize(
    ("authorization", "text"),
    [
        ("Negotiate", b"is not accepted"),
        ("Negotiate !", b"what follows Negotiate is not base64"),
        ("Negotiate Z2FyYmFnZQ==", b"is not accepted"),
        ("Negotiate " + base64.b64encode(b"NTLMSSP\0\1\0\0\0").decode(), b"it is NTLM"),
        ("Negotiate " + "QUJD" * 10_000, b"is not accepted"),
    ],
)
def test_what_is_no_ticket(gateway: GatewayServer, authorization: str, text: bytes) -> None:
    status, headers, body = post(gateway, authorization)
    assert status == 401
    assert headers["www-authenticate"] == "Negotiate"
    assert json.loads(body)[:4] == [1, "get_databases", 3, 1]
    assert text in body


def test_passwords_stay_and_who_sends_nothing_is_told_both_ways(gateway: GatewayServer) -> None:
    assert post(gateway, basic(gateway.user, gateway.password)["Authorization"])[0] == 200
    for authorization in (None, "Bearer abc", basic(gateway.user, "wrong")["Authorization"]):
        status, headers, _ = post(gateway, authorization)
        assert status == 401
        challenges = headers.get_all("www-authenticate")
        assert challenges[0] == "Negotiate"
        assert challenges[1].startswith("Basic realm=")
    assert b"send a Kerberos ticket (Negotiate), or user name and password (Basic)" in post(gateway, None)[2]


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), (b"", "is nonexistent or empty"), (b"x" * 50, "")]
)
def test_keytab_that_cannot_be_used(kdc: PrivateKdc, tmp_path: Path, content: bytes | None, reason: str) -> None:
    keytab = tmp_path / "http.keytab"
    if content is not None:
        keytab.write_bytes(content)
    server = GatewayServer(tmp_path / "data", settings={"kerberos.keytab": str(keytab)}, environment=kdc.environment)
    with pytest.raises(ServerDidNotStart, match=f"error: kerberos.keytab: keytab {keytab} .*{reason}"):
        server.start()
