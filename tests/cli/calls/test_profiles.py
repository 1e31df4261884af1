"""Profiles, and which certificate is trusted without being named."""

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from tests.support.answering import answering

NAME = b'[1,"getName",2,1,{"0":{"str":"hms"}}]'


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls getName with a profile `p` that has these lines; gives the result and the headers that arrived."""
    for variable in ("HMS_GATEWAY_URL", "HMS_GATEWAY_USER", "HMS_GATEWAY_PASSWORD", "HMS_GATEWAY_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    file = tmp_path / "profiles.toml"
    monkeypatch.setenv("HMS_GATEWAY_PROFILES", str(file))

    def invoke(lines, *words, profile="p", environment=None):
        seen = []

        def answer(body, headers):
            seen.append(headers)
            return 200, NAME

        with answering(answer) as url:
            file.write_text(f"[p]\n{lines.replace('URL', url)}\n[other]\n")
            command = ["call", *(["--profile", profile] if profile else []), *words, "getName"]
            return CliRunner().invoke(application, command, env=environment or {}), seen

    return invoke


def test_a_profile_says_whom_to_call_and_as_whom(call, tmp_path):
    (tmp_path / "secret").write_text("from file\n")
    result, seen = call('url = "URL"\nuser = "bob"\npassword_file = "secret"\nheaders = ["X-A: b"]')
    assert result.exit_code == 0, result.stderr
    assert (seen[0]["Authorization"], seen[0]["X-A"]) == ("Basic Ym9iOmZyb20gZmlsZQ==", "b")


def test_the_variable_names_a_profile_and_other_variables_are_weaker(call):
    result, seen = call(
        'url = "URL"\nuser = "bob"',
        profile=None,
        environment={
            "HMS_GATEWAY_PROFILE": "p",
            "HMS_GATEWAY_URL": "http://127.0.0.1:9/x",
            "HMS_GATEWAY_USER": "eve",
            "HMS_GATEWAY_PASSWORD": "x",
        },
    )
    assert result.exit_code == 0, result.stderr
    assert seen[0]["Authorization"] == "Basic Ym9iOng="


def test_a_program_gives_the_token(call):
    result, seen = call("url = \"URL\"\ntoken_command = ['echo', 'hmsgw_abc']")
    assert result.exit_code == 0, result.stderr
    assert seen[0]["Authorization"] == "Bearer hmsgw_abc"


def test_options_of_the_command_line_are_stronger(call, tmp_path):
    (tmp_path / "token").write_text("hmsgw_other\n")
    lines = 'url = "URL"\nuser = "bob"\ntoken_command = [\'false\']'
    result, seen = call(lines, "--token-file", str(tmp_path / "token"))
    assert result.exit_code == 0, result.stderr
    assert seen[0]["Authorization"] == "Bearer hmsgw_other"


@pytest.mark.parametrize(
    ("lines", "profile", "expected"),
    [
        ("", "q", "profile q is not in"),
        ("", "othe", "did you mean other?"),
        ("ulr = 'x'", "p", "[p] has an unknown key ulr; did you mean url?"),
        ("timeout = 'x'", "p", "[p] timeout must be a number"),
        ("timeout = -1", "p", "[p] timeout must be a number from above 0"),
        ("timeout = nan", "p", "[p] timeout must be a number from above 0"),
        ("token_command = []", "p", "[p] token_command must not be empty"),
        ("headers = 'a'", "p", "[p] headers must be a list"),
        ("insecure = 1", "p", "[p] insecure must be true or false"),
        ("headers = [1]", "p", "[p] headers must be a text at [0]"),
        ("url = ", "p", "cannot be read"),
        ("token_command = ['false']", "p", "token_command false ended with exit status 1"),
        ("token_command = ['no-such-program']", "p", "token_command no-such-program cannot be run"),
        ("token_command = ['true']", "p", "token_command true has no token in its first line"),
    ],
)
def test_what_is_wrong_with_a_profile_is_named(call, lines, profile, expected):
    result, seen = call(lines, profile=profile)
    assert (result.exit_code, seen) == (2, [])
    assert expected in result.stderr


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HMS_GATEWAY_PROFILES", str(tmp_path / "nothing.toml"))
    result = CliRunner().invoke(application, ["call", "--profile", "p", "getName"])
    assert result.exit_code == 2
    assert "nothing.toml does not exist" in result.stderr


@pytest.fixture
def called(gateway):
    """Calls getName of the gateway without saying what to trust."""

    def invoke(**environment):
        variables = {"HMS_GATEWAY_PASSWORD": gateway.password, **environment}
        return CliRunner().invoke(application, ["call", "--url", gateway.url, "getName"], env=variables)

    return invoke


@pytest.mark.slow
def test_the_certificate_of_this_folders_server_is_trusted(called, gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "is not trusted" in called().stderr
    (tmp_path / "var").symlink_to(gateway.data_dir)
    assert called().exit_code == 0


@pytest.mark.slow
def test_variables_name_what_to_trust(called, gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert called(HMS_GATEWAY_CACERT=str(gateway.data_dir / "certificate.pem")).exit_code == 0
    assert called(HMS_GATEWAY_DATA_DIR=str(gateway.data_dir)).exit_code == 0
    assert called(HMS_GATEWAY_CACERT=str(tmp_path / "nothing.pem")).exit_code == 2


def test_other_machines_are_not_trusted_with_it(tmp_path, monkeypatch):
    from hms_gateway.cli.calls.targets import own_certificate

    monkeypatch.chdir(tmp_path)
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "certificate.pem").write_text("x")
    assert own_certificate("https://localhost:1/x") is not None
    assert own_certificate("https://localhost.example.org/x") is None
