"""Enforcement of rights where no setting says so: a new installation begins with grants, an older one goes on."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.authorization import authorization_of, settled
from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.migrations.revisions import migrate
from tests.support.catalog import place_empty_database
from tests.support.server import GatewayServer, ServerDidNotStart, basic, free_port

CALL = b'[1,"get_all_databases",1,1,{}]'


@pytest.fixture(params=["sqlite", "empty file", pytest.param("server", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """A folder without a database, one whose database has a schema, a database that `migrate` has made."""
    given: dict[str, Any] = {"data_dir": tmp_path, "file_systems": {"file": "ignore"}}
    if request.param == "empty file":
        place_empty_database(tmp_path / DATABASE_FILE)
    if request.param == "server":
        given["database_url"] = request.getfixturevalue("fresh_postgres_database")
        assert authorization_of(Settings(**given)) == "grants"
        migrate(given["database_url"])
    return given


def serve(settings: Settings) -> None:
    build_metastore(settings).store.close()


def test_a_new_installation_begins_with_grants_and_keeps_them(place: dict[str, Any]) -> None:
    unset = Settings(**place)
    assert authorization_of(unset) == "grants"
    for _ in range(2):
        # Another gateway, or the next start.
        assert settled(unset).authorization == authorization_of(unset) == "grants"
        serve(settled(unset))


def test_gateways_that_begin_together_agree(place: dict[str, Any]) -> None:
    with ThreadPoolExecutor(6) as threads:
        begun = list(threads.map(settled, [Settings(**place, authorization="off"), *[Settings(**place)] * 5]))
    assert {one.authorization for one in begun[1:]} == {"grants"}


def test_an_installation_of_an_earlier_version_goes_on_as_it_was(place: dict[str, Any]) -> None:
    unset = Settings(**place)
    serve(unset)  # what an earlier version did
    assert authorization_of(unset) == settled(unset).authorization == settled(unset).authorization == "off"


@pytest.mark.parametrize("chosen", ["off", "grants"])
def test_the_setting_wins_and_one_that_goes_opens_nothing(place: dict[str, Any], chosen: str) -> None:
    settings = Settings(**place, authorization=chosen)
    serve(settled(settings))
    assert settled(settings).authorization == authorization_of(settings) == chosen
    assert settled(Settings(**place)).authorization == "grants"


def test_nothing_is_made_by_a_question(tmp_path: Path) -> None:
    assert authorization_of(Settings(data_dir=tmp_path)) == "grants"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / DATABASE_FILE).write_bytes(b"no database")
    assert authorization_of(Settings(data_dir=tmp_path)) is None


def test_the_administrator_sees_no_difference_and_the_second_user_the_default_database(tmp_path: Path) -> None:
    add_user(tmp_path / "users", "bob", "bobs own word")
    add_user(tmp_path / "users", "admin", "correct horse: battery")
    with GatewayServer(tmp_path, settings={"authorization": None}, demo=True) as server:
        assert b"hmshttptestdatabase" in server.post(CALL)[1]
        assert server.post(CALL, headers=basic("bob", "bobs own word"))[1].endswith(b'["str",1,"default"]}}]')
        assert server.post(b'[1,"create_role",1,1,{"1":{"rec":{"1":{"str":"r"}}}}]')[1].endswith(b'{"0":{"tf":1}}]')
        granted = GRANT % b"bob"
        assert server.post(granted, headers=basic("bob", "bobs own word"))[1].find(b"Permission denied") > 0
        assert server.post(granted)[1].endswith(b'{"0":{"tf":1}}]')
    # The next start says who has been made an administrator.
    with GatewayServer(tmp_path, settings={"authorization": None}) as server:
        wait_for(server, "administrators: user admin (setting), user bob (role admin)")


GRANT = b'[1,"grant_role",1,1,{"1":{"str":"admin"},"2":{"str":"%s"},"3":{"i32":1}}]'


def wait_for(server: GatewayServer, line: str) -> None:
    """A thread tells what is stored."""
    ends = time.monotonic() + 30
    while line not in server.log_text():
        assert time.monotonic() < ends, server.log_text()


def test_an_older_installation_is_told_at_the_start(tmp_path: Path) -> None:
    serve(Settings(data_dir=tmp_path))
    with GatewayServer(tmp_path, settings={"authorization": None}) as server:
        assert server.log_text().count("authorization is not set") == 1
        assert "administrators:" not in server.log_text()
    with GatewayServer(tmp_path, settings={"authorization": "off"}) as server:
        assert server.log_text().count("authorization is not set") == 1


def test_a_new_installation_without_administrators_does_not_start_with_a_port(tmp_path: Path) -> None:
    settings = {"authorization": None, "thrift_port": free_port(), "administrators": []}
    with pytest.raises(ServerDidNotStart, match="acts as the first of administrators, which is empty"):
        GatewayServer(tmp_path, settings=settings).start()
