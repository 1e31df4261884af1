"""Certificates that cannot be shown end a command before it calls, in one line that names the option."""

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from tests.support.answering import always, answering
from tests.support.certificates import write_certificate

HTTPS = "https://127.0.0.1:1/hms"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    write_certificate(folder / "ann.pem", folder / "ann-key.pem")
    write_certificate(folder / "eve.pem", folder / "eve-key.pem")
    return folder


def test_variables_do_not_count_where_nothing_can_be_shown(monkeypatch, folder):
    monkeypatch.chdir(folder)
    variables = {"HMS_GATEWAY_CERTIFICATE": "ann.pem", "HMS_GATEWAY_KEY": "ann-key.pem", "HMS_GATEWAY_PASSWORD": "x"}
    with answering(always(200, b'[1,"getName",2,1,{"0":{"str":"hms"}}]')) as url:
        found = CliRunner(env=variables).invoke(application, ["call", "--url", url, "getName"])
        alone = {**variables, "HMS_GATEWAY_CERTIFICATE": None}
        assert CliRunner(env=alone).invoke(application, ["call", "--url", url, "getName"]).exit_code == 0
    assert (found.exit_code, found.stdout) == (0, '"hms"\n'), found.stderr


@pytest.mark.parametrize(
    "command",
    [("call", "getName"), ("bridge", "--no-call-log", "--port", "0", "--health-port", "0")],
    ids=lambda it: it[0],
)
@pytest.mark.parametrize(
    ("url", "words", "text"),
    [
        (HTTPS, "--certificate nowhere.pem", "--certificate: nowhere.pem cannot be read: "),
        (
            HTTPS,
            "--certificate ann.pem",
            "--certificate: ann.pem has no private key; name its file with the option key",
        ),
        (HTTPS, "--certificate ann.pem --key no.pem", "--key: no.pem cannot be read: "),
        (
            HTTPS,
            "--certificate ann.pem --key eve-key.pem",
            "--key: the key in eve-key.pem is not that of the certificate",
        ),
        (HTTPS, "--key ann-key.pem", "--key ann-key.pem has no effect without --certificate"),
        (
            "http://127.0.0.1:1/hms",
            "--certificate ann.pem --key ann-key.pem",
            "--certificate ann.pem cannot be shown to ",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_line(monkeypatch, folder, command, url, words, text):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("hms_gateway.runtime.logging.configure_logging", lambda *_: None)
    nothing = dict.fromkeys(("HMS_GATEWAY_CERTIFICATE", "HMS_GATEWAY_KEY", "HMS_GATEWAY_PASSWORD"), None)
    name, *others = command
    result = CliRunner(env=nothing).invoke(application, [name, "--url", url, *words.split(), *others])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {text}")
    assert result.stderr.count("\n") == 1
