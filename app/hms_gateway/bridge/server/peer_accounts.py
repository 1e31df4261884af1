"""Which account of this machine is at the other end of a connection, as Linux knows it.

The socket at that end is looked up by its addresses and ports: by sock_diag(7), which takes microseconds however many
sockets there are, or else in /proc/net/tcp and tcp6, which takes long and has to be read in a thread.
"""

import contextlib
import os
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

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
# While sockets come and go, reading all of them can miss one.
_READINGS: Final = 3

Address = tuple[str, int]


class Ends(NamedTuple):
    """The two ends of a connection: addresses and ports."""

    client: Address
    server: Address


class NetlinkAccounts:
    """Asks the kernel about single sockets."""

    def __init__(self) -> None:
        """Raises OSError where the kernel has no sock_diag."""
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        self._socket = socket.socket(socket.AF_NETLINK, kind, _SOCK_DIAG)
        self._number = 0

    def owner(self, ends: Ends) -> int | None:
        """The account whose process holds the client's end; None where none is known to."""
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
        self._socket.close()


class ProcAccounts:
    """Reads the list of all sockets."""

    def __init__(self, folder: Path = Path("/proc/net")) -> None:
        self._files = (folder / "tcp", folder / "tcp6")

    def owners(self, asked: Sequence[Ends]) -> list[int | None]:
        """As `NetlinkAccounts.owner`, for many connections by one reading."""
        found: dict[Ends, int] = {}
        for _ in range(_READINGS):
            lists = [_content(file) for file in self._files]
            for ends in asked:
                owner = _owner_listed(lists, ends) if ends not in found else None
                if owner is not None:
                    found[ends] = owner
            if len(found) == len(set(asked)):
                break
        return [found.get(ends) for ends in asked]

    def owner(self, ends: Ends) -> int | None:
        return self.owners([ends])[0]

    def close(self) -> None:
        """Nothing is kept open."""


Accounts = NetlinkAccounts | ProcAccounts


def find_accounts() -> Accounts | None:
    """A way of asking that works here, shown by a connection of this process; None where there is none."""
    if sys.platform != "linux" or _shares_overflow_account():
        return None
    with contextlib.suppress(OSError), _own_connection() as ends:
        with contextlib.suppress(OSError):
            accounts = NetlinkAccounts()
            if accounts.owner(ends) == os.geteuid():
                return accounts
            accounts.close()
        if ProcAccounts().owner(ends) == os.geteuid():
            return ProcAccounts()
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


def _packed(address: Address) -> bytes:
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


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _owner_listed(lists: Sequence[bytes], ends: Ends) -> int | None:
    client, server = _packed(ends.client), _packed(ends.server)
    for is_long in (False, True):
        wanted = b" %b %b " % (_listed(client, is_long=is_long), _listed(server, is_long=is_long))
        for content in lists:
            begin = content.find(wanted)
            if begin >= 0:
                return _owner_on(content[begin : content.find(b"\n", begin)])
    return None


def _listed(packed: bytes, *, is_long: bool) -> bytes:
    """As the lists write it: words of the host in the machine's own order. A socket for IPv6 has the long form."""
    host = packed[:-2]
    if is_long and len(host) == 4:
        host = _IPV4_IN_IPV6 + host
    words = (int.from_bytes(host[begin : begin + 4], sys.byteorder) for begin in range(0, len(host), 4))
    return ("".join(f"{word:08X}" for word in words) + f":{int.from_bytes(packed[-2:], 'big'):04X}").encode()


def _owner_on(line: bytes) -> int | None:
    """Of a line from its addresses on; then come state, queues, timer, retransmissions, owner, timeout and inode."""
    fields = line.split()
    if len(fields) < 9 or int(fields[2], 16) not in _CONNECTED_STATES or int(fields[8]) == 0:
        return None
    return int(fields[6])
