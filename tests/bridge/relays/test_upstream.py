"""Whom a bridge trusts."""

import contextlib
import ssl

import pytest

from hms_gateway.bridge.relays.upstream import client_tls
from hms_gateway.gateway.certificates.tls import server_context
from tests.support.certificates import write_certificate


def greeted(client: ssl.SSLContext, certificate, key) -> None:
    """A handshake in memory; raises ssl.SSLCertVerificationError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context(certificate, key)
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
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
    client = client_tls(str(certificate))
    greeted(client, certificate, key)
    write_certificate(certificate, key)
    greeted(client, certificate, key)


def test_a_file_that_cannot_be_read_any_more_leaves_what_was_trusted(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    write_certificate(certificate, key)
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(certificate.read_bytes())
    client = client_tls(str(trusted))
    trusted.write_text("nonsense")
    greeted(client, certificate, key)
    trusted.unlink()
    greeted(client, certificate, key)
    write_certificate(certificate, key)
    with pytest.raises(ssl.SSLCertVerificationError):
        greeted(client, certificate, key)
