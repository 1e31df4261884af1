"""No command shows a piece of the password of a database URL, however the URL is written and whatever is wrong."""

import json
import re

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.cli.operations.doctor import findings
from hms_gateway.runtime.settings import Settings
from tests.support.private_mariadb import PrivateMariadb

COMMANDS = ("serve", "migrate", "doctor", "check", "backup copy.db")
URLS = (
    "postgresql+psycopg://hms:pw1@pw2@127.0.0.1:9/hms",
    "postgresql+psycopg://hms:pw1@pw2:pw3@127.0.0.1:9/hms",
    "postgresql+psycopg://hms:pw1@pw2/pw3@127.0.0.1:9/hms",
    "postgresql+psycopg://hms:pw1@127.0.0.1:9/pw2?pw3@127.0.0.1:9/hms",
    "postgresql+psycopg://hms:pw1@127.0.0.1:pw2/hms",
    "postgresql+psycopg://hms:pw1",
    "postgresql+psycopg:hms:pw1@127.0.0.1:9/hms",
    "postgresql+psycopg://hms:pw1@127.0.0.1:9/hms?connect_timeout=2s",
    "postgresql+psycopg://hms:pw1@127.0.0.1:9/hms",
    "mariadb+pymysql://hms:pw1@pw2@127.0.0.1:9/hms",
    "mariadb+pymysql://hms:pw1@127.0.0.1:9/hms?charset=other&ssl_verify_cert=other",
    "mariadb+pymysql://hms:pw1@127.0.0.1:9/hms",
)


def run(command: str, tmp_path, **variables: str) -> Result:
    return CliRunner().invoke(application, [*command.split(), "--data-dir", str(tmp_path / "var")], env=variables)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", URLS)
def test_no_piece_is_shown(url, command, tmp_path):
    result = run(command, tmp_path, HMS_GATEWAY_DATABASE_URL=url)
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert not re.search(r"pw[123]", result.output), result.output


def test_what_to_write_is_said(tmp_path):
    result = run("migrate", tmp_path, HMS_GATEWAY_DATABASE_URL=URLS[0])
    assert "write an @ in the password as %40" in result.stderr


@pytest.mark.parametrize("line", [f'database_url = ["{URLS[0]}"]', f'database_url = {{ url = "{URLS[0]}" }}'])
def test_a_setting_of_another_type_is_not_repeated(tmp_path, line):
    (tmp_path / "hms.toml").write_text(line)
    result = run("migrate", tmp_path, HMS_GATEWAY_CONFIG=str(tmp_path / "hms.toml"))
    assert "database_url must be a text" in result.stderr
    assert "pw1" not in result.output


def test_a_refused_login_names_user_and_setting(database_server, tmp_path):
    url = database_server.url()
    if isinstance(database_server, PrivateMariadb):
        url = url.replace(url[url.index("//") + 2 : url.index("@")], "nobody:pw1", 1)
    else:
        url = url.replace("postgres@", "nobody:pw1@")
    result = run("migrate", tmp_path, HMS_GATEWAY_DATABASE_URL=url)
    assert "the database refuses the gateway's login" in result.stderr
    assert 'user "nobody" of database_url (HMS_GATEWAY_DATABASE_URL)' in result.stderr
    assert "cannot be reached" not in result.stderr
    [found] = [
        one for one in findings(Settings(data_dir=tmp_path, database_url=url, port=0), ()) if one.level == "error"
    ]
    assert "refuses the gateway's login" in found.text
    assert "pw1" not in json.dumps(found) + result.output
