"""A quiet user's small calls, alone and beside a noisy user of another address: p50, p99 and how many times as long.

The quiet one makes a call that no cache answers on a connection of its own, and one on a new connection each time, with
a little pause between. Alone and beside are measured in turns. For comparison the same noise is made to a bare uvicorn
that answers the same calls without looking at them. `nice -n -15` keeps other work of the machine out of the figures.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

from benchmarks import noise as noisy
from benchmarks.http import Serving
from benchmarks.noise import LONG_LIST, ONE_TABLE, SCENARIOS, SMALL_CALL, ask, connected
from benchmarks.report import print_table
from benchmarks.server import fill
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME, KEY_NAME, server_context
from tests.support.server import PASSWORD, USER, GatewayServer

ADDRESS = "127.0.0.2"
SETTLING_SECONDS = 0.5
IDLE_PART, IDLE_LOOKS_MAX = 0.05, 60
PAUSE_SECONDS = 0.001
BARE_LIST_CHUNKS, BARE_LIST_CHUNK = 400, b" " * 65_536


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_200, help="in each situation")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-bare", action="store_true", help="leave the bare uvicorn out")
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}; all when none is named")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.scenario or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            rows += beside(name, Path(folder), arguments.calls, arguments.rounds, not arguments.no_bare)
    print_table(
        "A quiet user's small calls beside a noisy one (goal: p99 below 5 times that of alone)",
        ["the noisy one", "call", "alone: p50", "p99", "beside: p50", "p99", "p99 ratio", "failed", "memory, peak",
         "bare uvicorn: alone p99", "beside p99", "p99 ratio"],
        rows,
    )  # fmt: skip


def beside(name: str, folder: Path, calls: int, rounds: int, with_bare: bool) -> list[list[str]]:
    """One scenario against a server of its own."""
    fill(folder / "metastore.db", {"ten_thousand": 10_000})
    with GatewayServer(folder, settings={"log_level": "warning"}) as server:
        add_user(folder / "users", noisy.USER, noisy.PASSWORD)
        ours = in_turns(name, Serving(server.port, server.pid), calls, rounds)
        peak = peak_mib(server.pid)
    theirs = bare_in_turns(name, folder, calls, rounds) if with_bare else None
    return [
        [
            name,
            call,
            *cells(alone),
            *cells(loud),
            ratio(alone, loud),
            str(alone.failed + loud.failed),
            f"{peak} MiB",
            *([] if theirs is None else reference(*theirs[call])),
        ]
        for call, (alone, loud) in ours.items()
    ]


def bare_in_turns(name: str, folder: Path, calls: int, rounds: int) -> "Situations":
    with bare_server(folder) as serving:
        return in_turns(name, serving, calls, rounds)


class Measured:
    """The times of the calls in one situation."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.failed = 0

    def add(self, call: Callable[[int], Iterator[None]], port: int, count: int) -> None:
        goal = len(self.times) + count
        while len(self.times) < goal:
            try:
                calls = call(port)
                next(calls)
                while len(self.times) < goal:
                    time.sleep(PAUSE_SECONDS)
                    begin = perf_counter()
                    next(calls)
                    self.times.append(perf_counter() - begin)
            except (OSError, AssertionError):
                self.failed += 1
                assert self.failed < 1_000, "the calls fail"

    @property
    def p99(self) -> float:
        return sorted(self.times)[len(self.times) * 99 // 100]


Situations = dict[str, tuple[Measured, Measured]]


def in_turns(name: str, serving: Serving, calls: int, rounds: int) -> Situations:
    """Each kind of call, alone and beside the noise."""
    measured = {call: (Measured(), Measured()) for call in CALLS}
    for _ in range(rounds):
        wait_until_idle(serving)
        for call, (alone, _) in measured.items():
            alone.add(CALLS[call], serving.port, calls // rounds)
        with noise(name, serving.port):
            for call, (_, loud) in measured.items():
                loud.add(CALLS[call], serving.port, calls // rounds)
    return measured


def wait_until_idle(serving: Serving) -> None:
    """What the noise has left to do is done."""
    for _ in range(IDLE_LOOKS_MAX):
        before = serving.cpu_seconds()
        time.sleep(SETTLING_SECONDS)
        if serving.cpu_seconds() - before < IDLE_PART * SETTLING_SECONDS:
            return
    raise AssertionError("the server is busy although there is no noise")


def warm(port: int) -> Iterator[None]:
    """The first step makes the connection and checks the password, each further one calls."""
    with connected(port, ADDRESS) as connection:
        while True:
            ask(connection, USER, PASSWORD, SMALL_CALL)
            yield


def cached(port: int) -> Iterator[None]:
    """A call that the cache answers."""
    with connected(port, ADDRESS) as connection:
        while True:
            ask(connection, USER, PASSWORD, ONE_TABLE)
            yield


def fresh(port: int) -> Iterator[None]:
    while True:
        with connected(port, ADDRESS) as connection:
            ask(connection, USER, PASSWORD, SMALL_CALL)
        yield


CALLS = {"warm": warm, "get_table": cached, "new connection": fresh}


def cells(measured: Measured) -> list[str]:
    return [f"{statistics.median(measured.times) * 1000:.1f} ms", f"{measured.p99 * 1000:.1f} ms"]


def ratio(alone: Measured, loud: Measured) -> str:
    return f"{loud.p99 / alone.p99:.1f} ×"


def reference(alone: Measured, loud: Measured) -> list[str]:
    return [f"{alone.p99 * 1000:.1f} ms", f"{loud.p99 * 1000:.1f} ms", ratio(alone, loud)]


@contextlib.contextmanager
def noise(name: str, port: int) -> Iterator[None]:
    """The noisy one, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    has_begun = context.Event()
    process = context.Process(target=noisy.make_noise, args=(name, port, has_begun))
    process.start()
    try:
        assert has_begun.wait(60), "the noise has not begun"
        time.sleep(SETTLING_SECONDS)
        yield
        assert process.is_alive(), "the noise ended"
    finally:
        process.kill()
        process.join()


@contextlib.contextmanager
def bare_server(certificates: Path) -> Iterator[Serving]:
    """A bare uvicorn in a process of its own, with the gateway's certificate."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve_bare, args=(certificates, there))
    process.start()
    try:
        assert here.poll(60), "the bare server did not start"
        assert process.pid is not None
        yield Serving(here.recv(), process.pid)
    finally:
        process.kill()
        process.join()


def serve_bare(certificates: Path, started: Connection) -> None:
    import resource

    from benchmarks.bare import run_bare

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run_bare(bare_application, started, server_context(certificates / CERTIFICATE_NAME, certificates / KEY_NAME))


async def bare_application(scope, receive, send) -> None:
    """Reads the body and answers ok; a list as large as the gateway's to who asks for one."""
    body = b""
    while True:
        message = await receive()
        body = body or message.get("body", b"")
        if not message.get("more_body"):
            break
    is_list = body == LONG_LIST
    length = BARE_LIST_CHUNKS * len(BARE_LIST_CHUNK) if is_list else 2
    headers = [(b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if is_list:
        for _ in range(BARE_LIST_CHUNKS):
            await send({"type": "http.response.body", "body": BARE_LIST_CHUNK, "more_body": True})
            await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"" if is_list else b"ok"})


def peak_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
