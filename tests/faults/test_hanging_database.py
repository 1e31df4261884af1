"""A database that hangs: calls are told to come again, operators are told once, and a start says what is wrong.

Connections that are there never fail then, so without a bound of ours each call would wait for call_seconds_max.
"""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.storage.migrations.revisions import migrate
from tests.support.alert_rules import Rules, samples
from tests.support.private_mariadb import PrivateMariadb
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import API_PATH, GatewayServer, basic, free_port

pytestmark = pytest.mark.slow

# The watch is late after 5 seconds, and a new connection after 10 more; a busy machine takes its time for it.
SECONDS_MAX = 90
CALLS = {
    "get_all_databases": "{}",
    "get_table": '{"1":{"str":"default"},"2":{"str":"t"}}',
    "create_database": '{"1":{"rec":{"1":{"str":"made"}}}}',
    "open_txns": '{"1":{"rec":{"1":{"i32":1},"2":{"str":"u"},"3":{"str":"h"}}}}',
}
EACH = 2
OWN_MAX = 20


def call(server: GatewayServer, method: str) -> tuple[int, str | None, Any]:
    """Status, Retry-After and the message."""
    with server.connection(timeout_seconds=SECONDS_MAX) as connection:
        body = f'[1,"{method}",1,1,{CALLS[method]}]'
        connection.request("POST", API_PATH, body, basic(server.user, server.password))
        answer = connection.getresponse()
        return answer.status, answer.getheader("retry-after"), json.loads(answer.read())


def thrift_call(port: int) -> bytes:
    """What comes back for a call in binary form; nothing where the connection is closed."""
    name = b"get_all_databases"
    message = b"\x80\x01\x00\x01" + len(name).to_bytes(4, "big") + name + bytes(5)
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as connection:
        connection.sendall(message)
        return connection.recv(1_000)


def page(server: GatewayServer, path: str) -> tuple[int, str]:
    with server.connection() as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def lines(server: GatewayServer) -> list[dict[str, Any]]:
    """Those of the log that are no call of the access log."""
    found = [json.loads(line) for line in server.log_text().splitlines() if line.startswith("{")]
    return [line for line in found if line["event"] != "call" and line["logger"] != "hms_gateway.cli"]


def until(holds: Any) -> None:
    end, pause = time.monotonic() + SECONDS_MAX, threading.Event()
    while not holds():
        assert time.monotonic() < end
        pause.wait(0.1)


@contextmanager
def frozen(database: PrivatePostgres | PrivateMariadb) -> Iterator[None]:
    database.freeze()
    try:
        yield
    finally:
        database.thaw()


@pytest.mark.postgres
def test_calls_are_503_and_the_outage_is_two_lines(own_postgres: PrivatePostgres, tmp_path: Path) -> None:
    hangs(own_postgres, own_postgres.url(), tmp_path)


@pytest.mark.mariadb
@pytest.mark.whole
def test_calls_are_503_and_the_outage_is_two_lines_with_mariadb(own_mariadb: PrivateMariadb, tmp_path: Path) -> None:
    own_mariadb.administer("CREATE DATABASE hanging")
    hangs(own_mariadb, own_mariadb.url("hanging"), tmp_path)


def hangs(database: PrivatePostgres | PrivateMariadb, url: str, folder: Path) -> None:
    migrate(url)
    port = free_port()
    with GatewayServer(folder, database=url, settings={"thrift_port": port}) as server:
        assert b"default" in thrift_call(port)
        for method in CALLS:
            assert call(server, method)[0] == 200
        assert samples(page(server, "/metrics")[1])["hms_gateway_database_up", ()] == 1
        answers: list[tuple[int, str | None, Any]] = []
        calling = [
            threading.Thread(target=lambda method=method: answers.append(call(server, method)))
            for method in CALLS
            for _ in range(EACH)
        ]
        with frozen(database):
            for thread in calling:
                thread.start()
            for thread in calling:
                thread.join()
            assert [(status, after) for status, after, _ in answers] == [(503, "1")] * len(calling)
            for _, _, message in answers:
                assert "not available: the database does not answer within 10 s" in message[4]["1"]["str"]
            assert thrift_call(port) == b""
            status, text = page(server, "/readyz")
            assert (status, text) == (503, "the database does not answer within 10 s\n")
            after = samples(page(server, "/metrics")[1])
            assert after["hms_gateway_database_up", ()] == 0
            assert Rules().fires("HmsGatewayDatabaseDown", after)
        until(lambda: page(server, "/readyz")[0] == 200)
        until(lambda: lines(server)[-1]["event"] == "the database can be used again")
        assert [(line["event"], line.get("problem")) for line in lines(server)] == [
            ("the database cannot be used", "the database does not answer within 10 s"),
            ("the database can be used again", None),
        ]
        end = lines(server)[-1]
        assert end["seconds"] > 0
        # The gateway's own work, such as expiry, may be refused too.
        assert len(calling) + 1 <= end["refused"] <= len(calling) + 1 + OWN_MAX
        assert call(server, "get_all_databases")[0] == 200
        assert samples(page(server, "/metrics")[1])["hms_gateway_database_up", ()] == 1


@pytest.mark.postgres
def test_a_start_says_that_the_database_does_not_answer(own_postgres: PrivatePostgres, tmp_path: Path) -> None:
    migrate(own_postgres.url())
    server = GatewayServer(tmp_path, database=own_postgres.url())
    with frozen(own_postgres):
        started = subprocess.run(server._command(), capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert started.returncode == 2
    assert "error: the database does not answer within 10 s" in started.stderr
