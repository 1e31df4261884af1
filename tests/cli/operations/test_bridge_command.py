"""Options of `hms-gateway bridge`: what is refused before anything listens, and what reaches the bridge."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from hms_gateway.bridge.server.running import BridgeSettings
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.cli.application import application
from hms_gateway.runtime.logins.client_certificate import ClientCertificate
from tests.support.server import free_port


@pytest.fixture
def settings_of(monkeypatch):
    """Runs the command with these options; the settings it would have run the bridge with."""

    def settings_of(*options: str, **variables: str) -> BridgeSettings:
        given: list[BridgeSettings] = []
        monkeypatch.setattr(
            "hms_gateway.cli.operations.bridge_command.run_bridge", lambda settings, _announce: given.append(settings)
        )
        monkeypatch.setattr("hms_gateway.cli.operations.bridge_command.configure_logging", lambda *_: None)
        result = run(*options, **variables)
        assert result.exit_code == 0, result.output
        return given[0]

    return settings_of


def run(*options: str, **variables: str):
    return CliRunner(env={"HMS_GATEWAY_PASSWORD": None, **variables}).invoke(application, ["bridge", *options])


def test_the_password_comes_from_the_environment_or_a_file(settings_of, tmp_path: Path):
    (tmp_path / "password").write_text("from the file\r\nsecond line\n")
    assert settings_of(HMS_GATEWAY_PASSWORD="secret").credentials == Credentials("admin", "secret")
    from_file = settings_of("--user", "spark", "--password-file", str(tmp_path / "password"))
    assert from_file.credentials == Credentials("spark", "from the file")


def test_a_token_replaces_user_and_password(settings_of, tmp_path):
    (tmp_path / "token").write_text("hmsgw_abc\n")
    settings = settings_of("--token-file", str(tmp_path / "token"))
    assert (settings.token.text, settings.credentials) == ("hmsgw_abc", None)


def test_a_certificate_replaces_a_password_that_is_not_in_a_file(settings_of, tmp_path):
    (tmp_path / "password").write_text("from the file")
    words = ("--url", "https://localhost/hms", "--certificate", "c.pem")
    alone = settings_of(*words, "--key", "k.pem", HMS_GATEWAY_PASSWORD="of another gateway")
    assert (alone.certificate, alone.credentials) == (ClientCertificate(Path("c.pem"), Path("k.pem")), None)
    beside = settings_of(*words, "--password-file", str(tmp_path / "password"))
    assert beside.certificate == ClientCertificate(Path("c.pem"))
    assert beside.credentials == Credentials("admin", "from the file")


def test_sasl_may_go_without_a_password(settings_of):
    settings = settings_of("--sasl", "require")
    assert (settings.credentials, settings.server.sasl) == (None, "require")


def test_options_reach_the_bridge(settings_of):
    settings = settings_of(
        *("--encoding", "tjson", "--no-keys", "--do-as", "--patience", "1", "--clients", "7", "--no-health"),
        *("--host", "0.0.0.0", "--allow-remote", "--port", "0", "--connections", "3", "-k"),
        HMS_GATEWAY_PASSWORD="x",
    )
    assert (settings.encoding, settings.keeps_keys, settings.acts_for_users) == ("tjson", False, True)
    assert (settings.patience_seconds, settings.limits.connections_max, settings.side_port) == (1.0, 7, None)
    assert (settings.server.host, settings.server.allows_remote, settings.server.port) == ("0.0.0.0", True, 0)
    assert (settings.upstream_connections_max, settings.is_insecure) == (3, True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "no password"),
        (("--encoding", "json"), "'--encoding'"),
        (("--sasl", "kerberos"), "'--sasl'"),
        (("--log-level", "loud"), "'--log-level'"),
        (("--port", "99999"), "'--port'"),
        (("--connections", "0"), "'--connections'"),
        (("--timeout", "0"), "'--timeout'"),
        (("--password-file", "/nowhere/password"), "cannot be read"),
    ],
)
def test_wrong_options_are_one_line(options, text):
    result = run(*options)
    assert result.exit_code == 2
    assert text in result.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--host", "0.0.0.0"), "--allow-remote"),
        (("--url", "ftp://example.org/"), "not an http:// or https:// address"),
        (("--cacert", "/nowhere/ca.pem"), "certificate /nowhere/ca.pem cannot be read: "),
    ],
)
def test_what_keeps_the_bridge_from_starting_is_one_line(monkeypatch, options, text):
    monkeypatch.setattr("hms_gateway.cli.operations.bridge_command.configure_logging", lambda *_: None)
    result = run("--health-port", "0", "--no-call-log", *options, HMS_GATEWAY_PASSWORD="x")
    assert result.exit_code == 2
    assert text in result.stderr.replace("\n", " ")


def test_a_port_that_is_taken_is_said(monkeypatch):
    monkeypatch.setattr("hms_gateway.cli.operations.bridge_command.configure_logging", lambda *_: None)
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        result = run("--port", str(port), "--health-port", "0", "--no-call-log", HMS_GATEWAY_PASSWORD="x")
    assert result.exit_code == 2
    assert "in use" in result.stderr
    assert f"thrift://127.0.0.1:{port} " in result.stderr
