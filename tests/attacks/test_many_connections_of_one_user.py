"""M5: one user's connections from many addresses took every place. A connection counts as its first user's, too."""

import contextlib
import socket

import pytest

from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.runtime.limits import Limits
from tests.attacks.edge import CACHED
from tests.gateway.serving import (
    ANSWER,
    CALL,
    Anybody,
    CannedProcessor,
    FakeCache,
    Running,
    post,
    read_response,
    running,
)
from tests.support.patience import until

LIMITS = Limits(connections_max=40)


def address(number: int) -> str:
    return f"127.0.0.{number + 2}"


def called(stack: contextlib.ExitStack, server: Running, source: str) -> socket.socket:
    """A connection on which a call was answered."""
    connection = stack.enter_context(server.connect(source))
    connection.sendall(post(CALL))
    assert read_response(connection)[2] == ANSWER
    return connection


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.mark.parametrize("cache", [None, FakeCache(CACHED)], ids=["endpoint", "directly"])
def test_the_idle_connections_of_a_user_make_room_for_its_next_and_others_keep_theirs(cache):
    user = Anybody("ann")
    with (
        running(CannedProcessor(), authenticator=user, limits=LIMITS, cache=cache) as server,
        contextlib.ExitStack() as stack,
    ):
        quiet = called(stack, server, address(99))
        user.user = "mallory"
        idle = [called(stack, server, address(number)) for number in range(60)]
        assert server.metrics.limited == {"share_per_user of connections_max": 40}
        until(lambda: len(server.server._gateway.connections) == 21)
        # The oldest went.
        until(lambda: [is_open(one) for one in idle] == [False] * 40 + [True] * 20)
        user.user = "ann"
        quiet.sendall(post(CALL))
        assert read_response(quiet)[2] == ANSWER


def test_a_user_whose_connections_are_all_busy_gets_no_more(tmp_path):
    user = Anybody("mallory")
    limits = Limits(connections_max=40, share_per_user=0.075)
    half = post(CALL[:3], length=len(CALL))
    with running(authenticator=user, limits=limits) as server, contextlib.ExitStack() as stack:
        busy = [called(stack, server, address(number)) for number in range(3)]
        for connection in busy:
            connection.sendall(half)
        refused = stack.enter_context(server.connect())
        refused.sendall(post(CALL))
        status, headers, body = read_response(refused)
        assert (status, headers["x-call-outcome"]) == (503, "not-tried")
        assert b"share_per_user of connections_max" in body
        assert refused.recv(1) == b""
        user.user = "ann"
        called(stack, server, address(99))
        assert server.metrics.limited == {"share_per_user of connections_max": 1}
        for connection in busy:
            connection.sendall(CALL[3:])
            assert read_response(connection)[2] == ANSWER


def test_connections_of_a_proxy_are_no_users():
    limits = Limits(connections_max=40, share_per_user=0.075)
    user = Anybody("mallory")
    proxied = running(authenticator=user, limits=limits, proxies=Proxies(forwarding=["127.0.0.1"]))
    with proxied as server, contextlib.ExitStack() as stack:
        connections = [called(stack, server, "127.0.0.1") for _ in range(10)]
        assert server.metrics.limited == {}
        assert all(is_open(one) for one in connections)
