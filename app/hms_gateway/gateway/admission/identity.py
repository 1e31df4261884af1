"""The sender of a request, and refusals of requests."""

import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

import structlog

from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.runtime.door import ShownCertificate

# Identity of a caller: the values that authentication takes and returns.


HeaderList = Sequence[tuple[bytes, bytes]]
USER_CHARACTERS_MAX: Final = 256


_NOT_UTF_8: Final = "\ufffd"


def is_user_name(name: str) -> bool:
    """True for a name that a directory, an issuer, a certificate, a proxy or the client itself may give.

    Bytes that are not UTF-8 are all read as one character, so that two names might become one.
    """
    is_short = 0 < len(name) <= USER_CHARACTERS_MAX
    return is_short and name.isprintable() and name == name.strip() and _NOT_UTF_8 not in name


class ProxyTrust(Enum):
    """Decides if the sender of a request is a proxy that may name its user."""

    NONE = "none"
    # The address is that of a trusted proxy, but the request does not prove that the proxy sent it.
    UNPROVEN = "unproven"
    TRUSTED = "trusted"


# In the scope of a request: what its connection has shown.
CLIENT_CERTIFICATE: Final = "hms_gateway.client_certificate"


class RequestHead(NamedTuple):
    """The part of a request that identifies its sender. `headers` are in lower case, `header_list` has repeated ones.

    `peer` is the other end of the connection, `forwarded_address` the client's own address where a trusted proxy named
    it (`proxies.Proxies`). `certificate` is what TLS has verified of the peer's. `digests` is where the connection
    keeps the digest of its last Authorization header.
    """

    headers: dict[bytes, bytes]
    header_list: HeaderList
    query: bytes
    peer: str
    forwarded_address: str = ""
    trust: ProxyTrust = ProxyTrust.NONE
    certificate: ShownCertificate | None = None
    digests: dict[bytes, bytes] | None = None

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
    `real_user` is that one, whose login it was. `by_token`: who comes with a token, or without a
    login, gets no token that lives longer. `by_others`: the name is that of an issuer, KDC, certificate or proxy.
    `may_administer` is as in `rpc.call.Call`.
    """

    user: str
    address: str
    headers: HeaderList = ()
    groups: frozenset[str] = frozenset()
    real_user: str = ""
    by_token: bool = False
    by_others: bool = False
    may_administer: bool = True


class Authenticator(Protocol):
    """Finds who sends a request. Others than ours can be handed to the endpoint."""

    def remembered(self, head: RequestHead) -> Identity | None:
        """The caller, when that takes no time; None when `authenticate` has to find out. Runs for every request."""

    async def authenticate(self, head: RequestHead) -> Identity:
        """The caller. Raises Refused."""

    def close(self) -> None:
        """Give back threads."""


# Refusals of requests, and how those by limits are counted and logged.


# The bridge lets its clients repeat a change only when it knows that nothing has happened (clients §13).
NOT_TRIED: HeaderList = ((b"retry-after", b"1"), (b"x-call-outcome", b"not-tried"))
LOG_EVERY_SECONDS = 10.0

_log = structlog.get_logger("hms_gateway.limits")


class Refused(Exception):
    """The request is not served. `text` is safe to show and never says which half of a password was wrong.

    `limit` is the name of the limit that is in the way, if one is. `beginning` is the first part of the body when some
    of it was read already. `user` is as whom the sender tried to log in.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        headers: HeaderList = (),
        reason: str = "refused",
        limit: str = "",
        beginning: bytes | None = None,
        user: str = "",
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers
        self.reason = reason
        self.limit = limit
        self.beginning = beginning
        self.user = user


class ClientGone(Exception):
    """The connection was closed before the request was complete, or while the reply was sent."""


def overloaded(text: str, limit: str = "") -> Refused:
    """The answer when something of the server's is used up: nothing has happened, the client may try again soon."""
    return Refused(503, text, headers=NOT_TRIED, reason="overload", limit=limit)


class Refusals:
    """What limits refuse: one line for each limit is logged in LOG_EVERY_SECONDS, with the number of those left out.

    Used from the event loop's thread.
    """

    def __init__(self, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._next_line_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def note(self, limit: str, *, user: str = "", address: str = "") -> None:
        """One request or connection was refused or cut off because of `limit`, a name out of a few."""
        self._metrics.limited[limit] += 1
        now = self._monotonic()
        if now < self._next_line_at.get(limit, now):
            self._left_out[limit] = self._left_out.get(limit, 0) + 1
            return
        self._next_line_at[limit] = now + LOG_EVERY_SECONDS
        _log.warning("limit reached", limit=limit, user=user, address=address, left_out=self._left_out.pop(limit, 0))
