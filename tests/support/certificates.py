"""Certificates of every kind for tests, and what a server shows to a client that connects."""

import datetime
import socket
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.support.patience import PATIENCE_SECONDS


def write_certificate(
    certificate: Path,
    key: Path,
    *,
    name: str = "localhost",
    issuer: str | None = None,
    expires: datetime.datetime | None = None,
    is_rsa: bool = False,
    crl: str | None = None,
) -> None:
    """A new key and its certificate; with an `issuer` the certificate is not self-signed. `crl`: the address of one."""
    private = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
    expires = expires or datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=90)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer or name))
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(expires - datetime.timedelta(days=400))
        .not_valid_after(expires)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    if crl is not None:
        point = x509.DistributionPoint([x509.UniformResourceIdentifier(crl)], None, None, None)
        builder = builder.add_extension(x509.CRLDistributionPoints([point]), critical=False)
    made = builder.sign(private, hashes.SHA256())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    _replace(key, private.private_bytes(*form))
    _replace(certificate, made.public_bytes(serialization.Encoding.PEM))


def days_from(now_seconds: int, days: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(now_seconds, datetime.UTC) + datetime.timedelta(days=days)


def expires_of(certificate: Path) -> int:
    made = x509.load_pem_x509_certificate(certificate.read_bytes())
    return int(made.not_valid_after_utc.timestamp())


def anyone() -> ssl.SSLContext:
    """A client that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def shown_by(port: int, server_name: str | None = None, context: ssl.SSLContext | None = None) -> bytes:
    """The certificate that a new connection is shown, in DER form."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as plain,
        (context or anyone()).wrap_socket(plain, server_hostname=server_name) as connection,
    ):
        shown = connection.getpeercert(binary_form=True)
    assert shown is not None
    return shown


def der_of(certificate: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.read_text())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _replace(path: Path, content: bytes) -> None:
    """As tools that renew certificates do."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_bytes(content)
    temporary.replace(path)
