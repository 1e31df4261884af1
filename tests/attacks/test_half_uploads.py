"""M5: uploads of one user that never end. They take that user's share of the memory; others' calls are answered."""

import contextlib

import pytest

from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import ANSWER, CALL, Anybody, post, read_response, running
from tests.support.patience import until

MIB = 1024 * 1024


def large_call() -> bytes:
    """A call whose body is counted, since it is not small."""
    return post(CALL[:-1] + b" " * MIB + CALL[-1:])


@pytest.mark.slow
def test_half_uploads_of_one_user_leave_room_for_others():
    user = Anybody("mallory")
    limits = Limits(body_memory_bytes_max=16 * MIB)
    with running(authenticator=user, limits=limits) as server, contextlib.ExitStack() as stack:
        for _ in range(40):
            upload = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):
                upload.sendall(post(b"[" + b" " * MIB, length=32 * MIB))
        until(lambda: server.metrics.limited["share_per_user of body_memory_bytes_max"] >= 30)
        assert server.bodies.memory.taken <= 8 * MIB
        with server.connect() as small:
            small.sendall(post(CALL))
            assert read_response(small)[2] == ANSWER
        user.user = "ann"
        with server.connect() as large:
            large.sendall(large_call())
            assert read_response(large)[2] == ANSWER


def test_the_number_of_uploads_of_one_user_is_bounded():
    user = Anybody("mallory")
    limits = Limits(uploads_max=6)
    with running(authenticator=user, limits=limits) as server, contextlib.ExitStack() as stack:
        uploads = server.bodies.uploads
        for number in range(5):
            upload = stack.enter_context(server.connect())
            upload.sendall(post(b"[" + b" " * 100_000, length=32 * MIB))
            until(
                lambda number=number: (
                    uploads.taken + server.metrics.limited["share_per_user of uploads_max"] == number + 1
                )
            )
        assert (uploads.taken, server.metrics.limited["share_per_user of uploads_max"]) == (3, 2)
        user.user = "ann"
        with server.connect() as large:
            large.sendall(large_call())
            assert read_response(large)[2] == ANSWER
        stack.close()
        until(lambda: uploads.taken == 0)
