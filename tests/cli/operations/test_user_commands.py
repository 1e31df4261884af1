"""`hms-gateway user …` through the command line."""

import os
import stat

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.gateway.auth.users import verify_user

runner = CliRunner()


@pytest.fixture
def user(tmp_path, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)

    def run(*words: str, stdin: str = "") -> Result:
        return runner.invoke(application, ["user", *words, "--data-dir", str(tmp_path)], input=stdin)

    return run


def test_a_user_is_added_listed_and_removed(user, tmp_path):
    added = user("add", "alice", "--password-stdin", stdin="a secret\n").stdout
    assert added == f"alice added to {tmp_path / 'users'}\n"
    assert verify_user(tmp_path / "users", "alice", "a secret")
    assert user("list").stdout == "alice\n"
    assert user("remove", "alice").stdout == "alice removed\n"
    assert user("list").stdout == ""


@pytest.mark.slow
def test_adding_again_sets_a_new_password(user, tmp_path):
    user("add", "alice", "--password-stdin", stdin="the first\n")
    assert user("add", "alice", "--password-stdin", stdin="the second\n").exit_code == 0
    assert verify_user(tmp_path / "users", "alice", "the second")
    assert not verify_user(tmp_path / "users", "alice", "the first")


def test_the_password_file_is_private_and_holds_no_password(user, tmp_path):
    user("add", "alice", "--password-stdin", stdin="a secret\n")
    file = tmp_path / "users"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "a secret" not in file.read_text()


def test_a_password_cannot_be_asked_for_without_a_terminal(user):
    result = user("add", "alice")
    assert result.exit_code == 2
    assert "--password-stdin" in result.stderr


@pytest.mark.parametrize(
    ("words", "stdin", "text"),
    [
        (("list",), "", "does not exist"),
        (("remove", "nobody"), "", "has no user nobody"),
        (("add", "al:ice", "--password-stdin"), "x\n", "no colon"),
        (("add", "alice", "--password-stdin"), "\n", "empty password"),
        (("add", "alice", "--password-stdin"), "a\n", "the password has 1 characters; take 8 or more"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(user, words, stdin, text):
    result = user(*words, stdin=stdin)
    assert result.exit_code == 2
    assert text in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("error: ")]) == 1


def test_a_short_password_is_taken_on_request(user):
    assert user("add", "alice", "--password-stdin", "--allow-short", stdin="a\n").exit_code == 0


def test_an_unknown_setting_is_named(user, monkeypatch):
    monkeypatch.setenv("HMS_GATEWAY_COLOUR", "red")
    result = user("list")
    assert result.exit_code == 2
    assert "HMS_GATEWAY_COLOUR" in result.stderr


@pytest.mark.parametrize("command", ["user add alice --password-stdin", "token create alice"])
def test_a_data_folder_that_nobody_asked_for_is_not_made(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hms.toml").write_text('data_dir = "./var"')
    words = [*command.split(), "--config", "hms.toml"]
    result = runner.invoke(application, words, input="a password\n")
    assert result.exit_code == 2, result.output
    assert f"data_dir {tmp_path / 'var'} of hms.toml does not exist" in result.stderr
    assert not (tmp_path / "var").exists()
    assert runner.invoke(application, [*words, "--data-dir", "var"], input="a password\n").exit_code == 0
    assert runner.invoke(application, words, input="a password\n").exit_code == 0
