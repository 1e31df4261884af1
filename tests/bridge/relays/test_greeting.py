"""What a bridge that just started finds out about the far side."""

import contextlib

import pytest
import uvloop

from hms_gateway.bridge.relays.relay import find_problem
from tests.bridge.bridge_process import BridgeProcess, connected
from tests.bridge.canned_upstream import CannedUpstream, answering, http
from tests.bridge.thrift_bytes import bridge
from tests.support.server import GatewayServer

UNKNOWN = http(b'[1,"getName",3,0,{"1":{"str":"Invalid method name"},"2":{"i32":1}}]')
ATTEMPTS_MAX = 20


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with GatewayServer(tmp_path_factory.mktemp("gateway")) as running:
        yield running


def problem_with(*answers, url=None, **settings):
    async def ask():
        upstream = CannedUpstream({"getName": "metastore"})
        upstream.actions.extend(map(answering, answers))
        async with upstream.running(), bridge(url or upstream.url, **settings) as server:
            problem = await find_problem(server.relay, server.codecs)
            return problem and str(problem)

    return uvloop.run(ask())


@pytest.mark.parametrize("settings", [{}, {"encoding": "tjson"}])
def test_whoever_answers_will_do(settings):
    assert problem_with(**settings) is None


def test_a_server_that_knows_no_such_method_answers():
    assert problem_with(UNKNOWN, encoding="tjson") is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (http(b"Password is wrong\n", "401 Unauthorized"), "does not accept user spark: HTTP 401: Password is wrong"),
        (http(b"There is nothing here\n", "404 Not Found"), "answers HTTP 404: There is nothing here"),
        (http(b"<html>welcome</html>"), "not a Thrift"),
        (b"SSH-2.0-server\r\n", "cannot be reached"),
    ],
)
def test_what_keeps_a_gateway_from_answering(answer, said):
    assert said in problem_with(answer, answer)


def test_nobody_there():
    assert "cannot be reached" in problem_with(url="http://127.0.0.1:1/hms")


@pytest.mark.parametrize(("password", "said"), [("wrong", "cannot be used"), (None, "the gateway answers")])
def test_it_stands_in_the_log(gateway, password, said):
    with BridgeProcess(gateway, "-k", password=password) as running:
        assert any(said in running.log_text() or ask_in_vain(running) for _ in range(ATTEMPTS_MAX))


def ask_in_vain(running):
    """A call of a client's, which takes its time; False."""
    with connected(running) as client, contextlib.suppress(Exception):
        client.get_all_databases()
    return False
