"""Builds the edge from the settings. What it serves (processor, cache, database) is handed in."""

import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from hms_gateway.cache import ReplyCache
from hms_gateway.gateway.admission.identity import Authenticator, HeaderList, Identity
from hms_gateway.gateway.admission.memory import BodyShares
from hms_gateway.gateway.admission.proxies import Networks, Proxies
from hms_gateway.gateway.admission.rates import Rates
from hms_gateway.gateway.admission.request_rules import CrossOrigin
from hms_gateway.gateway.application import Gateway, GatewayStatus, SecondaryListener
from hms_gateway.gateway.auth.authentication import ACCEPTED, BasicAuthenticator
from hms_gateway.gateway.auth.basic_credentials import basic_challenge
from hms_gateway.gateway.auth.certificate_login import CertificateAuthenticator
from hms_gateway.gateway.auth.groups import GroupsAuthenticator, GroupsFile, GroupsFileError
from hms_gateway.gateway.auth.tickets import CHALLENGE, TicketAuthenticator
from hms_gateway.gateway.auth.token_authenticator import (
    SCHEME,
    TOKEN_ACCEPTED,
    TokenAuthenticator,
    TokenFile,
    bearer_challenge,
    wrong_token_challenges,
)
from hms_gateway.gateway.auth.tokens import TokenUses
from hms_gateway.gateway.auth.trusted_proxy import ImpersonationRule, TrustedProxyAuthenticator, UserSource
from hms_gateway.gateway.auth.user_file import UserFile
from hms_gateway.gateway.auth.users import UserFileError, add_user
from hms_gateway.gateway.calls.dispatcher import Dispatcher
from hms_gateway.gateway.certificates.client_certificates import (
    Authority,
    CertificateValidity,
    ClientCertificates,
    Revocations,
)
from hms_gateway.gateway.certificates.served_certificate import ServedCertificate
from hms_gateway.gateway.certificates.tls import CertificateFiles, ClientRules, ensure_certificate
from hms_gateway.gateway.delegation.authenticator import DelegationAuthenticator
from hms_gateway.gateway.delegation.logins import DelegationLogins, ProvenActing
from hms_gateway.gateway.http.asgi_endpoint import AsgiEndpoint
from hms_gateway.gateway.http.endpoint import Endpoint
from hms_gateway.gateway.observability.call_logs import AccessLog, AuditLog, open_audit_log
from hms_gateway.gateway.observability.figures import Health, Watched
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.traces import Traces, check_installed
from hms_gateway.gateway.server import ServerOptions, bounded_connections
from hms_gateway.rpc.call import Releases
from hms_gateway.rpc.processor import MessageProcessor
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.kerberos import ServiceKeys
from hms_gateway.runtime.logging import format_for_stderr
from hms_gateway.runtime.logins.login_checks import LoginChecks
from hms_gateway.runtime.settings import Ldap, ProxyUser, Settings, SettingsError
from hms_gateway.runtime.shares import Connections
from hms_gateway.timing.call_record import CallRecord
from hms_gateway.wire import Codecs

FIRST_USER = "admin"


class LoginParts(msgspec.Struct, frozen=True):
    """Parts that the doors of a process share: threads in which logins are checked, the password file, and
    delegation tokens, if they are on.
    """

    checks: LoginChecks
    users: UserFile
    delegation: DelegationLogins | None = None


class EdgeComponents(msgspec.Struct, frozen=True):
    """The parts of the edge that a secondary listener of the same process shares with it."""

    calls: Dispatcher
    cache: ReplyCache | None
    authenticator: Authenticator
    metrics: Metrics
    sinks: Sequence[Callable[[CallRecord], None]]
    rates: Rates | None
    connections: Connections
    bodies: BodyShares
    traces: Traces | None
    logins: LoginParts
    groups_of: Callable[[str], frozenset[str]] = lambda user: frozenset()


def user_file(settings: Settings) -> UserFile:
    """The users that the settings name."""
    return UserFile(settings.users_path, time.monotonic, settings.users_by_other_logins)


def login_parts(
    settings: Settings, users: UserFile | None = None, token_password: Callable[[bytes], bytes] | None = None
) -> LoginParts:
    """`token_password` is `DelegationTokens.password`."""
    checks, users = LoginChecks(settings.limits), users or user_file(settings)
    if token_password is None:
        return LoginParts(checks, users)
    logins = DelegationLogins(token_password, checks, challenges=wrong_token_challenges(settings.realm))
    return LoginParts(checks, users, logins)


def ensure_first_user(settings: Settings) -> str | None:
    """Make the password file with the user admin when there is none.

    The new password when it was made up here, so that it can be shown once; None when nothing was made, or when the
    settings gave it. Raises UserFileError.
    """
    if settings.users_path.exists():
        return None
    given = given_password(settings)
    password = given if given is not None else secrets.token_urlsafe(15)
    add_user(settings.users_path, FIRST_USER, password)
    return None if given is not None else password


def given_password(settings: Settings) -> str | None:
    """The setting admin_password, or the first line of admin_password_file. Raises UserFileError."""
    file = settings.admin_password_file
    if file is None:
        return None if settings.admin_password is None else settings.admin_password.get_secret_value()
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise UserFileError(f"admin_password_file {file} cannot be read: {error}") from error


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
    return ClientRules(
        authorities, settings.client_certificates.revocations, settings.client_certificates.use == "require"
    )


def served_certificate(settings: Settings, metrics: Metrics) -> ServedCertificate | None:
    """The certificate that new connections are shown; None without TLS. Raises CertificateError, OSError."""
    files = certificate_files(settings)
    return None if files is None else ServedCertificate(files, SystemClock(), metrics)


def server_options(settings: Settings, certificate: ServedCertificate | None) -> ServerOptions:
    """How to listen."""
    return ServerOptions(
        host=settings.host,
        port=settings.port,
        tls=None if certificate is None else certificate.context,
        backlog=settings.backlog,
        header_seconds_max=settings.header_seconds_max,
        idle_seconds_max=settings.idle_seconds_max,
        drain_idle_seconds=settings.drain_idle_seconds,
        write_stall_seconds_max=settings.write_stall_seconds_max,
        is_proxy=Networks([*settings.trusted_proxy.addresses, *settings.forwarding_proxies]).contain,
    )


def service_keys(settings: Settings) -> ServiceKeys | None:
    """What Kerberos tickets are checked with; None without. Raises KerberosError."""
    return None if settings.kerberos.keytab is None else ServiceKeys(settings.kerberos.keytab)


def build_authenticator(settings: Settings, parts: LoginParts | None = None) -> Authenticator:
    """Passwords and tokens; in front of them tickets, trusted proxies and who may act for others, by the settings.

    Raises KerberosError, SettingsError.
    """
    parts = parts or login_parts(settings)
    keys = service_keys(settings)
    share_of = build_proxies(settings).share_of
    tokens = TokenAuthenticator(
        TokenFile(WatchedFile(settings.tokens_path, time.monotonic)),
        TokenUses(settings.token_uses_path),
        realm=settings.realm,
        share_of=share_of,
    )
    bearer = _with_issuers(settings, tokens, share_of)
    if parts.delegation is not None:
        bearer = DelegationAuthenticator(bearer, parts.delegation, share_of)
    accepted = f"{ACCEPTED}, or {TOKEN_ACCEPTED}"
    following: Authenticator = BasicAuthenticator(
        parts.users,
        realm=settings.realm,
        remembered_seconds=settings.credentials_remembered_seconds,
        others={SCHEME: bearer},
        challenges=(bearer_challenge(settings.realm),),
        limits=settings.limits,
        share_of=share_of,
        accepted=f"a Kerberos ticket (Negotiate), or {accepted}" if keys is not None else accepted,
    )
    if settings.ldap is not None:
        following = _with_directory(settings, settings.ldap, following, parts.users, share_of)
    if keys is not None:
        following = TicketAuthenticator(
            following,
            keys.accept,
            realms=settings.kerberos.realms,
            challenges=_password_and_token(settings),
            checks=parts.checks,
            share_of=share_of,
        )
    logins = TrustedProxyAuthenticator(
        _with_certificates(settings, following),
        source=UserSource(
            header=settings.trusted_proxy.user_header,
            parameter=settings.trusted_proxy.user_parameter,
            asterisk_password=settings.trusted_proxy.asterisk_password,
        ),
        proxied_users=settings.trusted_proxy.users,
        proxy_users=impersonation_rules(settings),
        proven=ProvenActing(parts.delegation, share_of, _password_and_token(settings)).check,
        is_reserved=parts.users.is_reserved,
    )
    groups = build_groups(settings)
    return logins if groups is None else GroupsAuthenticator(logins, groups.of)


def build_groups(settings: Settings) -> GroupsFile | None:
    """Raises SettingsError."""
    if settings.groups_file is None:
        return None
    try:
        return GroupsFile(settings.groups_file)
    except GroupsFileError as error:
        raise SettingsError(f"groups_file: {error}") from error


def impersonation_rules(settings: Settings) -> dict[str, ImpersonationRule]:
    """Whom users may act for."""
    return {name: _rule(user) for name, user in settings.proxy_users.items()}


def _with_directory(
    settings: Settings, ldap: Ldap, following: Authenticator, users: UserFile, share_of: Callable[[str], str | None]
) -> Authenticator:
    """What takes users of a directory. What this needs is loaded only then. Raises SettingsError."""
    from hms_gateway.gateway.auth.directory import Directory, check_installed
    from hms_gateway.gateway.auth.directory_login import DirectoryAuthenticator

    check_installed()
    return DirectoryAuthenticator(
        following,
        Directory(ldap).check,
        is_local=users.has,
        challenges=_password_and_token(settings),
        remembered_seconds=ldap.remembered_seconds,
        kept_seconds=ldap.kept_seconds,
        # One server that does not answer, and another that does.
        seconds_max=2 * ldap.seconds_max,
        limits=settings.limits,
        share_of=share_of,
    )


def _with_certificates(settings: Settings, following: Authenticator) -> Authenticator:
    """What takes certificates of users, where they have an authority. Raises CertificateError."""
    if settings.client_certificates.authority is None:
        return following
    challenges = _password_and_token(settings)
    if settings.kerberos.keytab is not None:
        challenges = (*CHALLENGE, *challenges)
    return CertificateAuthenticator(following, objection=_validity(settings).objection, challenges=challenges)


def _password_and_token(settings: Settings) -> HeaderList:
    """The challenges of the logins that every gateway has."""
    return basic_challenge(settings.realm), bearer_challenge(settings.realm)


def _validity(settings: Settings) -> CertificateValidity:
    """Raises CertificateError."""
    file = settings.client_certificates.revocations
    return CertificateValidity(None if file is None else Revocations(file, time.monotonic))


def _with_issuers(
    settings: Settings, tokens: TokenAuthenticator, share_of: Callable[[str], str | None]
) -> Authenticator:
    """What takes tokens: those of issuers too, where there are any. What this needs is loaded only then."""
    if not settings.token_issuers:
        return tokens
    from hms_gateway.gateway.auth.issuers import make_issuer
    from hms_gateway.gateway.auth.signed_tokens import SignedTokenAuthenticator

    issuers = [make_issuer(issuer) for issuer in settings.token_issuers.values()]
    return SignedTokenAuthenticator(issuers, tokens, realm=settings.realm, share_of=share_of)


def build_proxies(settings: Settings) -> Proxies:
    """The peers whose word on users and addresses counts, as the settings name them. Raises CertificateError."""
    trusted = settings.trusted_proxy
    return Proxies(
        trusted.addresses,
        settings.forwarding_proxies,
        secret=None if trusted.secret is None else trusted.secret.get_secret_value(),
        secret_header=trusted.secret_header,
        needs_certificate=trusted.authority is not None,
        certificate_of=_certificate_reader(settings).shown,
        objection=_validity(settings).objection,
        forwarded_header=settings.forwarded_header,
    )


def _certificate_reader(settings: Settings) -> ClientCertificates:
    proxies, users = settings.trusted_proxy.authority, settings.client_certificates.authority
    return ClientCertificates(
        proxy_names=None if proxies is None else settings.trusted_proxy.certificate_names,
        proxy_authority=None if proxies is None else Authority(proxies),
        user_field=None if users is None else settings.client_certificates.user,
        user_authority=None if users is None else Authority(users),
    )


def build_gateway(
    settings: Settings,
    *,
    codecs: Codecs,
    processor: MessageProcessor,
    cache: ReplyCache | None,
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
    sinks = call_sinks(metrics, access_log, audit_log, traces, rates)
    endpoint = Endpoint(
        codecs=codecs,
        processor=processor,
        cache=cache,
        authenticator=authenticator,
        proxies=build_proxies(settings),
        limits=settings.limits,
        metrics=metrics,
        sinks=sinks,
        releases=releases,
        threads=settings.threads,
        streams_max=min(settings.streams_max, settings.database_connections_max * 3 // 5),
        call_seconds_max=settings.call_seconds_max,
        slow_call_seconds=settings.slow_call_seconds,
        rates=rates,
        traces=traces,
    )
    metrics.watch(lambda: Watched(gauges={"calls_queued": endpoint.calls.queued}))
    bodies = BodyShares(settings.limits)
    asgi_endpoint = AsgiEndpoint(
        endpoint,
        limits=settings.limits,
        metrics=metrics,
        bodies=bodies,
        cross_origin=CrossOrigin(settings.cors_origins),
        write_stall_seconds_max=settings.write_stall_seconds_max,
    )
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
    edge = EdgeComponents(
        *(endpoint.calls, cache, authenticator, metrics, sinks, rates, connections, bodies, traces),
        parts,
    )
    if isinstance(authenticator, GroupsAuthenticator):
        edge = msgspec.structs.replace(edge, groups_of=authenticator.groups_of)
    return Gateway(
        asgi_endpoint,
        path=settings.path,
        metrics=metrics,
        connections=connections,
        certificate=certificate,
        audit_log=audit_log,
        ready=ready,
        on_stop=closing,
        console=settings.console,
        health=health,
        secondary_listener=None if secondary_listener is None else secondary_listener(edge),
        status=GatewayStatus(
            metrics,
            newest_event=newest_event,
            administrators=frozenset(settings.administrators),
            shows_names=settings.metrics_show_names,
            follow=cache.follow if cache is not None else lambda: None,
        ),
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


def _rule(user: ProxyUser) -> ImpersonationRule:
    return ImpersonationRule(frozenset(user.users), Networks(user.hosts) if user.hosts else None)
