"""Bodies as they really arrive: in chunks, slowly, too large, broken off."""

import pytest

from hms_gateway.gateway.admission.memory import UNCOUNTED_BYTES
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import ANSWER, CALL, CannedProcessor, parse_head, post, read_response, running
from tests.support.patience import until


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def request_chunked(*pieces: bytes) -> bytes:
    return post(b"", "Transfer-Encoding: chunked") + chunked(*pieces)


@pytest.fixture(scope="module")
def server():
    with running(limits=Limits(body_bytes_max=100_000)) as it:
        yield it


def test_a_chunked_body_is_joined(server):
    with server.connect() as connection:
        connection.sendall(request_chunked(CALL[:7], CALL[7:8], CALL[8:]))
        assert read_response(connection)[2] == ANSWER


def test_a_body_in_pieces_is_joined(server):
    with server.connect() as connection:
        request = post(CALL)
        for start in range(0, len(request), 20):
            connection.sendall(request[start : start + 20])
        assert read_response(connection)[2] == ANSWER


def test_a_chunked_body_is_counted_while_it_arrives(server):
    with server.connect() as connection:
        connection.sendall(request_chunked(b'[1,"get_table",1,4,{"1":{"str":"', *[b"a" * 50_000] * 3))
        status, _, body = read_response(connection)
        assert status == 413
        assert body.startswith(b'[1,"get_table",3,4,')


def test_a_body_of_exactly_the_limit_is_taken():
    with running(limits=Limits(body_bytes_max=len(CALL))) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[2] == ANSWER
        connection.sendall(post(CALL + b" "))
        assert read_response(connection)[0] == 413


def test_a_slow_body_is_408_and_the_connection_closed():
    with running(limits=Limits(body_read_seconds_max=0.05)) as server:
        answer = server.exchange(post(CALL[:-2], length=len(CALL)))
        status, headers = parse_head(answer.partition(b"\r\n\r\n")[0])
        assert (status, headers["connection"]) == (408, "close")
        assert b'[1,"get_all_databases",3,1,' in answer
        assert b"body_read_seconds_max" in answer


def test_a_client_that_leaves_inside_its_body_is_forgotten(server):
    with server.connect() as connection:
        connection.sendall(post(CALL[:10], length=len(CALL)))
    with server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[2] == ANSWER


def test_bodies_together_are_bounded():
    limits = Limits(body_memory_bytes_max=300_000, share_per_user=0.75)
    with running(limits=limits) as server:
        memory = server.bodies.memory
        connections = [server.connect() for _ in range(2)]
        for connection in connections:
            connection.sendall(post(b"[" + b" " * (99_999 + UNCOUNTED_BYTES), length=1_000_000))
        until(lambda: memory.taken == 200_000)
        with server.connect() as one_more:
            one_more.sendall(post(b"", "Expect: 100-continue", length=1_000_000))
            assert one_more.recv(100).startswith(b"HTTP/1.1 100 ")
            one_more.sendall(CALL[:30] + b" " * (50_000 + UNCOUNTED_BYTES))
            status, headers, body = read_response(one_more)
            assert (status, headers["x-call-outcome"]) == (503, "not-tried")
            assert b"share_per_user of body_memory_bytes_max" in body
        with server.connect() as small:
            small.sendall(post(CALL))
            assert read_response(small)[2] == ANSWER
        for connection in connections:
            connection.close()
        until(lambda: memory.taken == 0)
        assert server.metrics.limited == {"share_per_user of body_memory_bytes_max": 1}


def test_a_processor_is_not_called_for_what_was_not_received():
    processor = CannedProcessor()
    with running(processor) as server:
        with server.connect() as connection:
            connection.sendall(post(CALL[:10], length=len(CALL)))
        server.exchange(post(CALL, "Connection: close"))
        assert len(processor.calls) == 1
