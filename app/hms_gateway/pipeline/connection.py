"""A metastore and a login for it: made from options on the driver, used on executors."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hms_gateway.client.in_catalog import catalog_named
from hms_gateway.client.metastore_client import MetastoreClient, TicketAuth, TokenAuth
from hms_gateway.client.thrift_client import ThriftClient
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.runtime.logins.client_certificate import ClientCertificate, ClientCertificateError, show

THRIFT_PORT: Final = 9083
CONNECTION_OPTIONS: Final = (
    *("url", "user", "password", "token", "auth", "certificate", "key", "cafile", "verify", "framed", "timeout"),
    *("catalog",),
)
# Read on the driver where the option is not given.
VARIABLES: Final = {
    "url": "HMS_GATEWAY_URL",
    "user": "HMS_GATEWAY_USER",
    "password": "HMS_GATEWAY_PASSWORD",
    "token": "HMS_GATEWAY_TOKEN",
    "certificate": "HMS_GATEWAY_CERTIFICATE",
    "key": "HMS_GATEWAY_KEY",
    "cafile": "HMS_GATEWAY_CACERT",
    "catalog": "HMS_GATEWAY_CATALOG",
}
_CONTEXTS_MAX: Final = 8

Client = MetastoreClient | ThriftClient


@dataclass(frozen=True, slots=True)
class Connection:
    """One metastore. `ca_text` holds the trusted certificates themselves, `shown_text` the one to show and its key:
    executors may not have the files.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    has_tickets: bool = False
    shown_text: str = field(default="", repr=False)
    ca_text: str = field(default="", repr=False)
    is_verified: bool = True
    is_framed: bool = False
    timeout_seconds: float = 600.0
    # Of Hive 3.1 and later; empty for the default one.
    catalog: str = ""
    # How the options of a command begin that set these.
    option_prefix: str = "--"

    @classmethod
    def of(cls, options: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> "Connection":
        """From options with lower-case names and the environment. Raises OptionError."""
        found = {name: options.get(name) or environment.get(VARIABLES.get(name, ""), "") for name in CONNECTION_OPTIONS}
        if not found["url"]:
            raise OptionError("option url is missing; give https://host:port/path of a gateway or thrift://host:port")
        scheme = urlsplit(found["url"]).scheme
        if scheme not in ("https", "http", "thrift"):
            raise OptionError(f"option url has the scheme {scheme!r}; it begins with https://, http:// or thrift://")
        _choose_login(found, options)
        return cls(
            url=found["url"],
            user=found["user"],
            password=found["password"],
            token=found["token"],
            has_tickets=choice("auth", found["auth"], {"": False, "password": False, "kerberos": True}),
            shown_text=_shown(found["certificate"], found["key"]),
            ca_text=_text("cafile", found["cafile"]),
            is_verified=choice("verify", found["verify"], {"": True, "true": True, "false": False}),
            is_framed=choice("framed", found["framed"], {"": False, "true": True, "false": False}),
            timeout_seconds=whole_number("timeout", found["timeout"], 600),
            catalog=catalog_named(found["catalog"]),
        )

    @property
    def owner(self) -> str | None:
        """The user of the login, who owns what is made; a token or certificate alone does not say it."""
        return self.user if self.password or self.has_tickets else None

    @property
    def is_thrift(self) -> bool:
        """True if it is Thrift over TCP, which is for reading only."""
        return self.url.startswith("thrift:")

    def open(self, headers: Mapping[str, str] | None = None) -> Client:
        """A client of its own; `headers` are sent along over HTTP. Raises ClientError."""
        if self.is_thrift:
            return self._thrift()
        return MetastoreClient(
            self.url,
            self._auth(),
            _tls_context(self.ca_text, self.is_verified, self.shown_text),
            headers=headers,
            timeout_seconds=self.timeout_seconds,
            catalog=self.catalog,
        )

    def _auth(self) -> TokenAuth | TicketAuth | tuple[str, str] | None:
        if self.token:
            return TokenAuth(self.token)
        if self.has_tickets:
            return TicketAuth()
        if self.shown_text and not self.password:
            return None
        return (self.user, self.password) if self.user else None

    def _thrift(self) -> ThriftClient:
        place = urlsplit(self.url)
        port = place.port or THRIFT_PORT
        client = ThriftClient(
            place.hostname or "",
            port,
            framed=self.is_framed,
            timeout_seconds=self.timeout_seconds,
            catalog=self.catalog,
        )
        if self.user:
            client.call("set_ugi", self.user, [])
        return client


@lru_cache(_CONTEXTS_MAX)
def _tls_context(ca_text: str, is_verified: bool, shown_text: str) -> ssl.SSLContext:
    """The same one for the same words: to load the system's certificates takes tens of milliseconds."""
    if is_verified:
        context = ssl.create_default_context(cadata=ca_text or None)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if shown_text:
        show(context, shown_text)
    return context


def _choose_login(found: dict[str, str], options: Mapping[str, str]) -> None:
    """One login: what an option says counts before what the environment says. Raises OptionError."""
    _choose_certificate(found, options)
    is_thrift = found["url"].startswith("thrift:")
    is_other = bool(options.get("password") or found["auth"].lower() == "kerberos")
    if options.get("token") and is_thrift:
        raise OptionError("option token is for https://; a metastore at thrift:// does not read one")
    if options.get("token") and is_other:
        raise OptionError("option token is given beside password or auth=kerberos; give one of them")
    if is_thrift or is_other:
        found["token"] = ""
    if not found["token"].isascii() or not found["token"].isprintable() or " " in found["token"]:
        raise OptionError("option token is not a token; it is one line of printable ASCII without blanks")


def _choose_certificate(found: dict[str, str], options: Mapping[str, str]) -> None:
    """Beside a certificate a login of the environment does not count. Raises OptionError."""
    if options.get("certificate"):
        if not found["url"].startswith("https:"):
            raise OptionError("option certificate is for https://; nothing else can show one")
        found["key"] = options.get("key", "")
    elif options.get("key"):
        raise OptionError("option key is given without certificate; give the certificate")
    elif not found["url"].startswith("https:"):
        found["certificate"] = ""
    if found["certificate"]:
        found |= {name: options.get(name, "") for name in ("password", "token")}


def whole_number(name: str, text: str | None, default: int) -> int:
    """The value of an option that is a number above zero. Raises OptionError."""
    if not text:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise OptionError(f"option {name} is {text!r}; it is a whole number above zero")
    return int(text)


def choice(name: str, text: str, values: Mapping[str, bool]) -> bool:
    """The meaning of an option's value that is one of a few. Raises OptionError."""
    if text.lower() not in values:
        raise OptionError(f"option {name} is {text!r}; it is one of {', '.join(filter(None, values))}")
    return values[text.lower()]


def _text(name: str, file: str) -> str:
    if not file:
        return ""
    try:
        return Path(file).read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"option {name}: {file} cannot be read as a PEM file: {error}") from error


def _shown(certificate: str, key: str) -> str:
    if not certificate:
        return ""
    try:
        return ClientCertificate(Path(certificate), Path(key) if key else None).text()
    except ClientCertificateError as error:
        raise OptionError(f"option {error.option}: {error}") from error
