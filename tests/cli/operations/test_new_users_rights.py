"""Said to who adds a second user."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.runtime.settings import Settings
from tests.support.catalog import place_empty_database


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)
    place_empty_database(tmp_path / DATABASE_FILE)
    return tmp_path


@pytest.mark.slow
def test_a_second_user_is_the_time_for_authorization(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(name: str, *more: str) -> str:
        words = ["user", "add", name, "--password-stdin", "--data-dir", str(folder), *more]
        return CliRunner().invoke(application, words, input="a secret of some length\n").stdout

    assert "rights" not in add("alice")
    assert "bob sees the database default, and what grants" in add("bob")
    assert "rights" not in add("bob")
    assert "rights" not in add("admin")
    build_metastore(Settings(data_dir=folder)).store.close()  # what an earlier version did
    assert 'authorization = "grants" lets' in add("cleo")
    monkeypatch.setenv("HMS_GATEWAY_AUTHORIZATION", "grants")
    assert "dora sees the database default" in add("dora")
    monkeypatch.setenv("HMS_GATEWAY_AUTHORIZATION", "off")
    assert "rights" not in add("emil")
    monkeypatch.delenv("HMS_GATEWAY_AUTHORIZATION")
    (folder / DATABASE_FILE).write_bytes(b"no database")
    assert "is said by the gateway's setting authorization" in add("fred", "--inherit")
