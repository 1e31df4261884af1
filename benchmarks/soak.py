"""A gateway at work while everything around it breaks: `make soak HOURS=1`, or `python -m benchmarks soak --hours 1`.

Clients at every door create, change, read and lock, on SQLite and on a private PostgreSQL that two gateways share. One
fault comes after the other. Exits with 1 where an answer was wrong or did not come in a minute, an acknowledged change
was lost, or, after ten minutes or more, a gateway that lived through it has 10 % more memory than after its first five.
"""

import argparse
import contextlib
import itertools
import logging
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport

from benchmarks.peer.usage import resident_bytes
from benchmarks.report import print_table
from benchmarks.soak_clients import Door, Holders, LockHolder, NoAnswer, Reader, Worker, Writer
from benchmarks.soak_rest import RestClient
from hms_gateway import MetastoreClient
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.storage.migrations.revisions import migrate
from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.support.apache import ApacheBinary, ApacheCompact
from tests.support.gateway_command import CLOCK
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_postgres import PrivatePostgres
from tests.support.sasl_client import PlainTransport
from tests.support.server import GatewayServer, basic, free_port, trusting

FAULT_SECONDS = 3.0
REST_SECONDS = 6.0
CALL_SECONDS_MAX = 60.0
WARM_SECONDS = 300.0
MEMORY_COUNTS_FROM_SECONDS = 600.0
GROWTH_MAX = 0.1
MIB = 1 << 20
# A lock lives for a minute, less what a clock is ahead, less what a call may have been on its way.
TXN_TIMEOUT_SECONDS = 60
JUMP_SECONDS = 10
SURE_SECONDS = TXN_TIMEOUT_SECONDS - JUMP_SECONDS - 20
SETTINGS = {"log_level": "warning", "txn_timeout_seconds": TXN_TIMEOUT_SECONDS}


class Servers(NamedTuple):
    """`alone` has SQLite; `steady` and `mortal` share PostgreSQL, and the bridge calls the mortal one."""

    alone: GatewayServer
    steady: GatewayServer
    mortal: GatewayServer
    bridge: BridgeProcess
    postgres: PrivatePostgres
    clock: Path
    thrift_ports: dict[str, int]

    @property
    def survivors(self) -> dict[str, GatewayServer]:
        return {"SQLite": self.alone, "PostgreSQL": self.steady}

    def memory(self) -> dict[str, int]:
        return {name: resident_bytes([server.pid]) for name, server in self.survivors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="0.05 has each fault at least once")
    seconds = parser.parse_args().hours * 3600
    # Apache's client logs each connection that it does not get.
    logging.getLogger("thrift").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        servers = stack.enter_context(_running(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        wrong = soaked(servers, seconds)
        for text in wrong:
            print(f"WRONG: {text}")
        if wrong:
            for name in ("alone", "steady", "mortal"):
                print(f"\nThe log of the gateway {name!r}:\n{getattr(servers, name).log_text()}")
    sys.exit(bool(wrong))


def soaked(servers: Servers, seconds: float) -> list[str]:
    """What was wrong; the report is printed."""
    stop, wrong = threading.Event(), list[str]()
    workers = _workers(servers, stop, wrong)
    for worker in workers:
        worker.start()
    faults, warm = _break_for(servers, seconds)
    stop.set()
    for worker in workers:
        worker.join(PATIENCE_SECONDS)
        if worker.is_alive():
            wrong.append(f"{worker.name}: a call did not end")
        seconds_of_call, method = worker.longest
        if seconds_of_call >= CALL_SECONDS_MAX:
            wrong.append(f"{worker.name}: {method} had no answer for {seconds_of_call:.0f} s")
    end = servers.memory()
    checked = _check_what_is_left(servers, workers, wrong)
    _report(seconds, workers, faults, warm, end, checked)
    if seconds >= MEMORY_COUNTS_FROM_SECONDS:
        grown = [name for name in end if end[name] > warm[name] * (1 + GROWTH_MAX)]
        wrong += [f"the gateway on {name} has grown by more than {GROWTH_MAX:.0%}" for name in grown]
    return wrong


@contextmanager
def _running(folder: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        # It is stopped without a chance to write what it has acknowledged; the machine goes on.
        postgres = PrivatePostgres(synchronous_commit="on")
        stack.callback(postgres.delete)
        postgres.start()
        migrate(postgres.url())
        clock = folder / "clock"
        clock.write_text("0")
        ports = {name: free_port() for name in ("alone", "steady")}

        def gateway(name: str, database: str | None = None, **settings: object) -> GatewayServer:
            environment = {CLOCK: str(clock)} if name == "mortal" else {}
            given = {**SETTINGS, **settings}
            server = GatewayServer(folder / name, database=database, settings=given, environment=environment)
            return stack.enter_context(server)

        alone = gateway("alone", thrift_port=ports["alone"], thrift_sasl="allow")
        shared = {"database": postgres.url(), "warehouse_dir": str(folder / "warehouse")}
        steady = gateway("steady", **shared, thrift_port=ports["steady"], thrift_sasl="allow", thrift_tls=True)
        mortal = gateway("mortal", **shared)
        certificate = str(mortal.data_dir / "certificate.pem")
        bridge = stack.enter_context(BridgeProcess(mortal, "--cacert", certificate, "--patience", "60"))
        yield Servers(alone, steady, mortal, bridge, postgres, clock, ports)


# Doors


def _doors(servers: Servers) -> dict[str, Sequence[Door]]:
    """By catalog, which the name of each begins with."""
    alone, steady = servers.thrift_ports["alone"], servers.thrift_ports["steady"]
    doors = {
        "SQLite": [
            Door("HTTPS, TJSON", lambda: _https(servers.alone)),
            Door("HTTPS, binary", lambda: _apache(_http(servers.alone), ApacheBinary)),
            Door("HTTPS, compact", lambda: _apache(_http(servers.alone), ApacheCompact)),
            Door("Thrift", lambda: connected(_Port(alone))),
            Door("Thrift, SASL", lambda: _apache(_sasl(servers.alone, alone))),
            Door("Iceberg REST", lambda: _rest(servers.alone), is_icebergs=True),
        ],
        "PostgreSQL": [
            Door("HTTPS, TJSON", lambda: _https(servers.steady)),
            Door("Thrift, TLS", lambda: _apache(_opened(_tls(servers.steady, steady)))),
            Door("Thrift, TLS, SASL", lambda: _apache(_sasl(servers.steady, steady, is_encrypted=True))),
            Door("HTTPS of the mortal gateway", lambda: _https(servers.mortal)),
            Door("bridge to the mortal gateway", lambda: connected(servers.bridge)),
            Door("Iceberg REST", lambda: _rest(servers.steady), is_icebergs=True),
            Door("Iceberg REST of the mortal gateway", lambda: _rest(servers.mortal), is_icebergs=True),
        ],
    }
    return {
        catalog: [door._replace(name=f"{catalog}, {door.name}") for door in those] for catalog, those in doors.items()
    }


class _Port(NamedTuple):
    port: int


def _https(server: GatewayServer) -> AbstractContextManager[MetastoreClient]:
    return MetastoreClient(server.url, (server.user, server.password), trusting(), timeout_seconds=CALL_SECONDS_MAX)


def _rest(server: GatewayServer) -> RestClient:
    url = f"https://127.0.0.1:{server.port}/iceberg/v1"
    login = (server.user, server.password)
    return RestClient(httpx.Client(base_url=url, auth=login, verify=trusting(), timeout=CALL_SECONDS_MAX))


def _http(server: GatewayServer) -> THttpClient:
    transport = THttpClient(server.url, ssl_context=trusting())
    transport.setTimeout(CALL_SECONDS_MAX * 1000)
    transport.setCustomHeaders(basic(server.user, server.password))
    return transport


def _sasl(server: GatewayServer, port: int, *, is_encrypted: bool = False) -> PlainTransport:
    return PlainTransport(port, server.user, server.password, trusting() if is_encrypted else None)


def _tls(server: GatewayServer, port: int) -> TBufferedTransport:
    socket = TSSLSocket("localhost", port, ca_certs=str(server.data_dir / "certificate.pem"))
    socket.setTimeout(CALL_SECONDS_MAX * 1000)
    return TBufferedTransport(socket)


def _opened(transport: Any) -> Any:
    transport.open()
    return transport


@contextmanager
def _apache(transport: Any, protocol: Any = ApacheBinary) -> Iterator[ApacheClient]:
    try:
        yield ApacheClient(transport, protocol)
    finally:
        transport.close()


def _workers(servers: Servers, stop: threading.Event, wrong: list[str]) -> list[Worker]:
    """At each door a writer and a reader, at two of PostgreSQL's somebody who wants the one lock."""
    workers: list[Worker] = []
    for catalog, doors in _doors(servers).items():
        writers = [Writer(door, stop, wrong, f"{catalog}_{number}".lower()) for number, door in enumerate(doors)]
        workers += [*writers, *(Reader(door, stop, wrong, writers) for door in doors)]
    holders = Holders(SURE_SECONDS)
    of_both = [door for door in _doors(servers)["PostgreSQL"] if "HTTPS" in door.name]
    return [*workers, *(LockHolder(door, stop, wrong, holders) for door in of_both)]


# Faults


def _break_for(servers: Servers, seconds: float) -> tuple[Counter[str], dict[str, int]]:
    """One fault after the other, with a rest before each. Their counts, and the memory when all was warm."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    warm: dict[str, int] = {}
    for name, fault in itertools.cycle(_FAULTS.items()):
        time.sleep(REST_SECONDS)
        passed = time.monotonic() - began
        if not warm and passed >= min(WARM_SECONDS, seconds / 2):
            warm = servers.memory()
        if passed >= seconds and len(counts) == len(_FAULTS):
            return counts, warm
        with fault(servers):
            time.sleep(FAULT_SECONDS)
        counts[name] += 1
    raise AssertionError


@contextmanager
def _killed(servers: Servers) -> Iterator[None]:
    servers.mortal.kill()
    yield
    servers.mortal.start()


@contextmanager
def _restarted(servers: Servers) -> Iterator[None]:
    servers.mortal.stop()
    yield
    servers.mortal.start()


@contextmanager
def _bridge_killed(servers: Servers) -> Iterator[None]:
    os.kill(servers.bridge.pid, signal.SIGKILL)
    servers.bridge.stop()
    yield
    servers.bridge.start()


def _paused(which: str) -> Callable[[Servers], AbstractContextManager[None]]:
    @contextmanager
    def paused(servers: Servers) -> Iterator[None]:
        pid = getattr(servers, which).pid
        os.kill(pid, signal.SIGSTOP)
        yield
        os.kill(pid, signal.SIGCONT)

    return paused


@contextmanager
def _database_away(servers: Servers) -> Iterator[None]:
    servers.postgres.stop()
    yield
    servers.postgres.start()


@contextmanager
def _database_hangs(servers: Servers) -> Iterator[None]:
    servers.postgres.freeze()
    yield
    servers.postgres.thaw()


@contextmanager
def _slow_disk(servers: Servers) -> Iterator[None]:
    """As long as a write takes on it, no other one begins."""
    path = servers.alone.data_dir / DATABASE_FILE
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE_SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def _full_disk(servers: Servers) -> Iterator[None]:
    """No file takes another byte."""
    pid = servers.alone.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _clock_jumps(servers: Servers) -> Iterator[None]:
    """Ahead, and back."""
    servers.clock.write_text(str(JUMP_SECONDS))
    yield
    servers.clock.write_text("0")


_FAULTS: dict[str, Callable[[Servers], AbstractContextManager[None]]] = {
    "a gateway is killed": _killed,
    "the disk of SQLite is slow": _slow_disk,
    "a gateway's clock jumps": _clock_jumps,
    "PostgreSQL is away": _database_away,
    "the disk of SQLite is full": _full_disk,
    "the bridge is killed": _bridge_killed,
    "PostgreSQL hangs": _database_hangs,
    "the gateway on SQLite pauses": _paused("alone"),
    "a gateway is restarted": _restarted,
    "a gateway on PostgreSQL pauses": _paused("steady"),
}


# The end


def _check_what_is_left(servers: Servers, workers: Sequence[Worker], wrong: list[str]) -> int:
    """Read all objects at each door, and again from gateways that were killed and started; how many were read."""
    checked = 0
    for is_again in (False, True):
        if is_again:
            for server in (servers.alone, servers.steady, servers.mortal):
                server.kill()
                server.start()
        for catalog, doors in _doors(servers).items():
            writers = [worker for worker in workers if isinstance(worker, Writer)]
            own = [writer for writer in writers if writer.database.startswith(catalog.lower())]
            for door in doors:
                reader = Reader(door, threading.Event(), wrong, own)
                try:
                    reader.check_all()
                except NoAnswer as error:
                    wrong.append(f"{door.name}: no answer after all faults: {error}")
                finally:
                    reader.hang_up()
                checked += reader.counts["reads"]
    return checked


def _report(
    seconds: float,
    workers: Sequence[Worker],
    faults: Counter[str],
    warm: dict[str, int],
    end: dict[str, int],
    checked: int,
) -> None:
    rows = [
        [worker.name, *(f"{worker.counts[name]:,}" for name in _COUNTS), "{:.1f} {}".format(*worker.longest)]
        for worker in workers
    ]
    total = [f"{sum(worker.counts[name] for worker in workers):,}" for name in _COUNTS]
    rows.append(["all", *total, "{:.1f} {}".format(*max(worker.longest for worker in workers))])
    print_table(f"Soak of {seconds:.0f} s", ("client", *_COUNTS, "longest call, s"), rows)
    print_table("Faults", ("fault", "times"), list(faults.items()))
    grown = [
        (name, f"{warm[name] / MIB:.1f}", f"{end[name] / MIB:.1f}", f"{end[name] / warm[name] - 1:+.1%}")
        for name in end
    ]
    title = f"Memory after {min(WARM_SECONDS, seconds / 2):.0f} s and at the end"
    print_table(title, ("gateway on", "MiB", "MiB at the end", "growth"), grown)
    print(f"\n{checked:,} reads after the last fault, half of them from gateways that were killed and started again")


_COUNTS = ("calls", "changes", "reads", "no answer")


if __name__ == "__main__":
    main()
