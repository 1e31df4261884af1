"""H4: sockets that say nothing, before or during the TLS handshake, kept everybody out and were counted nowhere."""

import contextlib
import resource
import select
import socket
import ssl
from pathlib import Path

import pytest

from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.certificates.tls import ensure_certificate, server_context
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import ANSWER, CALL, CannedProcessor, post, read_all, read_response, running
from tests.support.patience import until
from tests.support.server import GatewayServer

# The first bytes of a record that holds a ClientHello.
HALF_A_HELLO = b"\x16\x03\x01\x02\x00\x01"


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    files = ensure_certificate(tmp_path_factory.mktemp("tls"))
    return server_context(files.certificate, files.key)


def ask(server) -> None:
    """A legitimate caller, on a new connection."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(server.connect()) as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[2] == ANSWER


def is_open(connection: socket.socket) -> bool:
    """Whether the server has not closed it."""
    return not select.select([connection], [], [], 0)[0]


def test_sockets_that_say_nothing_keep_nobody_out(tls):
    limits = Limits(connections_max=50)
    with running(tls=tls, limits=limits) as server, contextlib.ExitStack() as stack:
        counted = server.server._gateway.connections
        silent = [stack.enter_context(server.connect()) for _ in range(200)]
        for _ in range(3):
            ask(server)
        until(lambda: len(counted) <= 37)
        assert server.metrics.limited["share_per_address of connections_max"] >= 163
        assert server.metrics.connections_refused == server.metrics.limited["share_per_address of connections_max"]
        # The oldest went first.
        until(lambda: (found := [is_open(one) for one in silent]) == sorted(found))
        stack.close()
        until(lambda: len(counted) == 0)


def test_handshakes_that_do_not_end_make_room_for_new_ones(tls):
    limits = Limits(handshakes_max=20)
    with running(tls=tls, limits=limits) as server, contextlib.ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(server.connect()).sendall(HALF_A_HELLO)
        until(lambda: server.metrics.limited["share_per_address of handshakes_max"] >= 45)
        ask(server)
        until(lambda: len(server.server._gateway.connections) <= 15)
        stack.close()
        until(lambda: len(server.server._gateway.connections) == 0)


def test_silence_ends_and_is_counted(tls):
    with running(tls=tls, header_seconds_max=0.1) as server, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(server.connect()) for _ in range(5)]
        for one in silent[:2]:
            with contextlib.suppress(OSError):
                one.sendall(HALF_A_HELLO)
        for one in silent:
            assert read_all(one) == b""
        until(lambda: server.metrics.limited["header_seconds_max"] == 5)
        until(lambda: len(server.server._gateway.connections) == 0)


def test_a_proxy_is_not_held_to_the_share_of_an_address():
    limits = Limits(connections_max=40, share_per_address=0.1)
    with running(limits=limits, proxies=Proxies(forwarding=["127.0.0.1"])) as server:
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(server.connect()) for _ in range(30)]
            for connection in connections:
                connection.sendall(post(CALL))
                assert read_response(connection)[2] == ANSWER
        assert server.metrics.limited == {}


def test_who_was_of_use_stays_while_others_have_said_nothing():
    limits = Limits(connections_max=40, share_per_address=0.5)
    with running(CannedProcessor(), limits=limits) as server, contextlib.ExitStack() as stack:
        idle = stack.enter_context(server.connect())
        idle.sendall(post(CALL))
        read_response(idle)
        for _ in range(100):
            stack.enter_context(server.connect())
        until(lambda: server.metrics.limited["share_per_address of connections_max"] >= 81)
        idle.sendall(post(CALL))
        assert read_response(idle)[2] == ANSWER


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_a_process_without_files_left_still_answers(tmp_path):
    with GatewayServer(tmp_path) as server, contextlib.ExitStack() as stack:
        files = len(list(Path(f"/proc/{server.pid}/fd").iterdir())) + 60
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (files, files))
        for _ in range(files + 100):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        for _ in range(3):
            assert server.post(b'[1,"get_all_databases",1,1,{}]')[0] == 200
        with server.connection() as connection:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        assert 'hms_gateway_limited_total{limit="open_files"}' in text
    assert '"limit":"open_files"' in server.log_text().replace('": "', '":"')
