"""H3: small gzip bodies that become hundreds of megabytes, many at once. Inflated bytes count against the budgets."""

import asyncio
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from hms_gateway.gateway.admission.memory import UNCOUNTED_BYTES
from hms_gateway.gateway.http import request_body
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import ANSWER, CALL, post, read_response, running
from tests.support.patience import until

MIB = 1024 * 1024
BOMB = b"[" + b" " * (8 * MIB)


def compressed(body: bytes, level: int = 9) -> bytes:
    compressor = zlib.compressobj(level, wbits=31)
    return compressor.compress(body) + compressor.flush()


def send(server, body: bytes) -> tuple[int, bytes]:
    with server.connect() as connection:
        connection.sendall(post(body, "Content-Encoding: gzip"))
        status, _, answer = read_response(connection)
        return status, answer


class Watched(request_body.Inflation):
    """Notes where and how much is made at once, and how much that is in all."""

    on_the_event_loop: ClassVar[list[int]] = []
    made: ClassVar[int] = 0

    def piece(self, bytes_max: int) -> bytes:
        piece = super().piece(bytes_max)
        Watched.made += len(piece)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            Watched.on_the_event_loop.append(len(piece))
        return piece


@pytest.fixture(autouse=True)
def watched(monkeypatch):
    Watched.on_the_event_loop, Watched.made = [], 0
    monkeypatch.setattr(request_body, "Inflation", Watched)


@pytest.mark.slow
def test_bodies_that_inflate_at_once_are_bounded_together():
    limits = Limits(body_memory_bytes_max=4 * MIB, inflation_ratio_max=10_000)
    with running(limits=limits) as server, ThreadPoolExecutor(8) as threads:
        statuses = {status for status, _ in threads.map(lambda _: send(server, compressed(BOMB)), range(8))}
        assert statuses == {503}
        assert server.metrics.limited.keys() <= {"share_per_user of body_memory_bytes_max", "body_memory_bytes_max"}
        # Each of eight was given up with the piece that was too much.
        each = 3 * MIB + request_body.INFLATED_PIECE_BYTES + UNCOUNTED_BYTES
        assert Watched.made <= 8 * each < 8 * len(BOMB)
        until(lambda: server.bodies.memory.taken == 0)
        assert send(server, compressed(CALL)) == (200, ANSWER)


@pytest.mark.slow
def test_hardly_anything_is_inflated_on_the_event_loop():
    with running(limits=Limits(inflation_ratio_max=10_000)) as server:
        send(server, compressed(BOMB))
        assert max(Watched.on_the_event_loop) <= 64 * 1024
        assert Watched.made == len(BOMB)


@pytest.mark.slow
def test_a_body_that_grows_out_of_proportion_is_refused():
    with running(limits=Limits(inflation_ratio_max=100)) as server:
        status, answer = send(server, compressed(b"[" + b" " * (64 * MIB)))
        assert (status, b"inflation_ratio_max" in answer) == (413, True)
        assert Watched.made <= request_body.ANY_RATIO_BYTES + request_body.INFLATED_PIECE_BYTES


def test_endless_empty_members_are_refused():
    with running() as server:
        status, answer = send(server, compressed(b"") * (request_body.MEMBERS_MAX + 1))
        assert (status, b"members" in answer) == (400, True)


def test_members_of_one_byte_are_no_more_work_for_the_event_loop_than_others(monkeypatch):
    handed_over = []
    add_piece = request_body._add_piece

    def noting(*arguments):
        handed_over.append(1)
        return add_piece(*arguments)

    monkeypatch.setattr(request_body, "_add_piece", noting)
    with running() as server:
        body = compressed(b" ") * (request_body.MEMBERS_MAX - 1) + compressed(CALL)
        assert send(server, body)[0] in (200, 400)
        assert len(handed_over) == 1


def test_many_members_and_a_body_that_is_cut_off_are_what_they_were():
    with running() as server:
        assert send(server, b"".join(compressed(CALL[at : at + 1]) for at in range(len(CALL)))) == (200, ANSWER)
        assert send(server, compressed(CALL)[:-3])[0] == 400
        assert send(server, compressed(CALL) + b"junk")[0] == 400
        assert send(server, compressed(CALL + b" " * 1_000_000)) == (200, ANSWER)
