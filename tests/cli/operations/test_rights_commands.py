"""`hms-gateway may`, and what is said to who adds a second user."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.composition.main import DATABASE_FILE
from tests.support.catalog import place_empty_database

RULE = '[[rule]]\nname = "team"\ngroups = ["staff"]\nactions = ["create"]\nobjects = ["default"]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)
    place_empty_database(tmp_path / DATABASE_FILE)
    return tmp_path


def may(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(application, ["may", *words, "--data-dir", str(folder)])


def test_no_is_an_exit_status_and_a_reason(folder: Path) -> None:
    result = may(folder, "alice", "select", "sales.orders")
    assert result.exit_code == 1
    assert "no: no grant, rule or ownership gives alice select on table sales.orders" in result.output
    assert "note: table sales.orders does not exist" in result.output
    assert "every user may do everything" in result.output


def test_yes_names_what_gives_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rules.toml").write_text(RULE)
    monkeypatch.setenv("HMS_GATEWAY_AUTHORIZATION", "grants")
    monkeypatch.setenv("HMS_GATEWAY_AUTHORIZATION_RULES_FILE", str(folder / "rules.toml"))
    assert may(folder, "admin", "drop", "sales").output.startswith("yes: user admin is in the setting administrators")
    result = may(folder, "alice", "create", "default", "--group", "staff", "--group", "stuff")
    assert result.output.startswith("yes: ")
    assert "note: no grant, role or rule names the group stuff" in result.output
    assert "group staff" not in result.output.partition("note:")[2]


def test_a_second_user_is_the_time_for_authorization(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(name: str) -> str:
        words = ["user", "add", name, "--password-stdin", "--data-dir", str(folder)]
        return CliRunner().invoke(application, words, input="secret\n").stdout

    assert "authorization" not in add("alice")
    assert 'set authorization = "grants"' in add("bob")
    assert "authorization" not in add("bob")
    monkeypatch.setenv("HMS_GATEWAY_AUTHORIZATION", "off")
    assert "authorization" not in add("cleo")
