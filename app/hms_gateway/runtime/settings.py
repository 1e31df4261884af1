"""Every setting of the gateway: its name, default, bounds and meaning.

The text below a setting is its documentation: docs/settings.md is generated from these.
"""

import math
import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, field

from hms_gateway.runtime.addresses import is_loopback, is_safe_url
from hms_gateway.runtime.limits import Count, Limits

USER_SOURCES = (
    'set one of user_header = "X-Knox-Actor-ID" (Knox, shouldIncludePrincipalAndGroups), "SM_USER" (Knox, '
    'HeaderPreAuth) or the header that your proxy sets; user_parameter = "user.name" or "doAs" (Knox, without '
    "and with Kerberos); asterisk_password = true (Knox, HiveDispatch with basicAuthPreemptive). A proxy that "
    "passes Authorization on belongs in forwarding_proxies"
)
Text = Annotated[str, Meta(min_length=1)]
_HEADER = re.compile(r"[A-Za-z0-9_-]{1,100}")
_HEADERS_OF_CLIENTS = frozenset({"authorization", "cookie", "host", "origin", "user-agent"})
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s*]+(:\*)?", re.IGNORECASE)
_SECRET = re.compile(r"[!-~]{16,}")
_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()+,;=:@-]+)+")
_PAGES = frozenset({"healthz", "readyz", "metrics", "status", "ui"})


class SettingsError(Exception):
    """A setting is wrong or unknown; the text names it and is meant for the operator."""


class Secret:
    """A text that no log and no traceback shows."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret('**********')"


def _check_networks(name: str, networks: list[str]) -> None:
    """Addresses and CIDR networks, checked here so that a typing error stops the start and not a request."""
    for network in networks:
        try:
            ip_network(network, strict=False)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def _check_paths(paths: Mapping[str, str]) -> None:
    if not paths:
        raise ValueError('paths is empty; name one, such as "/metastore" = "4"')
    for path in paths:
        _check_path("paths", path)


def _check_path(name: str, path: str) -> None:
    if not _PATH.fullmatch(path):
        raise ValueError(
            f"{name}: {path!r} is not a path; write /metastore, with / between its parts and none at the end"
        )
    if path.split("/")[1] in _PAGES:
        raise ValueError(f"{name}: {path} is a page of the gateway; choose another path")


def _check_header(name: str, header: str | None) -> None:
    if header is None:
        return
    if not _HEADER.fullmatch(header):
        raise ValueError(f"{name}: {header!r} is not the name of a header; use letters, digits, - and _")
    if header.lower() in _HEADERS_OF_CLIENTS:
        raise ValueError(f"{name}: {header} is a header of the client's own; name the one that the proxy sets")


def _check_collector(endpoint: str | None) -> None:
    if endpoint is None:
        return
    try:
        parts = urlsplit(endpoint)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        is_address = False
    # The address itself may hold a password, so it is not repeated.
    if not is_address:
        raise ValueError("endpoint is not an http:// or https:// address; set one such as http://127.0.0.1:4318")
    if parts.username is not None:
        raise ValueError("endpoint has a user in it; set OTEL_EXPORTER_OTLP_HEADERS instead")


class ProxyUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Users that an authenticated user may act for with `?doAs=`, and from which addresses (clients §9)."""

    users: list[str]
    """Users it may act for; ["*"] is all users."""
    hosts: list[str] = []
    """Addresses or networks from which it may do so; empty is anywhere."""

    def __post_init__(self) -> None:
        _check_networks("hosts", self.hosts)


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rates of a user, or of a group together, in each worker process."""

    calls_per_second: Annotated[float, Meta(gt=0)] | None = None
    bytes_per_second: Annotated[float, Meta(gt=0)] | None = None
    partitions_per_second: Annotated[float, Meta(gt=0)] | None = None
    burst_seconds: Annotated[float, Meta(gt=0)] = 10.0

    def __post_init__(self) -> None:
        for name, number in msgspec.structs.asdict(self).items():
            if number is not None and not math.isfinite(number):
                raise ValueError(f"{name} must be a finite number; leave it out for no bound")


SigningAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"
]


class TokenIssuer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An OAuth2 issuer whose signed tokens (JWT) let users in."""

    issuer: Text
    """The claim iss of its tokens, byte for byte."""
    audience: Annotated[list[str], Meta(min_length=1)]
    """Values of the claim aud; a token needs one of them."""
    keys_url: str | None = None
    """URL of its JWK set; unset asks <issuer>/.well-known/openid-configuration."""
    keys_file: Path | None = None
    """File with its JWK set in place of a URL, read again when it changes."""
    authority: Path | None = None
    """PEM certificates that verify its HTTPS; unset is the system's."""
    algorithms: Annotated[list[SigningAlgorithm], Meta(min_length=1)] = field(default_factory=lambda: ["RS256"])
    """Signature algorithms that are accepted."""
    user_claim: Text = "sub"
    """Claim with the user's name; a.b is b in a."""
    groups_claim: str | None = None
    """Claim with the names of the user's groups; unset is no groups."""
    clock_skew_seconds: Annotated[float, Meta(ge=0, le=600)] = 60.0
    """Largest accepted difference between its clock and the gateway's."""
    keys_refresh_seconds: Annotated[float, Meta(ge=10, le=86_400)] = 300.0
    """Time after which its keys are fetched again."""
    keys_kept_seconds: Annotated[float, Meta(ge=10, le=10**7)] = 86_400.0
    """While it is unreachable, the last keys stay valid this long."""

    def __post_init__(self) -> None:
        if self.keys_url is not None and self.keys_file is not None:
            raise ValueError("keys_url and keys_file are both set; set one of them")
        url = self.keys_url if self.keys_file is None else None
        if self.keys_file is None and not is_safe_url(url or self.issuer):
            what = "keys_url" if url else "issuer"
            raise ValueError(f"{what} is not an https:// address; set one, or set keys_file")


class Ldap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A directory whose users log in with their passwords there."""

    urls: Annotated[list[str], Meta(min_length=1)]
    """Its servers, tried in this order: ldaps:// or ldap://."""
    start_tls: bool = False
    """Start TLS on ldap:// connections before anything else."""
    authority: Path | None = None
    """PEM certificates that verify its TLS; unset is the system's."""
    bind_name: str | None = None
    """Name of a user's entry, uid={user},ou=people,dc=corp; unset searches for the entry."""
    search_base: str = ""
    """Entry below which users are searched."""
    search_filter: str = "(uid={user})"
    """Filter that finds the user's entry."""
    search_user: str | None = None
    """Entry that searches; unset searches anonymously."""
    search_password_file: Path | None = None
    """File whose first line is the password of search_user; read for each search."""
    user_attribute: Text = "uid"
    """Attribute of the user's entry with the user's name."""
    group_base: str | None = None
    """Entry below which the user's groups are searched; unset is no groups."""
    group_filter: str = "(member={dn})"
    """Filter that finds the user's groups, by {dn} or {user}."""
    group_attribute: Text = "cn"
    """Attribute of a group's entry with its name."""
    seconds_max: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Timeout of each step."""
    remembered_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 300.0
    """Time for which a successful login is cached."""
    kept_seconds: Annotated[float, Meta(ge=0, le=10**6)] = 3600.0
    """While the directory is unreachable, cached logins stay valid this long."""

    def __post_init__(self) -> None:
        for url in self.urls:
            scheme, _, rest = url.partition("://")
            host = rest.partition("/")[0].rpartition(":")[0] or rest.partition("/")[0]
            if scheme not in ("ldap", "ldaps") or not host:
                raise ValueError(f"url {url!r} is not ldaps://host or ldap://host")
            if scheme == "ldap" and not self.start_tls and not is_loopback(host.strip("[]")):
                raise ValueError(f"url {url!r} would send passwords readable; write ldaps://, or set start_tls")
        if self.bind_name is not None and "{user}" not in self.bind_name:
            raise ValueError("bind_name does not have {user} in it; write uid={user},ou=people,dc=corp")
        if self.bind_name is None and ("{user}" not in self.search_filter or not self.search_base):
            raise ValueError("neither bind_name nor search_base and a search_filter with {user} are set; set one")


class TrustedProxy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Proxies that authenticate the caller and name the user (Knox)."""

    addresses: list[str] = []
    """Addresses or networks of the proxies."""
    users: list[str] = field(default_factory=lambda: ["*"])
    """Users that they may name; ["*"] is all users."""
    user_header: str | None = None
    """Header with the user's name, such as X-Knox-Actor-ID."""
    user_parameter: Literal["user.name", "doAs"] | None = None
    """Query parameter with the user's name."""
    asterisk_password: bool = False
    """The user's name is sent in Basic credentials with the password *."""
    secret: Secret | None = None
    """Secret that they send in secret_header."""
    secret_header: str = "X-Proxy-Secret"
    """Header of the secret."""
    authority: Path | None = None
    """PEM certificates of the authority that signs their client certificates. With certificate_names, and addresses
    empty, a certificate alone identifies a proxy."""
    certificate_names: list[str] = []
    """DNS names in their certificates, or the common name of a certificate without alternative names; empty accepts
    any."""

    def __post_init__(self) -> None:
        """Exactly one source names the user; which one is not guessed."""
        _check_networks("addresses", self.addresses)
        named = {
            "user_header": self.user_header is not None,
            "user_parameter": self.user_parameter is not None,
            "asterisk_password": self.asterisk_password,
        }
        chosen = [name for name, is_set in named.items() if is_set]
        if len(chosen) > 1:
            raise ValueError(f"{' and '.join(chosen)} are set; set only the one that the trusted proxies use")
        by_certificate = self.authority is not None and bool(self.certificate_names)
        if (self.addresses or by_certificate) and not chosen:
            raise ValueError(f"addresses is set without a key that names the source of the user; {USER_SOURCES}")
        useless = [*chosen, *(name for name in ("secret", "authority") if getattr(self, name) is not None)]
        if useless and not self.addresses and not by_certificate:
            raise ValueError(
                f"{useless[0]} has no effect without addresses; set the addresses of the proxies there, or authority "
                "and certificate_names"
            )
        if self.certificate_names and self.authority is None:
            raise ValueError("certificate_names needs authority; set the authority's PEM file")
        _check_header("user_header", self.user_header)
        _check_header("secret_header", self.secret_header)
        if self.secret is not None and not _SECRET.fullmatch(self.secret.get_secret_value()):
            raise ValueError("secret is too weak; set 16 or more visible ASCII characters without spaces")


class CertificateLogins(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Client certificates as logins."""

    authority: Path | None = None
    """PEM certificates of the authority that signs users' certificates; read again when the file changes."""
    use: Literal["allow", "require"] = "allow"
    """Connections may (allow) or must (require) show a certificate of the authority."""
    user: Literal["CN", "email", "DNS", "URI"] = "CN"
    """The part of a certificate that names the user: the common name, or its only alternative name of this kind."""
    revocations: Path | None = None
    """PEM revocation lists (CRL), one of each authority, also for certificates of proxies; read again when the file
    changes. With an outdated list no certificate is accepted."""

    def __post_init__(self) -> None:
        if self.authority is None and self.use == "require":
            raise ValueError("use needs authority; set the authority's PEM file")


class Kerberos(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kerberos tickets as logins."""

    keytab: Path | None = None
    """Keytab with the key of HTTP/<host>, and of hive/<host> for the Thrift port; enables Kerberos tickets. Read again
    when it changes."""
    realms: list[str] = []
    """Realms whose users may log in by ticket, under short names; empty is the keytab's realm."""


class MetastoreRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of the metastore that Hive has settings for."""

    event_seconds_max: Annotated[int, Meta(ge=60)] = 86_400
    """Time for which notification events are kept for clients that follow the log."""
    partitions_per_reply_max: Count | None = None
    """Most partitions that one call may request, except by names and, before Hive 4, by partial values
    (hive.metastore.limit.partition.request); unset is any number."""
    require_write_id_lists: bool = False
    """Refuse reads of a transactional table without a list of write ids (docs/caching.md). Spark's client never sends
    one."""
    refuse_incompatible_column_changes: bool = True
    """Refuse an alter_table that changes a column to a type that cannot read the old data
    (hive.metastore.disallow.incompatible.col.type.changes). Iceberg tables (table_type=ICEBERG) are exempt."""


class Otel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Traces of calls."""

    endpoint: str | None = None
    """OpenTelemetry collector for traces by OTLP over HTTP, such as http://127.0.0.1:4318; unset is none."""
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Share of the calls without a traceparent that are traced, 0 to 1."""

    def __post_init__(self) -> None:
        _check_collector(self.endpoint)


class FixedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times, counts and names that no setting changes."""

    delegation_token_seconds_max: float = 604_800.0
    delegation_token_renewal_seconds: float = 86_400.0
    realm: str = "hms-gateway"
    credentials_remembered_seconds: float = 300.0
    locks_implicit_retries: int = 100
    locks_implicit_pause_seconds: float = 60.0
    lease_seconds_max: int = 86_400
    lease_wait_seconds_max: int = 300
    column_change_serdes: tuple[str, ...] = (
        "org.apache.hadoop.hive.kudu.KuduSerDe",
        "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
    )
    threads: int = 32
    # Each keeps a database connection: of few there are fewer.
    streams_max: int = 24
    call_seconds_max: float = 600.0
    header_seconds_max: float = 20.0
    idle_seconds_max: float = 75.0
    write_stall_seconds_max: float = 60.0
    backlog: int = 2048
    audit_changes_seconds: int = 90 * 86_400
    slow_call_seconds: float = 1.0
    bucket_request_seconds: float = 30.0


class Settings(FixedSettings, frozen=True, kw_only=True):
    """Settings that are set. The environment variable is HMS_GATEWAY_ and the name in upper case."""

    host: Text = "127.0.0.1"
    """Address to listen on; 0.0.0.0 is every IPv4 address."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 30443
    """Port to listen on; 0 takes a free one."""
    paths: dict[str, Literal["2.3", "4"]] = field(
        default_factory=lambda: {"/gateway/default/hmshttpthrift/api/hms": "2.3", "/metastore": "4"}
    )
    """URL paths that take Thrift messages, each with the messages of its replies: those of Hive 2.3 or of Hive 4. Each
    is served with / and /* behind it too."""
    iceberg_path: str = "/iceberg"
    """URL path of Iceberg's REST catalog (docs/iceberg.md); empty serves none."""
    data_dir: Path = Path("var")
    """Folder of the embedded database, certificate and password file."""
    database_url: str | None = None
    """SQLAlchemy URL of the database; unset is SQLite in data_dir."""
    database_connections_max: Annotated[int, Meta(ge=2)] = 40
    """Connections of each process for reading, besides 4 for changes and events; three fifths of them at most are for
    long replies."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """Server processes; on SQLite one is fastest."""
    tls: bool = True
    """Serve HTTPS. Without it passwords are sent unencrypted."""
    tls_certificate: Path | None = None
    """PEM certificate chain; unset makes a self-signed one in data_dir."""
    tls_key: Path | None = None
    """PEM private key of tls_certificate."""
    users_file: Path | None = None
    """Password file in htpasswd format; unset is data_dir/users."""
    users_by_other_logins: list[str] = []
    """Users of the password file who may also log in by issuer, Kerberos ticket, client certificate, trusted proxy or
    without a login (http_networks, thrift_networks); ["*"] is all. Others log in by password or personal token only."""
    groups_file: Path | None = None
    """File of groups for users of every login, in lines `group: alice bob`, in addition to groups from the login. Read
    again when it changes; unset is none."""
    admin_password: Secret | None = None
    """Password of admin in the password file that the first start makes."""
    admin_password_file: Path | None = None
    """File with admin_password in its first line; a variable stays readable as long as the process runs."""
    secrets_key_file: Path | None = None
    """Key file that seals delegation tokens and master keys in the database; unset is data_dir/secrets.key, made at the
    first use. All gateways of a database need the same file."""
    token_issuers: dict[str, TokenIssuer] = {}
    """OAuth2 issuers whose signed tokens (JWT) are logins, each under a name of your choice (docs/logins.md)."""
    ldap: Ldap | None = None
    """LDAP directory whose users log in with their passwords there (docs/logins.md); needs the extra ldap."""
    kerberos: Kerberos = Kerberos()
    """Kerberos tickets as logins (docs/kerberos.md)."""
    thrift_port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """Port for Thrift over TCP (PySpark, PyIceberg, Trino); unset is none."""
    thrift_host: Text = "127.0.0.1"
    """Address of the Thrift port."""
    delegation_tokens: bool = False
    """Enable delegation tokens (get_delegation_token): logins of Hive's clients on other machines, by SASL DIGEST-MD5
    or as Bearer over HTTPS. A token ends when its owner or requester leaves the password file or gets a new password;
    user remove and token revoke --user cancel it."""
    thrift_sasl: Literal["off", "allow", "require"] = "off"
    """SASL logins on the Thrift port: PLAIN with user and password, GSSAPI with kerberos.keytab, DIGEST-MD5 with
    delegation_tokens. Without a login: thrift_networks, and processes of the gateway's account, as the user they name;
    if authorization is grants, as the first of administrators. An address that other machines reach needs require,
    thrift_networks, or thrift_tls with client_certificates.use = "require". With thrift_tls a client certificate alone
    is a login, for require too."""
    thrift_tls: bool = False
    """Serve TLS on the Thrift port (hive.metastore.use.SSL), with the certificate and client_certificates of HTTPS."""
    thrift_dialect: Literal["2.3", "4"] = "2.3"
    """Messages on the Thrift port: those of Hive 2.3 or of Hive 4."""
    thrift_networks: list[str] = []
    """Networks such as 10.0.0.0/8, or addresses, whose clients use the Thrift port without a login, as the user they
    name in set_ugi (docs/logins.md). Each start logs this."""
    http_networks: list[str] = []
    """The same for HTTP requests, as the user in the header x-actor-username (Hive 4)."""
    network_user: Text | None = None
    """The user of all clients without a login; unset: the user they name."""
    network_users: list[str] = field(default_factory=lambda: ["*"])
    """Users whose names count without a login; ["*"] is all but administrators and proxy_users, which count only if
    listed; the role admin and rules with admin count only for listed ones. Those of the password file have to be in
    users_by_other_logins, too."""
    trusted_proxy: TrustedProxy = TrustedProxy()
    """Proxies that authenticate the caller and name the user (Knox; docs/logins.md)."""
    client_certificates: CertificateLogins = CertificateLogins()
    """Client certificates as logins (docs/logins.md)."""
    forwarding_proxies: list[str] = []
    """Addresses or networks of proxies that forward Authorization (nginx). The gateway reads forwarded_header of these
    and of trusted proxies."""
    forwarded_header: Literal["X-Forwarded-For", "Forwarded"] = "X-Forwarded-For"
    """Header in which proxies send the client's address, for limits and logs."""
    proxy_users: dict[str, ProxyUser] = {}
    """Users who may act for others with ?doAs=."""
    cors_origins: list[str] = []
    """Origins of web pages that may call: https://page.example or http://localhost:*; empty is only the gateway's own,
    ["*"] any. --demo sets those of localhost."""
    console: bool = True
    """Serve the web console at /ui; / redirects there (docs/console.md)."""
    txn_timeout_seconds: Annotated[float, Meta(gt=0, le=10**9)] = 300.0
    """A transaction or lock without a heartbeat for this long is aborted."""
    locks_implicit: Literal["off", "deny", "wait"] = "off"
    """A change that conflicts with a lock of others is made (off), refused (deny) or tried again (wait)."""
    administrators: list[str] = field(default_factory=lambda: ["admin"])
    """Users with all rights if authorization is grants. In any case they grant, make roles, change owners, end leases
    and locks of others, use delegation tokens and master keys, and make recorded calls (docs/moving.md)."""
    authorization: Literal["off", "grants"] | None = None
    """grants: users have the rights from grants, roles, ownership and authorization_rules_file, and see nothing else.
    off: every user may do everything except grant, make roles and change owners. Unset: grants for a database that this
    version or a later one made, otherwise off."""
    authorization_rules_file: Path | None = None
    """TOML file of rules by patterns of names, read again when it changes (docs/rights.md)."""
    authorization_locations: Literal["open", "owned"] = "owned"
    """Locations that a call may name if authorization is grants. owned: the object's own place and those of
    authorization_rules_file (docs/rights.md). open: any."""
    warehouse_dir: str | None = None
    """Location of new databases, with scheme; unset is data_dir/warehouse as file:."""
    file_systems: dict[str, Literal["manage", "ignore", "refuse"]] = field(default_factory=lambda: {"file": "manage"})
    """For each scheme: manage (make, move and delete directories below the roots), ignore, or refuse such locations.
    "*" ignores or refuses all others; without it those of Hadoop and object stores are ignored and others refused."""
    file_roots: list[str] = []
    """Roots besides the warehouse. The gateway makes, moves, deletes and measures directories only below roots."""
    storage_file: Path | None = None
    """TOML file with endpoints and credentials of managed object stores: fsspec's options in a table for each scheme,
    such as [s3]. --storage of jobs takes the same file (docs/object-stores.md)."""
    metastore: MetastoreRules = MetastoreRules()
    """Rules of the metastore that Hive has settings for."""
    limits: Limits = Limits()
    """Limits by name, such as body_bytes_max."""
    drain_idle_seconds: Annotated[float, Meta(ge=0)] = 0.0
    """Time for which a stopping gateway keeps idle connections, for requests under way; set more than the balancer's
    idle time."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Minimum log level."""
    log_format: Literal["json", "text"] | None = None
    """One JSON object per line, or text for people; unset is text on a terminal, else JSON."""
    user_rates: dict[str, Rate] = {}
    """calls_per_second, bytes_per_second and partitions_per_second by user, by @group (its members together) and for
    each other user (*). A call above them gets 429. burst_seconds is the size of a burst."""
    audit_log: str | None = None
    """One line per call with user, address, method, objects and outcome: stdout, syslog, or the path of a file; unset
    is none."""
    metrics_show_names: bool = False
    """Label the busiest users and objects in /metrics, which needs no password. /status/costs shows them to
    administrators in any case."""
    otel: Otel = Otel()
    """Traces of calls (docs/observability.md, Traces). Needs the extra otel."""

    def __post_init__(self) -> None:
        _check_paths(self.paths)
        if self.iceberg_path:
            _check_path("iceberg_path", self.iceberg_path)
        _check_networks("forwarding_proxies", self.forwarding_proxies)
        _check_certificates(self)
        if self.file_systems.get("*") == "manage":
            raise ValueError('file_systems: "*" must be ignore or refuse; name each scheme that is managed')
        _check_origins(self.cors_origins)
        _check_issuers(self.token_issuers)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together: set both or none")
        if self.admin_password is not None and self.admin_password_file is not None:
            raise ValueError("admin_password and admin_password_file name one password; set one of them")
        if self.audit_log is not None and not self.audit_log.strip():
            raise ValueError("audit_log must be stdout, syslog or the path of a file; leave it out for none")
        if self.thrift_tls and not self.tls:
            raise ValueError("thrift_tls needs tls, whose certificate it shows; serve HTTPS")
        _check_open_networks(self)

    @property
    def thrift_needs_login(self) -> bool:
        """True if each client of the Thrift port proves who it is, by SASL or by its certificate."""
        return self.thrift_sasl == "require" or (self.thrift_tls and self.client_certificates.use == "require")

    @property
    def access_log(self) -> bool:
        """True if each call writes a line to the log."""
        return self.log_level in ("debug", "info")

    @property
    def guarded_users(self) -> frozenset[str]:
        """Users whose names do not count without a login, unless they are listed."""
        return frozenset((*self.administrators, *self.proxy_users))

    @property
    def stopping_seconds_max(self) -> float:
        """Time for the last requests of idle connections to come, and for calls in flight to end."""
        return self.drain_idle_seconds + self.limits.drain_seconds_max

    @property
    def users_path(self) -> Path:
        return self.users_file or self.data_dir / "users"

    @property
    def tokens_path(self) -> Path:
        return self.data_dir / "tokens"

    @property
    def token_uses_path(self) -> Path:
        return self.data_dir / "token-uses"

    @property
    def secrets_key_path(self) -> Path:
        return self.secrets_key_file or self.data_dir / "secrets.key"

    @property
    def warehouse_location(self) -> str:
        """Location of databases without one of their own, such as `file:/srv/var/warehouse`."""
        # A location has no `..` in it; data_dir may.
        above = Path(os.path.realpath(self.data_dir)) if ".." in self.data_dir.parts else self.data_dir.absolute()
        return self.warehouse_dir or f"file:{above / 'warehouse'}"

    @property
    def roots(self) -> list[str]:
        """The locations below which directories are managed; the warehouse is always one."""
        return [self.warehouse_location, *self.file_roots]


def _check_open_networks(settings: Settings) -> None:
    """Clients without a login come from named networks only, which can reach the port."""
    doors = {
        "thrift_networks": ("thrift_host", settings.thrift_host, settings.thrift_networks),
        "http_networks": ("host", settings.host, settings.http_networks),
    }
    for name, (host_name, host, networks) in doors.items():
        parsed = [_open_network(name, network) for network in networks]
        if parsed and is_loopback(host) and not any(network.is_loopback for network in parsed):
            raise ValueError(f"{name}: nobody there reaches {host_name} {host}; set {host_name}, such as 0.0.0.0")
    if settings.thrift_networks and settings.thrift_port is None:
        raise ValueError("thrift_networks has no effect without thrift_port; set it, such as 9083")
    if settings.thrift_networks and settings.thrift_needs_login:
        name = "thrift_sasl" if settings.thrift_sasl == "require" else "client_certificates.use"
        raise ValueError(f'thrift_networks has no effect with {name} = "require"; set {name} = "allow"')
    is_guarded = settings.thrift_needs_login or bool(settings.thrift_networks)
    if settings.thrift_port is not None and not is_guarded and not is_loopback(settings.thrift_host):
        raise ValueError(
            f"thrift_host {settings.thrift_host} can be reached by others, who could call in any user's name: "
            "set thrift_sasl to require, name the networks of your clients in thrift_networks, or listen on 127.0.0.1"
        )
    is_open = settings.thrift_networks or settings.http_networks
    if not is_open and (settings.network_user is not None or settings.network_users != ["*"]):
        name = "network_users" if settings.network_user is None else "network_user"
        raise ValueError(f"{name} has no effect without thrift_networks or http_networks; set one")
    user = settings.network_user
    if user is not None and user in settings.guarded_users and user not in settings.network_users:
        raise ValueError(
            f"network_user {user} is in administrators or proxy_users; name another user, or list it in network_users"
        )


def _open_network(name: str, network: str) -> IPv4Network | IPv6Network:
    """The network, written without bits of a host: with them another one may be meant. Raises ValueError."""
    try:
        parsed = ip_network(network)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if parsed.prefixlen == 0:
        raise ValueError(f"{name}: {network} is every address; name the networks of your clients")
    return parsed


def _check_certificates(settings: Settings) -> None:
    proxies, users = settings.trusted_proxy.authority, settings.client_certificates.authority
    if proxies is not None and not settings.tls:
        raise ValueError("trusted_proxy.authority needs tls; set trusted_proxy.secret, or serve HTTPS")
    if users is not None and not settings.tls:
        raise ValueError("client_certificates.authority needs tls; serve HTTPS")
    if settings.client_certificates.revocations is not None and not (users or proxies):
        raise ValueError(
            "client_certificates.revocations needs client_certificates.authority or trusted_proxy.authority; set the "
            "PEM file"
        )


def _check_issuers(issuers: Mapping[str, TokenIssuer]) -> None:
    names = [issuer.issuer for issuer in issuers.values()]
    if len(set(names)) < len(names):
        raise ValueError("token_issuers names one issuer twice; put its audiences into one table")


def _check_origins(origins: list[str]) -> None:
    for origin in origins:
        if origin not in ("*", "null") and not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"cors_origins: {origin!r} is not an origin; write scheme://host, scheme://host:port or scheme://host:*"
            )
