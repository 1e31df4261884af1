"""The certificate that new connections are shown: read again when its files change, renewed when we made it."""

import math
import ssl
from typing import Any, Protocol

import structlog

from hms_gateway.gateway.certificates.tls import (
    RENEWED_BEFORE_SECONDS,
    CertificateError,
    CertificateFiles,
    certificate_fingerprint,
    ensure_certificate,
    read_fields,
    server_context,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.file_versions import FileVersion, file_version

# A chore does it; two looks at two files cost nothing.
LOOK_EVERY_SECONDS = 2.0
WARNED_BEFORE_SECONDS = 30 * 86_400
WARNED_EVERY_SECONDS = 86_400
RENEWAL_TRIED_EVERY_SECONDS = 3600
_DAY_SECONDS = 86_400

_log = structlog.get_logger("hms_gateway.certificate")


class CertificateFigures(Protocol):
    """The metrics of the certificate: its end in seconds since 1970, and 1 while a new one cannot be used."""

    certificate_expires_seconds: int | None
    certificate_unusable: int


class ServedCertificate:
    """What `context` shows follows the files; connections that are open are not touched.

    `look` belongs to one thread, `read_again` may be called from anywhere, and from signal handlers.
    """

    def __init__(self, files: CertificateFiles, clock: Clock, metrics: CertificateFigures) -> None:
        """Raises CertificateError."""
        self._files = files
        self._clock = clock
        self._metrics = metrics
        self._wants_reading = False
        self._next_warning = self._next_renewal = -math.inf
        self._problem: str | None = None
        self._versions = self._versions_now()
        self.context = self._newest = self._read()
        self._warn()

    def read_again(self) -> None:
        """Make the next look read the files, changed or not."""
        self._wants_reading = True

    def look(self) -> None:
        """Renew a certificate of our own that is about to expire, and show what the files hold now."""
        self._renew()
        versions = self._versions_now()
        wants_reading, self._wants_reading = self._wants_reading, False
        if wants_reading or versions != self._versions or self._problem is not None:
            self._versions = versions
            self._take(wants_reading)
        self._warn()

    def _take(self, is_asked_for: bool) -> None:
        """Show the certificate in the files; one that cannot be used leaves the one before in its place."""
        try:
            newest = self._read()
        except CertificateError as error:
            self._note_problem(str(error))
            return
        if self.context.sni_callback is None:
            self.context.sni_callback = self._show_newest
        # One context for each: a certificate of another kind of key would otherwise be offered beside the one before.
        self._newest = newest
        self._problem, self._metrics.certificate_unusable = None, 0
        self._next_warning = -math.inf
        _log.info(
            "certificate read again",
            file=str(self._files.certificate),
            fingerprint=certificate_fingerprint(self._files.certificate),
            days_left=self._days_left(),
            cause="SIGHUP" if is_asked_for else "the files changed",
        )

    def _note_problem(self, problem: str) -> None:
        """Said once, and at the second look only: who replaces two files replaces one of them first."""
        if problem == self._problem and not self._metrics.certificate_unusable:
            self._metrics.certificate_unusable = 1
            _log.error("the new certificate cannot be used; the previous one stays in use", problem=problem)
        elif problem != self._problem:
            self._metrics.certificate_unusable = 0
        self._problem = problem

    def _show_newest(self, connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        """Called by each handshake, after the first certificate was replaced."""
        connection.context = self._newest

    def _read(self) -> ssl.SSLContext:
        """Raises CertificateError."""
        context = server_context(self._files.certificate, self._files.key, self._files.clients)
        fields = read_fields(self._files.certificate)
        self._expires_seconds = self._metrics.certificate_expires_seconds = fields.expires_seconds
        self._is_renewed = self._files.is_ours and fields.is_made_here
        return context

    def _renew(self) -> None:
        now = self._clock.seconds()
        if not self._is_renewed or self._seconds_left() > RENEWED_BEFORE_SECONDS or now < self._next_renewal:
            return
        self._next_renewal = now + RENEWAL_TRIED_EVERY_SECONDS
        try:
            ensure_certificate(self._files.certificate.parent, self._clock)
        except (CertificateError, OSError) as error:
            _log.error("the certificate cannot be renewed", problem=str(error))

    def _warn(self) -> None:
        """Every day from a month before its end."""
        now = self._clock.seconds()
        if self._seconds_left() > WARNED_BEFORE_SECONDS or now < self._next_warning:
            return
        self._next_warning = now + WARNED_EVERY_SECONDS
        file, days_left = str(self._files.certificate), self._days_left()
        if self._seconds_left() > 0:
            _log.warning("the certificate expires soon; replace it", file=file, days_left=days_left)
        else:
            _log.error("the certificate has expired; replace it", file=file, days_left=days_left)

    def _seconds_left(self) -> int:
        return self._expires_seconds - self._clock.seconds()

    def _days_left(self) -> int:
        return self._seconds_left() // _DAY_SECONDS

    def _versions_now(self) -> list[FileVersion | None]:
        return [file_version(file) for file in self._files.all_files]
