"""Whatever fails in the server, a request is answered in its own protocol with its id, and counted and logged."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from hms_gateway.gateway.auth.credentials import LoginStack
from hms_gateway.gateway.auth.passwords import PasswordLogin, UserFile
from hms_gateway.gateway.auth.users import hash_password
from hms_gateway.gateway.http import asgi_endpoint
from hms_gateway.gateway.http.exchange import Exchange
from hms_gateway.rpc.wire.tjson_codec import TJsonCodec
from hms_gateway.runtime.limits import Limits
from tests.gateway.http.test_one_path import BINARY_CALL, by_asgi
from tests.gateway.serving import (
    CALL,
    DATABASES,
    Anybody,
    CannedProcessor,
    Running,
    post,
    read_all,
    read_response,
    running,
)
from tests.support.patience import PATIENCE_SECONDS, until

BODIES = [
    pytest.param(CALL, id="tjson"),
    pytest.param(BINARY_CALL, id="binary"),
    pytest.param(b"neither of them", id="text"),
]
PADDING = b" " * 300_000
ways = pytest.mark.parametrize("way", [running, by_asgi])


@pytest.fixture(autouse=True)
def lines() -> Iterator[list[Any]]:
    """The lines logged; printing tracebacks takes longer than all else."""
    with capture_logs() as logged:
        yield logged


def broken(*_: object, **__: object) -> Any:
    raise RuntimeError("broken")


class Stranger(Anybody):
    """A user whose login is not remembered and whose check is broken."""

    def remembered(self, head):
        return None

    async def authenticate(self, head):
        broken()


def is_failure(server: Running, answer: httpx.Response, name: str = "get_all_databases", seqid: int = 1) -> None:
    """An error of ours, in the form that the sender of `CALL` reads, and counted."""
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "r-1"), answer.text
    assert "broken" not in answer.text
    assert answer.text != "Internal Server Error"
    if answer.request.content.startswith(b"["):
        assert answer.headers["content-type"] == "application/vnd.apache.thrift.json"
        version, *addressed, exception = json.loads(answer.content)
        assert (version, addressed, exception["2"]["i32"]) == (1, [name, 3, seqid], 6)
    until(lambda: server.metrics.internal_errors == 1)


def ask(server: Running, content: bytes = CALL, **headers: str) -> httpx.Response:
    headers = {"x-request-id": "r-1"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(server.url, content=content, headers=headers, timeout=PATIENCE_SECONDS)


@ways
@pytest.mark.parametrize("body", BODIES)
def test_a_login_that_cannot_be_checked(way, body: bytes, lines: list[Any]) -> None:
    with way(authenticator=Stranger()) as server:
        is_failure(server, ask(server, body))
    errors = [(line["event"], line["request"]) for line in lines if line["log_level"] == "error"]
    assert errors == [("request failed", "r-1")]


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_threads_for_passwords_that_cannot_be_had(body: bytes, tmp_path: Path) -> None:
    """Each login is answered: the third one waited for ever."""
    (tmp_path / "users").write_text(f"ann:{hash_password('correct horse')}\n")
    users = UserFile(tmp_path / "users", time.monotonic)
    passwords = PasswordLogin(users, challenges=(), remembered_seconds=60)
    authenticator = LoginStack([passwords], challenges=())
    authenticator.close()
    with running(authenticator=authenticator) as server:
        for password in ("correct horse", "correct horse", "wrong", "other"):
            answer = ask(server, body, authorization="Basic " + base64.b64encode(f"ann:{password}".encode()).decode())
            assert (answer.status_code, answer.headers["x-request-id"]) == (500, "r-1")
        until(lambda: server.metrics.internal_errors == 4)


@ways
@pytest.mark.parametrize("body", BODIES)
def test_a_head_that_is_not_understood(way, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with way() as server:
        monkeypatch.setattr(server.endpoint.proxies, "head", broken)
        is_failure(server, ask(server, body))


@ways
@pytest.mark.parametrize("padding", [b"", PADDING])
def test_a_message_that_cannot_be_read(way, padding: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TJsonCodec, "read_message", broken)
    with way() as server:
        is_failure(server, ask(server, CALL + padding), "", 0)


@ways
def test_a_response_that_cannot_be_written(way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi_endpoint, "server_timing", broken)
    with way() as server:
        is_failure(server, ask(server, x_hms_server_timing="1"))


def test_a_response_that_cannot_be_written_at_once_is_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exchange, "whole", broken)
    with running() as server:
        assert ask(server).status_code == 200


@ways
def test_a_call_that_cannot_be_recorded_is_answered(way, monkeypatch: pytest.MonkeyPatch) -> None:
    with way() as server, server.connect() as connection:
        monkeypatch.setattr(server.metrics.served, "add", broken)
        for _ in range(2):
            connection.sendall(post(CALL))
            assert read_response(connection)[0] == 200


@pytest.mark.parametrize("path", ["/metrics", "/status/costs", "/ui/"])
def test_a_page(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(authenticator=Stranger()) as server:
        monkeypatch.setattr("hms_gateway.gateway.pages.static_file", broken)
        monkeypatch.setattr(server.metrics, "figures", broken)
        answer = httpx.get(server.root + path, headers={"x-request-id": "r-1"}, timeout=PATIENCE_SECONDS)
        is_failure(server, answer)
        assert "r-1" in answer.text


@ways
def test_a_call_that_is_cut_off_when_the_server_stops_may_have_happened(way) -> None:
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait() and DATABASES)
    with way(processor, limits=Limits(drain_seconds_max=0.05)) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        until(lambda: processor.calls)
        server.server.stop()
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
        go.set()
    assert head.startswith(b"HTTP/1.1 503 ")
    assert "may still take effect" in json.loads(body)[4]["1"]["str"]
