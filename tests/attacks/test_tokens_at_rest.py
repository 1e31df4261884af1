"""H6 and the tokens of the database: readable for every user, and for everybody who reads a copy of the database."""

from pathlib import Path

import pytest

from hms_gateway.catalog.tokens import TokenRows
from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.structs import METHODS
from hms_gateway.runtime.settings import Settings
from tests.support.catalog import place_empty_database

TOKEN, MASTER_KEY = "c2VjcmV0LXRva2Vu", "bWFzdGVyLWtleS1vZi1hbGw="
CALLS = {
    "add_token": ("another", "eA=="),
    "remove_token": ("id",),
    "get_token": ("id",),
    "get_all_token_identifiers": (),
    "add_master_key": ("eA==",),
    "update_master_key": (1, "eA=="),
    "remove_master_key": (1,),
    "get_master_keys": (),
}


def settings_in(folder: Path, **more: object) -> Settings:
    place_empty_database(folder / DATABASE_FILE)
    return Settings(data_dir=folder, file_systems={"file": "ignore"}, **more)  # type: ignore[arg-type]


@pytest.fixture
def metastore(tmp_path):
    metastore = build_metastore(settings_in(tmp_path))
    yield metastore
    metastore.store.close()


def reply(metastore: Metastore, user: str, name: str, *values: object) -> Reply:
    codec, method = metastore.codecs.tjson, METHODS[name]
    before, after = codec.envelope(name, 1, 1)
    message = codec.read_message(before + codec.encode(method.arguments(*values)) + after)
    return metastore.processor.process(codec, message, Call(user))


def success(metastore: Metastore, name: str, *values: object) -> object:
    answer = reply(metastore, "admin", name, *values)
    assert answer.outcome == "ok", answer
    return metastore.codecs.tjson.decode(METHODS[name].result, answer.payload).success


def fill(metastore: Metastore) -> None:
    assert success(metastore, "add_token", "id", TOKEN)
    assert success(metastore, "add_master_key", MASTER_KEY) == 1


def assert_all_there(metastore: Metastore) -> None:
    assert success(metastore, "get_token", "id") == TOKEN
    assert success(metastore, "get_master_keys") == [MASTER_KEY]


def bytes_of_database(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("metastore.db*")))


@pytest.mark.parametrize("name", CALLS)
def test_only_administrators_may_use_them(metastore, name):
    fill(metastore)
    refused = reply(metastore, "ann", name, *CALLS[name])
    assert refused.outcome != "ok"
    assert b"user ann is not an administrator" in refused.payload
    assert_all_there(metastore)
    assert reply(metastore, "admin", name, *CALLS[name]).outcome == "ok"


def test_the_database_holds_neither(tmp_path):
    metastore = build_metastore(settings_in(tmp_path))
    fill(metastore)
    metastore.store.close()
    found = bytes_of_database(tmp_path)
    assert b"sealed-1:" in found
    assert TOKEN.encode() not in found
    assert MASTER_KEY.encode() not in found
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    again = build_metastore(settings_in(tmp_path))
    assert_all_there(again)
    again.store.close()


def test_those_of_earlier_versions_are_read_and_sealed(tmp_path):
    metastore = build_metastore(settings_in(tmp_path))
    metastore.store.write(lambda tx: TokenRows(tx).insert_token("id", TOKEN))
    metastore.store.write(lambda tx: TokenRows(tx).insert_master_key(MASTER_KEY))
    assert_all_there(metastore)
    [chore] = [chore for chore in metastore.chores if chore.name == "seal tokens"]
    assert chore.do() == 2
    assert chore.do() == 0
    assert_all_there(metastore)
    metastore.store.close()
    found = bytes_of_database(tmp_path)
    assert TOKEN.encode() not in found
    assert MASTER_KEY.encode() not in found


def test_a_gateway_with_another_key_says_so_and_makes_none(tmp_path, caplog):
    metastore = build_metastore(settings_in(tmp_path))
    fill(metastore)
    metastore.store.close()
    elsewhere = tmp_path / "replica" / "secrets.key"
    replica = build_metastore(settings_in(tmp_path, secrets_key_file=elsewhere))
    for name in ("get_token", "get_master_keys", "add_token", "add_master_key"):
        refused = reply(replica, "admin", name, *CALLS[name])
        assert b"secrets_key_file" in refused.payload
        assert b"not found" in refused.payload
    [chore] = [chore for chore in replica.chores if chore.name == "seal tokens"]
    for _ in range(2):
        chore.do()
    said = [record.message for record in caplog.records if "cannot be sealed" in record.message]
    assert [text.count("not found") for text in said] == [1]
    assert not elsewhere.exists()
    replica.store.close()


def test_the_key_can_be_changed(tmp_path):
    metastore = build_metastore(settings_in(tmp_path))
    fill(metastore)
    metastore.store.close()
    key_file = tmp_path / "secrets.key"
    old = key_file.read_text()
    key_file.write_text("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n" + old)
    changed = build_metastore(settings_in(tmp_path))
    [chore] = [chore for chore in changed.chores if chore.name == "seal tokens"]
    assert chore.do() == 2
    assert_all_there(changed)
    changed.store.close()
    key_file.write_text("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
    last = build_metastore(settings_in(tmp_path))
    assert_all_there(last)
    last.store.close()


def test_a_gateway_without_secrets_makes_no_key(metastore, tmp_path):
    for chore in metastore.chores:
        chore.do()
    assert not (tmp_path / "secrets.key").exists()
