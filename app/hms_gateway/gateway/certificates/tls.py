"""Certificate files and TLS settings: a self-signed certificate is made at the first start and used again later."""

import contextlib
import fcntl
import hashlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec

from hms_gateway.gateway.certificates.der import CertificateFields, certificate_fields
from hms_gateway.runtime.clock import Clock, SystemClock
from hms_gateway.runtime.data_folder import make_data_folder

CERTIFICATE_NAME = "certificate.pem"
KEY_NAME = "key.pem"
LOCK_NAME = ".certificate-lock"
RENEWED_BEFORE_SECONDS = 30 * 86_400
# Of TLS 1.2: a fresh key for each connection, and encryption that authenticates. TLS 1.3 has nothing else.
TLS_1_2_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"


class CertificateError(Exception):
    """Certificate or key cannot be used; the text names the file."""


class CertificateFiles(msgspec.Struct, frozen=True):
    """Where certificate chain and key are. `is_ours` when the gateway makes and renews them itself.

    `client_authority` signs the certificates that clients may show.
    """

    certificate: Path
    key: Path
    is_ours: bool = False
    client_authority: Path | None = None


def ensure_certificate(folder: Path, clock: Clock | None = None) -> CertificateFiles:
    """The folder's certificate and key, made when they are missing or broken, or ours and about to expire.

    Of several processes over one folder one makes them; the others wait for it. Raises OSError.
    """
    files = CertificateFiles(folder / CERTIFICATE_NAME, folder / KEY_NAME, is_ours=True)
    now = (clock or SystemClock()).seconds()
    if _has_to_be_made(files, now):
        make_data_folder(folder)
        with _only_one(folder / LOCK_NAME):
            if _has_to_be_made(files, now):
                # Only here, since what it is made with costs a tenth of the server's memory.
                from hms_gateway.gateway.certificates.self_signed import make_certificate

                make_certificate(files.certificate, files.key, now)
    return files


def server_context(certificate: Path, key: Path, client_authority: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 and newer, HTTP/1.1 by ALPN, session tickets on. Raises CertificateError.

    With `client_authority` clients may show a certificate, and one that it has not signed ends the handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(TLS_1_2_SUITES)
    context.set_alpn_protocols(["http/1.1"])

    def refuse() -> NoReturn:
        # OpenSSL would ask at the terminal.
        raise CertificateError(f"key {key} is encrypted; decrypt it with openssl pkey")

    try:
        context.load_cert_chain(certificate, key, refuse)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"certificate {certificate} with key {key} cannot be used: {error}") from error
    if client_authority is not None:
        _ask_for_certificate(context, client_authority)
    return context


def _ask_for_certificate(context: ssl.SSLContext, authority: Path) -> None:
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"trusted_proxy_authority {authority} cannot be used: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL


def read_fields(certificate: Path) -> CertificateFields:
    """What the server's own certificate says of itself. Raises CertificateError."""
    try:
        return certificate_fields(_first_certificate(certificate))
    except ValueError as error:
        raise CertificateError(f"certificate {certificate} cannot be read: {error}") from error


def certificate_fingerprint(certificate: Path) -> str:
    """SHA-256 fingerprint as browsers show it, `AB:CD:…`. Raises CertificateError."""
    return hashlib.sha256(_first_certificate(certificate)).digest().hex(":").upper()


def _first_certificate(path: Path) -> bytes:
    """The first one is the server's; those it is signed with may follow."""
    try:
        first, end, _ = path.read_text("latin-1").partition(ssl.PEM_FOOTER)
        return ssl.PEM_cert_to_DER_cert(first[first.index(ssl.PEM_HEADER) :] + end)
    except (OSError, ValueError) as error:
        raise CertificateError(f"certificate {path} cannot be read: {error}") from error


def _has_to_be_made(files: CertificateFiles, now: int) -> bool:
    """Also when the key belongs to another certificate: a process was killed while it replaced them.

    One that another authority signed was put there by the operator, and is not ours to replace.
    """
    if not (files.certificate.exists() and files.key.exists()):
        return True
    try:
        fields = read_fields(files.certificate)
        if not fields.is_self_signed:
            return False
        server_context(files.certificate, files.key)
    except CertificateError:
        return True
    return fields.expires_seconds - now <= RENEWED_BEFORE_SECONDS


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Wait until no other process is inside; one that ends lets go of it."""
    descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
