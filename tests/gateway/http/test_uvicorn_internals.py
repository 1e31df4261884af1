"""What the gateway uses of uvicorn besides its documented interface, and the version that it was read in.

uvicorn does not promise any of this. With another version, read what has changed in the named places, run the tests of
`tests/gateway` and the benchmarks `edge` and `http`, then change VERIFIED and the range in pyproject.toml.
"""

import ast
import asyncio
import inspect
import tomllib
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from hms_gateway.gateway import server
from hms_gateway.gateway.http import http_protocol
from tests.gateway.http.test_http_protocol import MemoryTransport
from tests.gateway.serving import post

VERIFIED = "0.54"

# Attributes of uvicorn's objects that our modules read, set, call or override, by class.
PROTOCOL = {
    "_start_asgi_task",
    "_unset_keepalive_if_required",
    "access_logger",
    "client",
    "connection_lost",
    "connection_made",
    "cycle",
    "data_received",
    "expect_100_continue",
    "flow",
    "headers",
    "logger",
    "loop",
    "on_body",
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
    "on_response_complete",
    "parser",
    "pause_writing",
    "resume_writing",
    "scope",
    "send_400_response",
    "server_state",
    "shutdown",
    "timeout_keep_alive",
    "timeout_keep_alive_task",
    "transport",
    "url",
}
CYCLE = {"keep_alive", "more_body", "response_complete"}
CYCLE_ARGUMENTS = {
    "access_log",
    "access_logger",
    "default_headers",
    "expect_100_continue",
    "flow",
    "keep_alive",
    "logger",
    "message_event",
    "on_response",
    "scope",
    "transport",
}
SERVER = {
    "_captured_signals",
    "capture_signals",
    "config",
    "lifespan",
    "run",
    "server_state",
    "servers",
    "should_exit",
    "shutdown",
    "started",
    "startup",
}


def test_the_installed_uvicorn_is_the_one_that_was_read():
    assert uvicorn.__version__.startswith(f"{VERIFIED}."), (
        f"uvicorn {uvicorn.__version__} is installed and {VERIFIED} was verified; see the top of this file"
    )


def test_the_package_asks_for_the_version_that_was_read():
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor = map(int, VERIFIED.split("."))
    assert f"uvicorn>={VERIFIED},<{major}.{minor + 1}" in project["dependencies"]


@pytest.fixture
def protocol() -> HttpToolsProtocol:
    """uvicorn's own, with a request."""

    async def application(scope, receive, send) -> None: ...

    async def connected() -> HttpToolsProtocol:
        config = uvicorn.Config(application, log_config=None)
        config.load()
        made = HttpToolsProtocol(config, ServerState(), {})
        made.connection_made(MemoryTransport())
        made.data_received(post(b"[]"))
        return made

    return asyncio.run(connected())


def test_everything_that_is_used_of_a_connection_is_there(protocol):
    assert [name for name in sorted(PROTOCOL) if not hasattr(protocol, name)] == []
    assert protocol.headers[0] == (b"host", b"localhost")
    assert isinstance(protocol.flow, FlowControl)
    assert protocol.flow.write_paused is False
    assert (ServerState().default_headers, protocol.server_state.default_headers) == ([], [])


def test_everything_that_is_used_of_a_request_is_there(protocol):
    cycle = protocol.cycle
    assert isinstance(cycle, RequestResponseCycle)
    assert [name for name in sorted(CYCLE) if not hasattr(cycle, name)] == []
    assert set(inspect.signature(RequestResponseCycle).parameters) == CYCLE_ARGUMENTS
    assert (cycle.more_body, cycle.disconnected) == (False, False)


def test_everything_that_is_used_of_the_server_is_there():
    made = uvicorn.Server(uvicorn.Config(lambda: None))
    # `startup` makes the two that are not there before.
    made.servers = made.lifespan = None
    assert [name for name in sorted(SERVER) if not hasattr(made, name)] == []


def test_nothing_else_is_used(protocol):
    """A new dependency has to be named above, and so to be read in uvicorn's source first."""
    of_protocol = set(vars(protocol)) | set(vars(HttpToolsProtocol))
    assert used(http_protocol, "self") & of_protocol - {"__init__", "config"} == PROTOCOL
    assert used(http_protocol, "cycle") == CYCLE
    of_server = set(vars(uvicorn.Server(uvicorn.Config(lambda: None)))) | set(vars(uvicorn.Server))
    assert used(server, "self") & of_server - {"__init__"} == SERVER & of_server - {"run"}


def used(module, owner: str) -> set[str]:
    """Attributes of `owner`, wherever it is an attribute itself; for self those of `super()` and overridden methods."""
    owners = {owner, "super()"} if owner == "self" else {owner, f"self.{owner}"}
    names = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in owners:
            names.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and owner == "self":
            names.add(node.name)
    return names
