"""A quiet user's small calls, alone and beside a noisy user of another address: p50, p99 and how many times as long.

The quiet one makes a call that no cache answers on a connection of its own, and one on a new connection each time."""

import argparse
import contextlib
import multiprocessing
import resource
import socket
import ssl
import statistics
import tempfile
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from time import perf_counter

from app.gateway.users import add_user
from benchmarks.report import print_table
from benchmarks.server import fill
from tests.server import API_PATH, PASSWORD, USER, GatewayServer, trusting

MIB = 1 << 20
QUIET_ADDRESS, NOISY_ADDRESS = "127.0.0.2", "127.0.0.3"
NOISY = ("noisy", "makes a lot of noise")
QUIET_CALL = b'[1,"get_open_txns",1,1,{}]'
LONG_LIST = b'[1,"get_partitions",1,1,{"1":{"str":"sales"},"2":{"str":"ten_thousand"},"3":{"i16":-1}}]'
LONG_PATTERN = b'[1,"get_tables",1,2,{"1":{"str":"sales"},"2":{"str":"%s"}}]'
SETTLING_SECONDS = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}; all when none is named")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.scenario or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            rows += beside(name, Path(folder), arguments.seconds)
    print_table(
        "A quiet user's small calls beside a noisy one (goal: p99 below 5 times that of alone)",
        ["the noisy one", "call", "alone: p50", "p99", "beside: p50", "p99", "p99 ratio", "failed", "memory, peak"],
        rows,
    )


def beside(name: str, folder: Path, seconds: float) -> list[list[str]]:
    """One scenario against a server of its own."""
    fill(folder / "metastore.db", {"ten_thousand": 10_000})
    with GatewayServer(folder, settings={"access_log": False}) as server:
        add_user(folder / "users", *NOISY)
        alone = [measured(call, server.port, seconds) for call in CALLS.values()]
        with noise(name, server.port):
            noisy = [measured(call, server.port, seconds) for call in CALLS.values()]
        peak = peak_mib(server.pid)
    return [
        [name, call, *cells(quiet), *cells(loud), f"{p99(loud[0]) / p99(quiet[0]):.1f} ×", str(loud[1]), f"{peak} MiB"]
        for call, quiet, loud in zip(CALLS, alone, noisy, strict=True)
    ]


Measured = tuple[list[float], int]


def measured(call: Callable[[int], Iterator[None]], port: int, seconds: float) -> Measured:
    """Times of the calls, and how many failed."""
    times: list[float] = []
    failed = 0
    end = perf_counter() + seconds
    while perf_counter() < end:
        try:
            calls = call(port)
            next(calls)
            while perf_counter() < end:
                begin = perf_counter()
                next(calls)
                times.append(perf_counter() - begin)
        except (OSError, AssertionError):
            failed += 1
    assert times, "no call was answered"
    return times, failed


def warm(port: int) -> Iterator[None]:
    """The first step makes the connection and checks the password, each further one calls."""
    with connected(port, QUIET_ADDRESS) as connection:
        while True:
            ask(connection, USER, PASSWORD, QUIET_CALL)
            yield


def fresh(port: int) -> Iterator[None]:
    while True:
        with connected(port, QUIET_ADDRESS) as connection:
            ask(connection, USER, PASSWORD, QUIET_CALL)
        yield


CALLS = {"warm": warm, "new connection": fresh}


def cells(measured: Measured) -> list[str]:
    return [f"{statistics.median(measured[0]) * 1000:.1f} ms", f"{p99(measured[0]) * 1000:.1f} ms"]


def p99(times: list[float] | Measured) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


@contextlib.contextmanager
def noise(name: str, port: int) -> Iterator[None]:
    """The noisy one, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    has_begun = context.Event()
    process = context.Process(target=make_noise, args=(name, port, has_begun))
    process.start()
    try:
        assert has_begun.wait(60), "the noise has not begun"
        time.sleep(SETTLING_SECONDS)
        yield
        assert process.is_alive(), "the noise ended"
    finally:
        process.kill()
        process.join()


def make_noise(name: str, port: int, has_begun: Event) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections, one = SCENARIOS[name]
    threads = [threading.Thread(target=again_and_again, args=(one, port)) for _ in range(connections)]
    bomb()
    for thread in threads:
        thread.start()
    has_begun.set()


def again_and_again(one: Callable[[int], None], port: int) -> None:
    while True:
        try:
            one(port)
        except (OSError, AssertionError):
            time.sleep(0.01)


def long_patterns(port: int) -> None:
    with connected(port, NOISY_ADDRESS) as connection:
        while True:
            # Another one each time, which no cache knows.
            ask(connection, *NOISY, LONG_PATTERN % (b"a*b" * 20_000 + str(perf_counter()).encode()))


def gzip_bombs(port: int) -> None:
    with connected(port, NOISY_ADDRESS) as connection:
        while True:
            ask(connection, *NOISY, bomb(), "Content-Encoding: gzip", any_status=True)


def silent_sockets(port: int) -> None:
    sockets = []
    for _ in range(3_000):
        silent = socket.create_connection(("127.0.0.1", port), source_address=(NOISY_ADDRESS, 0))
        silent.setblocking(False)
        sockets.append(silent)
    while True:
        for number, silent in enumerate(sockets):
            with contextlib.suppress(BlockingIOError):
                if silent.recv(1) == b"":
                    silent.close()
                    sockets[number] = socket.create_connection(("127.0.0.1", port), source_address=(NOISY_ADDRESS, 0))
                    sockets[number].setblocking(False)
        time.sleep(0.1)


def wrong_passwords(port: int) -> None:
    with connected(port, NOISY_ADDRESS) as connection:
        while True:
            ask(connection, f"name{perf_counter()}", "wrong", QUIET_CALL, any_status=True)


def slow_readers(port: int) -> None:
    with connected(port, NOISY_ADDRESS) as connection:
        connection.sendall(request(*NOISY, LONG_LIST))
        while connection.recv(1_024):
            time.sleep(0.5)


def half_uploads(port: int) -> None:
    with connected(port, NOISY_ADDRESS) as connection:
        connection.sendall(request(*NOISY, b"[" + b" " * 31 * MIB, length=32 * MIB))
        while connection.recv(65_536):
            pass


def big_listings(port: int) -> None:
    with connected(port, NOISY_ADDRESS) as connection:
        connection.sendall(request(*NOISY, LONG_LIST, "Connection: close"))
        while connection.recv(MIB):
            pass


SCENARIOS = {
    "long patterns": (40, long_patterns),
    "gzip bombs": (8, gzip_bombs),
    "silent sockets": (1, silent_sockets),
    "wrong passwords": (50, wrong_passwords),
    "slow readers": (30, slow_readers),
    "half uploads": (40, half_uploads),
    "big listings": (8, big_listings),
}


def bomb(made: list[bytes] = []) -> bytes:  # noqa: B006 - made once
    if not made:
        compressor = zlib.compressobj(9, wbits=31)
        pieces = [compressor.compress(b" " * MIB) for _ in range(255)]
        made.append(b"".join(pieces) + compressor.flush())
    return made[0]


@contextlib.contextmanager
def connected(port: int, address: str) -> Iterator[ssl.SSLSocket]:
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
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    assert length, "a reply without a length"
    while len(rest) < int(length):
        rest += received(connection)


def received(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(65_536)
    if not data:
        raise ConnectionError("closed")
    return data


def peak_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
