"""Rights at the HTTP door of a real server: cached replies, what a client holds already, rules that change."""

import os
import time
from collections.abc import Iterator

import pytest

from hms_gateway.composition.demo import DATABASE, TABLE
from hms_gateway.gateway.auth.users import add_user
from tests.support.patience import until
from tests.support.server import API_PATH, METASTORE_PATH, GatewayServer, basic

RULE = f'[[rule]]\nusers = ["alice"]\nactions = ["select"]\nobjects = ["{DATABASE}.*"]\n'
ARGUMENTS = f'{{"1":{{"str":"{DATABASE}"}},"2":{{"str":"{TABLE}"}}}}'
MISSING = f"{DATABASE}.{TABLE} table not found"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    folder = tmp_path_factory.mktemp("doors")
    (folder / "rules.toml").write_text(RULE)
    settings = {"authorization": "grants", "authorization_rules_file": str(folder / "rules.toml"), "tls": False}
    with GatewayServer(folder, settings=settings, demo=True) as made:
        for name in ("alice", "bob"):
            add_user(folder / "users", name, name)
        yield made


def ask(server: GatewayServer, user: str, path: str = API_PATH, **headers: str) -> tuple[int, str, str | None]:
    """Status, body and ETag of the answer to get_table."""
    with server.connection() as connection:
        password = server.password if user == server.user else user
        fields = {**basic(user, password), "Content-Type": "application/vnd.apache.thrift.json", **headers}
        connection.request("POST", path, f'[1,"get_table",1,1,{ARGUMENTS}]'.encode(), fields)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.getheader("etag")


@pytest.mark.parametrize("path", [API_PATH, METASTORE_PATH])
def test_a_cached_reply_is_its_users(server: GatewayServer, path: str) -> None:
    for _ in range(3):
        assert TABLE in ask(server, "alice", path)[1]
        assert MISSING not in ask(server, "alice", path)[1]
        assert MISSING in ask(server, "bob", path)[1]
        assert MISSING not in ask(server, server.user, path)[1]


def test_a_tag_of_another_user_is_no_answer(server: GatewayServer) -> None:
    _, _, tag = ask(server, "alice", **{"If-None-Match": '"none"'})
    assert tag is not None
    assert ask(server, "alice", **{"If-None-Match": tag})[0] == 304
    status, body, _ = ask(server, "bob", **{"If-None-Match": tag})
    assert (status, MISSING in body) == (200, True)


def test_a_change_of_the_rules_holds_for_cached_replies(server: GatewayServer) -> None:
    path = server.data_dir / "rules.toml"
    for text, sees in (("", False), (RULE, True)):
        path.write_text(text)
        os.utime(path, ns=(time.time_ns(), time.time_ns()))
        until(lambda sees=sees: (MISSING not in ask(server, "alice")[1]) is sees)  # type: ignore[misc]
