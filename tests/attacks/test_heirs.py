"""Users added under the name of one who was removed, with what that one was granted and owned."""

import os
import sqlite3

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.gateway.auth.users import list_users
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    Database,
    Function,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.support.catalog import new_table, place_empty_database

LEFT = (
    "the role admin",
    "select on table default.t",
    "all on the whole catalog",
    "database bobs, as its owner",
    "table default.t, as its owner",
    "function default.f, as its owner",
)
USER = PrincipalType.USER


@pytest.fixture
def user(tmp_path, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)
    place_empty_database(tmp_path / DATABASE_FILE)

    def run(*words: str, stdin: str = "a password\n") -> Result:
        return CliRunner().invoke(application, [*words, "--data-dir", str(tmp_path)], input=stdin)

    return run


def give_bob(folder) -> None:
    """Something of each kind, beside what others of the name have."""
    metastore = build_metastore(Settings(data_dir=folder, file_systems={"file": "ignore"}))
    try:
        admin = Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3, "admin")
        admin.ask("create_database", Database("bobs", ownerName="bob", ownerType=USER))
        admin.ask("create_database", Database("of_a_role", ownerName="bob", ownerType=PrincipalType.ROLE))
        table = new_table()
        table.owner = "bob"
        admin.ask("create_table", table)
        function = Function("f", "default", "a.Class", "bob", USER, 0, 1, [])
        admin.ask("create_function", function)
        admin.ask("grant_role", "admin", "bob", USER, "admin", USER, False)
        for on in (HiveObjectRef(HiveObjectType.TABLE, "default", "t"), HiveObjectRef(HiveObjectType.GLOBAL)):
            privilege = "SELECT" if on.dbName else "ALL"
            info = PrivilegeGrantInfo(privilege, 0, "admin", USER, False)
            admin.ask("grant_privileges", PrivilegeBag([HiveObjectPrivilege(on, "bob", USER, info)]))
    finally:
        metastore.store.close()


def test_a_new_user_of_the_name_does_not_inherit(user, tmp_path):
    assert user("user", "add", "bob", "--password-stdin").exit_code == 0
    give_bob(tmp_path)
    removed = user("user", "remove", "bob")
    assert removed.exit_code == 0
    for what in LEFT:
        assert what in removed.stdout
    assert "of_a_role" not in removed.stdout
    user("token", "create", "bob")
    refused = user("user", "add", "bob", "--password-stdin")
    assert (refused.exit_code, list_users(tmp_path / "users")) == (2, [])
    for what in (*LEFT, "the token "):
        assert what in refused.stderr
    assert "hms-gateway revoke" in refused.stderr
    assert user("user", "add", "bobby", "--password-stdin").exit_code == 0
    assert user("user", "add", "bob", "--password-stdin", "--inherit").exit_code == 0
    # A new password of a user who is there.
    assert user("user", "add", "bob", "--password-stdin").exit_code == 0


def test_a_database_that_is_away_adds_no_user_blindly(user, tmp_path):
    (tmp_path / DATABASE_FILE).write_bytes(b"this is not a database" * 100)
    assert user("user", "add", "bob", "--password-stdin").exit_code == 2
    assert list_users(tmp_path / "users") == []
    assert user("user", "add", "bob", "--password-stdin", "--inherit").exit_code == 0


@pytest.mark.slow
def test_a_command_without_the_gateways_settings_says_what_it_does_not_know(user, tmp_path):
    (tmp_path / DATABASE_FILE).unlink()
    assert user("user", "add", "ann", "--password-stdin").stderr == ""
    for words in (("add", "bob", "--password-stdin"), ("remove", "bob")):
        said = user("user", *words)
        assert (said.exit_code, "give the command the gateway's settings" in said.stderr) == (0, True)
    assert not (tmp_path / DATABASE_FILE).exists()


@pytest.mark.slow
def test_a_database_without_a_schema_yet_leaves_nothing_behind(user, tmp_path, monkeypatch):
    monkeypatch.setenv("HMS_GATEWAY_DATABASE_URL", f"sqlite:///{tmp_path}/elsewhere.db")
    (tmp_path / "elsewhere.db").touch(0o600)
    for name in ("ann", "bob"):
        added = user("user", "add", name, "--password-stdin")
        assert (added.exit_code, added.stderr) == (0, "")


def test_a_catalog_of_another_version_is_not_migrated(user, tmp_path):
    with sqlite3.connect(tmp_path / DATABASE_FILE) as database:
        database.execute("UPDATE alembic_version SET version_num = '0001'")
    database.close()
    refused = user("user", "add", "ann", "--password-stdin")
    assert (refused.exit_code, "the catalog has revision 0001" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_a_short_password_is_taken_when_asked_to(user, tmp_path):
    refused = user("user", "add", "bob", "--password-stdin", stdin="1234567\n")
    assert (refused.exit_code, "7 characters; take 8 or more" in refused.stderr) == (2, True)
    assert "1234567" not in refused.output
    assert user("user", "add", "bob", "--password-stdin", "--allow-short", stdin="1234567\n").exit_code == 0
    assert user("user", "add", "ann", "--password-stdin", stdin="12345678\n").exit_code == 0
