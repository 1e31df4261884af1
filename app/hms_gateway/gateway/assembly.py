"""Builds the edge from the settings. What it serves (processor, cache, database) is handed in."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from hms_gateway.cache import ReplyCache
from hms_gateway.gateway.admission.identity import Authenticator, Identity
from hms_gateway.gateway.admission.memory import BodyShares
from hms_gateway.gateway.admission.rates import Rates
from hms_gateway.gateway.application import Gateway, SecondaryListener
from hms_gateway.gateway.auth.passwords import UserFile
from hms_gateway.gateway.certificates.client_certificates import REVOCATIONS
from hms_gateway.gateway.certificates.served_certificate import ServedCertificate
from hms_gateway.gateway.certificates.tls import CertificateFiles, ClientRules, ensure_certificate
from hms_gateway.gateway.http.asgi_endpoint import AsgiEndpoint
from hms_gateway.gateway.http.endpoint import Endpoint
from hms_gateway.gateway.logins import LoginParts, build_authenticator, build_proxies, login_parts
from hms_gateway.gateway.observability.call_logs import AccessLog, AuditLog, open_audit_log
from hms_gateway.gateway.observability.figures import Health, Watched
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.traces import Traces, check_installed
from hms_gateway.gateway.server import bounded_connections
from hms_gateway.rpc.call import Releases
from hms_gateway.rpc.processor import MessageProcessor
from hms_gateway.rpc.wire import Codecs
from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.logging import format_for_stderr
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.runtime.shares import Connections

if TYPE_CHECKING:
    from hms_gateway.iceberg.processor import RestProcessor


class EdgeComponents(msgspec.Struct, frozen=True):
    """The parts of the edge that a secondary listener of the same process shares with it."""

    endpoint: Endpoint
    connections: Connections
    bodies: BodyShares
    logins: LoginParts
    certificate: ServedCertificate | None = None


def certificate_files(settings: Settings) -> CertificateFiles | None:
    """The files of certificate and key, made if need be; None without TLS. Raises CertificateError, OSError."""
    if not settings.tls:
        return None
    if settings.tls_certificate is not None and settings.tls_key is not None:
        files = CertificateFiles(settings.tls_certificate, settings.tls_key)
    else:
        files = ensure_certificate(settings.data_dir)
    return msgspec.structs.replace(files, clients=_client_rules(settings))


def _client_rules(settings: Settings) -> ClientRules | None:
    """Which certificates clients may show; None where they are not asked for any."""
    named = {
        "trusted_proxy.authority": settings.trusted_proxy.authority,
        "client_certificates.authority": settings.client_certificates.authority,
    }
    authorities = tuple((name, file) for name, file in named.items() if file is not None)
    if not authorities:
        return None
    revocations = settings.client_certificates.revocations
    return ClientRules(
        authorities,
        None if revocations is None else (REVOCATIONS, revocations),
        settings.client_certificates.use == "require",
    )


def served_certificate(settings: Settings, metrics: Metrics) -> ServedCertificate | None:
    """The certificate that new connections are shown; None without TLS. Raises CertificateError, OSError."""
    files = certificate_files(settings)
    return None if files is None else ServedCertificate(files, SystemClock(), metrics)


def build_gateway(
    settings: Settings,
    *,
    codecs: Codecs,
    processor: MessageProcessor,
    cache: ReplyCache,
    ready: Callable[[], None],
    metrics: Metrics,
    certificate: ServedCertificate | None,
    releases: Releases | None = None,
    authenticator: Authenticator | None = None,
    users: UserFile | None = None,
    token_password: Callable[[bytes], bytes] | None = None,
    on_stop: Sequence[Callable[[], None]] = (),
    secondary_listener: Callable[[EdgeComponents], SecondaryListener] | None = None,
    newest_event: Callable[[], int] | None = None,
    database: str = "",
    health: Callable[[], Health] = dict,
    iceberg: "Callable[[], RestProcessor] | None" = None,
) -> Gateway:
    """The application that one process serves.

    `ready` raises while calls cannot be answered; `on_stop` are called in order after the last call, so closing the
    store belongs there. `authenticator` replaces the one that the settings describe. Calls that wait are tried again
    after each of `releases`. `secondary_listener` makes one. `newest_event` is what `GatewayStatus` asks.
    `database` is the kind of the database, for traces. `users` is shared with who hands it in, `token_password` is
    `DelegationTokens.password`.
    """
    access_log = AccessLog(format_for_stderr(settings.log_format)) if settings.access_log else None
    audit_log = audit_log_of(settings)
    traces = _traces(settings, database, metrics)
    rates = Rates(settings.user_rates) if settings.user_rates else None
    parts = login_parts(settings, users, token_password)
    authenticator = authenticator or build_authenticator(settings, parts)
    endpoint = Endpoint(
        settings,
        codecs=codecs,
        processor=processor,
        cache=cache,
        authenticator=authenticator,
        proxies=build_proxies(settings),
        metrics=metrics,
        sinks=call_sinks(metrics, access_log, audit_log, traces, rates),
        releases=releases,
        rates=rates,
        traces=traces,
    )
    metrics.watch(lambda: Watched(gauges={"calls_queued": endpoint.calls.queued}))
    asgi_endpoint = AsgiEndpoint(endpoint, settings)
    closing = [authenticator.close, parts.checks.close, *on_stop]
    if access_log is not None:
        closing.append(access_log.close)
    if audit_log is not None:
        closing.append(audit_log.close)
        metrics.watch(lambda: Watched({"audit_lines_lost": audit_log.lost}))
    if traces is not None:
        closing.append(traces.close)
        metrics.watch(lambda: Watched({"spans_exported": traces.exported, "spans_dropped": traces.dropped}))
    connections = bounded_connections(settings.limits, metrics)
    edge = EdgeComponents(endpoint, connections, asgi_endpoint.bodies, parts, certificate)
    return Gateway(
        asgi_endpoint,
        settings,
        connections=connections,
        certificate=certificate,
        audit_log=audit_log,
        ready=ready,
        on_stop=closing,
        health=health,
        secondary_listener=None if secondary_listener is None else secondary_listener(edge),
        newest_event=newest_event,
        iceberg=iceberg,
    )


def call_sinks(
    metrics: Metrics,
    access_log: AccessLog | None = None,
    audit_log: AuditLog | None = None,
    traces: Traces | None = None,
    rates: Rates | None = None,
) -> Sequence[Callable[[CallRecord], None]]:
    """All that record a call, in the order in which they get it."""
    sinks: list[Callable[[CallRecord], None]] = [metrics.served.add]
    if rates is not None:
        sinks.append(partial(_pay, rates))
    if audit_log is not None:
        sinks.append(audit_log.write)
    if traces is not None:
        sinks.append(traces.end)
    if access_log is not None:
        sinks.append(access_log.write)
    return sinks


def _pay(rates: Rates, record: CallRecord) -> None:
    if record.is_paid:
        identity = Identity(record.user, "", groups=record.groups)
        rates.pay(identity, record.bytes_in + record.bytes_out, record.partitions)


def audit_log_of(settings: Settings) -> AuditLog | None:
    """Raises SettingsError."""
    if settings.audit_log is None:
        return None
    try:
        return open_audit_log(settings.audit_log)
    except OSError as error:
        raise SettingsError(f"audit_log {settings.audit_log} cannot be written: {error.strerror or error}") from error


def _traces(settings: Settings, database: str, metrics: Metrics) -> Traces | None:
    """What traces calls; None where no collector is set. What this needs is loaded only then. Raises SettingsError."""
    if settings.otel.endpoint is None:
        return None
    check_installed()
    from importlib.metadata import version

    from hms_gateway.gateway.observability.trace_export import TraceExport, open_exporter

    try:
        exporter = open_exporter(settings.otel.endpoint)
    except (ValueError, OSError) as error:
        raise SettingsError(f"otel.endpoint: the variables OTEL_EXPORTER_OTLP_… are not usable: {error}") from error
    export = TraceExport(exporter, version("hms-gateway"), database, metrics.known_methods)
    return Traces(export, settings.otel.share)
