"""The bridge between clients and an HTTP server that does whatever the test wants: what reaches whom, how often."""

import asyncio
import re
import ssl
from base64 import b64encode

import pytest
import trustme
import uvloop

from hms_gateway.bridge.relays.https_relay import HttpsRelay, RelayOptions
from hms_gateway.bridge.relays.transcoding import Unchanged
from hms_gateway.bridge.relays.upstream import ClientTls, Origin, UpstreamPool
from hms_gateway.bridge.thrift.connection import Session
from hms_gateway.bridge.thrift.messages import CallFailed, ThriftMessage
from hms_gateway.rpc.idl.method_facts import changes_something
from hms_gateway.rpc.structs import METHODS, AddPartitionsRequest, AddPartitionsResult, Partition
from hms_gateway.rpc.wire import ApplicationErrorType, MessageType
from hms_gateway.runtime.logins.login_tokens import LoginToken
from tests.bridge.canned_upstream import CannedUpstream, answering, dropping, http
from tests.bridge.thrift_bytes import BINARY, COMPACT, bridge, call, client, framed, old_call

REPEATED_BY_HIVE = re.compile(r"(JDO\w*|TProtocol|TTransport)Exception")
GET = call("get_all_databases")
DROP = call("drop_table", "sales", "orders", True)
NAMES = {"get_all_databases": ["default", "sales"]}
UNAUTHORIZED = http(b"wrong", "401 Unauthorized")
UNAVAILABLE = http(b"busy", "503 Service Unavailable")
OVER_A_RATE = http(b"later", "429 Too Many Requests", retry_after="1", x_call_outcome="not-tried")
NOT_TRIED = http(b"the database is away", "503 Service Unavailable", x_call_outcome="not-tried")


async def scenario(work, *actions, results=NAMES, upstream=None, **settings):
    """Run `work(client, upstream, server)` with a bridge whose far side does `actions` first."""
    upstream = upstream or CannedUpstream(results)
    upstream.actions.extend(actions)
    async with upstream.running(), bridge(upstream.url, **settings) as server, client(server) as peer:
        return await work(peer, upstream, server)


def run(work, *actions, **settings):
    return uvloop.run(scenario(work, *actions, **settings))


def test_the_message_goes_out_unchanged_with_the_password():
    async def work(peer, upstream, _server):
        assert (await peer.ask(GET)).success == ["default", "sales"]
        (request,) = upstream.requests
        assert request.body == GET
        assert request.headers["authorization"] == "Basic " + b64encode(b"spark:secret").decode()
        assert request.headers["content-type"] == "application/x-thrift"
        assert "idempotency-key" not in request.headers

    run(work)


def test_a_token_replaces_the_password(tmp_path):
    (tmp_path / "token").write_text("hmsgw_abc\n")

    async def work(peer, upstream, _server):
        assert (await peer.ask(GET)).success == ["default", "sales"]
        (request,) = upstream.requests
        assert request.headers["authorization"] == "Bearer hmsgw_abc"

    run(work, credentials=None, token=LoginToken(tmp_path / "token"))


def test_a_token_that_is_refused_is_read_again_and_the_call_repeated_once(tmp_path):
    file = tmp_path / "token"
    file.write_text("hmsgw_old\n")
    token = LoginToken(file, monotonic=lambda: 0.0)
    assert token.known() == "hmsgw_old"

    async def work(peer, upstream, _server):
        file.write_text("hmsgw_new\n")
        assert (await peer.ask(DROP)).o1 is None
        assert [request.headers["authorization"] for request in upstream.requests] == [
            "Bearer hmsgw_old",
            "Bearer hmsgw_new",
        ]
        assert len({request.headers["idempotency-key"] for request in upstream.requests}) == 1

    run(work, answering(UNAUTHORIZED), credentials=None, token=token, results={"drop_table": None})


def test_a_token_that_is_refused_and_has_not_changed_is_an_error(tmp_path):
    (tmp_path / "token").write_text("hmsgw_old\n")

    async def work(peer, upstream, _server):
        error = (await peer.ask(GET)).o1
        assert "does not accept the bridge's token" in error.message
        assert "hmsgw_old" not in error.message
        assert len(upstream.requests) == 1

    run(work, answering(UNAUTHORIZED), credentials=None, token=LoginToken(tmp_path / "token"))


@pytest.mark.parametrize(
    ("sent", "codec", "is_framed"),
    [
        (GET, BINARY, False),
        (old_call("get_all_databases"), BINARY, False),
        (call("get_all_databases", codec=COMPACT), COMPACT, False),
        (framed(GET), BINARY, True),
        (framed(call("get_all_databases", codec=COMPACT)), COMPACT, True),
    ],
)
def test_every_framing_is_answered_in_kind(sent, codec, is_framed):
    async def work(peer, upstream, _server):
        for _ in range(3):
            await peer.send(sent)
            if is_framed:
                reply = await peer.reader.readexactly(int.from_bytes(await peer.reader.readexactly(4), "big"))
            else:
                reply = await peer.receive()
            assert reply == upstream.reply(sent[4:] if is_framed else sent)

    run(work)


def test_one_connection_serves_many_calls_and_many_clients():
    async def work(peer, upstream, server):
        for seqid in (1, 2, -3, 0, 2**31 - 1):
            await peer.send(call("get_all_databases", seqid=seqid))
            assert BINARY.read_message(await peer.receive()).seqid == seqid
        async with client(server) as other:
            await other.ask(GET)
        assert upstream.connections == 1

    run(work)


def test_calls_sent_without_waiting_are_answered_in_order():
    async def work(peer, _upstream, _server):
        await peer.send(b"".join(call("get_all_databases", seqid=number) for number in range(200)))
        received = b""
        size = len(CannedUpstream(NAMES).reply(GET))
        while len(received) < 200 * size:
            received += await peer.reader.read(1 << 16)
        seqids = [BINARY.read_message(received[at : at + size]).seqid for at in range(0, len(received), size)]
        assert seqids == list(range(200))

    run(work)


def test_set_ugi_and_shutdown_stay_here():
    async def work(peer, upstream, _server):
        assert (await peer.ask(call("set_ugi", "alice", ["staff", "admin"]))).success == ["staff", "admin"]
        await peer.send(call("shutdown", oneway=True))
        assert (await peer.ask(GET)).success == ["default", "sales"]
        assert [request.method for request in upstream.requests] == ["get_all_databases"]

    run(work)


@pytest.mark.parametrize(("acts", "target"), [(True, "?doAs=al%20ice%26x"), (False, "")])
def test_the_user_of_set_ugi_is_acted_for_when_told(acts, target):
    async def work(peer, upstream, _server):
        await peer.ask(call("set_ugi", "al ice&x", []))
        await peer.ask(GET)
        assert upstream.requests[0].target.partition("/hms")[2].endswith(target)
        assert ("doAs" in upstream.requests[0].target) is acts

    run(work, acts_for_users=acts)


def test_each_change_has_a_key_of_its_own():
    async def work(peer, upstream, _server):
        await peer.ask(DROP)
        await peer.ask(DROP)
        first, second = (request.headers["idempotency-key"] for request in upstream.requests)
        assert first != second

    run(work)


def test_a_kept_connection_that_was_closed_is_replaced_unseen():
    async def work(peer, upstream, _server):
        await peer.ask(GET)
        upstream.actions.append(dropping())
        assert (await peer.ask(GET)).success == ["default", "sales"]
        upstream.actions.append(dropping())
        assert (await peer.ask(DROP)).o1 is None
        lost, repeated = upstream.requests[-2:]
        assert lost.headers["idempotency-key"] == repeated.headers["idempotency-key"]

    run(work)


@pytest.mark.parametrize(
    "lost",
    [dropping(), dropping(b"HTTP/1.1 200 OK\r\ncontent-le"), dropping(http(b"\x80\x01\x00\x02" * 50)[:-20])],
    ids=["before", "in the headers", "in the body"],
)
def test_a_change_whose_reply_is_lost_is_repeated_under_its_key(lost):
    async def work(peer, upstream, _server):
        assert (await peer.ask(DROP)).o1 is None
        assert len({request.headers["idempotency-key"] for request in upstream.requests}) == 1
        assert len(upstream.requests) == 2

    run(work, lost)


@pytest.mark.parametrize("lost", [dropping(), dropping(http(b"\x80\x01\x00\x02" * 50)[:-20]), answering(UNAVAILABLE)])
def test_a_change_is_not_repeated_where_keys_are_not_known(lost):
    async def work(peer, upstream, _server):
        result = await peer.ask(DROP)
        assert "may have taken effect" in result.o3.message
        assert not REPEATED_BY_HIVE.search(result.o3.message)
        assert len(upstream.requests) == 1
        assert (await peer.ask(GET)).success == ["default", "sales"]

    run(work, lost, keeps_keys=False)


def test_a_change_that_stays_unanswered_ends_in_an_exception_nobody_repeats():
    async def work(peer, upstream, _server):
        result = await peer.ask(DROP)
        assert "may have taken effect" in result.o3.message
        assert len({request.headers["idempotency-key"] for request in upstream.requests}) == 1
        # unlock declares no MetaException
        result = await peer.ask(call("open_txns", None))
        assert "may have taken effect" in result.message
        assert result.type == ApplicationErrorType.INVALID_PROTOCOL

    run(work, *[dropping()] * 4)


def test_a_reading_call_that_stays_unanswered_closes_the_connection():
    async def work(peer, upstream, _server):
        await peer.send(GET)
        assert await peer.rest() == b""
        assert len(upstream.requests) == 2

    run(work, *[dropping()] * 2)


def test_a_change_that_was_not_tried_closes_the_connection():
    async def work(peer, _upstream, _server):
        await peer.send(DROP)
        assert await peer.rest() == b""

    run(work, *[answering(NOT_TRIED)] * 2)


def test_a_call_over_a_rate_is_tried_again():
    async def work(peer, upstream, _server):
        await peer.send(DROP)
        await peer.receive()
        assert len(upstream.requests) == 2

    run(work, answering(OVER_A_RATE))


def test_nobody_listening_closes_the_connection():
    async def work():
        async with bridge("https://127.0.0.1:1/x") as server, client(server) as peer:
            await peer.send(DROP)
            assert await peer.rest() == b""

    uvloop.run(work())


def test_a_gateway_that_comes_back_in_time_is_waited_for():
    async def work():
        upstream = CannedUpstream(NAMES)
        async with upstream.running():
            port = upstream.port
        async with bridge(upstream.url, patience_seconds=10.0) as server, client(server) as peer:
            await peer.send(DROP)
            answer = asyncio.create_task(peer.receive())
            await asyncio.sleep(0)
            upstream.port = port
            async with upstream.running():
                await answer
                assert len(upstream.requests) == 1

    uvloop.run(work())


@pytest.mark.parametrize("host", ["gw", "gw:30443", "[::1]:30443"])
def test_errors_show_the_address_as_it_was_given_without_what_is_secret(host):
    async def work():
        upstream = CannedUpstream({})
        upstream.actions.append(answering(http(b"", "404 Not Found")))
        async with upstream.running():
            pool = UpstreamPool(Origin.of(upstream.url, ClientTls(is_insecure=True)), 1)
            relay = HttpsRelay(pool, Unchanged(), RelayOptions(f"https://spark:secret@{host}/hms?x=1"), 1_000)
            with pytest.raises(CallFailed, match=rf"^https://{re.escape(host)}/hms answers HTTP 404$"):
                await relay.call(ThriftMessage("binary", "get_all_databases", MessageType.CALL, 1, GET), Session())
            await relay.close()

    uvloop.run(work())


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("401 Unauthorized", "does not accept user spark"),
        ("403 Forbidden", "does not accept user spark"),
        ("404 Not Found", "404"),
        ("413 Content Too Large", "413"),
        ("500 Internal Server Error", "500"),
        ("302 Found", "302"),
    ],
)
def test_refusals_become_readable_exceptions(status, words):
    text = b"org.apache.thrift.transport.TTransportException: no"

    async def work(peer, upstream, _server):
        result = await peer.ask(GET)
        assert words in result.o1.message
        assert not REPEATED_BY_HIVE.search(result.o1.message)
        assert len(upstream.requests) == 1
        assert (await peer.ask(GET)).success == ["default", "sales"]

    run(work, answering(http(text, status)))


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b"", b"[1]", b"\x80"])
def test_an_answer_that_is_no_thrift_is_named(body):
    async def work(peer, _upstream, _server):
        assert "answered" in (await peer.ask(GET)).o1.message

    run(work, answering(http(body, content_type="text/html")))


def test_an_unknown_method_passes_through():
    exception = (
        BINARY.envelope("frobnicate", 3, 1)[0] + b"\x0b\x00\x01\x00\x00\x00\x02no\x08\x00\x02\x00\x00\x00\x01\x00"
    )

    async def work(peer, upstream, _server):
        sent = BINARY.envelope("frobnicate", 1, 1)[0] + b"\x08\x00\x01\x00\x00\x00\x05\x00"
        assert (await peer.ask(sent)).message == "no"
        assert upstream.requests[0].body == sent

    run(work, answering(http(exception)))


def chunked(body: bytes, size: int) -> bytes:
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunked_answers(size):
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    async def work(peer, upstream, _server):
        for _ in range(2):
            upstream.actions.append(answering(head + chunked(upstream.reply(GET), size)))
            assert (await peer.ask(GET)).success == ["default", "sales"]
        assert upstream.connections == 1

    run(work)


def test_what_a_server_says_unasked_is_not_taken_for_the_next_answer():
    taken, said = asyncio.Event(), asyncio.Event()

    async def chatty(request, writer):
        writer.write(http(CannedUpstream(NAMES).reply(request.body)))
        await taken.wait()
        writer.write(http(CannedUpstream({"get_all_databases": ["forged"]}).reply(request.body)))
        await writer.drain()
        said.set()

    async def work(peer, upstream, _server):
        assert (await peer.ask(GET)).success == ["default", "sales"]
        taken.set()
        await said.wait()
        assert (await peer.ask(GET)).success == ["default", "sales"]

    run(work, chatty)


def test_two_answers_to_one_request_are_none():
    two = http(CannedUpstream(NAMES).reply(GET)) + http(CannedUpstream({"get_all_databases": ["forged"]}).reply(GET))

    async def work(peer, upstream, _server):
        for _ in range(2):
            assert (await peer.ask(GET)).success == ["default", "sales"]
        assert len(upstream.requests) == 3

    run(work, answering(two))


def test_an_answer_that_ends_with_its_connection():
    reply = CannedUpstream(NAMES).reply(GET)

    async def work(peer, _upstream, _server):
        assert (await peer.ask(GET)).success == ["default", "sales"]
        assert (await peer.ask(GET)).success == ["default", "sales"]

    run(work, dropping(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + reply))


def test_headers_byte_by_byte_and_100_continue():
    async def slowly(request, writer):
        for byte in b"HTTP/1.1 100 Continue\r\n\r\n" + http(CannedUpstream(NAMES).reply(request.body)):
            writer.write(bytes([byte]))
            await writer.drain()

    async def work(peer, upstream, _server):
        assert (await peer.ask(GET)).success == ["default", "sales"]
        await peer.ask(GET)
        assert upstream.connections == 1

    run(work, slowly)


@pytest.mark.parametrize("raw", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"name: value\r\n" * 20_000])
def test_what_is_no_http_is_an_error(raw):
    async def work(peer, _upstream, _server):
        assert "did not answer" in (await peer.ask(DROP)).o3.message

    run(work, answering(raw), answering(raw))


def test_a_slow_answer_is_given_up():
    async def never(_request, _writer):
        await asyncio.Event().wait()

    async def work(peer, _upstream, _server):
        assert "no answer within" in (await peer.ask(GET)).o1.message

    run(work, never, call_seconds_max=0.05)


def test_the_number_of_connections_is_bounded():
    async def work(peer, upstream, server):
        async def one():
            async with client(server) as other:
                for _ in range(3):
                    await other.ask(GET)

        await asyncio.gather(*(one() for _ in range(20)))
        assert upstream.connections == 3

    run(work, upstream_connections_max=3)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def secure(authority: trustme.CA, name: str) -> CannedUpstream:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return CannedUpstream(NAMES, tls=context)


def test_tls_with_the_right_authority(authority, tmp_path):
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    async def work(peer, upstream, _server):
        assert (await peer.ask(GET)).success == ["default", "sales"]
        upstream.actions.append(dropping())
        assert (await peer.ask(GET)).success == ["default", "sales"]
        assert upstream.connections == 2

    run(work, upstream=secure(authority, "127.0.0.1"), is_insecure=False, cacert=tmp_path / "ca.pem")


@pytest.mark.parametrize("name", ["127.0.0.1", "elsewhere.example.org"])
def test_a_certificate_that_is_not_accepted_is_said_and_nothing_is_sent(authority, tmp_path, name):
    other = trustme.CA() if name == "127.0.0.1" else authority
    other.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    async def work(peer, upstream, _server):
        result = await peer.ask(DROP)
        assert "certificate of 127.0.0.1" in result.o3.message
        assert upstream.requests == []

    run(work, upstream=secure(authority, name), is_insecure=False, cacert=tmp_path / "ca.pem")


def test_sasl_brings_the_user_and_password():
    async def work(peer, upstream, _server):
        await peer.send(b"\x01\x00\x00\x00\x05PLAIN\x05\x00\x00\x00\x0d\x00alice\x00wonder")
        assert await peer.reader.readexactly(5) == b"\x05\x00\x00\x00\x00"
        await peer.send(framed(GET))
        size = int.from_bytes(await peer.reader.readexactly(4), "big")
        assert await peer.reader.readexactly(size) == upstream.reply(GET)
        assert upstream.requests[0].headers["authorization"] == "Basic " + b64encode(b"alice:wonder").decode()

    run(work, sasl="allow")


CHANGING = [
    name
    for name, method in METHODS.items()
    if changes_something(name) and not method.oneway and name != "get_delegation_token"
]
LOSSES = {
    "before anything is answered": dropping(),
    "in the headers": dropping(b"HTTP/1.1 200 OK\r\ncontent-le"),
    "in the reply": dropping(http(b"\x80\x01\x00\x02" * 50)[:-20]),
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_no_reply_of_a_changing_method_is_lost_and_none_is_asked_for_twice_without_its_key(loss):
    async def work(peer, upstream, _server):
        for name in CHANGING:
            upstream.requests.clear()
            upstream.actions.append(LOSSES[loss])
            sent = call(name)
            await peer.send(sent)
            reply = upstream.reply(sent)
            assert await peer.reader.readexactly(len(reply)) == reply
            assert [request.body for request in upstream.requests] == [sent, sent]
            assert len({request.headers["idempotency-key"] for request in upstream.requests}) == 1

    run(work)


def test_a_client_without_a_login_of_its_own_gets_no_token_of_the_bridges_user():
    async def work(peer, upstream, _server):
        await peer.send(call("get_delegation_token", "admin", "yarn"))
        assert b"a delegation token needs a login of the client's own" in await peer.reader.read(1000)
        assert upstream.requests == []

    run(work)


def test_a_reply_of_a_changing_method_that_breaks_off_late_is_asked_for_again():
    partitions = [Partition(values=[f"{number:050}"]) for number in range(20_000)]
    upstream = CannedUpstream({"add_partitions_req": AddPartitionsResult(partitions)})
    sent = call("add_partitions_req", AddPartitionsRequest("sales", "orders", [], True))
    reply = upstream.reply(sent)

    async def work(peer, upstream, _server):
        await peer.send(sent)
        assert await peer.reader.readexactly(len(reply)) == reply
        assert len(upstream.requests) == 2

    run(work, dropping(http(reply)[:-10]), upstream=upstream)
