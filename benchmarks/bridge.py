"""What the bridge costs: time added to a call, calls a second through one process, memory while a long reply passes.

    python -m benchmarks.bridge

The gateway is asked directly (HTTPS, kept connection) and through the bridge in turns, by clients that only send bytes
and count the bytes that come back. Gateway, bridge and clients share the cores of one machine.
"""

import argparse
import contextlib
import multiprocessing
import selectors
import socket
import ssl
import statistics
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from benchmarks.report import print_table
from benchmarks.server import fill, peak_resident_bytes, resident_bytes
from hms_gateway import MetastoreClient
from hms_gateway.rpc.structs import METHODS, FireEventRequest, FireEventRequestData, InsertEventRequestData
from hms_gateway.rpc.wire import MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.bridge.bridge_process import BridgeProcess
from tests.support.server import API_PATH, GatewayServer, basic, trusting

MIB = 1024 * 1024
DATABASE, TABLE = "hmshttptestdatabase", "test_table"
LONG_TABLE, LONG_PARTITIONS = "thirty_thousand", 30_000
AGAIN_TABLE, AGAIN_PARTITIONS = "ten_thousand", 10_000
CALLS_EACH_TURN = 500
BINARY = make_codecs(Limits()).binary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--again", action="store_true", help="only what is asked for again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "gateway" / "metastore.db", {LONG_TABLE: LONG_PARTITIONS, AGAIN_TABLE: AGAIN_PARTITIONS})
        with GatewayServer(Path(folder) / "gateway", demo=True) as gateway, BridgeProcess(gateway) as bridge:
            if arguments.again:
                again(gateway, arguments.turns)
                return
            latency(gateway, bridge, arguments.turns)
            throughput(gateway, bridge, arguments.clients, arguments.seconds)
            memory(bridge)
            again(gateway, arguments.turns)


def latency(gateway: GatewayServer, bridge: BridgeProcess, turns: int) -> None:
    rows = []
    for title, body in {
        "get_table, cached": call("get_table", DATABASE, TABLE),
        "get_database": call("get_database", DATABASE),
        "get_table of no table": call("get_table", DATABASE, "nothing"),
    }.items():
        direct, bridged = [], []
        with over_https(gateway) as one, over_tcp(bridge) as other:
            for _ in range(turns):
                direct += one_after_the_other(one, request(gateway, body))
                bridged += one_after_the_other(other, body)
        added = statistics.median(bridged) - statistics.median(direct)
        rows.append([title, us(direct), us(bridged), f"{added * 1e6:.0f} µs"])
    print_table(
        "One client, median of a call", ["call", "gateway over TLS", "through the bridge", "added (≤ 500 µs)"], rows
    )


def throughput(gateway: GatewayServer, bridge: BridgeProcess, clients: int, seconds: float) -> None:
    body = call("get_table", DATABASE, TABLE)
    with over_https(gateway) as one, over_tcp(bridge) as other:
        whole = exchange(one, request(gateway, body)), exchange(other, body)
    rows = []
    for count in (1, clients):
        direct = load(lambda: over_https(gateway), request(gateway, body), whole[0], count, seconds)
        bridged = load(lambda: over_tcp(bridge), body, whole[1], count, seconds)
        rows.append([count, f"{direct:,.0f}", f"{bridged:,.0f}"])
    print_table("get_table a second", ["clients", "gateway over TLS", "through one bridge (≥ 3,000)"], rows)


def memory(bridge: BridgeProcess) -> None:
    body = call("get_partitions", "sales", LONG_TABLE, -1)
    before = resident_bytes(bridge.pid)
    with over_tcp(bridge) as connection:
        begin = perf_counter()
        connection.sendall(body)
        size = len(connection.recv(1))
        first = perf_counter() - begin
        connection.settimeout(2.0)
        last = first
        try:
            while received := connection.recv(MIB):
                size += len(received)
                last = perf_counter() - begin
        except TimeoutError:
            pass
    growth = peak_resident_bytes(bridge.pid) - before
    print_table(
        f"get_partitions of {LONG_PARTITIONS:,} through the bridge",
        ["reply", "first byte", "whole", "resident memory, growth", "connections idle"],
        [
            [
                f"{size / MIB:.0f} MiB",
                f"{first * 1000:.0f} ms",
                f"{last * 1000:.0f} ms",
                f"{growth / MIB:.1f} MiB",
                f"{before / MIB:.0f} MiB",
            ]
        ],
    )


def again(gateway: GatewayServer, turns: int) -> None:
    """What a bridge has fetched before, beside what it has to fetch: each turn changes the table once."""
    body = call("get_partitions", "sales", AGAIN_TABLE, -1)
    fetched: list[float] = []
    unchanged: list[float] = []
    sizes: list[int] = []
    with Forwarder(gateway.port) as forwarder:
        url = gateway.url.replace(f":{gateway.port}/", f":{forwarder.port}/")
        with BridgeProcess(gateway, "--url", url, "--insecure") as bridge, over_tcp(bridge) as connection:
            size = whole(connection, body)[0]
            for _ in range(turns):
                change(gateway)
                fetched.append(whole(connection, body, size)[1])
                before = forwarder.bytes_back
                unchanged.append(whole(connection, body, size)[1])
                sizes.append(forwarder.bytes_back - before)
    took, once_more = statistics.median(fetched), statistics.median(unchanged)
    print_table(
        f"get_partitions of {AGAIN_PARTITIONS:,} again through the bridge",
        ["reply", "fetched", "unchanged", "less time (≥ 3 ×)", "bytes from the gateway (< 1 kB)"],
        [
            [
                f"{size / MIB:.1f} MiB",
                f"{took * 1000:.0f} ms",
                f"{once_more * 1000:.0f} ms",
                f"{took / once_more:.1f} ×",
                f"{max(sizes):,}",
            ]
        ],
    )


def change(gateway: GatewayServer) -> None:
    """An event of the table."""
    data = FireEventRequestData(insertData=InsertEventRequestData(filesAdded=[]))
    event = FireEventRequest(successful=True, data=data, dbName="sales", tableName=AGAIN_TABLE)
    with MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting()) as metastore:
        metastore.call("fire_listener_event", event)


def whole(connection: socket.socket, sent: bytes, size: int | None = None) -> tuple[int, float]:
    """Bytes of a long answer, and the seconds until the last; its end is a pause where the size is not known."""
    begin = perf_counter()
    connection.sendall(sent)
    received, last = 0, begin
    connection.settimeout(3.0 if size is None else 60.0)
    with contextlib.suppress(TimeoutError):
        while size is None or received < size:
            received += len(connection.recv(MIB))
            last = perf_counter()
    return received, last - begin


class Forwarder:
    """Passes bytes on to a port of loopback and counts those that come back. A context manager."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.bytes_back = 0

    def __enter__(self) -> "Forwarder":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._server.accept()
                there = over_loopback(self._target)
                threading.Thread(target=self._pump, args=(here, there, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(there, here, True), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(MIB):
                self.bytes_back += len(data) if is_counted else 0
                target.sendall(data)
        target.close()


def call(name: str, *arguments: object) -> bytes:
    before, after = BINARY.envelope(name, MessageType.CALL, 1)
    payload = BINARY.encode(METHODS[name].arguments(*arguments))
    assert isinstance(payload, bytes)
    return before + payload + after


def request(gateway: GatewayServer, body: bytes) -> bytes:
    lines = [
        f"POST {API_PATH} HTTP/1.1",
        f"host: 127.0.0.1:{gateway.port}",
        f"authorization: {basic(gateway.user, gateway.password)['Authorization']}",
        "content-type: application/x-thrift",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def over_https(gateway: GatewayServer) -> ssl.SSLSocket:
    raw = over_loopback(gateway.port)
    return trusting().wrap_socket(raw)


def over_tcp(bridge: BridgeProcess) -> socket.socket:
    return over_loopback(bridge.port)


def over_loopback(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def exchange(connection: socket.socket, sent: bytes) -> int:
    """Bytes of the answer, which comes in one piece."""
    connection.sendall(sent)
    return len(connection.recv(MIB))


def one_after_the_other(connection: socket.socket, sent: bytes) -> list[float]:
    times = []
    for _ in range(CALLS_EACH_TURN):
        begin = perf_counter()
        exchange(connection, sent)
        times.append(perf_counter() - begin)
    return times


def load(connect: Callable[[], socket.socket], sent: bytes, answer_bytes: int, clients: int, seconds: float) -> float:
    """Calls a second of so many clients, each waiting for its answer, in a process of their own."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=lambda: queue.put(_load(connect, sent, answer_bytes, clients, seconds)))
    process.start()
    calls: float = queue.get()
    process.join()
    return calls


def _load(connect: Callable[[], socket.socket], sent: bytes, answer_bytes: int, clients: int, seconds: float) -> float:
    selector = selectors.DefaultSelector()
    missing = {}
    for _ in range(clients):
        connection = connect()
        connection.sendall(sent)
        connection.setblocking(False)
        missing[connection] = answer_bytes
        selector.register(connection, selectors.EVENT_READ)
    calls, begin = 0, perf_counter()
    while perf_counter() - begin < seconds:
        for key, _ in selector.select(1.0):
            assert isinstance(key.fileobj, socket.socket)
            connection = key.fileobj
            try:
                missing[connection] -= len(connection.recv(MIB))
            except (ssl.SSLWantReadError, BlockingIOError):
                continue
            if missing[connection] <= 0:
                calls += 1
                missing[connection] = answer_bytes
                connection.send(sent)
    took = perf_counter() - begin
    for connection in missing:
        connection.close()
    return calls / took


def us(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e6:.0f} µs"


if __name__ == "__main__":
    main()
