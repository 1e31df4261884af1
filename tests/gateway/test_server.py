"""The server itself: stopping, silent and rude connections, TLS."""

import contextlib
import socket
import ssl
import threading

import httpx
import pytest

from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.certificates.tls import ensure_certificate, server_context
from hms_gateway.gateway.server import Server
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.gateway.serving import (
    ANSWER,
    CALL,
    DATABASES,
    SECONDS_TO_SEND,
    CannedProcessor,
    is_answered,
    is_closed_after_a_line_end,
    post,
    read_all,
    read_response,
    running,
)
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import trusting


def test_stopping_finishes_the_call_in_flight_and_says_not_ready_meanwhile():
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait() and DATABASES)
    with running(processor) as server, server.connect() as connection, server.connect() as watcher:
        connection.sendall(post(CALL))
        until(lambda: processor.calls)
        assert server.stopped == []
        server.server.stop()
        until(lambda: is_refused(server.port))
        watcher.close()
        go.set()
        status, headers, body = read_response(connection)
        assert (status, headers["connection"], body) == (200, "close", ANSWER)
        server.thread.join(PATIENCE_SECONDS)
        assert server.stopped == ["stopped"]


class RecordedListener:
    """Looks at the first listener while it starts."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.said: list[str] = []

    async def start(self) -> None:
        self.said.append("starts alone" if is_refused(self.port) else "starts later")

    async def stop(self) -> None:
        self.said.append("stops")


def two_sockets_of_one_port() -> tuple[socket.socket, socket.socket]:
    """Which may both be bound, and of which only one may listen."""
    first, second = socket.socket(), socket.socket()
    for one in (first, second):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    first.bind(("127.0.0.1", 0))
    second.bind(first.getsockname())
    return first, second


def serve(secondary_listener: RecordedListener, listener: socket.socket) -> None:
    """A server with another listener, until its first call of `on_listening`, which stops it."""
    with running() as other:
        gateway = Gateway(
            other.asgi_endpoint,
            Settings(),
            connections=other.server._gateway.connections,
            ready=lambda: None,
            secondary_listener=secondary_listener,
        )
        server = Server(gateway, on_listening=lambda _: server.stop())
        server.run([listener])


def test_https_answers_when_the_secondary_listener_does():
    """Else /readyz would say yes to a start that ends because the Thrift port is in use."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        secondary_listener = RecordedListener(listener.getsockname()[1])
        serve(secondary_listener, listener)
    assert secondary_listener.said == ["starts alone", "stops"]


def test_the_secondary_listener_stops_when_https_cannot_listen():
    first, second = two_sockets_of_one_port()
    with first, second:
        first.listen()
        secondary_listener = RecordedListener()
        with pytest.raises(OSError, match="in use"):
            serve(secondary_listener, second)
    assert secondary_listener.said == ["starts alone", "stops"]


def is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return True
    return False


def test_stopping_does_not_wait_for_ever_for_a_call():
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait() and DATABASES)
    with running(processor, limits=Limits(drain_seconds_max=0.05)) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        until(lambda: processor.calls)
        server.server.stop()
        read_all(connection)
        go.set()


def test_an_idle_connection_is_closed_at_once_when_stopping():
    with running() as server, server.connect() as connection:
        connection.sendall(post(CALL))
        read_response(connection)
        server.stop()
        assert connection.recv(1) == b""


def test_an_idle_connection_has_its_last_request_answered_when_stopping():
    bounds = {"drain_idle_seconds": 10.0, "limits": Limits(drain_seconds_max=0.05)}
    with running(**bounds) as server, server.connect() as connection:
        # uvicorn waits for idle connections within the same time.
        assert server.server.config.timeout_graceful_shutdown == 10.05
        connection.sendall(post(CALL))
        read_response(connection)
        server.server.stop()
        until(lambda: is_refused(server.port))
        connection.sendall(post(CALL))
        status, headers, body = read_response(connection)
        assert (status, headers["connection"], body) == (200, "close", ANSWER)
        assert connection.recv(1) == b""
        server.thread.join(PATIENCE_SECONDS)
        assert server.stopped == ["stopped"]


def test_an_idle_connection_does_not_keep_a_stopping_server():
    with running(drain_idle_seconds=0.05) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        read_response(connection)
        server.stop()
        assert connection.recv(1) == b""


def test_a_silent_connection_is_closed():
    with running(header_seconds_max=0.05) as server, server.connect() as connection:
        assert connection.recv(1) == b""


def test_headers_that_do_not_end_are_408():
    with running(header_seconds_max=SECONDS_TO_SEND) as server:
        until(lambda: server.exchange(b"POST / HTTP/1.1\r\nHost: a\r\n").startswith(b"HTTP/1.1 408 "))


def test_a_silent_keep_alive_connection_is_closed():
    with running(idle_seconds_max=0.05) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        read_response(connection)
        assert connection.recv(1) == b""


def test_line_ends_between_requests_do_not_keep_a_connection():
    with running(header_seconds_max=SECONDS_TO_SEND) as server:
        until(lambda: is_closed_after_a_line_end(server))


def test_a_request_in_time_is_not_disturbed_by_the_header_time():
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait(2 * SECONDS_TO_SEND) or DATABASES)

    def is_undisturbed() -> bool:
        with server.connect() as connection:
            return is_answered(connection)

    with running(processor, header_seconds_max=SECONDS_TO_SEND) as server:
        until(is_undisturbed)


def test_endless_headers_are_431():
    with running() as server, server.connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(b"POST / HTTP/1.1\r\n")
            for number in range(20):
                connection.sendall(b"X-%d: " % number + b"a" * 8000 + b"\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")


def test_what_is_no_http_is_400():
    with running() as server:
        assert server.exchange(b"\x80\x01\x00\x01\x00\x00\x00\x03abc\x00\x00\x00\x01\x00\r\n\r\n").startswith(
            b"HTTP/1.1 400 Bad Request\r\n"
        )


def test_silent_connections_keep_nobody_out():
    with running(limits=Limits(connections_max=40)) as server:
        silent = [server.connect() for _ in range(100)]
        with server.connect() as connection:
            connection.sendall(post(CALL))
            assert read_response(connection)[2] == ANSWER
        assert server.metrics.connections_refused >= 60
        for connection in silent:
            connection.close()


def test_connections_that_are_being_served_are_never_cut_off_for_new_ones():
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait() and DATABASES)
    with running(processor, limits=Limits(connections_max=3, share_per_user=0.7)) as server:
        busy = [server.connect(), server.connect()]
        for connection in busy:
            connection.sendall(post(CALL))
        until(lambda: len(processor.calls) == 2)
        refused = server.exchange(post(CALL))
        go.set()
        assert refused.startswith(b"HTTP/1.1 503 ") or refused == b""
        for connection in busy:
            assert read_response(connection)[2] == ANSWER
            connection.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    files = ensure_certificate(tmp_path_factory.mktemp("tls"))
    return files.certificate, files.key


def test_tls_with_our_own_certificate_verifies(certificate):
    client_context = ssl.create_default_context(cafile=str(certificate[0]))
    with running(tls=server_context(*certificate)) as server:
        assert httpx.post(server.url, content=CALL, verify=client_context).content == ANSWER
        assert (
            httpx.post(server.url.replace("127.0.0.1", "localhost"), content=CALL, verify=client_context).status_code
            == 200
        )


def test_a_client_that_does_not_close_its_side_does_not_keep_a_stopping_server(certificate):
    with (
        running(tls=server_context(*certificate)) as server,
        server.connect() as plain,
        trusting().wrap_socket(plain) as connection,
    ):
        connection.sendall(post(CALL))
        read_response(connection)
        # It neither reads nor closes. Left to itself, the event loop waits for that for half a minute.
        server.server.stop()
        server.thread.join(PATIENCE_SECONDS)
        assert not server.thread.is_alive()


def test_tls_with_a_certificate_of_somebody_else(tmp_path):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "certificate")
    client_context = ssl.create_default_context()
    authority.configure_trust(client_context)
    with running(tls=server_context(tmp_path / "certificate", tmp_path / "key")) as server:
        assert httpx.post(server.url, content=CALL, verify=client_context).content == ANSWER


def test_old_tls_and_plain_http_get_nothing_from_the_tls_port(certificate):
    with running(tls=server_context(*certificate), header_seconds_max=0.2) as server:
        assert server.exchange(post(CALL)) in (b"",) or b"HTTP" not in server.exchange(post(CALL))
        with server.connect() as silent:
            assert read_all(silent) == b""


def test_a_tls_session_is_resumed(certificate):
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with running(tls=server_context(*certificate)) as server:
        with context.wrap_socket(server.connect(), server_hostname="127.0.0.1") as first:
            first.sendall(post(CALL))
            read_response(first)
            session = first.session
        with context.wrap_socket(server.connect(), server_hostname="127.0.0.1", session=session) as second:
            assert second.session_reused


def test_a_connection_that_was_accepted_before_the_stop_is_served(certificate):
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with running(tls=server_context(*certificate), drain_idle_seconds=20.0) as server, server.connect() as connection:
        until(lambda: len(server.server._gateway.connections) == 1)
        server.server.stop()
        until(lambda: is_refused(server.port))
        with context.wrap_socket(connection, server_hostname="127.0.0.1") as late:
            late.sendall(post(CALL))
            status, headers, body = read_response(late)
            assert (status, headers["connection"], body) == (200, "close", ANSWER)


def test_a_connection_that_says_nothing_does_not_hold_the_stop_up(certificate):
    bounds = {"tls": server_context(*certificate), "drain_idle_seconds": 0.05}
    with running(**bounds) as server, server.connect() as silent, server.connect() as half:
        half.sendall(b"\x16\x03\x01")
        until(lambda: len(server.server._gateway.connections) == 2)
        server.stop()
        assert silent.recv(1) == b""
