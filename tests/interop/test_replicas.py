"""Two servers over one database, and the database going away under a running server."""

import http.client
import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hms_gateway.storage.migrations.revisions import migrate
from tests.support.patience import until
from tests.support.private_mariadb import DURABLE, PrivateMariadb
from tests.support.private_postgres import PrivatePostgres
from tests.support.sample import sample
from tests.support.server import API_PATH, GatewayServer, basic

ROUNDS = sample(50, of=2_000)
WRITERS = 4


class Caller:
    """TJSON calls over one connection that is kept open."""

    def __init__(self, server: GatewayServer, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection
        self._headers = basic(server.user, server.password)

    def status_and_message(self, method: str, payload: str) -> tuple[int, Any]:
        self._connection.request("POST", API_PATH, f'[1,"{method}",1,1,{payload}]'.encode(), self._headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def result(self, method: str, payload: str) -> Any:
        """The result struct of a call that succeeds."""
        status, message = self.status_and_message(method, payload)
        assert (status, message[2]) == (200, 2), message
        assert set(message[4]) <= {"0"}, message
        return message[4].get("0")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.whole]),
    ],
)
def replicas(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[GatewayServer, GatewayServer]]:
    database = request.getfixturevalue(f"{request.param}_database_of_module")
    folder = tmp_path_factory.mktemp("replicas")
    migrate(database)
    with ExitStack() as servers:
        first = servers.enter_context(GatewayServer(folder / "first", database=database))
        second = servers.enter_context(GatewayServer(folder / "second", database=database))
        yield first, second


@pytest.fixture
def callers(replicas: tuple[GatewayServer, GatewayServer]) -> Iterator[list[Caller]]:
    with ExitStack() as connections:
        yield [Caller(server, connections.enter_context(server.connection())) for server in replicas]


def database_payload(name: str, value: int) -> str:
    parameters = f'{{"map":["str","str",1,{{"value":"{value}"}}]}}'
    return f'{{"rec":{{"1":{{"str":"{name}"}},"4":{parameters}}}}}'


@pytest.mark.slow
def test_write_through_one_is_seen_by_the_next_read_through_the_other(callers: list[Caller]) -> None:
    callers[0].result("create_database", f'{{"1":{database_payload("shared", -1)}}}')
    stale = 0
    for number in range(ROUNDS):
        writer, reader = callers[number % 2], callers[(number + 1) % 2]
        # Reading before the write too, so that a cache has every chance to keep the old answer.
        reader.result("get_database", '{"1":{"str":"shared"}}')
        writer.result("alter_database", f'{{"1":{{"str":"shared"}},"2":{database_payload("shared", number)}}}')
        seen = reader.result("get_database", '{"1":{"str":"shared"}}')
        stale += seen["rec"]["4"]["map"][3]["value"] != str(number)
    assert stale == 0


def test_name_is_given_to_one_of_two_replicas_only(replicas: tuple[GatewayServer, GatewayServer]) -> None:
    outcomes: list[tuple[int, bool]] = []

    def create(server: GatewayServer) -> None:
        with server.connection() as connection:
            caller = Caller(server, connection)
            for number in range(20):
                _, message = caller.status_and_message(
                    "create_database", f'{{"1":{database_payload(f"race_{number}", 0)}}}'
                )
                outcomes.append((number, message[2:] == [2, 1, {}]))

    threads = [threading.Thread(target=create, args=(server,)) for server in replicas for _ in range(WRITERS // 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 20 * WRITERS
    assert sorted(number for number, made in outcomes if made) == list(range(20))


@pytest.mark.postgres
def test_database_that_goes_away_comes_back_without_a_restart(own_postgres: PrivatePostgres, tmp_path: Path) -> None:
    with psycopg.connect(own_postgres.url().replace("+psycopg", ""), autocommit=True) as connection:
        # It is stopped at once, and must know what it has answered.
        connection.execute("ALTER DATABASE postgres SET synchronous_commit = on")
    _survives_an_outage(own_postgres, own_postgres.url(), tmp_path)


@pytest.mark.mariadb
@pytest.mark.whole
@pytest.mark.parametrize("own_mariadb", [DURABLE], indirect=True, ids=["durable"])
def test_mariadb_that_goes_away_comes_back_without_a_restart(own_mariadb: PrivateMariadb, tmp_path: Path) -> None:
    own_mariadb.administer("CREATE DATABASE leaving")
    _survives_an_outage(own_mariadb, own_mariadb.url("leaving"), tmp_path)


def _survives_an_outage(database: PrivatePostgres | PrivateMariadb, url: str, folder: Path) -> None:
    migrate(url)
    with GatewayServer(folder / "server", database=url) as server, server.connection() as connection:
        _goes_and_comes(database, server, Caller(server, connection))


def _goes_and_comes(database: PrivatePostgres | PrivateMariadb, server: GatewayServer, caller: Caller) -> None:
    caller.result("create_database", f'{{"1":{database_payload("kept", 1)}}}')
    caller.result("get_database", '{"1":{"str":"kept"}}')
    database.stop()
    assert not server.is_ready()
    calls = [
        # Its answer may be remembered, but nobody knows whether it still holds.
        ("get_database", '{"1":{"str":"kept"}}'),
        ("get_all_databases", "{}"),
        ("create_database", f'{{"1":{database_payload("lost", 1)}}}'),
    ]
    for method, payload in calls:
        status, message = caller.status_and_message(method, payload)
        assert status == 503, (method, message)
        assert message[:4] == [1, method, 3, 1]
        # Hive's clients repeat calls on texts with these words.
        for word in ("TTransportException", "TProtocolException", "JDO", "psycopg", "pymysql", "Traceback"):
            assert word not in message[4]["1"]["str"]
    # A database that shuts down may refuse a connection, and answer a last statement of another one after that.
    begins, ends = "the database cannot be used", "the database can be used again"
    logged = [json.loads(line) for line in server.log_text().splitlines() if line.startswith("{")]
    told = [line["event"] for line in logged if line["event"] in (begins, ends)]
    assert told == [begins, *[ends, begins] * (len(told) // 2)], "each outage is told once, and goes on"
    details = [line["detail"] for line in logged if line["event"] == begins]
    assert all(re.search("connection|socket|shutting down", detail) for detail in details), "the operator is told"
    database.start()
    until(server.is_ready)
    assert caller.result("get_database", '{"1":{"str":"kept"}}')["rec"]["1"] == {"str": "kept"}
    assert caller.result("get_databases", '{"1":{"str":"lost"}}') == {"lst": ["str", 0]}
    caller.result("create_database", f'{{"1":{database_payload("lost", 1)}}}')
