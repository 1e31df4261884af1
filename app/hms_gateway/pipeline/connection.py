"""Which metastore a data source reads, and as whom: made from options on the driver, used on executors."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hms_gateway.client.metastore_client import MetastoreClient, TicketAuth
from hms_gateway.client.thrift_client import ThriftClient
from hms_gateway.pipeline.errors import OptionError

THRIFT_PORT: Final = 9083
CONNECTION_OPTIONS: Final = ("url", "user", "password", "auth", "cafile", "verify", "framed", "timeout")
# Read on the driver where the option is not given.
VARIABLES: Final = {
    "url": "HMS_GATEWAY_URL",
    "user": "HMS_GATEWAY_USER",
    "password": "HMS_GATEWAY_PASSWORD",
    "cafile": "HMS_GATEWAY_CACERT",
}

Client = MetastoreClient | ThriftClient


@dataclass(frozen=True, slots=True)
class Connection:
    """One metastore. `ca_text` holds the trusted certificates themselves: executors may not have the file."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    has_tickets: bool = False
    ca_text: str = field(default="", repr=False)
    is_verified: bool = True
    is_framed: bool = False
    timeout_seconds: float = 600.0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Connection":
        """From options with lower-case names and the environment. Raises OptionError."""
        found = {name: options.get(name) or os.environ.get(VARIABLES.get(name, ""), "") for name in CONNECTION_OPTIONS}
        if not found["url"]:
            raise OptionError("option url is missing; give https://host:port/path of a gateway or thrift://host:port")
        scheme = urlsplit(found["url"]).scheme
        if scheme not in ("https", "http", "thrift"):
            raise OptionError(f"option url has the scheme {scheme!r}; it begins with https://, http:// or thrift://")
        return cls(
            url=found["url"],
            user=found["user"],
            password=found["password"],
            has_tickets=choice("auth", found["auth"], {"": False, "password": False, "kerberos": True}),
            ca_text=_text("cafile", found["cafile"]),
            is_verified=choice("verify", found["verify"], {"": True, "true": True, "false": False}),
            is_framed=choice("framed", found["framed"], {"": False, "true": True, "false": False}),
            timeout_seconds=whole_number("timeout", found["timeout"], 600),
        )

    @property
    def is_thrift(self) -> bool:
        """Whether it is Thrift over TCP, which is for reading only."""
        return self.url.startswith("thrift:")

    def open(self, headers: Mapping[str, str] | None = None) -> Client:
        """A client of its own; `headers` are sent along over HTTP. Raises ClientError."""
        if self.is_thrift:
            return self._thrift()
        auth = TicketAuth() if self.has_tickets else (self.user, self.password) if self.user else None
        return MetastoreClient(self.url, auth, self._tls(), headers=headers, timeout_seconds=self.timeout_seconds)

    def _thrift(self) -> ThriftClient:
        place = urlsplit(self.url)
        port = place.port or THRIFT_PORT
        client = ThriftClient(place.hostname or "", port, framed=self.is_framed, timeout_seconds=self.timeout_seconds)
        if self.user:
            client.call("set_ugi", self.user, [])
        return client

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.ca_text or None)
        if not self.is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def whole_number(name: str, text: str | None, default: int) -> int:
    """The value of an option that is a number above zero. Raises OptionError."""
    if not text:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise OptionError(f"option {name} is {text!r}; it is a whole number above zero")
    return int(text)


def choice(name: str, text: str, values: Mapping[str, bool]) -> bool:
    """What the value of an option that is one of a few means. Raises OptionError."""
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
