"""Certificate files and TLS settings: a self-signed certificate is made at the first start and used again later."""

import contextlib
import datetime
import fcntl
import hashlib
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

import msgspec
import structlog

from hms_gateway.runtime.clock import Clock, SystemClock
from hms_gateway.runtime.file_versions import make_data_folder

CERTIFICATE_NAME = "certificate.pem"
KEY_NAME = "key.pem"
LOCK_NAME = ".certificate-lock"
# Name and time of the certificates that the gateway makes, by which it knows them again.
OWN_NAME = "hms-gateway"
# Apple's and other clients refuse certificates that live longer; the hour is for clocks that are behind.
OWN_VALID_SECONDS = 820 * 86_400 + 3_600
RENEWED_BEFORE_SECONDS = 30 * 86_400
# Of TLS 1.2: a fresh key for each connection, and encryption that authenticates. TLS 1.3 has nothing else.
TLS_1_2_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"

_log = structlog.get_logger("hms_gateway.certificate")


class CertificateFields(msgspec.Struct, frozen=True):
    """Until when a certificate is valid, in seconds since 1970, and whether the gateway made it."""

    expires_seconds: int
    is_made_here: bool


class CertificateError(Exception):
    """Certificate or key cannot be used; the text names the file."""


class CertificateFiles(msgspec.Struct, frozen=True):
    """Files of certificate chain and key. `is_ours`: the gateway makes and renews them itself.

    `clients` says which certificates clients may show.
    """

    certificate: Path
    key: Path
    is_ours: bool = False
    clients: "ClientRules | None" = None

    @property
    def all_files(self) -> list[Path]:
        """Every file whose change makes a difference."""
        return [self.certificate, self.key, *(self.clients.all_files if self.clients is not None else ())]


class ClientRules(msgspec.Struct, frozen=True):
    """Which certificates clients may show, or have to: those that one of `authorities` has signed and `revocations`
    does not name. These are files, with the settings or options that name them.
    """

    authorities: tuple[tuple[str, Path], ...]
    revocations: tuple[str, Path] | None = None
    is_required: bool = False

    @property
    def all_files(self) -> list[Path]:
        files = [file for _, file in self.authorities]
        return files if self.revocations is None else [*files, self.revocations[1]]


def ensure_certificate(folder: Path, clock: Clock | None = None) -> CertificateFiles:
    """The folder's certificate and key, made when both are missing, and anew when ours is about to expire.

    Of several processes over one folder one makes them; the others wait for it. Raises CertificateError, OSError.
    """
    files = CertificateFiles(folder / CERTIFICATE_NAME, folder / KEY_NAME, is_ours=True)
    now = (clock or SystemClock()).seconds()
    if _has_to_be_made(files, now):
        make_data_folder(folder)
        with _only_one(folder / LOCK_NAME):
            if _has_to_be_made(files, now):
                before = read_fields(files.certificate) if files.certificate.exists() else None
                _make_apart(files, now)
                if before is not None:
                    days_left = (before.expires_seconds - now) // 86_400
                    _log.info("renewed the self-signed certificate", days_left=days_left)
    return files


def server_context(certificate: Path, key: Path, clients: ClientRules | None = None) -> ssl.SSLContext:
    """TLS 1.2 and newer, HTTP/1.1 by ALPN, session tickets on. Raises CertificateError.

    With `clients` a certificate that the rules do not allow ends the handshake.
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
    if clients is not None:
        _ask_for_certificate(context, clients)
    return context


def _ask_for_certificate(context: ssl.SSLContext, clients: ClientRules) -> None:
    for setting, authority in clients.authorities:
        _load(context, setting, authority)
    if clients.revocations is not None:
        _load(context, *clients.revocations)
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    context.verify_mode = ssl.CERT_REQUIRED if clients.is_required else ssl.CERT_OPTIONAL
    # A session that is taken up again brings a certificate that was verified with the files of then.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0


def _load(context: ssl.SSLContext, setting: str, file: Path) -> None:
    try:
        context.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"{setting} {file} cannot be used: {error}") from error


def read_fields(certificate: Path) -> CertificateFields:
    """Fields of the server's certificate. Raises CertificateError."""
    der = _first_certificate(certificate)
    try:
        return _fields(certificate, der)
    except (OSError, ValueError) as error:
        raise CertificateError(f"certificate {certificate} cannot be read: it is not a certificate") from error


def _fields(certificate: Path, der: bytes) -> CertificateFields:
    try:
        # What `getpeercert` gives of a peer's; a library for it would cost a tenth of the server's memory.
        fields = ssl._ssl._test_decode_cert(certificate)  # type: ignore[attr-defined]
        begins, expires = (ssl.cert_time_to_seconds(fields[name]) for name in ("notBefore", "notAfter"))
    except ValueError:
        # It has names that are not UTF-8. The library decodes none that nobody asks for.
        from cryptography import x509

        return CertificateFields(int(x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()), False)
    is_own_name = fields["issuer"] == fields["subject"] == ((("commonName", OWN_NAME),),)
    return CertificateFields(expires, is_own_name and expires - begins == OWN_VALID_SECONDS)


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
    """True if there is none, or ours ends soon or has no key that fits: a process was killed while it wrote them.

    What the gateway did not make was put there by the operator, and is not ours to replace. Raises CertificateError.
    """
    if not files.certificate.exists():
        return not files.key.exists()
    fields = read_fields(files.certificate)
    if not fields.is_made_here:
        return False
    try:
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


def _make_apart(files: CertificateFiles, now_seconds: int) -> None:
    """Make them in a child process: the library for it would stay, with 10 MiB.

    A process with threads, which a fork could harm, makes them itself. So does one that may not fork, and one whose
    child failed, to raise its error.
    """
    if threading.active_count() == 1:
        with contextlib.suppress(OSError):
            child = os.fork()
            if child == 0:
                try:
                    make_certificate(files.certificate, files.key, now_seconds)
                    os._exit(0)
                finally:
                    os._exit(1)
            if os.waitpid(child, 0)[1] == 0:
                return
    make_certificate(files.certificate, files.key, now_seconds)


def make_certificate(certificate_path: Path, key_path: Path, now_seconds: int) -> None:
    """A new key and a certificate for this machine's names, in two PEM files. Only the owner can read the key."""
    # Only here, since it costs a tenth of the server's memory.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ip_address("127.0.0.1")),
        x509.IPAddress(ip_address("::1")),
    ]
    host = socket.gethostname()
    if host.isascii() and host not in ("", "localhost"):
        names.append(x509.DNSName(host))
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
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
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


def _write(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
