"""H1: a client certificate proves the proxy beside its address; one of another name, or none, does not."""

import http.client
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.gateway.serving import CALL
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer, basic, trusting

NAMED = {"SM_USER": "ann"}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    folder = tmp_path_factory.mktemp("certificates")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    settings = {
        "trusted_proxy.addresses": ["127.0.0.1"],
        "trusted_proxy.user_header": "SM_USER",
        "trusted_proxy.authority": str(folder / "authority.pem"),
        "trusted_proxy.certificate_names": ["Knox.example"],
    }
    with GatewayServer(folder, settings=settings) as running:
        yield running


def showing(certificate: trustme.LeafCert, folder: Path) -> ssl.SSLContext:
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    context = trusting()
    context.load_cert_chain(folder / "client.pem")
    return context


def status(server: GatewayServer, context: ssl.SSLContext, headers: dict[str, str]) -> int:
    """Of the second of two calls on one connection."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS, context=context)
    try:
        for _ in range(2):
            connection.request("POST", API_PATH, CALL, headers)
            answer = connection.getresponse()
            answer.read()
        return answer.status
    finally:
        connection.close()


def test_the_proxys_certificate_lets_it_name_the_user(server, authority, tmp_path):
    knox = showing(authority.issue_cert("knox.example"), tmp_path)
    assert status(server, knox, NAMED) == 200
    assert status(server, knox, {**NAMED, **basic(server.user, server.password)}) == 401
    assert status(server, knox, basic(server.user, server.password)) == 200


def test_the_common_name_does_not_count_beside_alternative_names(server, authority, tmp_path):
    for name in ("other.example", "203.0.113.7", "proxy@other.example"):
        named = authority.issue_cert(name, common_name="knox.example")
        assert status(server, showing(named, tmp_path), NAMED) == 401


def test_the_common_name_counts_in_a_certificate_without_alternative_names(server, authority, tmp_path):
    old = authority.issue_cert(common_name="knox.example")
    assert status(server, showing(old, tmp_path), NAMED) == 200


def test_without_the_certificate_the_address_is_not_enough(server, authority, tmp_path):
    for context in (trusting(), showing(authority.issue_cert("somebody.example"), tmp_path)):
        assert status(server, context, NAMED) == 401
        assert status(server, context, basic(server.user, server.password)) == 200


def test_a_certificate_of_another_authority_ends_the_handshake(server, tmp_path):
    forged = showing(trustme.CA().issue_cert("knox.example"), tmp_path)
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        status(server, forged, NAMED)
