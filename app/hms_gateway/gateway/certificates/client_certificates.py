"""Client certificates: which ones prove a trusted proxy, and which user the others name.

TLS has verified it by then; here it is read once for each connection. Certificates of users and of proxies may come
from two authorities, and one of the wrong authority proves nothing.

TLS looks at the list of revoked certificates when a connection begins; here it is looked at for the calls of
connections that are open, and read again when it changes. Names of authorities are compared byte by byte: old ones are
in encodings that libraries refuse.
"""

import base64
import re
import ssl
import time
from asyncio import BaseTransport
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import is_user_name
from hms_gateway.gateway.certificates.tls import CertificateError
from hms_gateway.runtime.door import Serial, ShownCertificate
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.settings import CertificateLogins, TrustedProxy

_LIST: Final = re.compile(b"-----BEGIN X509 CRL-----(.+?)-----END X509 CRL-----", re.DOTALL)
# `_ssl.ENCODING_DER`.
_DER: Final = 2
# Tags of elements in DER.
_SEQUENCE: Final = 0x30
_VERSION_OF_CERTIFICATE: Final = 0xA0

REVOCATIONS: Final = "client_certificates.revocations"

UserField = Literal["CN", "email", "DNS", "URI"]

_log = structlog.get_logger("hms_gateway.certificate")


class Authority(msgspec.Struct, frozen=True):
    """A file of certificates that sign those of clients, as it was when it was read last."""

    file: Path

    def signed(self, chain: Sequence[bytes]) -> bool:
        """True if one of its certificates is in a chain that TLS has verified."""
        try:
            return not _certificates(self.file).isdisjoint(chain)
        except (OSError, ValueError):
            return False


class ClientCertificates:
    """Reads those of proxies and of users. With two authorities it matters which one has signed."""

    def __init__(self, proxies: TrustedProxy, users: CertificateLogins) -> None:
        self._proxy_authority = None if proxies.authority is None else Authority(proxies.authority)
        self._user_authority = None if users.authority is None else Authority(users.authority)
        self._proxy_names = {name.lower() for name in proxies.certificate_names}
        self._user_field: UserField = users.user

    def shown(self, transport: BaseTransport) -> ShownCertificate | None:
        """The certificate of a new connection; None without one, or with one that proves nothing."""
        certificate = transport.get_extra_info("peercert")
        if not certificate:
            return None
        if self._proves_proxy(certificate) and self._is_signed_by(self._proxy_authority, transport):
            return _shown(transport, certificate, "")
        user = self._user(certificate)
        if user and self._is_signed_by(self._user_authority, transport):
            return _shown(transport, certificate, user)
        return None

    def _proves_proxy(self, certificate: Mapping[str, Any]) -> bool:
        """Without names, any of its authority."""
        if self._proxy_authority is None:
            return False
        return not self._proxy_names or not self._proxy_names.isdisjoint(_host_names(certificate))

    def _user(self, certificate: Mapping[str, Any]) -> str:
        """The one value of the field that names users; "" where there is not exactly one that can be a name."""
        if self._user_authority is None:
            return ""
        values = list(_values(certificate, self._user_field))
        user = values[0] if len(values) == 1 else ""
        return user if is_user_name(user) else ""

    def _is_signed_by(self, authority: Authority | None, transport: BaseTransport) -> bool:
        """With one authority TLS has said so already."""
        if self._proxy_authority is None or self._user_authority is None:
            return True
        return authority is not None and authority.signed(_chain(transport.get_extra_info("ssl_object")))


class Revocations:
    """The revoked certificates of a file. A broken file is logged, and the previous content stays."""

    def __init__(self, file: Path, monotonic: Callable[[], float], name: str = REVOCATIONS) -> None:
        """`name` is that of the setting or option. Raises CertificateError."""
        self._name = name
        self._file = WatchedFile(file, monotonic)
        self._file.has_changed(at_once=True)
        self._revoked = read_revocations(file, name)

    def has(self, serial: Serial) -> bool:
        if self._file.has_changed(at_once=False):
            try:
                self._revoked = read_revocations(self._file.path, self._name)
            except CertificateError as error:
                _log.error("revocation list not read; the previous one stays in use", problem=str(error))
        return serial in self._revoked


def read_revocations(file: Path, name: str = REVOCATIONS) -> frozenset[Serial]:
    """The revocations of all lists in a PEM file. Raises CertificateError."""
    try:
        lists = _LIST.findall(file.read_bytes())
        if not lists:
            raise ValueError("it has no PEM list of revoked certificates (X509 CRL)")
        return frozenset(serial for one in lists for serial in _revoked(base64.b64decode(one)))
    except (OSError, ValueError) as error:
        raise CertificateError(f"{name} {file} cannot be used: {error}") from error


class CertificateValidity:
    """Checks that a certificate verified by TLS is still valid: connections are open for long."""

    def __init__(self, revocations: Revocations | None = None, now: Callable[[], float] = time.time) -> None:
        self._revocations = revocations
        self._now = now

    def objection(self, certificate: ShownCertificate) -> str:
        """The reason why it is not valid, as the rest of a sentence; "" if it is."""
        if certificate.expires <= self._now():
            return "has expired; connect with a new one"
        if self._revocations is not None and self._revocations.has(certificate.serial):
            return "was revoked; connect with another one"
        return ""


def _values(certificate: Mapping[str, Any], field: UserField) -> Iterator[str]:
    if field == "CN":
        yield from _common_names(certificate)
    else:
        yield from (name for kind, name in certificate.get("subjectAltName", ()) if kind == field)


def _host_names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The host names of a certificate, as Python's ssl describes it; the common name of one without alternative names.

    Beside alternative names it does not count (RFC 6125, 6.4.4): an authority need not check it there.
    """
    alternatives = certificate.get("subjectAltName", ())
    if alternatives:
        yield from (name.lower() for kind, name in alternatives if kind == "DNS")
    else:
        yield from map(str.lower, _common_names(certificate))


def _common_names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for parts in certificate.get("subject", ()):
        yield from (value for kind, value in parts if kind == "commonName")


def _shown(transport: BaseTransport, certificate: Mapping[str, Any], user: str) -> ShownCertificate:
    serial = _serial(transport.get_extra_info("ssl_object").getpeercert(binary_form=True))
    return ShownCertificate(user, ssl.cert_time_to_seconds(certificate["notAfter"]), serial)


def _serial(certificate: bytes) -> Serial:
    """By which a list of revoked certificates names one in DER form (RFC 5280, 4.1). Raises ValueError."""
    fields = [content for tag, content in _signed(certificate) if tag != _VERSION_OF_CERTIFICATE]
    number, _algorithm, authority, *_ = fields
    return Serial(authority, int.from_bytes(number, signed=True))


def _revoked(revocations: bytes) -> Iterator[Serial]:
    """The certificates that a list in DER form names (RFC 5280, 5.1). Raises ValueError."""
    # Beside these there are a version, times and extensions; a list of none is left out.
    _algorithm, authority, *listed = [content for tag, content in _signed(revocations) if tag == _SEQUENCE]
    for _, entry in _elements(b"".join(listed)):
        (_, number), *_ = _elements(entry)
        yield Serial(authority, int.from_bytes(number, signed=True))


def _signed(der: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields that an authority has signed."""
    (_, whole), *_ = _elements(der)
    (_, signed), *_ = _elements(whole)
    return _elements(signed)


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element. Raises ValueError."""
    at = 0
    while at < len(der):
        tag, length = der[at], int.from_bytes(der[at + 1 : at + 2])
        at += 2
        if length & 0x80:
            length_bytes = length & 0x7F
            length = int.from_bytes(der[at : at + length_bytes])
            at += length_bytes
        if at + length > len(der):
            raise ValueError("it ends too early")
        yield tag, der[at : at + length]
        at += length


def _chain(connection: Any) -> list[bytes]:
    """The certificates from the client's to the root, in DER form. Public from Python 3.13 on."""
    if hasattr(connection, "get_verified_chain"):
        return list(connection.get_verified_chain())
    chain: Sequence[Any] | None = connection._sslobj.get_verified_chain()
    return [certificate.public_bytes(_DER) for certificate in chain or ()]


def _certificates(file: Path) -> set[bytes]:
    """The certificates of a PEM file, in DER form. Raises OSError, ValueError."""
    text, found = file.read_text("latin-1"), set()
    while ssl.PEM_HEADER in text:
        one, end, text = text[text.index(ssl.PEM_HEADER) :].partition(ssl.PEM_FOOTER)
        found.add(ssl.PEM_cert_to_DER_cert(one + end))
    return found
