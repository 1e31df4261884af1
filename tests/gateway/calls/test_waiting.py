"""Calls that a handler cannot answer yet."""

import gc
import threading
from weakref import ref

from hms_gateway.gateway.calls.dispatcher import WaitingCalls
from hms_gateway.rpc.call import Releases, Waiting
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import ANSWER, CALL, DATABASES, CannedProcessor, post, read_response, running
from tests.support.patience import PATIENCE_SECONDS, until

# Nothing in these tests may depend on a pause ending by itself.
FOR_EVER = 3_600.0


class Door:
    """Answers `get_all_databases` once it is open; notes who asks and who gives up."""

    def __init__(self, seconds=FOR_EVER):
        self.seconds = seconds
        self.is_open = False
        self.calls = []
        self.abandoned = []
        self.releases = Releases()

    def __call__(self, message, call):
        self.calls.append(call)
        number = len(self.calls)
        if self.is_open:
            return DATABASES
        return Waiting(self.seconds, resume=number, abandon=lambda: self.abandoned.append(number))

    def open(self):
        self.is_open = True
        self.releases.announce()


def serving(door, **options):
    return running(CannedProcessor(get_all_databases=door), releases=door.releases, **options)


def test_a_release_wakes_the_call_which_is_told_how_long_it_waited_and_what_it_left():
    door = Door()
    with serving(door) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        until(lambda: server.metrics.calls_waiting == 1 and server.metrics.calls_in_flight == 0)
        door.open()
        status, _, body = read_response(connection)
        assert (status, body) == (200, ANSWER)
        assert server.metrics.calls_waiting == 0
    first, second = door.calls
    assert (first.waited_seconds, first.resume) == (0.0, None)
    assert 0 <= second.waited_seconds < PATIENCE_SECONDS
    assert second.resume == 1
    assert second.request_id == first.request_id
    assert not door.abandoned


def test_without_a_release_the_call_is_tried_again_after_its_time():
    door = Door(seconds=0.001)
    with serving(door) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        until(lambda: len(door.calls) > 3)
        door.is_open = True
        assert read_response(connection)[2] == ANSWER
    assert [call.resume for call in door.calls] == [None, *range(1, len(door.calls))]


def test_a_release_that_comes_during_the_attempt_is_not_missed():
    door = Door()

    def answer(message, call):
        outcome = door(message, call)
        door.open()
        return outcome

    processor = CannedProcessor(get_all_databases=answer)
    with running(processor, releases=door.releases) as server, server.connect() as connection:
        for _ in range(2):
            door.is_open = False
            connection.sendall(post(CALL))
            assert read_response(connection)[2] == ANSWER
    assert len(door.calls) == 4


def test_nothing_of_a_call_that_waited_waits_for_the_garbage_collector():
    door, made = Door(seconds=0.001), []

    def answer(message, call):
        outcome = door(message, call)
        if isinstance(outcome, Waiting):
            made.append(ref(outcome))
        return outcome

    gc.disable()
    try:
        processor = CannedProcessor(get_all_databases=answer)
        with running(processor, releases=door.releases) as server, server.connect() as connection:
            connection.sendall(post(CALL))
            until(lambda: len(made) > 3)
            door.is_open = True
            assert read_response(connection)[2] == ANSWER
            until(lambda: not any(it() for it in made))
    finally:
        gc.enable()


def test_a_client_that_leaves_is_not_waited_for():
    door = Door()
    with serving(door) as server:
        with server.connect() as connection:
            connection.sendall(post(CALL))
            until(lambda: server.metrics.calls_waiting == 1)
        until(lambda: door.abandoned == [1])
        until(lambda: server.metrics.calls_waiting == 0)
        server.stop()
        assert [line["outcome"] for line in server.log_lines()] == ["client_gone"]
    assert len(door.calls) == 1


def test_a_client_that_leaves_is_not_waited_for_although_it_has_sent_another_request():
    door = Door()
    with serving(door) as server:
        with server.connect() as connection:
            connection.sendall(post(CALL) + post(CALL))
            until(lambda: server.metrics.calls_waiting == 1)
        until(lambda: door.abandoned == [1])
        until(lambda: server.metrics.calls_waiting == 0)
    assert len(door.calls) == 1


def test_waiting_holds_no_thread():
    door = Door()
    with serving(door, threads=1) as server:
        connections = [server.connect() for _ in range(5)]
        for connection in connections:
            connection.sendall(post(CALL))
        until(lambda: server.metrics.calls_waiting == 5)
        door.open()
        for connection in connections:
            with connection:
                assert read_response(connection)[2] == ANSWER


def test_no_more_than_so_many_calls_wait():
    door = Door()
    limited = serving(door, limits=Limits(waiting_calls_max=1))
    with limited as server, server.connect() as first, server.connect() as second:
        first.sendall(post(CALL))
        until(lambda: server.metrics.calls_waiting == 1)
        second.sendall(post(CALL))
        status, headers, body = read_response(second)
        assert status == 503
        assert b"waiting_calls_max" in body
        assert headers["x-call-outcome"] == "not-tried"
        assert door.abandoned == [2]
        door.open()
        assert read_response(first)[2] == ANSWER


def test_a_call_that_is_refused_when_it_is_tried_again_leaves_nothing_behind():
    door, may_end = Door(), threading.Event()
    processor = CannedProcessor(
        get_all_databases=door, slow=lambda message, call: may_end.wait(PATIENCE_SECONDS) and DATABASES
    )
    limited = running(processor, releases=door.releases, limits=Limits(calls_in_flight_max=1))
    with limited as server, server.connect() as waiting, server.connect() as slow:
        waiting.sendall(post(CALL))
        until(lambda: server.metrics.calls_waiting == 1 and server.metrics.calls_in_flight == 0)
        slow.sendall(post(b'[1,"slow",1,1,{}]'))
        until(lambda: server.metrics.calls_in_flight == 1)
        door.open()
        status, headers, body = read_response(waiting)
        assert (status, headers["x-call-outcome"]) == (503, "not-tried")
        assert b"calls_in_flight_max" in body
        assert door.abandoned == [1]
        assert server.metrics.calls_waiting == 0
        may_end.set()
        assert read_response(slow)[0] == 200


def test_a_server_that_stops_does_not_wait_for_those_who_wait():
    door = Door()
    with serving(door) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        until(lambda: server.metrics.calls_waiting == 1)
        stopper = threading.Thread(target=server.stop)
        stopper.start()
        status, _, body = read_response(connection)
        stopper.join(PATIENCE_SECONDS)
        assert status == 503
        assert b"stopping" in body
    assert door.abandoned == [1]


def test_releases_before_the_first_wait_and_after_the_loop_are_harmless():
    releases = Releases()
    with running(CannedProcessor(), releases=releases) as server:
        WaitingCalls(Limits(), server.metrics, releases)
        releases.announce()
    releases.announce()
