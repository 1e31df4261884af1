"""H2: forty long calls of one user held every thread, and everybody else waited. Now they have their share of them."""

import contextlib
import threading

from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import CALL, DATABASES, Anybody, CannedProcessor, post, read_response, running
from tests.support.patience import until

QUIET_CALL = b'[1,"get_table",1,1,{}]'


def test_long_calls_of_one_user_leave_threads_for_others():
    go = threading.Event()
    user = Anybody("mallory")
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait(60) and DATABASES, get_table=b"{}")
    limits = Limits(share_per_user=0.375)
    with running(processor, authenticator=user, limits=limits, threads=8) as server, contextlib.ExitStack() as stack:
        hogs = [stack.enter_context(server.connect()) for _ in range(40)]
        for hog in hogs:
            hog.sendall(post(CALL))
        until(lambda: server.metrics.calls_in_flight == 40)
        until(lambda: len(processor.calls) == 3)
        user.user = "ann"
        with server.connect() as quiet:
            for _ in range(10):
                quiet.sendall(post(QUIET_CALL))
                assert read_response(quiet)[0] == 200
        # Ten calls were answered, and still no other of the forty has begun.
        assert [message.name for message, _ in processor.calls].count("get_all_databases") == 3
        go.set()
        assert {read_response(hog)[0] for hog in hogs} == {200}


def test_several_who_hog_threads_leave_some_too():
    go = threading.Event()
    user = Anybody()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait(60) and DATABASES, get_table=b"{}")
    with running(processor, authenticator=user, threads=16) as server, contextlib.ExitStack() as stack:
        for name in ("mallory", "trudy", "oscar"):
            user.user = name
            before = server.metrics.calls_in_flight
            for _ in range(20):
                stack.enter_context(server.connect()).sendall(post(CALL))
            until(lambda before=before: server.metrics.calls_in_flight == before + 20)
        user.user = "ann"
        with server.connect() as quiet:
            quiet.sendall(post(QUIET_CALL))
            go_on = threading.Timer(30, go.set)  # dies by itself where no thread is left
            go_on.start()
            assert read_response(quiet)[0] == 200
            assert not go.is_set()
        go_on.cancel()
        go.set()


def test_a_call_overtakes_those_that_another_user_has_waiting():
    steps = threading.Semaphore(0)
    user = Anybody("mallory")
    order = []

    def answer(message, call):
        order.append(call.principal)
        steps.acquire(timeout=60)
        return DATABASES

    with (
        running(CannedProcessor(get_all_databases=answer), authenticator=user, threads=1) as server,
        contextlib.ExitStack() as stack,
    ):
        connections = [stack.enter_context(server.connect()) for _ in range(11)]
        for connection in connections[:10]:
            connection.sendall(post(CALL))
        until(lambda: server.metrics.calls_in_flight == 10)
        user.user = "ann"
        connections[10].sendall(post(CALL))
        until(lambda: server.metrics.calls_in_flight == 11)
        steps.release(11)
        assert {read_response(connection)[0] for connection in connections} == {200}
    assert order.index("ann") <= 2


def test_heartbeats_of_a_user_do_not_wait_for_its_other_calls_and_are_not_refused_for_them():
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait(60) and DATABASES, heartbeat=b"{}")
    limits = Limits(calls_in_flight_max=16, share_per_user=0.375)
    with running(processor, limits=limits, threads=8) as server, contextlib.ExitStack() as stack:
        hogs = [stack.enter_context(server.connect()) for _ in range(6)]
        for hog in hogs:
            hog.sendall(post(CALL))
        until(lambda: server.metrics.calls_in_flight == 6)
        with server.connect() as other:
            other.sendall(post(QUIET_CALL))
            assert read_response(other)[0] == 503
            other.sendall(post(b'[1,"heartbeat",1,1,{}]'))
            assert read_response(other)[0] == 200
        go.set()
        assert {read_response(hog)[0] for hog in hogs} == {200}
