"""Certificates that programs show: which files can be used, and what is said of others."""

import contextlib
import ssl

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from hms_gateway.runtime.logins.client_certificate import ClientCertificate, ClientCertificateError, show
from tests.support.certificates import write_certificate

AUTHORITY = trustme.CA()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of one certificate with its chain, and of others."""
    folder = tmp_path_factory.mktemp("certificates")
    issued = AUTHORITY.create_child_ca().issue_cert("ann.example")
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    key = issued.private_key_pem.bytes()
    loaded = serialization.load_pem_private_key(key, None)
    encrypted = {
        name: loaded.private_bytes(serialization.Encoding.PEM, form, serialization.BestAvailableEncryption(b"secret"))
        for name, form in {
            "encrypted.pem": serialization.PrivateFormat.PKCS8,
            "encrypted-old.pem": serialization.PrivateFormat.TraditionalOpenSSL,
        }.items()
    }
    files = {
        "chain.pem": chain,
        "key.pem": key,
        "both.pem": chain + key,
        "key-first.pem": b"Bag Attributes\n" + key + b"subject=CN=ann\xe9\r\n" + chain.replace(b"\n", b"\r\n"),
        "mixed.pem": chain + AUTHORITY.issue_cert("eve.example").private_key_pem.bytes(),
        "other-key.pem": AUTHORITY.issue_cert("eve.example").private_key_pem.bytes(),
        "both-of-another.pem": AUTHORITY.issue_cert("eve.example").private_key_and_cert_chain_pem.bytes(),
        "damaged.pem": chain.replace(b"M", b"N", 3),
        "empty.pem": b"",
        **encrypted,
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_certificate(folder / "rsa.pem", folder / "rsa-key.pem", is_rsa=True)
    return folder


def named(folder, certificate: str, key: str | None) -> ClientCertificate:
    return ClientCertificate(folder / certificate, None if key is None else folder / key)


def shown_by(client: ssl.SSLContext) -> str:
    """The common name, or the alternative one, that a server sees. A handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("localhost").configure_cert(accepting)
    AUTHORITY.configure_trust(accepting)
    accepting.verify_mode = ssl.CERT_REQUIRED
    server = accepting.wrap_bio(to_server, to_client, server_side=True)
    AUTHORITY.configure_trust(client)
    ends = [client.wrap_bio(to_client, to_server, server_hostname="localhost"), server]
    for end in ends * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    found = server.getpeercert()
    assert found is not None
    return str(found["subjectAltName"][0][1])


@pytest.mark.parametrize(
    ("certificate", "key"),
    [("both.pem", None), ("key-first.pem", None), ("chain.pem", "key.pem"), ("both.pem", "key-first.pem")],
)
def test_certificate_chain_and_key_are_shown(folder, certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    show(context, named(folder, certificate, key).text())
    assert shown_by(context) == "ann.example"


def test_the_key_that_is_named_counts_before_one_beside_the_certificate(folder):
    text = named(folder, "both-of-another.pem", "other-key.pem")
    with pytest.raises(ClientCertificateError, match=r"other-key.pem is not that of the certificate in "):
        text.text()


@pytest.mark.parametrize(
    ("certificate", "key", "option", "text"),
    [
        ("nowhere.pem", None, "certificate", "nowhere.pem cannot be read: "),
        ("", None, "certificate", "cannot be read: "),
        ("empty.pem", "key.pem", "certificate", "empty.pem has no certificate in PEM form"),
        ("chain.pem", None, "certificate", "chain.pem has no private key; name its file with the option key"),
        ("chain.pem", "nowhere.pem", "key", "nowhere.pem cannot be read: "),
        ("chain.pem", "chain.pem", "key", "chain.pem has no private key in PEM form"),
        ("chain.pem", "other-key.pem", "key", "other-key.pem is not that of the certificate in "),
        ("chain.pem", "rsa-key.pem", "key", "rsa-key.pem is not that of the certificate in "),
        ("mixed.pem", None, "certificate", "mixed.pem is not that of the certificate in "),
        ("chain.pem", "encrypted.pem", "key", "encrypted.pem has an encrypted key; decrypt it with openssl pkey"),
        ("chain.pem", "encrypted-old.pem", "key", "encrypted-old.pem has an encrypted key"),
        ("damaged.pem", "key.pem", "certificate", "damaged.pem cannot be used: "),
    ],
)
def test_what_cannot_be_shown_is_named_with_its_option(folder, certificate, key, option, text):
    with pytest.raises(ClientCertificateError) as caught:
        named(folder, certificate, key).text()
    assert (caught.value.option, "\n" in str(caught.value)) == (option, False)
    assert text in str(caught.value)
