"""Making the self-signed certificate of the first start."""

import datetime
import os
import socket
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hms_gateway.gateway.certificates.der import OWN_NAME, OWN_VALID_SECONDS


def make_certificate(certificate_path: Path, key_path: Path, now_seconds: int) -> None:
    """A new key and a certificate for this machine's names, in two PEM files. Only the owner can read the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    begins = datetime.datetime.fromtimestamp(now_seconds, datetime.UTC) - datetime.timedelta(hours=1)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, OWN_NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + datetime.timedelta(seconds=OWN_VALID_SECONDS))
        .add_extension(x509.SubjectAlternativeName(_names()), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        # Without it OpenSSL finds the wrong one of two in a client's file that bear the same name.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    # First, so that a key without a certificate of ours is never ours. Clients of other accounts trust it, too.
    _write(certificate_path, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    _write(
        key_path,
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        0o600,
    )


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


def _write(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
