"""A server on loopback with the authentication, proxies and origins that given settings describe."""

import base64
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hms_gateway.gateway.auth.users import add_user
from hms_gateway.gateway.logins import build_authenticator, build_proxies
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.serving import CALL, DATABASES, CannedProcessor, FakeCache, Running, post, read_response, running

PASSWORDS = {"admin": "admin's password", "bob": "bob's password"}
# Under the dialect of each path.
CACHED = {("tjson", dialect, "get_all_databases", b"{}"): DATABASES for dialect in ("2.3", "4")}


def basic(user: str, password: str | None = None) -> str:
    """A header line with the user's own password, or another."""
    pair = f"{user}:{PASSWORDS[user] if password is None else password}"
    return "Authorization: Basic " + base64.b64encode(pair.encode()).decode()


class Edge:
    """What a server answers to raw requests, and as whom it ran the call."""

    def __init__(self, server: Running, processor: CannedProcessor) -> None:
        self.server = server
        self.calls = processor.calls

    def ask(self, *lines: str, query: str = "", body: bytes = CALL, path: str | None = None) -> str | int:
        """The user as whom a POST with these header lines was run, or the status of the refusal."""
        before = len(self.calls)
        path = self.server.path if path is None else path
        with self.server.connect() as connection:
            connection.sendall(post(body, *lines, path=path + query))
            status, _, _ = read_response(connection)
        if status == 200:
            user: str = self.calls[-1][1].principal
            assert len(self.calls) == before + 1
            return user
        assert len(self.calls) == before, "it was refused and run"
        return status


@contextlib.contextmanager
def edge(folder: Path, *, cached: bool = False, **settings: Any) -> Iterator[Edge]:
    """Serve until the end of the block. The reply to CALL is in the cache where `cached`."""
    loaded = load_settings(data_dir=folder, **settings)
    for user, password in PASSWORDS.items():
        add_user(loaded.users_path, user, password)
    processor = CannedProcessor()
    with running(
        processor,
        cache=FakeCache(CACHED) if cached else None,
        authenticator=build_authenticator(loaded),
        proxies=build_proxies(loaded),
        origins=tuple(loaded.cors_origins),
    ) as server:
        yield Edge(server, processor)
