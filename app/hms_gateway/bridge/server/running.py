"""Puts a bridge together and runs it."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import structlog
import uvloop

from hms_gateway.bridge.relays.held_answers import HeldAnswers
from hms_gateway.bridge.relays.https_relay import HttpsRelay, RelayOptions
from hms_gateway.bridge.relays.relay import find_problem, prove
from hms_gateway.bridge.relays.transcoding import Tjson, Unchanged
from hms_gateway.bridge.relays.upstream import ClientTls, Origin, UpstreamPool
from hms_gateway.bridge.server.admission import BridgeOptions, ListenerTls
from hms_gateway.bridge.server.metrics import BridgeMetrics, CallLog, SidePort
from hms_gateway.bridge.server.server import BridgeServer, serve_until_told
from hms_gateway.bridge.thrift.messages import CallFailed
from hms_gateway.bridge.thrift.sasl import Mechanism, TicketExchange, TokenExchange
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.kerberos import SaslTickets, ServiceKeys
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.login_tokens import LoginChecks

_OPEN_TO = {
    "machine": "--open: every account of this machine",
    "network": "--allow-remote: every client that reaches this address",
}
REVOCATIONS_OPTION = "--client-revocations"
_log = structlog.get_logger("hms_gateway.bridge")


class BridgeSettings(RelayOptions, frozen=True):
    """All settings. `keeps_keys` None decides by the encoding: our gateway keeps them, others do not.

    With `keytab` clients may log in with tickets themselves: users of `realms`, or of the keytab's own. With
    `tls_certificate` clients use TLS. One whose certificate `client_authority` has signed has logged in by it, and the
    other fields about clients are those of `CertificateLogins`.
    """

    server: BridgeOptions = msgspec.field(default_factory=BridgeOptions)
    keytab: Path | None = None
    realms: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    client_authority: Path | None = None
    client_certificates: Literal["allow", "require"] = "allow"
    client_user: Literal["CN", "email", "DNS", "URI"] = "CN"
    client_revocations: Path | None = None
    cacert: Path | None = None
    is_insecure: bool = False
    encoding: Literal["binary", "tjson"] = "binary"
    side_host: str = "127.0.0.1"
    side_port: int | None = 9084
    upstream_connections_max: int = 100
    logs_calls: bool = True
    limits: Limits = msgspec.field(default_factory=Limits)

    @property
    def has_login(self) -> bool:
        """True if the bridge can call without a client's login."""
        return self.has_login_of_a_user or self.certificate is not None

    @property
    def has_login_of_a_user(self) -> bool:
        """True for any login but a certificate."""
        return self.negotiates or self.credentials is not None or self.token is not None

    @property
    def may_be_no_user(self) -> bool:
        """True if a certificate alone may prove a trusted proxy, which is not a user itself."""
        return self.acts_for_users and not self.has_login_of_a_user


def run_bridge(settings: BridgeSettings, on_listening: Callable[[int, int | None], None]) -> None:
    """Run until SIGTERM or SIGINT. `on_listening` gets the Thrift port and the side port.

    Raises ValueError for settings that cannot be, OSError when a port or the trusted certificates cannot be had,
    KerberosError, CertificateError.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, on_listening))


async def _run(settings: BridgeSettings, on_listening: Callable[[int, int | None], None]) -> None:
    call_log = CallLog() if settings.logs_calls else None
    metrics = BridgeMetrics(call_log)
    server = make_bridge(settings, metrics)
    side = SidePort({"/healthz": lambda: b"ok\n", "/metrics": metrics.text})
    greeting: asyncio.Task[None] | None = None

    def listening(port: int) -> None:
        nonlocal greeting
        on_listening(port, side_port)
        # Of the server, which has TLS and with it the certificates that clients have to show.
        if server.options.lets_in in _OPEN_TO:
            text = f"{_OPEN_TO[server.options.lets_in]} may call without a password, and does so with the bridge's own"
            _log.warning(text, address=f"{settings.server.host}:{port}")
        if settings.has_login:
            greeting = asyncio.create_task(_greet(server, settings))

    try:
        side_port = None
        if settings.side_port is not None:
            with _named(f"http://{settings.side_host}:{settings.side_port} for /healthz cannot be listened on"):
                side_port = await side.start(settings.side_host, settings.side_port)
        with _named(f"thrift://{settings.server.host}:{settings.server.port} cannot be listened on"):
            await serve_until_told(server, listening)
    finally:
        if greeting is not None:
            greeting.cancel()
        await side.stop()
        if call_log is not None:
            call_log.close()


async def _greet(server: BridgeServer, settings: BridgeSettings) -> None:
    problem = await find_problem(server.relay, server.codecs)
    if problem is None:
        _log.info("the gateway answers")
    elif settings.may_be_no_user and isinstance(problem, CallFailed) and problem.outcome == "unauthorized":
        _log.info("the gateway answers, but only for users named by clients", problem=str(problem))
    else:
        _log.warning("the gateway cannot be used", problem=str(problem))


@contextlib.contextmanager
def _named(problem: str) -> Iterator[None]:
    """Say of an OSError what could not be done."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{problem}: {error}") from error


def make_bridge(settings: BridgeSettings, metrics: BridgeMetrics) -> BridgeServer:
    """A bridge that is not listening yet. Inside a running loop.

    Raises ValueError, OSError, KerberosError, CertificateError.
    """
    codecs = make_codecs(settings.limits)
    with _named(f"certificate {settings.cacert} cannot be read"):
        tls = ClientTls(settings.cacert, is_insecure=settings.is_insecure, certificate=settings.certificate)
    pool = UpstreamPool(Origin.of(settings.url, tls), settings.upstream_connections_max)
    is_binary = settings.encoding == "binary"
    if settings.keeps_keys is None:
        settings = msgspec.structs.replace(settings, keeps_keys=is_binary)
    held = HeldAnswers(codecs, settings.limits.cache_bytes_max) if is_binary else None
    relay = HttpsRelay(
        pool, Unchanged() if is_binary else Tjson(codecs), settings, settings.limits.body_bytes_max, held
    )
    if held is not None:
        metrics.watch("held_answer_bytes", "Long answers that are kept", lambda: held.size_bytes)
    metrics.watch("upstream_connections", "Connections to the gateway", lambda: relay.open_connections)
    mechanisms: dict[str, Mechanism] = {"DIGEST-MD5": partial(TokenExchange, partial(prove, relay, codecs))}
    if settings.keytab is not None:
        tickets = SaslTickets(ServiceKeys(settings.keytab), settings.realms)
        mechanisms = {"GSSAPI": partial(TicketExchange, tickets, LoginChecks(settings.limits)), **mechanisms}
    options = msgspec.structs.replace(settings.server, mechanisms=mechanisms)
    if settings.tls_certificate is not None:
        tls_of_clients = _listener_tls(settings, settings.tls_certificate, metrics)
        options = msgspec.structs.replace(options, tls=tls_of_clients)
    return BridgeServer(relay, options, settings.limits, codecs=codecs, metrics=metrics)


def _listener_tls(settings: BridgeSettings, certificate: Path, metrics: BridgeMetrics) -> ListenerTls:
    """TLS with clients, whose files are read again when they change. Inside a running loop. Raises ValueError."""
    # Only here, since most bridges have none.
    from hms_gateway.gateway.certificates.client_certificates import (
        CertificateValidity,
        ClientCertificates,
        Revocations,
    )
    from hms_gateway.gateway.certificates.served_certificate import LOOK_EVERY_SECONDS, ServedCertificate
    from hms_gateway.gateway.certificates.tls import CertificateError, CertificateFiles, ClientRules
    from hms_gateway.runtime.settings import CertificateLogins, TrustedProxy

    authority, revocations = settings.client_authority, settings.client_revocations
    is_required = settings.client_certificates == "require"
    rules = None
    if authority is not None:
        listed = None if revocations is None else (REVOCATIONS_OPTION, revocations)
        rules = ClientRules((("--client-authority", authority),), listed, is_required)
    try:
        served = ServedCertificate(
            CertificateFiles(certificate, settings.tls_key or certificate, clients=rules), SystemClock(), metrics
        )
        read = None if revocations is None else Revocations(revocations, time.monotonic, REVOCATIONS_OPTION)
    except CertificateError as error:
        raise ValueError(str(error)) from error
    logins = CertificateLogins(authority, settings.client_certificates, settings.client_user, revocations)
    expires = "When the certificate that clients see expires, in seconds since 1970"
    metrics.watch("certificate_expires_timestamp_seconds", expires, lambda: metrics.certificate_expires_seconds or 0)
    unusable = "1 while the files have a certificate that cannot be used"
    metrics.watch("certificate_unusable", unusable, lambda: metrics.certificate_unusable)
    loop = asyncio.get_running_loop()

    def look() -> None:
        served.look()
        loop.call_later(LOOK_EVERY_SECONDS, look)

    look()
    shown = ClientCertificates(TrustedProxy(), logins).shown
    return ListenerTls(served.context, shown, CertificateValidity(read).objection, is_required)
