"""M5: one user's slow readers took every place for long replies. Now they have their share."""

import contextlib

from hms_gateway.gateway.calls import dispatcher
from tests.gateway.serving import CALL, Anybody, CannedProcessor, post, read_response, running
from tests.support.patience import until


def endless(message, call):
    while True:
        yield b"x" * 1_000_000


def test_slow_readers_of_one_user_leave_places_for_long_replies_of_others(monkeypatch):
    user = Anybody("mallory")
    processor = CannedProcessor(get_all_databases=endless, get_table=lambda message, call: iter([b"{}"]))
    monkeypatch.setattr(dispatcher, "LATE_SECONDS_MAX", 0.01)
    bounds = {"streams_max": 8, "threads": 4}
    with running(processor, authenticator=user, **bounds) as server, contextlib.ExitStack() as stack:
        for number in range(10):
            slow = stack.enter_context(server.connect())
            slow.sendall(post(CALL))
            until(
                lambda number=number: (
                    server.metrics.streams_in_flight + server.metrics.limited["share_per_user of streams_max"]
                    == number + 1
                )
            )
        assert server.metrics.streams_in_flight == 4
        assert server.metrics.limited == {"share_per_user of streams_max": 6}
        user.user = "ann"
        with server.connect() as quiet:
            quiet.sendall(post(b'[1,"get_table",1,1,{}]', "Connection: close"))
            assert read_response(quiet)[0] == 200
        stack.close()
        until(lambda: server.metrics.streams_in_flight == 0)
