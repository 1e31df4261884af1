"""Requests as bytes over TLS, for what no HTTP client would send; answers with a time limit."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer, basic, trusting


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        """The TJSON message in the body; None where there is none."""
        try:
            message = json.loads(self.body)
        except ValueError:
            return None
        return message if isinstance(message, list) else None


@contextmanager
def connected(server: GatewayServer, seconds_max: float = PATIENCE_SECONDS) -> Iterator[ssl.SSLSocket]:
    """A TLS connection whose every read and write takes no longer than `seconds_max`."""
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=seconds_max)
    # Head and body go out in two writes; the second must not wait for the first one's acknowledgement.
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with trusting().wrap_socket(plain) as connection:
        yield connection


def request_head(server: GatewayServer, *headers: str, path: str = API_PATH) -> bytes:
    """The head of a POST with the user's password and these header lines."""
    credentials = basic(server.user, server.password)["Authorization"]
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: {credentials}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer_to(server: GatewayServer, parts: Iterable[bytes], seconds_max: float = PATIENCE_SECONDS) -> Answer:
    """Send the parts one by one and read the answer, also when it comes before everything was sent.

    Raises TimeoutError when the server neither answers nor hangs up, ConnectionError when it hangs up without a word.
    """
    with connected(server, seconds_max) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (ConnectionError, ssl.SSLError):
            pass  # It has heard enough and may have answered.
        return read_answer(connection)


def read_answer(connection: socket.socket) -> Answer:
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        response.close()


def post(server: GatewayServer, body: bytes, path: str = API_PATH, *headers: str) -> Answer:
    """The answer to one body."""
    return answer_to(server, [request_head(server, f"Content-Length: {len(body)}", *headers, path=path), body])


def assert_readable(answer: Answer) -> None:
    """An HTTP answer for people and programs, without anything of the server's inside."""
    assert answer.status in {200, 400, 401, 404, 405, 408, 411, 413, 414, 431, 501}, answer
    for word in (b"Traceback", b'File "', b"sqlite", b"SELECT", b"site-packages"):
        assert word not in answer.body, answer.body
    if answer.headers.get("content-type", "").startswith("application/vnd.apache.thrift.json"):
        assert answer.message is not None, answer.body
        assert answer.message[0] == 1
        assert answer.message[2] in (2, 3)


def catalog(server: GatewayServer) -> dict[str, Any]:
    """Every database, table and partition as the server tells them."""

    def ask(method: str, *arguments: str) -> Any:
        fields = ",".join(f'"{number}":{argument}' for number, argument in enumerate(arguments, start=1))
        answer = post(server, f'[1,"{method}",1,1,{{{fields}}}]'.encode())
        assert answer.status == 200
        assert answer.message[2] == 2, answer.body
        return answer.message[4]["0"]

    found: dict[str, Any] = {}
    for database in ask("get_all_databases")["lst"][2:]:
        found[database] = ask("get_database", json.dumps({"str": database}))
        for table in ask("get_all_tables", json.dumps({"str": database}))["lst"][2:]:
            names = [json.dumps({"str": database}), json.dumps({"str": table})]
            found[f"{database}.{table}"] = ask("get_table", *names)
            found[f"{database}.{table}.partitions"] = ask("get_partitions", *names, '{"i16":-1}')
    return found
