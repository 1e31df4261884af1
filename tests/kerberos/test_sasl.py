"""SASL GSSAPI with real tickets on the Thrift port and the bridge: Hive's Java client, and one of our own."""

import contextlib
import socket
from pathlib import Path

import pytest

from hms_gateway.bridge.thrift.sasl import SaslStatus, negotiation_message
from tests.kerberos.conftest import LogIn
from tests.kerberos.sasl_doors import HIVE_SERVICE, Doors, GssTransport, client
from tests.kerberos.test_tickets import run
from tests.oracle.peer import SHORT_LIVES, PeerUnavailable, prepared_folder
from tests.support.java_classes import class_path
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_kdc import PrivateKdc
from tests.support.sasl_client import Refused, whose
from tests.support.server import GatewayServer, free_port, trusting

gssapi = pytest.importorskip("gssapi")
pytestmark = pytest.mark.kerberos

LAYERS = {"authentication": 1, "integrity": 2, "privacy": 4}


@pytest.mark.parametrize("door", ["port", "bridge"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_ticket_says_who_calls_and_set_ugi_does_not(doors: Doors, log_in: LogIn, door: str, layer: str) -> None:
    log_in("alice")
    with client(doors.ports[door], layer=LAYERS[layer]) as it:
        assert it.set_ugi("admin", ["root"]) == ["root"]
        assert whose(it) == "alice"
        assert it.get_all_databases() == ["default"]


@pytest.mark.parametrize("door", ["port", "bridge"])
def test_the_first_part_of_a_principal_is_the_user(doors: Doors, log_in: LogIn, door: str) -> None:
    log_in("knox/proxy")
    with client(doors.ports[door]) as it:
        assert whose(it) == "knox"


@pytest.mark.parametrize("door", ["port", "bridge"])
def test_users_of_another_realm_and_those_who_ask_to_be_others_are_refused(
    doors: Doors, log_in: LogIn, door: str
) -> None:
    log_in("bob@OTHER.TEST")
    with pytest.raises(Refused, match=r"users of the realm OTHER\.TEST are not let in"):
        GssTransport(doors.ports[door])
    log_in("alice")
    with pytest.raises(Refused, match="it asks to act for another user"):
        GssTransport(doors.ports[door], acts_for="admin")


@pytest.mark.parametrize("door", ["port", "bridge"])
@pytest.mark.parametrize("token", [b"no ticket", b"\x60" * 70_000, b"\x60\x82\xff\xff"])
def test_what_is_not_a_ticket_ends_the_negotiation(doors: Doors, door: str, token: bytes) -> None:
    with socket.create_connection(("127.0.0.1", doors.ports[door]), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(negotiation_message(SaslStatus.START, b"GSSAPI") + negotiation_message(SaslStatus.OK, token))
        answer = connection.recv(5)
        assert answer[0] in (SaslStatus.BAD, SaslStatus.ERROR)


def test_a_negotiation_does_not_go_on_for_ever(doors: Doors) -> None:
    with socket.create_connection(("127.0.0.1", doors.ports["port"]), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(negotiation_message(SaslStatus.START, b"GSSAPI"))
        with connection.makefile("rb") as answers:
            for _ in range(20):
                connection.sendall(negotiation_message(SaslStatus.OK, b""))
                head = answers.read(5)
                text = answers.read(int.from_bytes(head[1:], "big"))
                if head[0] == SaslStatus.BAD:
                    break
            assert (head[0], text != b"") == (SaslStatus.BAD, True)


@pytest.mark.parametrize("door", ["port", "bridge"])
def test_what_was_changed_on_the_way_ends_the_connection(doors: Doors, log_in: LogIn, door: str) -> None:
    log_in("alice")
    with client(doors.ports[door], layer=2, tamper=True) as it, pytest.raises((EOFError, ConnectionError)):
        it.get_all_databases()


def test_a_user_for_whom_the_bridge_may_not_act_is_refused(doors: Doors, kdc: PrivateKdc, log_in: LogIn) -> None:
    kdc.add("eve")
    log_in("eve")
    with client(doors.ports["bridge"]) as it, pytest.raises(Exception, match="may not act for user eve"):
        it.get_all_databases()
    with client(doors.ports["port"]) as it:
        assert whose(it) == "eve"


def test_a_new_keytab_is_read_and_a_broken_one_keeps_the_keys(doors: Doors, kdc: PrivateKdc, log_in: LogIn) -> None:
    log_in("alice")
    kept = doors.keytab.read_bytes()
    with client(doors.ports["port"]) as open_before:
        try:
            doors.keytab.write_bytes(b"broken")
            wait_for(doors, "the new keytab cannot be used, the keys before stay")
            with client(doors.ports["port"]) as it:
                assert whose(it) == "alice"
        finally:
            doors.keytab.write_bytes(kept)
        kdc.write_keytab(HIVE_SERVICE, doors.keytab, new_key=True)
        log_in("alice")
        for port in doors.ports.values():
            assert until_let_in(port) == "alice"
        assert whose(open_before) == "alice"


def until_let_in(port: int) -> str:
    for _ in range(5_000):
        with contextlib.suppress(Refused, gssapi.exceptions.GSSError), client(port) as it:
            return whose(it)
    raise AssertionError("the new key is not known")


def wait_for(doors: Doors, words: str) -> None:
    """Logins make it look at the file."""
    for _ in range(5_000):
        with contextlib.suppress(Refused), client(doors.ports["port"]) as it:
            it.get_all_databases()
        if words in doors.gateway.log_text():
            return
    raise AssertionError(f"not logged: {words}")


def test_a_ticket_logs_in_over_tls(doors: Doors, kdc: PrivateKdc, log_in: LogIn, tmp_path: Path) -> None:
    log_in("alice")
    port = free_port()
    settings = {"kerberos.keytab": str(doors.keytab), "thrift_port": port, "thrift_sasl": "require", "thrift_tls": True}
    with (
        GatewayServer(tmp_path, settings=settings, environment=kdc.environment),
        client(port, layer=4, context=trusting()) as logged_in,
    ):
        assert whose(logged_in) == "alice"


@pytest.fixture(scope="module")
def java() -> list[str]:
    """The class path of Hive's client with ours."""
    try:
        jars = prepared_folder() / "jars"
    except PeerUnavailable as reason:
        pytest.skip(f"no jars of Hive: {reason}")
    return ["-cp", class_path(jars, Path(__file__).parent / "SaslClient.java"), "SaslClient"]


@pytest.mark.java
@pytest.mark.parametrize(
    ("door", "protection"), [pytest.param("port", "authentication", marks=pytest.mark.whole), ("bridge", "privacy")]
)
def test_hives_java_client_logs_in_with_its_ticket_then_with_a_delegation_token(
    doors: Doors, kdc: PrivateKdc, java: list[str], log_in: LogIn, door: str, protection: str
) -> None:
    environment = log_in("alice")
    printed = run(
        "java",
        f"-Djava.security.krb5.conf={kdc.environment['KRB5_CONFIG']}",
        "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
        *java,
        *("localhost", doors.ports[door], protection, "alice@LAKE.TEST", kdc.folder / "alice.keytab", f"of_{door}"),
        environment={**environment, **SHORT_LIVES},
    )
    assert printed.splitlines()[-4:] == [
        "length\t10400",
        "with the token\t10400",
        "another token\tfalse",
        "cancelled\ttrue",
    ]
