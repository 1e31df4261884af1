"""Requests that break HTTP, TLS or patience: refused or hung up on in bounded time, while others are still answered."""

import contextlib
import gzip
import resource
import socket
import ssl
from itertools import chain, repeat
from time import monotonic

import pytest

from tests.interop.raw import answer_to, assert_readable, connected, post, request_head
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer

GOOD_CALL = b'[1,"get_databases",1,1,{"1":{"str":"default"}}]'
GOOD_ANSWER = b'[1,"get_databases",2,1,{"0":{"lst":["str",1,"default"]}}]'
FILE_HANDLES_KEPT = 500
SILENT_CONNECTIONS_MAX = 9_000


def assert_answers(server: GatewayServer) -> None:
    """A good call is answered. One whose bytes the machine held up beyond the server's second is sent again."""
    patience = monotonic() + PATIENCE_SECONDS
    while True:
        try:
            answer = post(server, GOOD_CALL)
        except ConnectionError:
            assert monotonic() < patience
            continue
        if answer.status != 408 or monotonic() > patience:
            break
    assert answer.body == GOOD_ANSWER


def test_announced_gigabyte_is_refused_before_it_comes(strict: GatewayServer) -> None:
    answer = answer_to(strict, [request_head(strict, f"Content-Length: {1 << 30}"), GOOD_CALL])
    assert_readable(answer)
    assert answer.status == 413


def test_endless_chunks_are_cut_off(strict: GatewayServer) -> None:
    chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    head = request_head(strict, "Transfer-Encoding: chunked")
    answer = answer_to(strict, chain([head], repeat(chunk, 10_000)))
    assert_readable(answer)
    assert answer.status == 413


def test_compressed_bomb(strict: GatewayServer) -> None:
    bomb = gzip.compress(bytes(50 * 1024 * 1024))
    assert len(bomb) < 256 * 1024
    answer = post(strict, bomb, API_PATH, "Content-Encoding: gzip")
    assert_readable(answer)
    assert answer.status == 413


def test_unreadable_compression(strict: GatewayServer) -> None:
    answer = post(strict, b"no gzip", API_PATH, "Content-Encoding: gzip")
    assert answer.status in (400, 415)


def test_body_that_never_comes_is_given_up(strict: GatewayServer) -> None:
    answer = answer_to(strict, [request_head(strict, f"Content-Length: {len(GOOD_CALL)}"), GOOD_CALL[:10]])
    assert_readable(answer)
    assert answer.status == 408
    assert answer.headers["connection"].lower() == "close"


@pytest.mark.parametrize(
    "head",
    [
        b"nonsense\r\n\r\n",
        b"POST\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: ten\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nX: " + b"a" * 300_000 + b"\r\n\r\n",
        b"POST /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nno colon\r\n\r\n",
    ],
    ids=[
        "nonsense", "no target", "control bytes", "HTTP 9.9", "length -1", "length ten", "two lengths", "chunk size zz",
        "long header", "long path", "no colon",
    ],
)  # fmt: skip
def test_head_that_is_no_http(strict: GatewayServer, head: bytes) -> None:
    try:
        answer = answer_to(strict, [head])
    except (ConnectionError, ssl.SSLError):
        return  # Hanging up is an answer too.
    assert 400 <= answer.status < 600
    assert answer.status != 500, answer
    assert b"Traceback" not in answer.body


def test_head_that_never_ends_is_hung_up_on(strict: GatewayServer) -> None:
    with connected(strict) as connection:
        connection.sendall(request_head(strict, f"Content-Length: {len(GOOD_CALL)}")[:-2])
        ended = connection.recv(65536)
    assert ended == b"" or b" 408 " in ended.split(b"\r\n")[0]


@pytest.mark.parametrize("part", ["head", "body"])
def test_bytes_that_come_one_by_one(strict: GatewayServer, part: str) -> None:
    head = request_head(strict, "Content-Length: 1000")
    with connected(strict) as connection:
        if part == "body":
            connection.sendall(head)
        assert b" 408 " in _answer_while_sending(connection, head if part == "head" else bytes(1000)).split(b"\r\n")[0]


def _answer_while_sending(connection: ssl.SSLSocket, slowly: bytes) -> bytes:
    """What the server says while it gets one byte each time it has been silent for a while."""
    connection.settimeout(0.1)
    for byte in slowly:
        connection.sendall(bytes([byte]))
        with contextlib.suppress(TimeoutError):
            return connection.recv(65536)
    pytest.fail("the server waits for ever")


def test_client_that_leaves_in_the_middle_of_its_body(strict: GatewayServer) -> None:
    for length in range(0, len(GOOD_CALL), 7):
        with connected(strict) as connection:
            connection.sendall(request_head(strict, f"Content-Length: {len(GOOD_CALL)}") + GOOD_CALL[:length])
    assert_answers(strict)


def test_client_that_does_not_wait_for_its_answer(strict: GatewayServer) -> None:
    for _ in range(20):
        with connected(strict) as connection:
            connection.sendall(request_head(strict, f"Content-Length: {len(GOOD_CALL)}") + GOOD_CALL)
    assert_answers(strict)


def test_two_requests_in_one_packet(strict: GatewayServer) -> None:
    request = request_head(strict, f"Content-Length: {len(GOOD_CALL)}") + GOOD_CALL
    with connected(strict) as connection:
        connection.sendall(request + request)
        stream = connection.makefile("rb")
        received = b""
        while received.count(GOOD_ANSWER) < 2:
            piece = stream.read1(65536)
            assert piece, received
            received += piece


@pytest.mark.parametrize(
    "first", [GOOD_CALL, b"GET / HTTP/1.1\r\n\r\n", b"\x80\x01\x00\x01", bytes(1000), b"\x16\x03\x01\xff\xff"]
)
def test_bytes_that_are_no_tls(strict: GatewayServer, first: bytes) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(first)
        try:
            while connection.recv(65536):
                pass
        except ConnectionError:
            pass


def test_connections_that_say_nothing(strict: GatewayServer) -> None:
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = min(SILENT_CONNECTIONS_MAX, soft_limit - FILE_HANDLES_KEPT)
    silent: list[socket.socket] = []
    try:
        for _ in range(number):
            silent.append(socket.create_connection(("127.0.0.1", strict.port), timeout=PATIENCE_SECONDS))
            if len(silent) % 1_000 == 0:
                assert_answers(strict)
        assert_answers(strict)
        # The server does not keep them: the oldest is hung up on without having said a word.
        assert silent[0].recv(1) == b""
    finally:
        for connection in silent:
            connection.close()
    assert_answers(strict)


def test_connections_that_say_nothing_after_their_handshake(strict: GatewayServer) -> None:
    with connected(strict) as first:
        others = [connected(strict) for _ in range(50)]
        opened = [other.__enter__() for other in others]
        try:
            assert_answers(strict)
            assert first.recv(1) == b""
        finally:
            for connection in opened:
                connection.close()
