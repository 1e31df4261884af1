"""Whom a bridge trusts, and what it shows."""

import asyncio
import contextlib
import ssl

import pytest
import uvloop

from hms_gateway.bridge.relays.upstream import ClientTls, Origin, UpstreamPool, refused_certificate
from hms_gateway.gateway.certificates.tls import ClientRules, server_context
from hms_gateway.runtime.file_versions import LOOK_EVERY_SECONDS
from hms_gateway.runtime.logins.client_certificate import ClientCertificate
from tests.bridge.canned_upstream import CannedUpstream, Request, http
from tests.support.certificates import write_certificate
from tests.support.client_authority import ClientAuthority

HEAD = b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n"


def greeted(client: ClientTls, certificate, key) -> None:
    """A handshake in memory; raises ssl.SSLCertVerificationError."""
    context = client.context(at_once=True)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context(certificate, key)
    ends = [
        context.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    assert ends[0].getpeercert()


def test_a_renewed_certificate_is_trusted_from_the_next_connection_on(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    write_certificate(certificate, key)
    client = ClientTls(certificate)
    greeted(client, certificate, key)
    write_certificate(certificate, key)
    greeted(client, certificate, key)


def test_a_file_that_cannot_be_read_any_more_leaves_what_was_trusted(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    write_certificate(certificate, key)
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(certificate.read_bytes())
    client = ClientTls(trusted)
    trusted.write_text("nonsense")
    greeted(client, certificate, key)
    trusted.unlink()
    greeted(client, certificate, key)
    write_certificate(certificate, key)
    with pytest.raises(ssl.SSLCertVerificationError):
        greeted(client, certificate, key)


async def naming(_request: Request, writer: asyncio.StreamWriter) -> None:
    """Answers with the name in the certificate that the connection has shown."""
    (((_, name),),) = writer.get_extra_info("peercert")["subject"]
    writer.write(http(name.encode()))
    await writer.drain()


def test_a_renewed_certificate_is_shown_and_kept_connections_are_not_used_further(tmp_path):
    authority, shown, now = ClientAuthority(tmp_path), tmp_path / "bridge.pem", [0.0]
    (tmp_path / "authority.pem").write_bytes(authority.pem)
    write_certificate(tmp_path / "certificate.pem", tmp_path / "key.pem")
    rules = ClientRules((("client_authority", tmp_path / "authority.pem"),), is_required=True)
    upstream = CannedUpstream(tls=server_context(tmp_path / "certificate.pem", tmp_path / "key.pem", rules))
    upstream.actions.extend([naming] * 5)
    authority.write("first")[0].replace(shown)
    tls = ClientTls(is_insecure=True, certificate=ClientCertificate(shown), monotonic=lambda: now[0])

    async def work() -> None:
        async with upstream.running():
            pool = UpstreamPool(Origin.of(upstream.url, tls), 4)

            async def name() -> bytes | None:
                connection = await pool.acquire(must_be_fresh=False)
                return (await connection.request(HEAD, b"", 30)).body

            assert await name() == b"first"
            shown.write_text("broken")
            now[0] += LOOK_EVERY_SECONDS
            assert await name() == b"first"
            authority.write("second")[0].replace(shown)
            assert await name() == b"first"
            assert upstream.connections == 1
            now[0] += LOOK_EVERY_SECONDS
            assert [await name(), await name()] == [b"second", b"second"]
            assert (upstream.connections, pool.open_connections) == (2, 1)
            pool.close()

    uvloop.run(work())


@pytest.mark.parametrize(
    ("text", "is_about_ours"),
    [
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required", True),
        ("[SSL: SSLV3_ALERT_CERTIFICATE_EXPIRED] sslv3 alert certificate expired", True),
        ("[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca", True),
        ("[SSL: TLSV1_ALERT_PROTOCOL_VERSION] tlsv1 alert protocol version", False),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", False),
    ],
)
def test_alerts_about_the_bridges_certificate_are_not_tried_again(text, is_about_ours):
    assert (refused_certificate(ssl.SSLError(1, text)) is not None) == is_about_ours
