"""A server that is killed in the middle of its work, and started again over what it left."""

import http.client
import json
import threading
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer, basic

WRITERS = 4
ANSWERS_BEFORE_THE_END = 100


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    server = GatewayServer(tmp_path / "server").start()
    made: list[str] = []
    enough = threading.Event()

    def write(number: int) -> None:
        try:
            with server.connection() as connection:
                for count in range(100_000):
                    name = f"database_{number}_{count}"
                    if not create(server, connection, name):
                        return
                    made.append(name)
                    if len(made) >= ANSWERS_BEFORE_THE_END:
                        enough.set()
        except (OSError, http.client.HTTPException):
            pass  # The end of the server is the end of the test's first half.

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    assert enough.wait(PATIENCE_SECONDS)
    server.kill()
    for thread in threads:
        thread.join()
    with server:
        status, answer = server.post(b'[1,"get_all_databases",1,1,{}]')
        assert status == 200
        found = set(json.loads(answer)[4]["0"]["lst"][2:])
        assert set(made) <= found
        # At most the one call of each writer that never got its answer.
        assert len(found - set(made) - {"default"}) <= WRITERS
        for name in found - {"default"}:
            assert Path(location(server, name).removeprefix("file:")).is_dir(), name
        with server.connection() as connection:
            assert create(server, connection, "after_the_restart")


def create(server: GatewayServer, connection: http.client.HTTPSConnection, name: str) -> bool:
    body = f'[1,"create_database",1,1,{{"1":{{"rec":{{"1":{{"str":"{name}"}}}}}}}}]'
    connection.request("POST", API_PATH, body.encode(), basic(server.user, server.password))
    answer = json.loads(connection.getresponse().read())
    return bool(answer[2:] == [2, 1, {}])


def location(server: GatewayServer, name: str) -> str:
    _, answer = server.post(f'[1,"get_database",1,1,{{"1":{{"str":"{name}"}}}}]'.encode())
    found: str = json.loads(answer)[4]["0"]["rec"]["3"]["str"]
    return found
