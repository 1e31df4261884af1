"""M5: shares were counted for users only, so who has many accounts had all of it. An address has a share as well."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable

import pytest

from hms_gateway.gateway.admission.identity import Identity
from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.rpc.call import Waiting
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import CALL, DATABASES, CannedProcessor, Running, post, read_response, running
from tests.support.patience import until

ELSEWHERE = "127.0.0.2"
QUIET_CALL = b'[1,"get_table",1,1,{}]'
LARGE = 300_000


class ManyUsers:
    """Every request is another user's."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def remembered(self, head):
        return Identity(f"user{next(self.numbers)}", head.address)

    def close(self) -> None:
        """Nothing to give back."""


def endless(message, call):
    while True:
        yield b"x" * 1_000_000


def attack(server: Running, stack: contextlib.ExitStack, request: bytes, came: Callable[[], int]) -> None:
    """Ten requests from one address, of ten users."""
    for number in range(10):
        stack.enter_context(server.connect()).sendall(request)
        until(lambda number=number: came() == number + 1)


def ask(server: Running, source: str = ELSEWHERE, *headers: str) -> int:
    with server.connect(source) as connection:
        connection.sendall(post(QUIET_CALL, *headers))
        return read_response(connection)[0]


def serving(processor: CannedProcessor, limits: Limits, **options: object):
    return running(processor, authenticator=ManyUsers(), limits=limits, **options)


def test_threads():
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait(60) and DATABASES, get_table=b"{}")
    with serving(processor, Limits(), threads=8) as server, contextlib.ExitStack() as stack:
        attack(server, stack, post(CALL), lambda: server.metrics.calls_in_flight)
        until(lambda: len(processor.calls) == 7)
        assert ask(server) == 200
        assert [message.name for message, _ in processor.calls].count("get_all_databases") == 7
        go.set()


def test_calls():
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait(60) and DATABASES, get_table=b"{}")
    limits = Limits(calls_in_flight_max=8, share_per_address=0.5)
    with serving(processor, limits) as server, contextlib.ExitStack() as stack:
        limited = server.metrics.limited
        attack(
            server,
            stack,
            post(CALL),
            lambda: server.metrics.calls_in_flight + limited["share_per_address of calls_in_flight_max"],
        )
        assert server.metrics.calls_in_flight == 4
        assert ask(server, "127.0.0.1") == 503
        assert ask(server) == 200
        go.set()


def test_long_replies():
    processor = CannedProcessor(get_all_databases=endless, get_table=lambda message, call: iter([b"{}"]))
    limits = Limits(share_per_address=0.5)
    with serving(processor, limits, streams_max=8) as server, contextlib.ExitStack() as stack:
        metrics = server.metrics
        attack(
            server,
            stack,
            post(CALL),
            lambda: metrics.streams_in_flight + metrics.limited["share_per_address of streams_max"],
        )
        assert (metrics.streams_in_flight, metrics.limited) == (4, {"share_per_address of streams_max": 6})
        assert ask(server, ELSEWHERE, "Connection: close") == 200


def test_waiting_calls():
    wait = Waiting(3_600.0)
    is_open = threading.Event()
    processor = CannedProcessor(get_all_databases=wait, get_table=lambda *_: b"{}" if is_open.is_set() else wait)
    limits = Limits(waiting_calls_max=8, share_per_address=0.5)
    with serving(processor, limits) as server, contextlib.ExitStack() as stack:
        metrics = server.metrics
        attack(
            server,
            stack,
            post(CALL),
            lambda: metrics.calls_waiting + metrics.limited["share_per_address of waiting_calls_max"],
        )
        assert metrics.calls_waiting == 4
        quiet = stack.enter_context(server.connect(ELSEWHERE))
        quiet.sendall(post(QUIET_CALL))
        until(lambda: metrics.calls_waiting == 5)


def test_uploads():
    with (
        serving(CannedProcessor(), Limits(uploads_max=8, share_per_address=0.5)) as server,
        contextlib.ExitStack() as stack,
    ):
        uploads = server.bodies.uploads
        half = post(b"[" + b" " * LARGE, length=2 * LARGE)
        attack(server, stack, half, lambda: uploads.taken + server.metrics.limited["share_per_address of uploads_max"])
        assert uploads.taken == 4
        stack.enter_context(server.connect(ELSEWHERE)).sendall(half)
        until(lambda: uploads.taken == 5)


@pytest.mark.parametrize(("proxies", "status"), [(["127.0.0.1"], 200), ([], 503)])
def test_a_proxy_has_no_share_and_the_clients_behind_it_have_their_own(proxies: list[str], status: int):
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait(60) and DATABASES, get_table=b"{}")
    limits = Limits(calls_in_flight_max=40, share_per_address=0.1)
    behind = [f"X-Forwarded-For: 192.0.2.{number}" for number in range(6)]
    proxied = serving(processor, limits, proxies=Proxies(forwarding=proxies))
    with proxied as server, contextlib.ExitStack() as stack:

        def call(*headers: str) -> socket.socket:
            connection = stack.enter_context(server.connect())
            connection.sendall(post(CALL, *headers))
            return connection

        before = server.metrics.calls_in_flight
        for header in behind:
            call(header)
        call()
        until(
            lambda: (
                server.metrics.calls_in_flight
                - before
                + server.metrics.limited["share_per_address of calls_in_flight_max"]
                == 7
            )
        )
        assert ask(server, "127.0.0.1") == status
        for _ in range(5 if proxies else 0):
            call(behind[0])
        if proxies:
            until(lambda: server.metrics.limited["share_per_address of calls_in_flight_max"] == 2)
        go.set()
