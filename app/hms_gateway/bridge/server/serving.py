"""What a server and the connections it serves know of each other."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import msgspec

from hms_gateway.bridge.relays.relay import Relay
from hms_gateway.bridge.server.peer_accounts import Ends
from hms_gateway.bridge.thrift.exchanges import Mechanism
from hms_gateway.bridge.thrift.sasl import SaslPolicy
from hms_gateway.rpc.wire import Codecs
from hms_gateway.runtime.addresses import is_loopback
from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Counted


class BridgeOptions(msgspec.Struct, frozen=True):
    """How to listen. A client that is let in without SASL acts with the bridge's password.

    `allows_remote` says that other machines may reach the port, `is_open` that every account of this one may use it.
    """

    host: str = "127.0.0.1"
    port: int = 9083
    allows_remote: bool = False
    sasl: SaslPolicy = "off"
    write_stall_seconds_max: float = 60.0
    shares_port: bool = False
    """Several processes listen on the same port, and the system shares the connections out among them."""
    is_open: bool = False
    mechanisms: Mapping[str, Mechanism] = {}
    """By their names, how clients may log in besides PLAIN."""

    @property
    def lets_in(self) -> Literal["passwords", "network", "machine", "account"]:
        """Who may call: who has a password, who reaches the port, this machine's accounts, or this process's own."""
        if self.sasl == "require":
            return "passwords"
        if not is_loopback(self.host):
            return "network"
        return "machine" if self.is_open else "account"


class Meter(Protocol):
    """Counts what happens; `BridgeMetrics` in the bridge."""

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None: ...

    def call(self, method: str, outcome: str, seconds: float, bytes_in: int, bytes_out: int) -> None: ...

    def refused(self, reason: str, *, user: str = "", address: str = "") -> None: ...


class CallRecords(Protocol):
    """Takes a record of every call; `CallLog` in the bridge."""

    def write(self, record: CallRecord) -> None: ...


class LoginPolicies(Protocol):
    """Decides how a client has to log in; `Admission`."""

    def policy_for(self, ends: Ends | None) -> "SaslPolicy | asyncio.Future[SaslPolicy | None] | None":
        """The policy for one connection, None to refuse it."""


class ServedConnection(Counted, Protocol):
    """A connection, as its server sees it."""

    def drain(self) -> None:
        """Close between two calls."""


class Serving(Protocol):
    """The server, as its connections see it."""

    relay: Relay
    options: BridgeOptions
    limits: Limits
    codecs: Codecs
    metrics: Meter
    call_log: CallRecords | None

    @property
    def admission(self) -> LoginPolicies: ...

    def welcome(self, connection: ServedConnection, host: str) -> bool:
        """Whether one more may stay, which comes from `host`."""

    def claim(self, connection: ServedConnection, user: str) -> Bound | None:
        """Count the connection as that of a user who has logged in; the bound that is in the way."""

    def keep(self, connection: ServedConnection, size: int, user: str, host: str) -> Bound | None:
        """Keep `size` bytes of a message of the user's that has not all arrived; the bound that is in the way."""

    def goodbye(self, connection: ServedConnection) -> None:
        """It has gone."""
