"""Identity of a caller: the values that authentication takes and returns."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

HeaderList = Sequence[tuple[bytes, bytes]]
USER_CHARACTERS_MAX: Final = 256


def is_user_name(name: str) -> bool:
    """True for a name that a directory, an issuer or a certificate may give."""
    return 0 < len(name) <= USER_CHARACTERS_MAX and name.isprintable() and name == name.strip()


class ProxyTrust(Enum):
    """Decides if the sender of a request is a proxy that may name its user."""

    NONE = "none"
    # The address is that of a trusted proxy, but the request does not prove that the proxy sent it.
    UNPROVEN = "unproven"
    TRUSTED = "trusted"


# In the scope of a request: what its connection has shown.
CLIENT_CERTIFICATE: Final = "hms_gateway.client_certificate"


class Serial(NamedTuple):
    """The authority that signed a certificate, and the number that this gave it."""

    authority: bytes
    number: int


class ShownCertificate(NamedTuple):
    """What the certificate of a connection's other end proves: that it is this user, or, without one, a trusted proxy.

    `expires` is in seconds since 1970; `serial` is by which a list of revoked certificates names it.
    """

    user: str
    expires: float
    serial: Serial


class LastLogin:
    """By which header the last request of a connection was recognized, and what was known of it (`CredentialCache`)."""

    __slots__ = ("found", "header", "state")

    def __init__(self) -> None:
        self.header = b""
        self.found: Any = None
        self.state: object = None


class RequestHead(NamedTuple):
    """The part of a request that identifies its sender. `headers` are in lower case, `header_list` has repeated ones.

    `peer` is the other end of the connection, `forwarded_address` the client's own address where a trusted proxy named
    it (`proxies.Proxies`). `certificate` is what TLS has verified of the peer's, `last` is the connection's.
    """

    headers: dict[bytes, bytes]
    header_list: HeaderList
    query: bytes
    peer: str
    forwarded_address: str = ""
    trust: ProxyTrust = ProxyTrust.NONE
    certificate: ShownCertificate | None = None
    last: LastLogin | None = None

    @property
    def address(self) -> str:
        """The client's address, for limits and logs."""
        return self.forwarded_address or self.peer

    def values(self, name: bytes) -> list[bytes]:
        """Every value of a header, `name` in lower case."""
        return [value for field, value in self.header_list if field == name]


class Identity(NamedTuple):
    """An authenticated caller. `address` is the client's own where a trusted proxy named it, else the peer's.

    `headers` belong to the reply, whatever it is: they prove to the caller who answers. `groups` are those that the
    login proved (a claim, a directory), or the operator gave; of a user for whom another one acts there are none, and
    `real_user` is that one, whose login it was. Who logged in with a token gets no other one
    that lives longer. `by_others`: the name is that of an issuer, KDC, certificate or proxy.
    """

    user: str
    address: str
    headers: HeaderList = ()
    groups: frozenset[str] = frozenset()
    real_user: str = ""
    by_token: bool = False
    by_others: bool = False


class Authenticator(Protocol):
    """Finds who sends a request. Others than ours can be handed to the endpoint."""

    def remembered(self, head: RequestHead) -> Identity | None:
        """The caller, when that takes no time; None when `authenticate` has to find out. Runs for every request."""

    async def authenticate(self, head: RequestHead) -> Identity:
        """The caller. Raises Refused."""

    def close(self) -> None:
        """Give back threads."""
