"""Client certificates that were revoked, read from a file (CRL) again when it changes.

TLS looks at the file when a connection begins; here it is looked at for the calls of connections that are open.
"""

import base64
import binascii
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from hms_gateway.gateway.certificates.der import Serial, revoked_serials
from hms_gateway.gateway.certificates.tls import CertificateError
from hms_gateway.runtime.file_versions import FileVersion, file_version

LOOK_EVERY_SECONDS: Final = 1.0
_LIST: Final = re.compile("-----BEGIN X509 CRL-----(.+?)-----END X509 CRL-----", re.DOTALL)

_log = structlog.get_logger("hms_gateway.certificate")


class Revocations:
    """The revoked certificates of a file. A broken file is logged, and the previous content stays."""

    def __init__(self, file: Path, monotonic: Callable[[], float]) -> None:
        """Raises CertificateError."""
        self._file = file
        self._monotonic = monotonic
        self._next_look = monotonic() + LOOK_EVERY_SECONDS
        self._version: FileVersion | None = file_version(file)
        self._revoked = read_revocations(file)

    def has(self, serial: Serial) -> bool:
        self._look()
        return serial in self._revoked

    def _look(self) -> None:
        now = self._monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_EVERY_SECONDS
        version = file_version(self._file)
        if version == self._version:
            return
        self._version = version
        try:
            self._revoked = read_revocations(self._file)
        except CertificateError as error:
            _log.error("revocation list not read; the previous one stays in use", problem=str(error))


def read_revocations(file: Path) -> frozenset[Serial]:
    """The revocations of all lists in a PEM file. Raises CertificateError."""
    try:
        lists = _LIST.findall(file.read_text("latin-1"))
        if not lists:
            raise ValueError("it has no PEM list of revoked certificates (X509 CRL)")
        return frozenset().union(*(revoked_serials(base64.b64decode(one)) for one in lists))
    except (OSError, ValueError, binascii.Error, IndexError) as error:
        raise CertificateError(f"client_certificates.revocations {file} cannot be used: {error}") from error
