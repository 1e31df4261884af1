"""`hms-gateway token …` through the command line."""

import contextlib
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hms_gateway.catalog.tokens import DelegationTokens, SealedTokens, TokenTimes
from hms_gateway.cli.application import application
from hms_gateway.gateway.auth.tokens import TokenUses, digest_of, read_tokens
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.sealing import Seal
from hms_gateway.storage.writing.store import open_store

runner = CliRunner()


@pytest.fixture
def run(tmp_path, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)

    def run(*words: str, stdin: str = "") -> Result:
        return runner.invoke(application, [*words, "--data-dir", str(tmp_path)], input=stdin)

    return run


def test_a_token_is_printed_once_and_alone(run, tmp_path):
    created = run("token", "create", "etl", "--ttl", "12h", "--note", "nightly jobs")
    [token] = read_tokens(tmp_path / "tokens")
    assert digest_of(created.stdout.removesuffix("\n")) == token.sha256
    assert (token.user, token.expires - token.created, token.note) == ("etl", 12 * 3_600, "nightly jobs")
    assert f"token {token.id} of etl in {tmp_path / 'tokens'}" in created.stderr
    assert "etl has no password" in created.stderr
    assert created.stdout.strip() not in run("token", "list").stdout


def test_tokens_are_listed_with_their_last_use(run, tmp_path):
    run("token", "create", "etl")
    run("token", "create", "ann", "--ttl", "1d", "--note", "laptop")
    used, unused = read_tokens(tmp_path / "tokens")
    TokenUses(tmp_path / "token-uses").note(used)
    lines = [line.split("\t") for line in run("token", "list").stdout.splitlines()]
    assert lines[0] == ["Token ID", "User", "Created", "Expires", "Last used", "Note"]
    assert [line[:2] for line in lines[1:]] == [[used.id, "etl"], [unused.id, "ann"]]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", lines[1][4])
    assert lines[2][4:] == ["never", "laptop"]


def test_tokens_are_revoked(run, tmp_path):
    for user in ("etl", "ann", "ann"):
        run("token", "create", user)
    etl, *others = read_tokens(tmp_path / "tokens")
    TokenUses(tmp_path / "token-uses").note(etl)
    assert run("token", "revoke", etl.id).exit_code == 0
    assert read_tokens(tmp_path / "tokens") == others
    assert list((tmp_path / "token-uses").iterdir()) == []
    assert run("token", "revoke", "--user", "ann").exit_code == 0
    assert read_tokens(tmp_path / "tokens") == []


def test_a_user_is_removed_with_the_tokens(run, tmp_path):
    run("user", "add", "ann", "--password-stdin", stdin="a secret\n")
    assert "has no password" not in run("token", "create", "ann").stderr
    run("token", "create", "etl")
    assert run("user", "remove", "ann").stdout == "ann removed with 1 token\n"
    assert [token.user for token in read_tokens(tmp_path / "tokens")] == ["etl"]
    assert run("user", "remove", "etl").stdout == "etl removed with 1 token\n"
    assert run("user", "remove", "etl").exit_code == 2


def delegation_tokens(folder: Path, *names: tuple[str, str]) -> None:
    """Made by a gateway of this folder for owners, with who has asked for each."""
    store = open_store(f"sqlite:///{folder / 'metastore.db'}", SystemClock(), Limits())
    with contextlib.closing(store):
        service = SealedTokens(store, Seal(folder / "secrets.key"))
        tokens = DelegationTokens(store, service, SystemClock(), TokenTimes(1_000, 1_000), Limits())
        for owner, real_user in names:
            tokens.issue(owner, "yarn", real_user)


@pytest.mark.slow
def test_delegation_tokens_end_with_their_user_and_of_a_user_of_another_login(run, tmp_path):
    """Also where the command does not have the setting that the gateway was given."""
    delegation_tokens(tmp_path, ("ann", ""), ("ann", "hue"), ("bo", "ann"), ("bo", ""), ("bo", "hue"))
    run("user", "add", "ann", "--password-stdin", stdin="a secret\n")
    removed = run("user", "remove", "ann").stdout
    assert removed == "ann removed\n3 delegation tokens of ann cancelled\n"
    assert "token revoke --user bo" in run("user", "remove", "bo").stderr
    assert run("token", "revoke", "--user", "bo").stderr == "2 delegation tokens of bo cancelled\n"
    assert run("token", "revoke", "--user", "bo").stderr == ""


def test_a_user_is_removed_while_the_database_is_away(run, tmp_path):
    run("user", "add", "ann", "--password-stdin", stdin="a secret\n")
    (tmp_path / "metastore.db").write_bytes(b"this is not a database" * 100)
    removed = run("user", "remove", "ann")
    assert (removed.exit_code, removed.stdout) == (2, "ann removed\n")
    assert run("user", "list").stdout == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("create", "etl", "--ttl", "soon"), "'soon' is not a whole number with s, m, h, d, w behind it"),
        (("create", "etl", "--ttl", "90"), "'90' is not a whole number with s"),
        (("create", "etl", "--ttl", "0d"), "a token is valid for 1 second to 3660 days"),
        (("create", "e:l"), "no colon"),
        (("revoke",), "which token?"),
        (("revoke", "0123456789ab"), "has no token 0123456789ab"),
    ],
)
def test_what_cannot_be_is_named(run, words, text):
    result = run("token", *words)
    assert result.exit_code == 2
    assert text in result.stderr


def test_a_broken_file_is_named(run, tmp_path):
    (tmp_path / "tokens").write_text("broken\n")
    for words in (("list",), ("create", "etl"), ("revoke", "--user", "etl")):
        result = run("token", *words)
        assert result.exit_code == 2
        assert f"{tmp_path / 'tokens'} line 1 is not a token" in result.stderr
