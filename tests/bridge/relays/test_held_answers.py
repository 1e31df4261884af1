"""Long answers are fetched from the gateway again only when they have changed, and never given without asking it."""

import asyncio
import contextlib
import hashlib
import re

import pytest
import uvloop

from hms_gateway import MetastoreClient
from hms_gateway.bridge.relays.held_answers import LONG_FROM_BYTES, HeldAnswers
from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.rpc.structs import METHODS, Partition, SerDeInfo, StorageDescriptor
from hms_gateway.rpc.wire import MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.bridge.canned_upstream import CannedUpstream, http
from tests.bridge.thrift_bytes import BINARY, COMPACT, bridge, call, client, framed, result_of
from tests.support.catalog import columns, new_table
from tests.support.server import GatewayServer, trusting

NAMES = [f"table_{number:08}" for number in range(LONG_FROM_BYTES // 10)]
METHOD = "get_all_tables"


class Upstream(CannedUpstream):
    """A gateway that says 304 to those who have the answer. `tag` None: the hash of the result."""

    tag: str | None = None
    unchanged: int = 0

    async def answer(self, request, writer):
        reply = self.reply(request.body)
        codec = BINARY if request.body[0] == 0x80 else COMPACT
        payload = codec.read_message(reply).payload
        tag = self.tag or f'"{hashlib.blake2b(payload, digest_size=16).hexdigest()}"'
        if request.headers.get("if-none-match") == tag:
            self.unchanged += 1
            writer.write(f"HTTP/1.1 304 Not Modified\r\netag: {tag}\r\n\r\n".encode())
        else:
            writer.write(http(reply, **({} if self.tag is None else {"etag": self.tag})))
        await writer.drain()

    def reply(self, body):
        if self.results.get(METHOD) is None:
            return super().reply(body)
        codec = BINARY if body[0] == 0x80 else COMPACT
        message = codec.read_message(body)
        before, after = codec.envelope(message.name, MessageType.REPLY, message.seqid)
        return before + codec.encode(METHODS[message.name].result(success=self.results[METHOD])) + after


def run(work, upstream=None, **settings):
    async def scenario():
        far_side = upstream or Upstream({METHOD: NAMES})
        async with far_side.running(), bridge(far_side.url, **settings) as server, client(server) as peer:
            await work(peer, far_side)

    uvloop.run(scenario())


@pytest.mark.parametrize("tag", [None, '"made.17"'])
@pytest.mark.parametrize("codec", [BINARY, COMPACT])
@pytest.mark.parametrize("wrapped", [bytes, framed])
def test_what_is_asked_for_again_is_not_sent_again(tag, codec, wrapped):
    async def work(peer, upstream):
        upstream.tag = tag
        for seqid in (1, 2, 3, 400):
            await peer.send(wrapped(call(METHOD, "sales", codec=codec, seqid=seqid)))
            reply = await peer.receive() if wrapped is bytes else await framed_reply(peer)
            assert codec.read_message(reply).seqid == seqid
            assert result_of(reply, codec).success == NAMES
        assert upstream.unchanged == 2
        # A change at the far side is an answer with another tag.
        upstream.results[METHOD], upstream.tag = [*NAMES, "another"], tag and '"made.18"'
        await peer.send(wrapped(call(METHOD, "sales", codec=codec)))
        reply = await peer.receive() if wrapped is bytes else await framed_reply(peer)
        assert result_of(reply, codec).success == [*NAMES, "another"]

    run(work)


async def framed_reply(peer):
    length = int.from_bytes(await peer.reader.readexactly(4), "big")
    return await peer.reader.readexactly(length)


def test_short_answers_changes_and_exceptions_are_not_held():
    async def work(peer, upstream):
        for _ in range(3):
            await peer.ask(call(METHOD, "sales"))
            await peer.ask(call("drop_table", "sales", "t", True))
        assert not any("if-none-match" in one.headers for one in upstream.requests)

    run(work, Upstream({METHOD: None, "drop_table": None}))


def test_the_answer_is_not_given_to_those_whom_the_gateway_refuses():
    async def work(peer, upstream):
        for _ in range(2):
            await peer.ask(call(METHOD, "sales"))

        async def refuse(_request, writer):
            writer.write(http(b"not you", "403 Forbidden"))
            await writer.drain()

        upstream.actions.append(refuse)
        assert "does not accept" in (await peer.ask(call(METHOD, "sales"))).o1.message

    run(work)


def test_held_answers_are_bounded():
    async def work(peer, upstream):
        for name in ("a", "b", "c", "d") * 3:
            await peer.ask(call(METHOD, name))
        # Two of them have room, and each comes after three others.
        assert upstream.unchanged == 0
        await peer.ask(call(METHOD, "d"))
        assert upstream.unchanged == 1

    size = len(call(METHOD, "")) + sum(len(name) + 4 for name in NAMES)
    run(work, limits=Limits(cache_bytes_max=2 * size + size // 2))


def test_answers_that_are_being_sent_take_no_more_memory_than_those_that_are_held():
    held = HeldAnswers(make_codecs(Limits()), 4_000)
    message = ThriftMessage("binary", METHOD, MessageType.CALL, 1, call(METHOD, "sales"))
    part = BINARY.envelope(METHOD, MessageType.REPLY, 1)[0] + bytes(900)

    async def chunks():
        for _ in range(2):
            yield part

    async def scenario():
        answers = [held.kept(chunks(), message, b'"a"') for _ in range(10)]
        for _ in range(2):
            for answer in answers:
                assert await anext(answer) == part
            assert 0 < held._collected_bytes <= 4_000
        await answers.pop().aclose()
        for answer in answers:
            assert [chunk async for chunk in answer] == []
        assert held._collected_bytes == 0
        assert held.find(message) is not None

    asyncio.run(scenario())


@contextlib.asynccontextmanager
async def counting(port):
    """A forwarder to a port of loopback, and the number of bytes that came back."""
    counts, serving = {"bytes": 0}, set()

    async def pump(reader, writer, is_counted):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                counts["bytes"] += len(data) if is_counted else 0
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        serving.add(asyncio.current_task())
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, back, False), pump(there, writer, True))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], counts
    finally:
        # The bridge has closed its connections.
        server.close()
        await asyncio.gather(*serving)


@pytest.mark.parametrize("cached_reply_bytes_max", [1_000_000, 10_000])
def test_unchanged_partitions_are_a_few_bytes_between_bridge_and_gateway(tmp_path, cached_reply_bytes_max):
    """As the cache keeps them, and as they are read and streamed."""
    limits = {"cached_reply_bytes_max": cached_reply_bytes_max}
    gateway = GatewayServer(tmp_path / "gateway", limits=limits)
    partitions = [
        Partition([str(number)], "default", "t", sd=StorageDescriptor(cols=columns("a int"), serdeInfo=SerDeInfo()))
        for number in range(500)
    ]
    asked = call("get_partitions", "default", "t", -1)

    async def scenario():
        async with counting(gateway.port) as (port, counts):
            url = re.sub(r":\d+/", f":{port}/", gateway.url)
            credentials = {"credentials": Credentials(gateway.user, gateway.password)}
            async with bridge(url, **credentials) as server, client(server) as peer:
                for _ in range(2):
                    whole = len((await peer.ask(asked)).success)
                    assert counts["bytes"] > LONG_FROM_BYTES
                    counts["bytes"] = 0
                for _ in range(2):
                    assert len((await peer.ask(asked)).success) == whole == 500
                    assert counts["bytes"] < 1_000
                    counts["bytes"] = 0
                await asyncio.to_thread(metastore.call, "drop_partition", "default", "t", ["7"], False)
                assert len((await peer.ask(asked)).success) == 499

    with gateway, MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting()) as metastore:
        metastore.call("create_table", new_table("t", keys=columns("ds string")))
        metastore.call("add_partitions", partitions)
        uvloop.run(scenario())
