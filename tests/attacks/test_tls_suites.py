"""The low finding on TLS: suites of TLS 1.2 that do not authenticate what they encrypt, and older versions."""

import ssl

import pytest

from tests.gateway.serving import running
from tests.support.certificates import anyone, shown_by, write_certificate

WITHOUT_AEAD = (
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-ECDSA-AES256-SHA384",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-RSA-AES256-SHA384",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-SHA256",
)


@pytest.fixture(scope="module", params=[False, True], ids=["EC", "RSA"])
def server(request, tmp_path_factory):
    from hms_gateway.gateway.certificates.tls import server_context

    folder = tmp_path_factory.mktemp("suites")
    write_certificate(folder / "certificate", folder / "key", is_rsa=request.param)
    with running(tls=server_context(folder / "certificate", folder / "key")) as server:
        yield server


def tls_1_2(suites: str) -> ssl.SSLContext:
    context = anyone()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(suites)
    return context


@pytest.mark.parametrize("suite", [*WITHOUT_AEAD, ":".join(WITHOUT_AEAD)])
def test_what_is_not_authenticated_encryption_is_refused(server, suite):
    with pytest.raises(ssl.SSLError):
        shown_by(server.port, context=tls_1_2(suite))


@pytest.mark.parametrize("suites", ["ECDHE+AES128+AESGCM", "ECDHE+AES256+AESGCM", "ECDHE+CHACHA20", "DEFAULT"])
def test_what_is_authenticated_encryption_is_taken(server, suites):
    assert shown_by(server.port, context=tls_1_2(suites))


def test_the_newest_version_is_taken(server):
    context = anyone()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    assert shown_by(server.port, context=context)
