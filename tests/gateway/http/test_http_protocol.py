"""The protocol class over a transport in memory: what waits when the client does not read."""

import asyncio
import gc
import io
from weakref import ref

import pytest

from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.assembly import call_sinks
from hms_gateway.gateway.http.asgi_endpoint import AsgiEndpoint
from hms_gateway.gateway.http.endpoint import Endpoint
from hms_gateway.gateway.http.http_protocol import BoundedHttpProtocol
from hms_gateway.gateway.observability.call_logs import AccessLog
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.server import Server, bounded_connections
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.settings import Settings
from tests.gateway.serving import ANSWER, CALL, DATABASES, Anybody, CannedProcessor, FakeCache, post

KNOWN = {("tjson", "2.3", "get_all_databases", b"{}"): DATABASES}


class MemoryTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 50000), "sockname": ("127.0.0.1", 30443)})
        self.written: list[bytes] = []
        self.is_reading_paused = False
        self.is_closed = False

    def write(self, data):
        self.written.append(data)

    def get_write_buffer_size(self):
        return 0

    def set_write_buffer_limits(self, high=None, low=None): ...

    def is_closing(self):
        return self.is_closed

    def close(self):
        self.is_closed = True

    def abort(self):
        self.is_closed = True

    def pause_reading(self):
        self.is_reading_paused = True

    def resume_reading(self):
        self.is_reading_paused = False

    @property
    def answers(self) -> int:
        return b"".join(self.written).count(ANSWER)


class Uncounted:
    """Counts nothing."""

    def established(self, protocol): ...

    def claim(self, user): ...

    def holder(self): ...

    def timed_out(self): ...

    def lost(self): ...


def connected() -> tuple[BoundedHttpProtocol, MemoryTransport]:
    settings, metrics, log = Settings(), Metrics(()), AccessLog(stream=io.StringIO())
    endpoint = Endpoint(
        settings,
        codecs=make_codecs(settings.limits),
        processor=CannedProcessor(),
        cache=FakeCache(KNOWN),
        authenticator=Anybody(),
        proxies=Proxies(),
        metrics=metrics,
        sinks=call_sinks(metrics, log),
    )
    log.close()
    connections = bounded_connections(settings.limits, metrics)
    gateway = Gateway(AsgiEndpoint(endpoint, settings), settings, connections=connections, ready=lambda: None)
    server = Server(gateway)
    server.config.load()
    protocol, transport = BoundedHttpProtocol(server.config, server.server_state, {}, Uncounted()), MemoryTransport()
    protocol.connection_made(transport)
    return protocol, transport


async def settled() -> None:
    """Let everything run that is ready to."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_known_call_is_answered_while_it_is_received():
    async def scenario() -> None:
        protocol, transport = connected()
        protocol.data_received(post(CALL))
        assert transport.answers == 1
        protocol.data_received(post(CALL) * 3)
        assert transport.answers == 4
        assert protocol.server_state.total_requests == 4
        assert not protocol.tasks
        protocol.connection_lost(None)

    asyncio.run(scenario())


def test_a_client_that_does_not_read_gets_no_more_answers_until_it_does():
    async def scenario() -> None:
        protocol, transport = connected()
        protocol.data_received(post(CALL))
        protocol.pause_writing()
        protocol.data_received(post(CALL) * 3)
        await settled()
        assert transport.answers == 1
        assert transport.is_reading_paused
        protocol.resume_writing()
        await settled()
        assert transport.answers == 4
        assert not transport.is_reading_paused
        protocol.data_received(post(CALL))
        assert transport.answers == 5
        protocol.connection_lost(None)

    asyncio.run(scenario())


def test_a_call_waits_for_its_turn_behind_one_that_is_being_answered():
    async def scenario() -> None:
        protocol, transport = connected()
        protocol.data_received(post(b'[1,"shutdown",4,1,{}]') + post(CALL))
        assert transport.answers == 0
        while transport.answers == 0:
            await asyncio.sleep(0)
        assert b"".join(transport.written).count(b"HTTP/1.1 200 OK") == 2
        protocol.connection_lost(None)

    asyncio.run(scenario())


@pytest.mark.parametrize("in_cycle", [False, True])
def test_nothing_of_an_answered_request_waits_for_the_garbage_collector(in_cycle):
    async def scenario() -> None:
        protocol, transport = connected()
        if in_cycle:
            protocol.config.whole_body_bytes_max = -1
        answered = []
        for number in range(1, 4):
            protocol.data_received(post(b'[1,"shutdown",4,1,{}]'))
            answered.append(ref(protocol.cycle if in_cycle else protocol._pending[0]))
            while b"".join(transport.written).count(b"HTTP/1.1 200 OK") < number:
                await asyncio.sleep(0)
        await settled()
        # The connection keeps the last cycle.
        assert [it() is None for it in answered] == [True, True, not in_cycle]
        protocol.connection_lost(None)

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def test_half_a_body_is_not_lost_when_the_request_goes_the_long_way():
    async def scenario() -> None:
        protocol, transport = connected()
        request = post(CALL)
        protocol.data_received(request[:-10])
        await settled()
        protocol.data_received(request[-10:])
        while transport.answers == 0:
            await asyncio.sleep(0)
        protocol.connection_lost(None)

    asyncio.run(scenario())


def test_a_connection_that_is_closing_is_sent_nothing_more():
    async def scenario() -> None:
        protocol, transport = connected()
        protocol.data_received(post(CALL))
        transport.close()
        protocol.data_received(post(CALL))
        assert transport.answers == 1
        protocol.connection_lost(None)
        await settled()

    asyncio.run(scenario())
