"""Certificate and TLS settings: a self-signed certificate is made at the first start and used again later."""

import datetime
import os
import socket
import ssl
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CERTIFICATE_NAME = "certificate.pem"
KEY_NAME = "key.pem"
# Apple's and other clients refuse certificates that live longer.
VALID_DAYS = 820
RENEWED_BEFORE_DAYS = 30


class CertificateError(Exception):
    """Certificate or key cannot be used; the text names the file."""


def ensure_certificate(folder: Path) -> tuple[Path, Path]:
    """Paths of the folder's certificate and key, made when they are missing or about to expire."""
    certificate, key = folder / CERTIFICATE_NAME, folder / KEY_NAME
    if not (certificate.exists() and key.exists() and _is_valid_for_long(certificate)):
        _make(certificate, key)
    return certificate, key


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 and newer, HTTP/1.1 by ALPN, session tickets on. Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"certificate {certificate} with key {key} cannot be used: {error}") from error
    return context


def certificate_fingerprint(certificate: Path) -> str:
    """SHA-256 fingerprint as browsers show it, `AB:CD:…`. Raises CertificateError."""
    return _load(certificate).fingerprint(hashes.SHA256()).hex(":").upper()


def _is_valid_for_long(certificate: Path) -> bool:
    try:
        left = _load(certificate).not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    except CertificateError:
        return False
    return left > datetime.timedelta(days=RENEWED_BEFORE_DAYS)


def _load(certificate: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise CertificateError(f"certificate {certificate} cannot be read: {error}") from error


def _make(certificate_path: Path, key_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hms-gateway")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(_names()), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_path.parent.mkdir(parents=True, exist_ok=True)
    _write_private(
        key_path,
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    _write_private(certificate_path, certificate.public_bytes(serialization.Encoding.PEM))


def _names() -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ip_address("127.0.0.1")),
        x509.IPAddress(ip_address("::1")),
    ]
    host = socket.gethostname()
    if host.isascii() and host not in ("", "localhost"):
        names.append(x509.DNSName(host))
    return names


def _write_private(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(temporary, path)
