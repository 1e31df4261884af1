"""The bridge as a server: long replies, clients that do not read, many connections, stopping."""

import asyncio
import contextlib
import gc
import json
import os
import socket
from io import StringIO
from pathlib import Path

import pytest
import uvloop
from msgspec.structs import replace

from hms_gateway.bridge.server.admission import BridgeOptions
from hms_gateway.bridge.server.metrics import CallLog, SidePort
from hms_gateway.bridge.server.server import READ_AHEAD_BYTES_MAX, BridgeServer
from hms_gateway.rpc.wire import ApplicationErrorType
from hms_gateway.runtime.addresses import is_loopback
from hms_gateway.runtime.limits import Limits
from tests.bridge.canned_upstream import CannedUpstream, answering, http
from tests.bridge.thrift_bytes import BINARY, bridge, call, client, framed

GET = call("get_all_databases")
NAMES = {"get_all_databases": ["default"]}
MIB = 1024 * 1024


@contextlib.asynccontextmanager
async def both(**settings):
    upstream = CannedUpstream(dict(NAMES))
    async with upstream.running(), bridge(upstream.url, **settings) as server:
        yield upstream, server


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def long_reply(size: int):
    """An action that answers GET with a reply of that size, in pieces; and how much of it could be written so far."""
    written = [0]
    head = BINARY.envelope("get_all_databases", 2, 1)[0] + b"\x0f\x00\x00\x0b\x00\x00\x00\x01"
    head += size.to_bytes(4, "big")

    async def action(_request, writer):
        writer.transport.set_write_buffer_limits(MIB)
        length = len(head) + size + 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % length + head)
        for _ in range(size // MIB):
            writer.write(b"x" * MIB)
            await writer.drain()
            written[0] += MIB
        writer.write(b"\x00")
        await writer.drain()

    return action, written, len(head) + size + 1


@pytest.mark.slow
def test_a_long_reply_flows_through():
    size = 64 * MIB

    async def work():
        async with both() as (upstream, server), client(server) as peer:
            before = resident_bytes()
            for _ in range(2):
                action, _, length = long_reply(size)
                upstream.actions.append(action)
                await peer.send(GET)
                left, most = length, 0
                while left:
                    left -= len(await peer.reader.read(min(left, MIB)))
                    most = max(most, resident_bytes() - before)
                assert most < size / 2
            assert (await peer.ask(GET)).success == ["default"]
            assert upstream.connections == 1

    uvloop.run(work())


def test_a_long_reply_in_a_frame():
    action, _, length = long_reply(4 * MIB)

    async def work():
        async with both() as (upstream, server), client(server) as peer:
            upstream.actions.append(action)
            await peer.send(framed(GET))
            assert int.from_bytes(await peer.reader.readexactly(4), "big") == length
            await peer.reader.readexactly(length)

    uvloop.run(work())


def test_a_client_that_stops_reading_makes_the_gateway_wait_and_nobody_else():
    async def work():
        async with both() as (upstream, server), client(server) as peer, client(server) as other:
            action, written, _ = long_reply(64 * MIB)
            upstream.actions.append(action)
            await peer.send(GET)
            while not upstream.requests:
                await asyncio.sleep(0)
            seen = -1
            while seen != written[0]:
                seen = written[0]
                for _ in range(50):
                    assert (await other.ask(GET)).success == ["default"]
            assert written[0] < 32 * MIB

    uvloop.run(work())


def test_a_client_that_takes_nothing_is_cut_off():
    async def work():
        async with both() as (upstream, server):
            server.options = replace(server.options, write_stall_seconds_max=0.05)
            action, _, length = long_reply(64 * MIB)
            upstream.actions.append(action)
            async with client(server) as peer:
                peer.writer.transport.pause_reading()
                await peer.send(GET)
                while server.connections:
                    await asyncio.sleep(0.01)
                peer.writer.transport.resume_reading()
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await peer.reader.readexactly(length)

    uvloop.run(work())


def test_a_reply_that_breaks_off_closes_the_connection():
    async def work():
        async with both() as (upstream, server), client(server) as peer:

            async def breaking(_request, writer):
                head = BINARY.envelope("get_all_databases", 2, 1)[0] + b"\x0f\x00\x00\x0b\x00\x00\x00\x01"
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n" + head + b"x" * MIB)
                await writer.drain()
                writer.close()

            upstream.actions.append(breaking)
            await peer.send(GET)
            assert len(await peer.rest()) < 9999999
            async with client(server) as other:
                assert (await other.ask(GET)).success == ["default"]

    uvloop.run(work())


def test_a_long_reply_whose_first_chunk_is_only_its_header():
    async def work():
        async with both() as (upstream, server), client(server) as peer:
            upstream.results["get_all_databases"] = ["x" * 1000] * 1000
            reply = upstream.reply(GET)
            begin = len(BINARY.envelope("get_all_databases", 2, 1)[0])
            head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            chunks = [reply[:begin], reply[begin : begin + 3], reply[begin + 3 :]]
            body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
            upstream.actions.append(answering(head + body))
            await peer.send(GET)
            assert await peer.reader.readexactly(len(reply)) == reply

    uvloop.run(work())


def test_a_long_page_that_is_no_reply_is_named():
    async def work():
        async with both() as (upstream, server), client(server) as peer:
            upstream.actions.append(answering(http(b"<html>" + b"x" * 2 * MIB, content_type="text/html")))
            assert "not a Thrift message but text/html" in (await peer.ask(GET)).o1.message
            assert (await peer.ask(GET)).success == ["default"]

    uvloop.run(work())


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind():
    async def work():
        async with both() as (upstream, server):
            for _ in range(5):
                action, _, _ = long_reply(8 * MIB)
                upstream.actions.append(action)
                async with client(server) as peer:
                    await peer.send(GET)
                    await peer.reader.read(1000)
                    peer.writer.transport.abort()
            async with client(server) as peer:
                assert (await peer.ask(GET)).success == ["default"]
                assert server.connections == 1
            assert server.relay.open_connections <= 2

    uvloop.run(work())


@pytest.mark.slow
def test_five_hundred_connections_without_a_byte():
    async def work():
        async with both() as (upstream, server):
            for _ in range(2):
                silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(500)]
                async with client(server) as peer:
                    assert (await peer.ask(GET)).success == ["default"]
                for _, writer in silent:
                    writer.close()
                for _, writer in silent:
                    await writer.wait_closed()
            while server.connections:
                await asyncio.sleep(0)
            assert upstream.connections == 1
            gc.collect()
            assert len(asyncio.all_tasks()) <= 2

    uvloop.run(work())


def test_one_too_many_is_closed_at_once():
    async def work():
        async with both(limits=replace(Limits(), connections_max=2)) as (_, server):
            async with client(server) as first, client(server) as second:
                await first.ask(GET)
                await second.ask(GET)
                async with client(server) as third:
                    assert await third.rest() == b""
            while server.connections:
                await asyncio.sleep(0)
            async with client(server) as fourth:
                await fourth.ask(GET)

    uvloop.run(work())


def test_two_gigabytes_claimed_are_answered_with_the_limit_and_closed():
    async def work():
        async with both() as (upstream, server), client(server) as peer:
            await peer.send(BINARY.envelope("get_table", 1, 7)[0] + b"\x0b\x00\x01\x7f\xff\xff\xff")
            reply = await peer.receive()
            assert BINARY.read_message(reply)[:3] == ("get_table", 3, 7)
            assert b"string_bytes_max" in reply
            assert await peer.rest() == b""
            assert upstream.requests == []

    uvloop.run(work())


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x00\x00", b"hello there", b"\x80\x03ab"]
)
def test_garbage_is_closed_with_a_word(sent):
    async def work():
        async with both() as (upstream, server), client(server) as peer:
            await peer.send(sent)
            assert await peer.rest()
            assert upstream.requests == []
            assert b"hms_bridge_connections_refused" in server.metrics.text()

    uvloop.run(work())


def test_large_messages_on_their_way_in_share_a_bound():
    head = BINARY.envelope("get_table", 1, 7)[0] + b"\x0b\x00\x01" + (3 * MIB).to_bytes(4, "big")
    half, rest = head + b"x" * 2 * MIB, b"x" * MIB + b"\x00"

    async def work():
        async with both(limits=replace(Limits(), body_memory_bytes_max=11 * MIB)) as (_, server):
            async with client(server) as first, client(server) as second, client(server) as last:
                for peer in (first, second):
                    await peer.send(half)
                while server._memory.taken < 4 * MIB:
                    await asyncio.sleep(0)
                await last.send(half)
                reply = await last.receive()
                assert BINARY.read_message(reply)[:3] == ("get_table", 3, 7)
                assert b"share_per_user of body_memory_bytes_max" in reply
                await first.send(rest)
                await first.receive()
                assert len(server._arriving) == 1
            while server.connections:
                await asyncio.sleep(0)
            assert server._arriving == {}

    uvloop.run(work())


def test_bytes_that_arrive_one_by_one():
    async def work():
        async with both() as (_, server), client(server) as peer:
            for byte in GET:
                await peer.send(bytes([byte]))
                await asyncio.sleep(0)
            assert BINARY.read_message(await peer.receive()).seqid == 1

    uvloop.run(work())


def test_half_a_message_and_then_nothing():
    async def work():
        async with both() as (upstream, server), client(server) as peer:
            await peer.send(GET[:-1])
            peer.writer.write_eof()
            assert await peer.rest() == b""
            assert upstream.requests == []

    uvloop.run(work())


def test_the_end_of_sending_is_not_the_end_of_the_call():
    async def work():
        async with both() as (_, server), client(server) as peer:
            await peer.send(GET)
            peer.writer.write_eof()
            assert BINARY.read_message(await peer.rest()).name == "get_all_databases"

    uvloop.run(work())


@pytest.mark.slow
def test_no_more_is_read_than_can_be_answered():
    released = asyncio.Event()

    async def work():
        async with both() as (upstream, server), client(server) as peer:

            async def later(request, writer):
                await released.wait()
                await upstream.answer(request, writer)

            upstream.actions.append(later)
            peer.writer.write(GET * 1_000_000)
            (connection,) = server._connections
            while connection._is_reading:
                await asyncio.sleep(0)
            (connection,) = server._connections
            assert connection._thrift.buffered_bytes < READ_AHEAD_BYTES_MAX + 2 * MIB
            released.set()
            reply = len(upstream.reply(GET))
            assert len(await peer.reader.readexactly(reply * 1000)) == reply * 1000
            peer.writer.transport.abort()

    uvloop.run(work())


def test_stopping_lets_calls_in_flight_finish_and_closes_the_idle():
    async def work():
        upstream = CannedUpstream(NAMES)
        arrived, released = asyncio.Event(), asyncio.Event()

        async def later(request, writer):
            arrived.set()
            await released.wait()
            await upstream.answer(request, writer)

        upstream.actions.append(later)
        async with upstream.running(), bridge(upstream.url) as server, client(server) as idle, client(server) as busy:
            await busy.send(GET)
            await arrived.wait()
            await idle.ask(call("set_ugi", "alice", []))
            stopping = asyncio.create_task(server.stop())
            assert await idle.rest() == b""
            with pytest.raises(ConnectionError):
                await asyncio.open_connection("127.0.0.1", server.port)
            released.set()
            assert BINARY.read_message(await busy.receive()).name == "get_all_databases"
            assert await busy.rest() == b""
            await stopping

    uvloop.run(work())


def test_stopping_does_not_wait_for_ever():
    async def never(_request, _writer):
        await asyncio.Event().wait()

    async def work():
        async with both(limits=replace(Limits(), drain_seconds_max=0.05)) as (upstream, server), client(server) as peer:
            upstream.actions.append(never)
            await peer.send(GET)
            while not upstream.requests:
                await asyncio.sleep(0)
            server.limits = replace(server.limits, drain_seconds_max=0.05)
            await server.stop()
            assert await peer.rest() == b""

    uvloop.run(work())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "bridge.example.org", ""])
def test_others_are_not_let_in_unless_told(host):
    assert not is_loopback(host)

    async def work():
        server = BridgeServer(None, BridgeOptions(host=host, port=0), Limits())
        with pytest.raises(ValueError, match="allow-remote"):
            await server.start()

    uvloop.run(work())


def test_loopback_has_several_names():
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"))


def test_one_line_for_each_call():
    lines = StringIO()

    async def work():
        async with both() as (upstream, server), client(server) as peer:
            server.metrics.call_log = CallLog(lines)
            await peer.ask(call("set_ugi", "alice", []))
            upstream.actions.append(answering(http(upstream.reply(GET), x_request_id="abc-1")))
            await peer.ask(GET)
            upstream.actions.append(answering(http(b"no", "403 Forbidden")))
            await peer.ask(GET)
            server.metrics.call_log.close()

    uvloop.run(work())
    first, second, third = map(json.loads, lines.getvalue().splitlines())
    assert (first["method"], first["user"], first["outcome"]) == ("set_ugi", "alice", "ok")
    assert (second["method"], second["request_id"], second["bytes_in"]) == ("get_all_databases", "abc-1", len(GET))
    assert (third["outcome"], third["level"]) == ("unauthorized", "warning")
    assert "403" in third["problem"]
    assert "secret" not in lines.getvalue()


def test_health_and_metrics_on_the_side():
    async def ask(port, request):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def work():
        async with both() as (_, server), client(server) as peer:
            await peer.ask(GET)
            side = SidePort({"/healthz": lambda: b"ok\n", "/metrics": server.metrics.text})
            port = await side.start("127.0.0.1", 0)
            assert (await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\nok\n")
            metrics = await ask(port, b"GET /metrics?x HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b'hms_bridge_calls_total{method="get_all_databases",outcome="ok"} 1.0' in metrics
            assert b"hms_bridge_connections 1.0" in metrics
            assert (await ask(port, b"GET /x HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
            assert (await ask(port, b"POST /healthz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405")
            assert await ask(port, b"x" * 100_000) == b""
            await side.stop()

    uvloop.run(work())


@pytest.mark.slow
def test_a_bug_of_ours_is_answered_and_not_repeated(monkeypatch):
    def broken(*_):
        raise LookupError("a bug")

    async def work():
        async with both() as (_, server), client(server) as peer:
            with monkeypatch.context() as patched:
                patched.setattr(server.relay, "call", broken)
                assert "The bridge failed at get_all_databases" in (await peer.ask(GET)).o1.message
            assert (await peer.ask(GET)).success == ["default"]

    uvloop.run(work())


def test_set_ugi_that_cannot_be_read():
    async def work():
        async with both() as (_, server), client(server) as peer:
            sent = BINARY.envelope("set_ugi", 1, 1)[0] + b"\x0b\x00\x01\x00\x00\x00\x01\xff\x00"
            assert (await peer.ask(sent)).type == ApplicationErrorType.PROTOCOL_ERROR

    uvloop.run(work())


def test_nagle_is_off():
    async def work():
        async with both() as (_, server), client(server) as peer:
            await peer.ask(GET)
            (connection,) = server._connections
            raw = connection.transport.get_extra_info("socket")
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    uvloop.run(work())
