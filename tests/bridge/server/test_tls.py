"""TLS between clients and the bridge: whose certificates let in, clients without TLS, handshakes that never end."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import uvloop
from msgspec.structs import replace

from hms_gateway.bridge.server.admission import LOG_EVERY_SECONDS, BridgeOptions, ConnectionRefusals
from hms_gateway.bridge.server.running import BridgeSettings, run_bridge
from hms_gateway.bridge.server.server import BridgeServer
from hms_gateway.bridge.thrift.sasl import SaslStatus, negotiation_message
from hms_gateway.gateway.certificates import served_certificate
from hms_gateway.runtime import file_versions
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logging import configure_logging
from tests.bridge.canned_upstream import CannedUpstream
from tests.bridge.thrift_bytes import COMPACT, Client, bridge, call, framed, result_of
from tests.support.certificates import anyone, der_of, write_certificate
from tests.support.client_authority import ClientAuthority

GET = call("get_all_databases")
NAMES = {"get_all_databases": ["default"]}
NEEDS_TLS = "this port needs TLS, the client sent plain bytes"


@pytest.fixture(autouse=True)
def changes_are_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_certificate, "LOOK_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(file_versions, "LOOK_EVERY_SECONDS", 0.0)


@pytest.fixture
def logged() -> Callable[[], list[dict[str, Any]]]:
    stream = StringIO()
    configure_logging(stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def clients(tmp_path: Path) -> ClientAuthority:
    write_certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    authority = ClientAuthority(tmp_path)
    (tmp_path / "clients.pem").write_bytes(authority.pem)
    return authority


@contextlib.asynccontextmanager
async def served(folder: Path, **changes: Any) -> AsyncIterator[tuple[CannedUpstream, BridgeServer]]:
    upstream = CannedUpstream(dict(NAMES))
    files = {"tls_certificate": folder / "tls.crt", "tls_key": folder / "tls.key"}
    async with upstream.running(), bridge(upstream.url, **files, **changes) as server:
        yield upstream, server


@contextlib.asynccontextmanager
async def connected(server: Any, context: ssl.SSLContext | None) -> AsyncIterator[Client]:
    """A client with TLS, or without."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def is_refused(server: Any, context: ssl.SSLContext) -> bool:
    """True if the handshake of a client fails, which a client of TLS 1.3 hears only when it reads."""
    try:
        async with connected(server, context) as client:
            await client.ask(GET)
    except (ssl.SSLError, ConnectionError):
        return True
    return False


def target(upstream: CannedUpstream) -> str:
    """The query of the last call: for whom the bridge has called."""
    return upstream.requests[-1].target.partition("?")[2]


def test_calls_long_replies_and_clients_that_go_away(tmp_path, clients, logged):
    names = [f"database_{number}" for number in range(100_000)]

    async def work():
        async with served(tmp_path) as (upstream, server), connected(server, anyone()) as client:
            assert (await client.ask(GET)).success == ["default"]
            upstream.results["get_all_databases"] = names
            async with connected(server, anyone()) as other:
                await other.send(GET)
            size = len(upstream.reply(GET))
            await client.send(GET)
            assert result_of(await client.reader.readexactly(size)).success == names
            assert server.connections == 1
            # The server closes in the order of TLS.
            stopping = asyncio.create_task(server.stop())
            assert await client.rest() == b""
            await stopping

    uvloop.run(work())
    assert not [line for line in logged() if line["level"] not in ("info", "warning")]


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (GET, lambda reply: result_of(reply).message),
        (call("get_all_databases", codec=COMPACT), lambda reply: result_of(reply, COMPACT).message),
        (framed(GET), lambda reply: result_of(reply[4:]).message),
        (negotiation_message(SaslStatus.START, b"PLAIN"), lambda reply: reply[5:].decode()),
        (b"GET / HTTP/1.1\r\n\r\n", lambda reply: NEEDS_TLS if reply.startswith(b"HTTP/1.1 400 ") else reply),
        (b"\x80", lambda reply: result_of(reply).message),
    ],
)
def test_a_client_without_tls_is_told_so_in_its_own_protocol(tmp_path, clients, logged, sent, read):
    async def work():
        async with served(tmp_path) as (upstream, server), connected(server, None) as client:
            await client.send(sent)
            assert read(await client.rest()).startswith(NEEDS_TLS)
            assert not upstream.requests

    uvloop.run(work())
    assert [line["problem"] for line in logged() if line["event"] == "connection closed"]


def test_a_client_with_tls_at_a_port_without_is_refused(logged):
    async def work():
        async with bridge("http://127.0.0.1:1/") as server:
            assert await is_refused(server, anyone())

    uvloop.run(work())
    (line,) = [line for line in logged() if line["event"] == "connection closed"]
    assert "set thrift_tls (with the bridge --tls-certificate)" in line["problem"]


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_a_handshake_that_does_not_end_is_cut(tmp_path, clients, logged, sent):
    async def work():
        async with served(tmp_path) as (_, server):
            await server.stop()
            server.options = replace(server.options, handshake_seconds_max=0.05)
            restarted = BridgeServer(server.relay, server.options, Limits())
            restarted.port = await restarted.start()
            async with connected(restarted, None) as client:
                await client.send(sent)
                assert await client.rest() == b""
            assert b'refused_total{reason="header_seconds_max"} 1.0' in restarted.metrics.text()
            await restarted.stop()

    uvloop.run(work())
    assert [line["limit"] for line in logged() if "limit" in line] == ["header_seconds_max"]


def test_handshakes_are_bounded_and_silent_ones_make_room(tmp_path, clients, logged):
    limits = replace(Limits(), handshakes_max=2, connections_max=20)

    async def work():
        async with served(tmp_path, limits=limits) as (_, server), contextlib.AsyncExitStack() as others:
            halves = [await others.enter_async_context(connected(server, None)) for _ in range(3)]
            for half in halves:
                await half.send(b"\x16\x03\x01\x02\x00\x01")
            assert await halves[0].rest() == b""
            async with connected(server, anyone()) as client:
                assert (await client.ask(GET)).success == ["default"]

    uvloop.run(work())
    assert {line["limit"] for line in logged() if "limit" in line} == {"handshakes_max"}


def test_the_bridge_calls_for_the_user_of_a_certificate(tmp_path, clients):
    async def work():
        async with served(tmp_path, client_authority=tmp_path / "clients.pem") as (upstream, server):
            async with connected(server, clients.issue("ann")[0]) as client:
                await client.ask(call("set_ugi", "eve", []))
                assert (await client.ask(GET)).success == ["default"]
                assert target(upstream) == "doAs=ann"
            async with connected(server, anyone()) as client:
                await client.ask(GET)
                assert target(upstream) == ""

    uvloop.run(work())


def test_a_login_by_sasl_precedes_that_of_the_certificate(tmp_path, clients):
    async def work():
        options = {"sasl": "require", "client_authority": tmp_path / "clients.pem"}
        async with served(tmp_path, **options) as (upstream, server):
            ann, _ = clients.issue("ann")
            async with connected(server, ann) as client:
                await client.ask(GET)
                assert target(upstream) == "doAs=ann"
            async with connected(server, ann) as client:
                await client.send(negotiation_message(SaslStatus.START, b"PLAIN"))
                await client.send(negotiation_message(SaslStatus.COMPLETE, b"\0bob\0secret"))
                await client.reader.readexactly(5)
                await client.send(framed(GET))
                await client.reader.readexactly(4)
                assert upstream.requests[-1].headers["authorization"].startswith("Basic ")
                assert target(upstream) == ""
            async with connected(server, anyone()) as client:
                await client.send(GET)
                assert await client.rest() == b""

    uvloop.run(work())


@pytest.mark.parametrize(
    ("issue", "says"),
    [
        (lambda folder, authority: authority.issue("ann", days=-1), "certificate has expired"),
        (lambda folder, authority: ClientAuthority(folder).issue("ann"), "certificate signature failure"),
        (lambda folder, authority: ClientAuthority(folder, "Foreign").issue("ann"), "unable to get local issuer"),
        (lambda folder, authority: (self_signed(folder), None), "self-signed certificate"),
        (lambda folder, authority: (anyone(), None), "peer did not return a certificate"),
    ],
)
def test_certificates_that_do_not_let_in_are_named_in_the_log(tmp_path, clients, logged, issue, says):
    context, _ = issue(tmp_path, clients)
    now = [100.0]

    async def work():
        options = {"client_authority": tmp_path / "clients.pem", "client_certificates": "require"}
        async with served(tmp_path, **options) as (upstream, server):
            server.admission.refusals = ConnectionRefusals(seconds=lambda: now[0])
            for _ in range(3):
                assert await is_refused(server, context)
            now[0] += LOG_EVERY_SECONDS
            assert await is_refused(server, context)
            assert not upstream.requests
            assert b'refused_total{reason="handshake"} 4.0' in server.metrics.text()

    uvloop.run(work())
    lines = [line for line in logged() if line.get("reason") == "handshake"]
    assert [line["left_out"] for line in lines] == [0, 2]
    assert all(says in line["problem"] and line["address"] == "127.0.0.1" for line in lines)


@pytest.mark.parametrize("use", ["allow", "require"])
def test_required_certificates_let_no_account_in(tmp_path, clients, logged, use):
    files = {"tls_certificate": tmp_path / "tls.crt", "tls_key": tmp_path / "tls.key"}
    files |= {"client_authority": tmp_path / "clients.pem", "client_certificates": use, "side_port": None}
    options = BridgeOptions(port=0, is_open=True)
    settings = BridgeSettings(url="https://localhost:1/", server=options, is_insecure=True, **files)
    run_bridge(settings, lambda *_: asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM))
    warned = [line for line in logged() if "may call without a password" in line["event"]]
    assert len(warned) == (use == "allow")


def self_signed(folder: Path) -> ssl.SSLContext:
    write_certificate(folder / "own.crt", folder / "own.key", name="ann")
    context = anyone()
    context.load_cert_chain(folder / "own.crt", folder / "own.key")
    return context


def test_a_revoked_certificate_ends_open_connections_and_new_handshakes(tmp_path, clients, logged):
    (ann, _), (eve, revoked) = clients.issue("ann"), clients.issue("eve")
    listed = tmp_path / "crl.pem"
    listed.write_bytes(clients.revocations())

    async def work():
        files = {"client_authority": tmp_path / "clients.pem", "client_revocations": listed}
        async with served(tmp_path, **files) as (upstream, server), connected(server, eve) as client:
            assert (await client.ask(GET)).success == ["default"]
            replaced(listed, clients.revocations([revoked]))
            refused = await client.ask(GET)
            assert refused.o1.message == "The client certificate was revoked; connect with another one"
            while not await is_refused(server, eve):
                pass
            called = len(upstream.requests)
            async with connected(server, ann) as other:
                assert (await other.ask(GET)).success == ["default"]
            assert len(upstream.requests) == called + 1

    uvloop.run(work())
    assert "certificate revoked" in {line["problem"].rpartition(": ")[2] for line in logged() if "problem" in line}


def replaced(file: Path, content: bytes) -> None:
    """So that it is seen at once, whatever the clock of the file system."""
    before = file.stat().st_mtime_ns
    file.write_bytes(content)
    os.utime(file, ns=(before + 10**9, before + 10**9))


def test_a_renewed_certificate_is_shown_to_new_connections(tmp_path, clients):
    async def work():
        async with served(tmp_path) as (_, server), connected(server, anyone()) as client:
            before = der_of(tmp_path / "tls.crt")
            assert await shown(server) == before
            assert b"hms_bridge_certificate_unusable 0.0" in server.metrics.text()
            (tmp_path / "tls.key").write_text("broken")
            while b"hms_bridge_certificate_unusable 1.0" not in server.metrics.text():
                await asyncio.sleep(0)
            assert await shown(server) == before
            write_certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
            while await shown(server) == before:
                pass
            assert await shown(server) == der_of(tmp_path / "tls.crt")
            assert (await client.ask(GET)).success == ["default"]

    async def shown(server: Any) -> bytes | None:
        async with connected(server, anyone()) as client:
            held: ssl.SSLObject = client.writer.get_extra_info("ssl_object")
            return held.getpeercert(binary_form=True)

    uvloop.run(work())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tls_key": "missing"}, "with key missing cannot be used"),
        ({"client_authority": "missing"}, "--client-authority missing cannot be used"),
        (
            {"client_authority": "clients.pem", "client_revocations": "missing"},
            "--client-revocations missing cannot be",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, clients, monkeypatch, changes, says):
    monkeypatch.chdir(tmp_path)
    files = {"tls_certificate": Path("tls.crt"), "tls_key": Path("tls.key")}

    async def work():
        async with bridge("http://127.0.0.1:1/", **{**files, **{name: Path(file) for name, file in changes.items()}}):
            pass

    with pytest.raises(ValueError, match=says):
        uvloop.run(work())
