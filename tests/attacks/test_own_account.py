"""A client of the Thrift port without a login names itself to get other rights than it has, or to hide."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.cli.operations.start_checks import start_problems
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.rpc.structs import ChangesRequest, Database
from hms_gateway.runtime.settings_reading import load_settings
from tests.attacks.test_other_accounts import Place
from tests.bridge.bridge_process import connected
from tests.support.server import GatewayServer, basic, free_port

CALL = b'[1,"get_all_databases",1,1,{}]'
SECONDS_MAX = 10
NAMES = ["bob", "admin", "nobody", "", "a\0b", "a\x1b[2J"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder, port = tmp_path_factory.mktemp("own"), free_port()
    settings = {"authorization": "grants", "thrift_port": port, "audit_log": f"{folder}/audit.jsonl"}
    add_user(folder / "users", "admin", "administrator")
    add_user(folder / "users", "bob", "bobs own word")
    with GatewayServer(folder, settings=settings) as gateway:
        yield Place(gateway, port)


@pytest.mark.parametrize("name", NAMES)
def test_the_rights_are_those_of_the_administrator_whatever_the_name(place: Place, name: str) -> None:
    with connected(place) as client:
        if name:
            client.set_ugi(name, ["staff"])
        client.create_database(Database(f"by_{NAMES.index(name)}"))
        assert client.grant_role("admin", f"user{NAMES.index(name)}", 1, "admin", 1, False)
        assert f"by_{NAMES.index(name)}" in client.get_all_databases()
    body = place.gateway.post(CALL, headers=basic("bob", "bobs own word"))[1]
    assert json.loads(body)[4]["0"]["lst"] == ["str", 1, "default"]


def test_records_have_the_name_beside_the_administrators(place: Place) -> None:
    with connected(place) as client:
        client.set_ugi("spark", [])
        client.create_database(Database("recorded"))
        newest = client.list_changes(ChangesRequest(limit=1))[0]
    assert (newest.user, newest.real_user, newest.db_name) == ("admin", "spark", "recorded")
    ends = time.monotonic() + SECONDS_MAX
    while not (found := [line for line in audited(place) if line["real_user"] == "spark"]):
        assert time.monotonic() < ends
    assert {line["user"] for line in found} == {"admin"}


def audited(place: Place) -> list[dict[str, str]]:
    text = (place.gateway.data_dir / "audit.jsonl").read_text("utf-8")
    return [{"real_user": "", **json.loads(line)} for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({}, None),
        ({"thrift_sasl": "allow"}, None),
        ({"thrift_networks": ["127.0.0.1"]}, None),
        ({"administrators": []}, "administrators"),
        ({"administrators": [], "thrift_sasl": "require"}, None),
    ],
)
def test_a_port_that_gives_others_the_rights_of_the_administrator_is_refused(tmp_path: Path, given, refused) -> None:
    settings = load_settings(data_dir=tmp_path, authorization="grants", thrift_port=9083, **given)
    problems = start_problems(settings)
    assert any(refused in problem for problem in problems) if refused else not problems
