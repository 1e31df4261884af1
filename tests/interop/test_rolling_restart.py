"""Two replicas behind the proxies of deploy/ are restarted one after the other under load: no call fails."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.private_proxies import PROXIES, proxy
from tests.support.sample import sample
from tests.support.server import API_PATH, GatewayServer, basic, trusting

CLIENTS = sample(2, of=4)
PAUSE_SECONDS = sample(0.01, of=0.0)
CALLS_AFTER_MIN = 50
# nginx and Envoy keep idle connections for two seconds, HAProxy for about one.
SETTINGS = {"drain_idle_seconds": 3.0}


class Load:
    """Clients that call over connections they keep, until `stop`; each call and what went wrong with it."""

    def __init__(self, port: int, server: GatewayServer) -> None:
        self._port = port
        self._headers = basic(server.user, server.password)
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]
        self._condition = threading.Condition()
        self.answered = 0
        self.failures: list[str] = []

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)

    def wait_for_more(self, calls: int = CALLS_AFTER_MIN) -> None:
        """Until so many more calls were answered. Raises AssertionError when they are not."""
        with self._condition:
            wanted = self.answered + calls
            assert self._condition.wait_for(lambda: self.answered >= wanted, timeout=60), "nothing is answered"

    def _run(self, number: int) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=60, context=trusting())
        value = 0
        while not self._stopping.wait(PAUSE_SECONDS):
            value += 1
            try:
                self._change_and_read(connection, f"load_{number}", value)
            except Exception as error:
                with self._condition:
                    self.failures.append(f"client {number}, call {value}: {error!r}")
                connection.close()
        connection.close()

    def _change_and_read(self, connection: http.client.HTTPSConnection, name: str, value: int) -> None:
        parameters = f'{{"map":["str","str",1,{{"value":"{value}"}}]}}'
        database = f'{{"rec":{{"1":{{"str":"{name}"}},"4":{parameters}}}}}'
        if value == 1:
            self._call(connection, f'[1,"create_database",1,1,{{"1":{database}}}]')
        self._call(connection, f'[1,"alter_database",1,1,{{"1":{{"str":"{name}"}},"2":{database}}}]')
        seen = self._call(connection, f'[1,"get_database",1,1,{{"1":{{"str":"{name}"}}}}]')
        assert seen["0"]["rec"]["4"]["map"][3]["value"] == str(value)

    def _call(self, connection: http.client.HTTPSConnection, body: str) -> dict[str, dict[str, dict[str, dict]]]:
        connection.request("POST", API_PATH, body.encode(), self._headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, (answer.status, text)
        message = json.loads(text)
        assert message[2] == 2, message
        assert set(message[4]) <= {"0"}, message
        with self._condition:
            self.answered += 1
            self._condition.notify_all()
        return message[4]


@pytest.fixture
def replicas(migrated_postgres_database: str, tmp_path: Path) -> Iterator[list[GatewayServer]]:
    folder = tmp_path / "replicas"
    with ExitStack() as servers:
        # One folder for both, as in docker-compose.yml: the same certificate and users.
        yield [
            servers.enter_context(GatewayServer(folder, database=migrated_postgres_database, settings=SETTINGS))
            for _ in range(2)
        ]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(
    "name", ["nginx", *(pytest.param(name, marks=pytest.mark.whole) for name in PROXIES if name != "nginx")]
)
def test_a_rolling_restart_fails_no_call(name: str, replicas: list[GatewayServer], tmp_path: Path) -> None:
    ports = [replica.port for replica in replicas]
    with proxy(name, ports, replicas[0].data_dir, tmp_path) as port, Load(port, replicas[0]) as load:
        load.wait_for_more()
        for replica in replicas:
            assert replica.stop() == 0
            load.wait_for_more()
            replica.start()
            load.wait_for_more()
    assert load.failures == []
