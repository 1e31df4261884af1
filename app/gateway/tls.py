"""Certificate and TLS settings: a self-signed certificate is made at the first start and used again later."""

import hashlib
import ssl
import time
from pathlib import Path

CERTIFICATE_NAME = "certificate.pem"
KEY_NAME = "key.pem"
RENEWED_BEFORE_DAYS = 30


class CertificateError(Exception):
    """Certificate or key cannot be used; the text names the file."""


def ensure_certificate(folder: Path) -> tuple[Path, Path]:
    """Paths of the folder's certificate and key, made when they are missing or about to expire."""
    certificate, key = folder / CERTIFICATE_NAME, folder / KEY_NAME
    if not (certificate.exists() and key.exists() and _is_valid_for_long(certificate)):
        # Only here, since what it is made with costs a tenth of the server's memory.
        from app.gateway.self_signed import make_certificate

        make_certificate(certificate, key)
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
    try:
        # The first one is the server's; those it is signed with may follow.
        first, end, _ = certificate.read_text("latin-1").partition(ssl.PEM_FOOTER)
        der = ssl.PEM_cert_to_DER_cert(first[first.index(ssl.PEM_HEADER) :] + end)
    except (OSError, ValueError) as error:
        raise CertificateError(f"certificate {certificate} cannot be read: {error}") from error
    return hashlib.sha256(der).digest().hex(":").upper()


def _is_valid_for_long(certificate: Path) -> bool:
    """Whether the certificate, which vouches for itself, is one of ours with enough days left."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(certificate)
        ends = [ssl.cert_time_to_seconds(str(found["notAfter"])) for found in context.get_ca_certs()]
    except (OSError, ValueError):
        return False
    return bool(ends) and min(ends) - time.time() > RENEWED_BEFORE_DAYS * 86400
