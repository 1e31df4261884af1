"""Start to the first answer, and memory of a server that nobody has asked anything else."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.peer.caller import Address, Caller
from benchmarks.peer.sides import OURS, SQLITE, THEIRS, Bench, Side
from benchmarks.peer.usage import resident_bytes
from tests.support.server import GatewayServer, free_port

START_SECONDS_MAX = 120
SETTLE_SECONDS = 1.0
POLL_SECONDS = 0.02
SIDES = (THEIRS, OURS, SQLITE)


class Starts:
    """A second server over a database that has been used before. `idle_bytes` has one figure for each start."""

    def __init__(self) -> None:
        self.idle_bytes: dict[str, list[int]] = {}

    def steps(self, bench: Bench, side: Side, caller: Caller) -> Iterator[list[float]]:
        while True:
            begin = perf_counter()
            with _started(bench, side) as (pid, address):
                with Caller(address, side.speech) as first:
                    first.call("get_all_databases")
                    took = perf_counter() - begin
                time.sleep(SETTLE_SECONDS)  # until threads that start later have started
                self.idle_bytes.setdefault(side.name, []).append(resident_bytes([pid]))
            yield [took]


@contextlib.contextmanager
def _started(bench: Bench, side: Side) -> Iterator[tuple[int, Address]]:
    if side.name == THEIRS:
        with _another_java(side.servers[0], bench.folder) as (pid, port):
            yield pid, Address(port, False)
        return
    database = bench.database if side.name == OURS else None
    with GatewayServer(bench.folder / f"{side.name}-again", database=database) as server:
        yield server.pid, Address(server.port, True)


@contextlib.contextmanager
def _another_java(pid: int, folder: Path) -> Iterator[tuple[int, int]]:
    """The same command as that of the process `pid`, on another port."""
    process_folder = Path(f"/proc/{pid}")
    command = process_folder.joinpath("cmdline").read_bytes().decode().rstrip("\0").split("\0")
    port = free_port()
    command[command.index("HmsPeer") + 1 :] = [str(port)]
    with (folder / "theirs-again.log").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=process_folder / "cwd", stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        _wait_for(port, process)
        yield process.pid, port
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(int(START_SECONDS_MAX / POLL_SECONDS)):
        with contextlib.suppress(OSError):
            Address(port, False).connect().close()
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"java ended with {process.wait(POLL_SECONDS)}")
    raise RuntimeError("java did not start")
