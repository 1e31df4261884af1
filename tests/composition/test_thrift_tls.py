"""`serve --thrift-tls`: Apache thrift's TSSLSocket, SASL over TLS, Hive's client for Java, and who each of them is."""

import contextlib
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from thrift.Thrift import TApplicationException
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from hms_gateway.cli.application import application
from hms_gateway.rpc.structs import MetaException
from hms_gateway.runtime.settings import SettingsError
from hms_gateway.runtime.settings_reading import load_settings
from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.oracle.peer import SHORT_LIVES, PeerUnavailable, prepared_folder
from tests.support.client_authority import ClientAuthority
from tests.support.java_classes import class_path
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.sasl_client import DigestTransport, PlainTransport, logged_in, whose
from tests.support.server import GatewayServer, free_port, trusting

STORE_PASSWORD = "changeit"


class Doors:
    """A gateway with a Thrift port, a bridge to it, the files of its TLS, and an authority of users."""

    def __init__(self, gateway: GatewayServer, port: int, bridge: BridgeProcess, users: ClientAuthority) -> None:
        self.gateway, self.users = gateway, users
        self.certificate = gateway.data_dir / "certificate.pem"
        self.ports = {"port": port, "bridge": bridge.port}

    @contextlib.contextmanager
    def client(self, door: str, certificate: Path | None = None) -> Iterator[ApacheClient]:
        """Apache thrift's client, which checks the certificate of the server and its name."""
        options: dict[str, Any] = {"ca_certs": str(self.certificate), "cert_reqs": ssl.CERT_REQUIRED}
        if certificate is not None:
            options |= {"certfile": str(certificate), "keyfile": str(certificate)}
        socket = TSSLSocket("localhost", self.ports[door], **options)
        socket.setTimeout(1000 * PATIENCE_SECONDS)
        transport = TBufferedTransport(socket)
        transport.open()
        try:
            yield ApacheClient(transport)
        finally:
            transport.close()

    def users_who(self, method: str) -> list[str]:
        """The users of the calls of a method, by the access log."""
        lines = [json.loads(line) for line in self.gateway.log_text().splitlines() if line.startswith("{")]
        return [line["user"] for line in lines if line.get("method") == method]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp("tls")
    users, port = ClientAuthority(folder), free_port()
    authority = folder / "users.pem"
    authority.write_bytes(users.pem)
    settings: dict[str, object] = {
        "thrift_port": port,
        "thrift_tls": True,
        "thrift_sasl": "allow",
        "delegation_tokens": True,
        "client_certificates.authority": str(authority),
        "proxy_users.admin.users": ["ann", "java", "admin"],
    }
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    with GatewayServer(folder, settings=settings) as gateway:
        options = ["--cacert", str(certificate), "--sasl", "allow", "--client-authority", str(authority)]
        options += ["--tls-certificate", str(certificate), "--tls-key", str(key)]
        with BridgeProcess(gateway, *options) as bridge:
            yield Doors(gateway, port, bridge, users)


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:thrift")


@pytest.mark.parametrize("door", ["port", "bridge"])
def test_a_certificate_is_the_login_of_its_user_whatever_set_ugi_says(doors: Doors, door: str) -> None:
    ann, _ = doors.users.write("ann")
    with doors.client(door, ann) as client:
        assert whose(client) == "ann"
        client.set_ugi("eve", [])
        assert whose(client) == "ann"
    with doors.client(door) as client:
        client.set_ugi("eve", [])
        assert whose(client) == {"port": "eve", "bridge": "admin"}[door]


@pytest.mark.parametrize("door", ["port", "bridge"])
def test_logins_by_sasl_over_tls_come_before_the_certificate(doors: Doors, door: str) -> None:
    ann, _ = doors.users.issue("ann")
    port, admin = doors.ports[door], (doors.gateway.user, doors.gateway.password)
    for context in (ann, trusting()):
        with logged_in(PlainTransport(port, *admin, context)) as client:
            assert whose(client) == "admin"
            token = client.get_delegation_token("admin", "admin")
        with logged_in(DigestTransport(port, token, context=context)) as client:
            assert whose(client) == "admin"


def test_a_certificate_gives_no_name_of_the_password_file(doors: Doors) -> None:
    admin, _ = doors.users.write("admin")
    with doors.client("port", admin) as client, pytest.raises(MetaException, match="users_by_other_logins"):
        client.get_all_databases()


def test_certificates_that_do_not_let_in(doors: Doors) -> None:
    expired, _ = doors.users.write("ann", days=-1)
    foreign, _ = ClientAuthority(doors.gateway.data_dir, "Foreign").write("ann")
    for door in doors.ports:
        for certificate in (expired, foreign):
            with pytest.raises((ssl.SSLError, TTransportException, OSError)), doors.client(door, certificate) as client:
                client.get_all_databases()


def test_a_client_without_tls_gets_an_exception_that_says_so(doors: Doors) -> None:
    for port in doors.ports.values():
        plain = BridgeProcess.__new__(BridgeProcess)
        plain.port = port
        with connected(plain) as client, pytest.raises(TApplicationException, match=r"hive\.metastore\.use\.SSL"):
            client.get_all_databases()


@pytest.mark.java
@pytest.mark.slow
def test_hives_client_for_java_and_one_with_a_keystore(doors: Doors, tmp_path: Path) -> None:
    for command in ("keytool", "openssl"):
        if shutil.which(command) is None:
            pytest.skip(f"no {command}")
    try:
        jars = prepared_folder() / "jars"
    except PeerUnavailable as reason:
        pytest.skip(f"no jars of Hive: {reason}")
    java, _ = doors.users.write("java")
    trusted, own = tmp_path / "trust.p12", tmp_path / "own.p12"
    password = ("-storetype", "PKCS12", "-storepass", STORE_PASSWORD)
    run("keytool", "-importcert", "-noprompt", "-file", doors.certificate, "-keystore", trusted, *password)
    run("openssl", "pkcs12", "-export", "-in", java, "-out", own, "-passout", f"pass:{STORE_PASSWORD}")
    source = Path(__file__).parents[1] / "interop" / "java" / "TlsClient.java"
    places = [word for door, port in doors.ports.items() for word in (port, door)]
    printed = run("java", "-cp", class_path(jars, source), "TlsClient", trusted, own, STORE_PASSWORD, *places)
    said = [line for line in printed.splitlines() if "store\t" in line]
    assert said == [f"{made}_{door}" for door in doors.ports for made in ("truststore\tby", "keystore\tof_java")]
    until(lambda: doors.users_who("create_database").count("java") == len(doors.ports))


def run(*command: object) -> str:
    finished = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={"PATH": "/usr/bin:/bin", **SHORT_LIVES},
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


CERTIFICATES = {"authority": "users.pem", "use": "require"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"thrift_tls": True, "tls": False}, "thrift_tls needs tls"),
        ({"thrift_tls": True}, "can be reached by others"),
        ({"thrift_tls": True, "client_certificates": {"authority": "users.pem"}}, "can be reached by others"),
        ({"client_certificates": CERTIFICATES}, "can be reached by others"),
        ({"thrift_tls": True, "client_certificates": CERTIFICATES}, None),
        ({"thrift_tls": True, "thrift_sasl": "require"}, None),
    ],
)
def test_an_address_that_others_reach_needs_a_login_of_each(settings: dict[str, Any], says: str | None) -> None:
    given = {"thrift_port": 9083, "thrift_host": "0.0.0.0", **settings}
    if says is None:
        assert load_settings(**given).thrift_needs_login
    else:
        with pytest.raises(SettingsError, match=says):
            load_settings(**given)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tls-key", "key.pem"], "--tls-key has no effect without TLS"),
        (["--client-authority", "ca.pem"], "--client-authority has no effect without TLS"),
        (["--tls-certificate", "a.pem", "--client-certificates", "require"], "need --client-authority"),
        (["--tls-certificate", "a.pem", "--client-revocations", "crl.pem"], "need --client-authority"),
        (["--client-certificates", "some"], "'some' is not one of 'allow', 'require'"),
        (["--client-user", "OU"], "'OU' is not one of 'CN', 'email', 'DNS', 'URI'"),
    ],
)
def test_options_of_the_bridge_that_do_not_fit_are_named(options: list[str], says: str) -> None:
    result = CliRunner().invoke(application, ["bridge", "--url", "https://localhost:1/metastore", *options])
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
