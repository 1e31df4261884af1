"""TLS of the bridge to its gateway: whom it trusts and what it shows, read again when the files change."""

import ssl
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.logins.client_certificate import ClientCertificate, ClientCertificateError, show

_log = structlog.get_logger("hms_gateway.bridge")


class ResumingContext(ssl.SSLContext):
    """Client side of TLS that takes up the last session again, which saves most of a handshake.

    asyncio has no way to hand a session to a connection, but it asks the context for the TLS object.
    """

    last_session: ssl.SSLSession | None = None

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session or self.last_session)


class ClientTls:
    """Checks the server against the system's authorities or those in the file `cacert`, or not at all, and shows it
    `certificate`.
    """

    def __init__(
        self,
        cacert: Path | None = None,
        *,
        is_insecure: bool = False,
        certificate: ClientCertificate | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises OSError (ssl.SSLError among them) when `cacert` cannot be used, CertificateError."""
        self._cacert = None if is_insecure else cacert
        self._is_insecure = is_insecure
        self._certificate = certificate
        files = [] if self._cacert is None else [self._cacert]
        files += [] if certificate is None else certificate.files
        self._watched = [WatchedFile(file, monotonic) for file in files]
        self._have_changed(at_once=True)
        self._context = self._make()

    def context(self, *, at_once: bool) -> ResumingContext:
        """For the files of now, or with `at_once` False of within a second: another one after each change.

        Files that cannot be used leave the one before: of a certificate and its key one is written first.
        """
        if self._have_changed(at_once=at_once):
            try:
                self._context = self._make()
            except (OSError, ClientCertificateError) as error:
                _log.warning("a new certificate cannot be used; the previous one stays in use", problem=str(error))
        return self._context

    def _have_changed(self, *, at_once: bool) -> bool:
        return bool([file for file in self._watched if file.has_changed(at_once=at_once)])

    def _make(self) -> ResumingContext:
        context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self._is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._cacert is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cafile=self._cacert)
        if self._certificate is not None:
            show(context, self._certificate.text())
        return context
