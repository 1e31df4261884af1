"""TLS on the Thrift port beside plain TCP: processor time of `get_table`, and memory of idle connections.

    python -m benchmarks thrift-tls

Two gateways are asked in turns by 16 clients, since the machine is not equally fast all the time; the least time of the
turns counts. Without a cache each call asks the database.
"""

import argparse
import contextlib
import os
import socket
import tempfile
from pathlib import Path

from benchmarks.bridge import DATABASE, TABLE, call, exchange, load, over_loopback
from benchmarks.report import print_table
from benchmarks.server import resident_bytes
from tests.support.server import GatewayServer, free_port, trusting

MIB = 1024 * 1024


class Port:
    """A gateway and its Thrift port, with TLS or without."""

    def __init__(self, folder: Path, *, tls: bool, is_cached: bool = True) -> None:
        self._tls = tls
        self._port = free_port()
        settings = {"thrift_port": self._port, "thrift_tls": tls}
        limits = {} if is_cached else {"cache_bytes_max": 1}
        self.gateway = GatewayServer(folder, demo=True, settings=settings, limits=limits)
        self.seconds_per_call: list[float] = []

    def connect(self) -> socket.socket:
        plain = over_loopback(self._port)
        return trusting().wrap_socket(plain) if self._tls else plain

    def turn(self, clients: int, seconds: float) -> None:
        body = call("get_table", DATABASE, TABLE)
        with self.connect() as connection:
            size = exchange(connection, body)
        before = processor_seconds(self.gateway.pid)
        calls = load(self.connect, body, size, clients, seconds) * seconds
        self.seconds_per_call.append((processor_seconds(self.gateway.pid) - before) / calls)

    def growth_of(self, connections: int) -> int:
        """Resident bytes of so many connections, each of which has called once."""
        body = call("getName")
        with contextlib.ExitStack() as idle:
            exchange(idle.enter_context(self.connect()), body)
            before = resident_bytes(self.gateway.pid)
            for _ in range(connections):
                exchange(idle.enter_context(self.connect()), body)
            return resident_bytes(self.gateway.pid) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=1000)
    arguments = parser.parse_args()
    rows = []
    for title, is_cached in (("cached", True), ("not cached", False)):
        with tempfile.TemporaryDirectory() as folder:
            plain, tls = (Port(Path(folder) / str(tls), tls=tls, is_cached=is_cached) for tls in (False, True))
            with plain.gateway, tls.gateway:
                for _ in range(arguments.turns):
                    for port in (plain, tls):
                        port.turn(arguments.clients, arguments.seconds)
                without, within = min(plain.seconds_per_call), min(tls.seconds_per_call)
                call_title = f"get_table, {title}, {arguments.clients} clients: processor time"
                rows.append(
                    [call_title, *(f"{it * 1e6:.0f} µs" for it in (without, within)), f"{without / within:.0%}"]
                )
                if is_cached:
                    grown = [f"{port.growth_of(arguments.connections) / MIB:.0f} MiB" for port in (plain, tls)]
                    rows.append([f"memory of {arguments.connections:,} idle connections", *grown, ""])
    print_table("Thrift port", ["", "plain TCP", "TLS", "rate with TLS"], rows)


def processor_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
