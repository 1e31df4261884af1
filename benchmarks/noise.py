"""What a noisy user does to a server, in a process that gets a processor only when server and quiet user leave one.

All it sends and takes goes through a link of LINK_BYTES_PER_SECOND, and it connects CONNECTIONS_PER_SECOND times: about
what one client on another machine can do. Without these bounds the quiet user would wait for the load generator.
"""

import contextlib
import os
import resource
import socket
import ssl
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event

from tests.support.server import API_PATH, trusting

MIB = 1 << 20
LINK_BYTES_PER_SECOND = 125_000_000
CONNECTIONS_PER_SECOND = 1_000
SILENT_SOCKETS = 3_000
SENT_AT_ONCE_BYTES = 64 * 1024
NICENESS = 10
ADDRESS = "127.0.0.3"
USER, PASSWORD = "noisy", "makes a lot of noise"
SMALL_CALL = b'[1,"get_open_txns",1,1,{}]'
ONE_TABLE = b'[1,"get_table",1,1,{"1":{"str":"sales"},"2":{"str":"ten_thousand"}}]'
LONG_LIST = b'[1,"get_partitions",1,1,{"1":{"str":"sales"},"2":{"str":"ten_thousand"},"3":{"i16":-1}}]'
# No text of JSON ends so, since a line end in it is escaped.
LAST_CHUNK = b"\r\n0\r\n\r\n"
LONG_PATTERN = b'[1,"get_tables",1,2,{"1":{"str":"sales"},"2":{"str":"%s"}}]'


class Pace:
    """Lets so many pass in a second, one caller after the other."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._next_at = 0.0

    def wait(self, amount: int) -> None:
        with self._lock:
            begin = max(self._next_at, time.monotonic())
            self._next_at = begin + amount / self._per_second
        time.sleep(max(0.0, begin - time.monotonic()))


LINK = Pace(LINK_BYTES_PER_SECOND)
CONNECTING = Pace(CONNECTIONS_PER_SECOND)


def make_noise(name: str, port: int, has_begun: Event) -> None:
    """The body of the process."""
    # Whatever server and quiet user run as.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections, one = SCENARIOS[name]
    threads = [threading.Thread(target=again_and_again, args=(one, port)) for _ in range(connections)]
    bomb()
    for thread in threads:
        thread.start()
    if one is not silent_sockets:
        has_begun.set()
    else:
        ALL_SILENT.wait()
        has_begun.set()


ALL_SILENT = threading.Event()


def again_and_again(one: Callable[[int], None], port: int) -> None:
    while True:
        try:
            one(port)
        except (OSError, AssertionError):
            time.sleep(0.01)


def long_patterns(port: int) -> None:
    with connected(port, ADDRESS) as connection:
        while True:
            # Another one each time, which no cache knows.
            body = LONG_PATTERN % (b"a*b" * 20_000 + str(time.perf_counter()).encode())
            LINK.wait(len(body))
            ask(connection, USER, PASSWORD, body)


def gzip_bombs(port: int) -> None:
    with connected(port, ADDRESS) as connection:
        while True:
            LINK.wait(len(bomb()))
            ask(connection, USER, PASSWORD, bomb(), "Content-Encoding: gzip", any_status=True)


def silent_sockets(port: int) -> None:
    """Each is replaced when it is closed."""
    sockets = [silent_socket(port) for _ in range(SILENT_SOCKETS)]
    ALL_SILENT.set()
    while True:
        for number, silent in enumerate(sockets):
            with contextlib.suppress(BlockingIOError, ConnectionResetError):
                if silent.recv(1):
                    continue
                silent.close()
                sockets[number] = silent_socket(port)
        time.sleep(0.01)


def silent_socket(port: int) -> socket.socket:
    CONNECTING.wait(1)
    made = socket.create_connection(("127.0.0.1", port), source_address=(ADDRESS, 0))
    made.setblocking(False)
    return made


def wrong_passwords(port: int) -> None:
    with connected(port, ADDRESS) as connection:
        while True:
            ask(connection, f"name{time.perf_counter()}", "wrong", SMALL_CALL, any_status=True)


def slow_readers(port: int) -> None:
    with connected(port, ADDRESS) as connection:
        connection.sendall(request(USER, PASSWORD, LONG_LIST))
        while connection.recv(1_024):
            time.sleep(0.5)


def half_uploads(port: int) -> None:
    with connected(port, ADDRESS) as connection:
        connection.sendall(request(USER, PASSWORD, b"[", length=32 * MIB))
        for _ in range(31 * MIB // SENT_AT_ONCE_BYTES):
            LINK.wait(SENT_AT_ONCE_BYTES)
            connection.sendall(b" " * SENT_AT_ONCE_BYTES)
        while connection.recv(65_536):
            pass


def big_listings(port: int) -> None:
    with connected(port, ADDRESS) as connection:
        connection.sendall(request(USER, PASSWORD, LONG_LIST, "Connection: close"))
        while received := connection.recv(SENT_AT_ONCE_BYTES):
            LINK.wait(len(received))


def large_reads(port: int) -> None:
    """A greedy user: again on the same connection, as fast as replies come, and after a refusal when it says so."""
    with connected(port, ADDRESS) as connection:
        while True:
            connection.sendall(request(USER, PASSWORD, LONG_LIST))
            wait = read_reply(connection)
            time.sleep(wait)


def read_reply(connection: ssl.SSLSocket) -> float:
    """Take a reply of any length off the connection; the seconds after which a refused call may come again."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, rest = data.partition(b"\r\n\r\n")
    if length := field(head, b"content-length"):
        left = int(length) - len(rest)
        while left > 0:
            left -= len(received(connection))
    else:
        while not rest.endswith(LAST_CHUNK):
            more = received(connection)
            LINK.wait(len(more))
            rest = rest[-len(LAST_CHUNK) :] + more
    return float(field(head, b"retry-after") or 0)


def field(head: bytes, name: bytes) -> bytes:
    return head.lower().partition(b"\r\n%b: " % name)[2].partition(b"\r\n")[0]


SCENARIOS = {
    "long patterns": (40, long_patterns),
    "gzip bombs": (8, gzip_bombs),
    "silent sockets": (1, silent_sockets),
    "wrong passwords": (50, wrong_passwords),
    "slow readers": (30, slow_readers),
    "half uploads": (40, half_uploads),
    "big listings": (8, big_listings),
    "large reads": (100, large_reads),
}


def bomb(made: list[bytes] = []) -> bytes:  # noqa: B006 - made once
    if not made:
        compressor = zlib.compressobj(9, wbits=31)
        pieces = [compressor.compress(b" " * MIB) for _ in range(255)]
        made.append(b"".join(pieces) + compressor.flush())
    return made[0]


@contextlib.contextmanager
def connected(port: int, address: str) -> Iterator[ssl.SSLSocket]:
    if address == ADDRESS:
        CONNECTING.wait(1)
    plain = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(address, 0))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with plain, trusting().wrap_socket(plain) as connection:
        yield connection


def request(user: str, password: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    token = b64encode(f"{user}:{password}".encode()).decode()
    lines = [
        f"POST {API_PATH} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Basic {token}",
        f"Content-Length: {len(body) if length is None else length}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def ask(
    connection: ssl.SSLSocket, user: str, password: str, body: bytes, *headers: str, any_status: bool = False
) -> None:
    """One call. Raises AssertionError for another status than 200, OSError for a closed connection."""
    connection.sendall(request(user, password, body, *headers))
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, rest = data.partition(b"\r\n\r\n")
    assert any_status or head.startswith(b"HTTP/1.1 200"), head
    length = field(head, b"content-length")
    assert length, "a reply without a length"
    while len(rest) < int(length):
        rest += received(connection)


def received(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(65_536)
    if not data:
        raise ConnectionError("closed")
    return data
