"""The Thrift port of the gateway's own process: a real processor, calls run in threads, no HTTP between."""

import asyncio
import contextlib
from functools import partial
from types import SimpleNamespace

import pytest
import uvloop
from msgspec.structs import replace

from hms_gateway.bridge.relays.processor_relay import ProcessorRelay
from hms_gateway.bridge.relays.relay import answer_locally
from hms_gateway.bridge.server.admission import BridgeOptions
from hms_gateway.bridge.server.server import BridgeServer
from hms_gateway.bridge.thrift.connection import Session, ThriftConnection
from hms_gateway.bridge.thrift.messages import CallFailed, NotTried
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.composition.thrift_port import failure_of
from hms_gateway.gateway.calls.dispatcher import Dispatcher
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Releases, Unavailable
from hms_gateway.rpc.processor import Processor
from hms_gateway.rpc.structs import METHODS, NoSuchObjectException
from hms_gateway.rpc.wire import ApplicationErrorType
from hms_gateway.runtime.limits import Limits
from tests.bridge.thrift_bytes import BINARY, CODECS, COMPACT, call, client, framed, result_of


class Databases:
    """A handler of two methods."""

    def __init__(self):
        self.calls = []

    def get_all_databases(self, call):
        self.calls.append(call)
        return ["default"]

    def get_database(self, call, name):
        if name == "away":
            raise Unavailable("the database is away")
        raise NoSuchObjectException(f"database {name} not found")


class Stream:
    def __init__(self, chunks):
        self._chunks = list(chunks)
        self.is_cancelled = False

    async def chunks(self):
        for chunk in self._chunks:
            yield chunk

    def cancel(self):
        self.is_cancelled = True


class Answers:
    """Answers in a thread; `pieces` above 1 cuts a reply as if it had been long."""

    def __init__(self, processor, pieces=1, failure=None):
        self.processor, self.pieces, self.failure = processor, pieces, failure

    async def answer(self, codec, message, call, wrap, until_gone):
        if self.failure is not None:
            raise self.failure
        reply = await asyncio.to_thread(self.processor.process, codec, message, call)
        if self.pieces == 1 or reply.payload is None:
            return SimpleNamespace(reply=reply, stream=None)
        size = len(reply.payload) // self.pieces + 1
        parts = (reply.payload[at : at + size] for at in range(0, len(reply.payload), size))
        return SimpleNamespace(reply=reply, stream=Stream(wrap(parts)))


class Cache(dict):
    with_lists = frozenset()
    is_apart = False

    def lookup(self, key):
        return self.get(key)

    def scopes_of(self, key):
        return ()

    def ticket(self):
        return 3

    def note_answered(self, method):
        assert method in METHODS

    def remember(self, key, arguments, payload, ticket, tagged=None):
        assert ticket == 3
        self[key] = payload


@contextlib.asynccontextmanager
async def port(make_answers=Answers, **settings):
    handler = Databases()
    answered = {name for name in METHODS if hasattr(handler, name)}
    relay = ProcessorRelay(make_answers(Processor([handler], answered=answered)), CODECS, **settings)
    server = BridgeServer(relay, BridgeOptions(port=0), Limits())
    server.port = await server.start()
    try:
        async with client(server) as peer:
            yield peer, handler
    finally:
        await server.stop()


def test_calls_are_answered_as_the_user_that_set_ugi_named():
    async def work():
        async with port() as (peer, handler):
            await peer.ask(call("set_ugi", "alice", ["staff"]))
            assert (await peer.ask(call("get_all_databases"))).success == ["default"]
            assert (await peer.ask(call("get_all_databases", codec=COMPACT), COMPACT)).success == ["default"]
            assert {(made.principal, made.groups, made.dialect.value) for made in handler.calls} == {
                ("alice", frozenset(), "2.3")
            }

    uvloop.run(work())


def test_exceptions_are_what_the_processor_says():
    async def work():
        async with port() as (peer, _):
            assert (await peer.ask(call("get_database", "x"))).o1.message == "database x not found"
            assert (await peer.ask(call("get_table", "a", "b"))).type == ApplicationErrorType.UNKNOWN_METHOD
            await peer.send(call("get_database", "away"))
            assert await peer.rest() == b""

    uvloop.run(work())


def meaning(error, session):
    return failure_of(error)


def test_the_gateways_own_threads():
    made = []

    def answers(processor, **limits):
        limits = replace(Limits(), **limits)
        bounds = {"threads": 2, "streams_max": 2, "call_seconds_max": 5.0}
        made.append(Dispatcher(processor, limits, Metrics(METHODS), Releases(), **bounds))
        return made[-1]

    async def work():
        async with port(answers, failure_of=meaning) as (peer, _):
            for _ in range(3):
                assert (await peer.ask(call("get_all_databases"))).success == ["default"]
            await peer.send(call("get_database", "away"))
            assert await peer.rest() == b""
        async with port(partial(answers, calls_in_flight_max=0), failure_of=meaning) as (peer, _):
            await peer.send(call("get_all_databases"))
            assert await peer.rest() == b""

    uvloop.run(work())
    for each in made:
        each.close()


def test_long_replies_in_chunks_and_in_one_frame():
    async def work():
        async with port(partial(Answers, pieces=5)) as (peer, _):
            assert (await peer.ask(call("get_all_databases"))).success == ["default"]
        async with port(partial(Answers, pieces=5)) as (peer, _):
            await peer.send(framed(call("get_all_databases")))
            size = int.from_bytes(await peer.reader.readexactly(4), "big")
            assert result_of(await peer.reader.readexactly(size)).success == ["default"]

    uvloop.run(work())


def test_known_replies_ask_nobody():
    async def work():
        async with port(cache=Cache()) as (peer, handler):
            for seqid in range(3):
                await peer.send(call("get_all_databases", seqid=seqid))
                assert BINARY.read_message(await peer.receive()).seqid == seqid
            assert len(handler.calls) == 1

    uvloop.run(work())


@pytest.mark.slow
def test_who_may_not_call_and_what_cannot_run():
    async def nobody(_session):
        raise CallFailed("nobody may call", "unauthorized")

    async def work():
        async with port(identify=nobody) as (peer, _):
            assert (await peer.ask(call("get_all_databases"))).o1.message == "nobody may call"
        busy = partial(Answers, failure=OSError("too many"))
        async with port(busy, failure_of=lambda error, session: NotTried(str(error))) as (peer, _):
            await peer.send(call("get_all_databases"))
            assert await peer.rest() == b""
        async with port(busy) as (peer, _):
            assert "Internal error" in (await peer.ask(call("get_all_databases"))).o1.message

    uvloop.run(work())


@pytest.mark.parametrize(
    ("login", "names_are_logins", "is_refused"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"credentials": Credentials("bob", "secret")}, True, False),
        ({"proven_user": "bob"}, True, False),
    ],
)
def test_a_second_name_is_refused_where_it_would_be_another_login(login, names_are_logins, is_refused):
    session = Session(is_in_network=True, user="ann", **login)
    message = ThriftConnection(Limits())
    message.receive_data(call("set_ugi", "eve", []))
    reply = answer_locally(CODECS, message.next_message(), session, names_are_logins=names_are_logins)
    assert (reply.outcome != "ok", session.user) == (is_refused, "ann" if is_refused else "eve")
