"""The bridge, the command line, programs and the pipeline log in at a real gateway by a certificate alone."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.x509 import DNSName
from thrift.transport.TTransport import TTransportException

from hms_gateway.cli.application import application
from hms_gateway.client.metastore_client import NotAuthorized
from hms_gateway.pipeline.connection import Client, Connection
from hms_gateway.rpc.structs import LeaseObject, MetaException
from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.support.client_authority import ClientAuthority
from tests.support.server import GatewayServer

ATTEMPTS_MAX = 2000


class Files:
    """Certificates with their keys: of the user ann, of etl, who may act for alice, and of a trusted proxy."""

    def __init__(self, folder: Path) -> None:
        users, proxies = ClientAuthority(folder), ClientAuthority(folder, "Proxies")
        self.users_authority, self.proxies_authority = folder / "users.pem", folder / "proxies.pem"
        self.users_authority.write_bytes(users.pem)
        self.proxies_authority.write_bytes(proxies.pem)
        self.ann, self.etl = (users.write(name)[0] for name in ("ann", "etl"))
        self.proxy, _ = proxies.write("any", DNSName("bridge.example"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def gateway(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    settings: dict[str, object] = {
        "client_certificates.authority": str(files.users_authority),
        "proxy_users.etl.users": ["alice"],
        "trusted_proxy.authority": str(files.proxies_authority),
        "trusted_proxy.certificate_names": ["bridge.example"],
        "trusted_proxy.user_parameter": "doAs",
        "trusted_proxy.users": ["alice", "bob"],
    }
    with GatewayServer(tmp_path_factory.mktemp("gateway"), settings=settings) as running:
        yield running


def bridge(gateway: GatewayServer, certificate: Path, *options: str) -> BridgeProcess:
    trusted = str(gateway.data_dir / "certificate.pem")
    return BridgeProcess(gateway, "--cacert", trusted, "--certificate", str(certificate), "--do-as", *options)


def whose(client: ApacheClient | Client) -> str:
    """Who the gateway takes us for: the owner of a lease we ask for."""
    wanted = [LeaseObject("of_us")]
    lease_id = client.call("grab_lease", wanted, 60, 0)
    (lease,) = client.call("list_lease", wanted)
    client.call("drop_lease", lease_id, [])
    assert isinstance(lease.user, str)
    return lease.user


def test_a_bridge_calls_as_the_user_of_its_certificate_and_for_whom_that_user_may(gateway, files):
    with bridge(gateway, files.etl) as running, connected(running) as client:
        assert whose(client) == "etl"
        client.set_ugi("alice", [])
        assert whose(client) == "alice"
        client.set_ugi("bob", [])
        with pytest.raises(MetaException, match=r"User etl may not act for user bob: the rule proxy_users\.etl"):
            client.get_all_databases()


def test_a_bridge_proves_by_its_certificate_that_it_is_the_trusted_proxy(gateway, files):
    with bridge(gateway, files.proxy) as running, connected(running) as client:
        with pytest.raises(MetaException, match="does not accept the bridge's certificate: HTTP 401"):
            client.get_all_databases()
        for user in ("alice", "bob"):
            client.set_ugi(user, [])
            assert whose(client) == user
        client.set_ugi("eve", [])
        with pytest.raises(MetaException, match=r"may not act for user eve: the setting trusted_proxy\.users"):
            client.get_all_databases()
        client.set_ugi("bob", [])
        answers = (client.get_all_databases() for _ in range(ATTEMPTS_MAX))
        assert any("the gateway answers, but only for users named by clients" in running.log_text() for _ in answers)


def cli(gateway: GatewayServer, *words: str, **variables: str) -> Result:
    names = ("URL", "USER", "PASSWORD", "CACERT", "CERTIFICATE", "KEY", "PROFILE", "PROFILES")
    nothing = dict.fromkeys((f"HMS_GATEWAY_{name}" for name in names), None)
    trusted = {"HMS_GATEWAY_URL": gateway.url, "HMS_GATEWAY_CACERT": str(gateway.data_dir / "certificate.pem")}
    return CliRunner(env={**nothing, **trusted, **variables}).invoke(application, ["call", *words])


def user_of_cli(gateway: GatewayServer, *words: str, **variables: str) -> str:
    """Who the gateway takes the command for."""
    grabbed = cli(gateway, *words, "grab_lease", '[{"db_name": "of_cli"}]', "60", "0", **variables)
    assert grabbed.exit_code == 0, grabbed.stderr
    (lease,) = json.loads(cli(gateway, *words, "list_lease", '[{"db_name": "of_cli"}]', **variables).stdout)
    assert cli(gateway, *words, "drop_lease", grabbed.stdout.strip(), "[]", **variables).exit_code == 0
    user: str = lease["user"]
    return user


def split(file: Path, folder: Path) -> tuple[Path, Path]:
    """The certificate and the key of a file, in a file each."""
    key, certificate = file.read_text().split("-----BEGIN CERTIFICATE")
    (folder / "certificate.pem").write_text("-----BEGIN CERTIFICATE" + certificate)
    (folder / "key.pem").write_text(key)
    return folder / "certificate.pem", folder / "key.pem"


def test_the_command_line_logs_in_by_options_variables_and_profiles(gateway, files, tmp_path):
    certificate, key = map(str, split(files.ann, tmp_path))
    (tmp_path / "password").write_text(gateway.password)
    profiles = tmp_path / "profiles.toml"
    profiles.write_text('[p]\ncertificate = "certificate.pem"\nkey = "key.pem"\n[q]\ncertificate = "both.pem"\n')
    (tmp_path / "both.pem").write_bytes(files.ann.read_bytes())
    named = {"HMS_GATEWAY_PROFILES": str(profiles)}
    etl = {"HMS_GATEWAY_CERTIFICATE": str(files.etl), "HMS_GATEWAY_KEY": str(files.etl)}
    assert user_of_cli(gateway, "--certificate", certificate, "--key", key) == "ann"
    # A password of the environment may be that of another gateway.
    assert user_of_cli(gateway, HMS_GATEWAY_PASSWORD="wrong", **etl) == "etl"
    assert user_of_cli(gateway, "--profile", "p", **named) == "ann"
    assert user_of_cli(gateway, "--profile", "q", **named, **etl) == "ann"
    password = ("--user", gateway.user, "--password-file", str(tmp_path / "password"))
    assert user_of_cli(gateway, "--certificate", str(files.ann), *password) == gateway.user
    refused = cli(gateway, "--certificate", str(files.proxy), "getName")
    assert (refused.exit_code, "answers 401" in refused.stderr) == (2, True)


def test_what_a_certificate_that_the_gateway_refuses_looks_like_is_said(gateway, tmp_path):
    forged, _ = ClientAuthority(tmp_path).write("ann")
    refused = cli(gateway, "--certificate", str(forged), "getName")
    assert refused.exit_code == 2
    assert "refuses the client certificate, or needs one" in refused.stderr
    with bridge(gateway, forged, "--patience", "0") as running:
        with connected(running) as client, contextlib.suppress(MetaException, TTransportException):
            client.get_all_databases()
        running.stop()
    assert "refuses the bridge's certificate, or needs one" in running.log_text()


def test_programs_and_the_pipeline_log_in_with_certificate_and_key(gateway, files, tmp_path):
    options = {"url": gateway.url, "cafile": str(gateway.data_dir / "certificate.pem")}
    certificate, key = map(str, split(files.ann, tmp_path))
    connection = Connection.of({**options, "user": "eve", "certificate": certificate, "key": key}, {})
    assert "PRIVATE" not in repr(connection)
    # What executors get has no need for the files.
    Path(key).unlink()
    with connection.open() as client:
        assert whose(client) == "ann"
    from_environment = {"HMS_GATEWAY_CERTIFICATE": str(files.etl), "HMS_GATEWAY_PASSWORD": "wrong"}
    with Connection.of(options, from_environment).open() as client:
        assert whose(client) == "etl"
    given = {"user": gateway.user, "password": gateway.password, "certificate": str(files.ann)}
    with Connection.of({**options, **given}, {}).open() as client:
        assert whose(client) == gateway.user
    with Connection.of(options, {}).open() as client, pytest.raises(NotAuthorized) as caught:
        client.call("getName")
    assert "a client certificate" in caught.value.hint
