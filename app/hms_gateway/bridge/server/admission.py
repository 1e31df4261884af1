"""Admission to a Thrift port without a password: by default the processes of the account that runs it.

sock_diag(7) of Linux names the account of the socket at the other end of a connection, by addresses and ports.
"""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
import structlog

from hms_gateway.bridge.thrift.sasl import Mechanism, SaslPolicy
from hms_gateway.runtime.addresses import Networks, is_loopback
from hms_gateway.runtime.door import ShownCertificate

_SOCK_DIAG: Final = 4  # the netlink protocol
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_ANY_STATE = _NO_COOKIE = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_OPTIONS: Final = struct.Struct("=BBBxI")
_SOCKET_ID: Final = struct.Struct("!2s2s16s16s4x")
_COOKIE: Final = struct.Struct("=II")
# Family, state, (timer, retransmissions,) ports and addresses, (interface, cookie, expiry, both queues,) owner, inode.
_ANSWER: Final = struct.Struct("=BBxx2s2s16s16s24xII")
# ESTABLISHED, FIN_WAIT1, FIN_WAIT2: the other end of a connection that was accepted. A listener on the same port or a
# connection that has yet to be made is another socket.
_CONNECTED_STATES: Final = frozenset((1, 4, 5))
_IPV4_IN_IPV6: Final = b"\0" * 10 + b"\xff\xff"
# One line for the connections that are refused within so many seconds.
LOG_EVERY_SECONDS = 10.0

_WAYS_IN = (
    "run the client under the account of this process, let clients log in (thrift_sasl, with the bridge --sasl), "
    "or let every account of this machine in (thrift_networks, with the bridge --open)"
)
_log = structlog.get_logger("hms_gateway.bridge")


class Ends(NamedTuple):
    """The two ends of a connection: addresses and ports."""

    client: tuple[str, int]
    server: tuple[str, int]


class ListenerTls(msgspec.Struct, frozen=True):
    """TLS of a Thrift port. `certificate_of` reads the certificate of a connection, None where it proves nothing;
    `objection` is `CertificateValidity.objection`. With `requires_certificate` no handshake ends without one.
    """

    context: ssl.SSLContext
    certificate_of: Callable[[asyncio.BaseTransport], ShownCertificate | None]
    objection: Callable[[ShownCertificate], str]
    requires_certificate: bool = False


class BridgeOptions(msgspec.Struct, frozen=True):
    """Address, login and bounds of a Thrift port. A client without SASL acts with the bridge's password.

    `allows_remote` says that other machines may reach the port, `is_open` that every account of this one may use it.
    `networks` are those whose clients come without a login.
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
    tls: ListenerTls | None = None
    handshake_seconds_max: float = 20.0
    """Time for a connection's first byte and for the end of its handshake, with TLS."""
    networks: Networks = Networks(())
    names_are_logins: bool = True
    """Clients of `networks` are who they say in set_ugi; without it they are one user, whatever they say."""

    @property
    def lets_in(self) -> Literal["logins", "networks", "network", "machine", "account"]:
        """The possible callers: those with a login, of some networks and this account, all on the network, of this
        machine, or of this account."""
        if self.sasl == "require" or (self.tls is not None and self.tls.requires_certificate):
            return "logins"
        if self.networks:
            return "networks"
        if not is_loopback(self.host):
            return "network"
        return "machine" if self.is_open else "account"


class Admission:
    """Decides about each connection that was accepted. Used on the event loop only."""

    def __init__(
        self,
        options: BridgeOptions,
        find: Callable[[], "PeerAccounts | None"] | None = None,
        own_account: Callable[[], int] = os.geteuid,
    ) -> None:
        self._sasl = options.sasl
        self.networks = options.networks
        self._checks = options.lets_in in ("account", "networks")
        self._needs_login = options.lets_in == "logins"
        self._find = find or find_accounts
        self._own_account = own_account
        self._accounts: PeerAccounts | None = None
        self.refusals = ConnectionRefusals(options.networks)

    def start(self) -> None:
        """Find out if accounts are known here. If they are not, only clients that log in are let in."""
        if self._checks:
            self._accounts = self._find()
            if self._accounts is None:
                _log.warning("sock_diag names no account here: clients without SASL are refused", hint=_WAYS_IN)

    def stop(self) -> None:
        """Close what was opened."""
        if self._accounts is not None:
            self._accounts.close()

    def policy_for(self, ends: Ends | None, *, has_logged_in: bool = False) -> SaslPolicy | None:
        """The login that the client of a connection needs, besides that of its certificate; None to refuse it."""
        if has_logged_in:
            return "off" if self._sasl == "off" else "allow"
        if self._needs_login:
            if self._sasl == "off":
                self.refusals.write("connection refused: its certificate names no user", _shown(ends))
                return None
            return "require"
        if not self._checks or (ends is not None and self.networks.contain(ends.client[0])):
            return self._sasl
        owner = None if ends is None or self._accounts is None else self._accounts.owner(ends)
        if owner is not None and owner == self._own_account():
            return self._sasl
        if self._sasl != "off":
            return "require"
        self.refusals.log(ends, owner)
        return None


class PeerAccounts:
    """Asks the kernel for the accounts of sockets."""

    def __init__(self) -> None:
        """Raises OSError where the kernel has no sock_diag."""
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        self._socket = socket.socket(socket.AF_NETLINK, kind, _SOCK_DIAG)
        self._number = 0

    def owner(self, ends: Ends) -> int | None:
        """The account whose process holds the client's end; None if none is known."""
        client, server = _packed(ends.client), _packed(ends.server)
        self._number = (self._number + 1) & 0xFFFFFFFF
        try:
            self._socket.send(_request(self._number, client, server))
            # The kernel has answered by the time that it has taken the question.
            while True:
                answer = self._socket.recv(4096)
                length, kind, _, number, _ = _HEADER.unpack_from(answer)
                if number == self._number:
                    break
        except OSError:
            return None
        if kind != _SOCK_DIAG_BY_FAMILY or length < _HEADER.size + _ANSWER.size:
            return None
        return _owner_in(answer, client, server)

    def close(self) -> None:
        """Close the socket of the questions."""
        self._socket.close()


def find_accounts() -> PeerAccounts | None:
    """Accounts by sock_diag, shown to work by a connection of this process; None where it does not."""
    if sys.platform != "linux" or _shares_overflow_account():
        return None
    with contextlib.suppress(OSError), _own_connection() as ends:
        accounts = PeerAccounts()
        if accounts.owner(ends) == os.geteuid():
            return accounts
        accounts.close()
    return None


@contextlib.contextmanager
def _own_connection() -> Iterator[Ends]:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=1) as listener,
        socket.create_connection(listener.getsockname(), timeout=5) as client,
    ):
        yield Ends(client.getsockname(), client.getpeername())


def _shares_overflow_account() -> bool:
    """In a user namespace all accounts of outside look like one, the overflow account: is it this process's own?"""
    try:
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
        mapped = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return os.geteuid() == overflow and mapped != ["0", "0", str(2**32 - 1)]


def _request(number: int, client: bytes, server: bytes) -> bytes:
    family = socket.AF_INET if len(client) == 6 else socket.AF_INET6
    body = _OPTIONS.pack(family, socket.IPPROTO_TCP, 0, _ANY_STATE)
    body += _SOCKET_ID.pack(client[-2:], server[-2:], client[:-2], server[:-2]) + _COOKIE.pack(_NO_COOKIE, _NO_COOKIE)
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, number, 0) + body


def _owner_in(answer: bytes, client: bytes, server: bytes) -> int | None:
    fields = _ANSWER.unpack_from(answer, _HEADER.size)
    family, state, client_port, server_port, client_host, server_host, owner, inode = fields
    found = _shortened(client_host, family) + client_port, _shortened(server_host, family) + server_port
    # No inode: the process has closed it, and the kernel names account 0 for such sockets.
    is_held = state in _CONNECTED_STATES and inode != 0
    return int(owner) if is_held and found == (client, server) else None


def _packed(address: tuple[str, int]) -> bytes:
    """Host and port in network order. An IPv4 address within IPv6 is the IPv4 address."""
    host, port = address
    if ":" not in host:
        return socket.inet_pton(socket.AF_INET, host) + port.to_bytes(2, "big")
    packed = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    return _shortened(packed, socket.AF_INET6) + port.to_bytes(2, "big")


def _shortened(host: bytes, family: int) -> bytes:
    if family == socket.AF_INET:
        return host[:4]
    return host[12:] if host.startswith(_IPV4_IN_IPV6) else host


class ConnectionRefusals:
    """Writes the first one of a kind in a while, with the number of those before it that were not written.

    Clients whose account is not known are a kind of their own: a probe that only connects is not worth a warning.
    """

    def __init__(self, networks: Networks = Networks(()), seconds: Callable[[], float] = time.monotonic) -> None:
        self._networks = networks
        self._seconds = seconds
        # By the text, which is the kind.
        self._next: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def log(self, ends: Ends | None, owner: int | None) -> None:
        """The connection has no login, and its client runs under the account `owner`."""
        address = _shown(ends)
        if self._networks:
            text = "connection refused: its address is in none of thrift_networks"
            self.write(text, address, account=owner, hint=_WAYS_IN)
        elif owner is not None:
            self.write("connection refused: it comes from another account", address, account=owner, hint=_WAYS_IN)
        else:
            text = "connection refused: its account is unknown, or the client closed it at once"
            self.write(text, address, level=logging.INFO, hint=_WAYS_IN)

    def write(self, text: str, address: str, *, level: int = logging.WARNING, **said: object) -> None:
        """Log the text, unless it was in the last LOG_EVERY_SECONDS."""
        now = self._seconds()
        if now < self._next.get(text, now):
            self._left_out[text] += 1
            return
        _log.log(level, text, address=address, left_out=self._left_out.get(text, 0), **said)
        self._next[text], self._left_out[text] = now + LOG_EVERY_SECONDS, 0


def _shown(ends: Ends | None) -> str:
    return "" if ends is None else f"{ends.client[0]}:{ends.client[1]}"
