"""`hms-gateway healthy`: a gateway that runs answers at the address of its settings, with or without TLS."""

from pathlib import Path
from types import MappingProxyType

import click
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from hms_gateway.cli.application import application
from hms_gateway.cli.operations.health import own_url, run_health_check
from hms_gateway.gateway.certificates.tls import ClientRules, ensure_certificate, server_context
from hms_gateway.runtime.settings import CertificateLogins, Settings
from tests.gateway.serving import running
from tests.support.client_authority import ClientAuthority
from tests.support.server import GatewayServer, free_port


def asked(*words: str, **variables: str) -> Result:
    environment = {f"HMS_GATEWAY_{name.upper()}": value for name, value in variables.items()}
    return CliRunner().invoke(application, ["healthy", *words], env=MappingProxyType(environment))


@pytest.mark.parametrize("tls", [True, False])
def test_it_asks_the_port_of_the_settings(tmp_path: Path, tls: bool) -> None:
    variables = {"tls": str(tls).lower()}
    with GatewayServer(tmp_path, settings={"tls": tls}) as gateway:
        variables["port"] = str(gateway.port)
        answered = asked(**variables)
        assert (answered.exit_code, answered.stdout) == (0, f"http{'s' * tls}://127.0.0.1:{gateway.port} answers\n")
        by_options = asked("--port", variables["port"], "--tls" if tls else "--no-tls", port="9")
        assert by_options.stdout == answered.stdout
        assert asked("--no-tls" if tls else "--tls", **variables).exit_code == 1
    assert asked(**variables).exit_code == 1


def test_a_gateway_that_demands_a_certificate_is_alive(tmp_path: Path) -> None:
    authority = tmp_path / "users.pem"
    authority.write_bytes(ClientAuthority(tmp_path).pem)
    made = ensure_certificate(tmp_path)
    rules = ClientRules((("client_certificates.authority", authority),), is_required=True)
    with running(tls=server_context(made.certificate, made.key, rules)) as server:
        settings = Settings(port=server.port)
        demanding = replace(settings, client_certificates=CertificateLogins(authority=authority, use="require"))
        run_health_check(demanding)
        with pytest.raises(click.exceptions.Exit):
            run_health_check(settings)


def test_nothing_listens() -> None:
    port = free_port()
    silent = asked("--port", str(port))
    assert silent.exit_code == 1
    assert f"https://127.0.0.1:{port} does not answer: [Errno 111] Connection refused" in silent.stderr


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "https://localhost:30443"),
        ("::", "https://localhost:30443"),
        ("10.0.0.5", "https://10.0.0.5:30443"),
        ("::1", "https://[::1]:30443"),
    ],
)
def test_the_address_is_that_of_the_settings(host: str, url: str) -> None:
    assert own_url(Settings(host=host)) == url
