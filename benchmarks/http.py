"""Cached get_table over keep-alive connections, beside a bare ASGI app that checks the same password in the same way
and returns as many bytes, on the same uvicorn. Plain HTTP and TLS, in turns, medians.

The load comes from one process, so a server that is faster than it waits; what the server's process spends on a call
tells more then."""

import argparse
import contextlib
import hashlib
import multiprocessing
import multiprocessing.connection
import os
import statistics
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.load import Load, http_request, measure
from benchmarks.report import print_table
from hms_gateway.composition.demo import load_demo
from hms_gateway.composition.main import build, build_metastore
from hms_gateway.gateway.assembly import served_certificate
from hms_gateway.gateway.logins import ensure_first_user
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.running import run
from hms_gateway.runtime.door import listening_sockets
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.settings_reading import load_settings

PATH = "/gateway/default/hmshttpthrift/api/hms"
PASSWORD = "benchmark"
BODY = b'[1,"get_table",1,1,{"1":{"str":"hmshttptestdatabase"},"2":{"str":"test_table"}}]'
AUTHORIZATION = "Basic " + b64encode(f"admin:{PASSWORD}".encode()).decode()
REQUEST = http_request(PATH, BODY, f"Authorization: {AUTHORIZATION}", "Content-Type: application/x-thrift")
START_SECONDS_MAX = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--connections", type=int, default=16)
    arguments = parser.parse_args()
    rows = []
    for tls in (False, True):
        rows += compare(tls, arguments.runs, arguments.seconds, arguments.connections)
    print_table(
        f"Cached get_table, one worker, {arguments.connections} keep-alive connections (goal: 60 % of the bare app)",
        ["", "calls/s", "p50", "p99", "of the bare app", "server CPU per call", "of the bare app's speed by CPU"],
        rows,
    )


def compare(tls: bool, runs: int, seconds: float, connections: int) -> list[list[str]]:
    """Both servers run all the time; the load goes to one after the other, so that noise hits both."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        gateway = stack.enter_context(serving(serve_gateway, folder, tls, b""))
        answer = first_answer(gateway.port, tls)
        bare = stack.enter_context(serving(serve_bare, folder, tls, answer))
        measured: dict[Serving, list[Run]] = {gateway: [], bare: []}
        for _ in range(runs + 1):
            for server, server_runs in measured.items():
                cpu_before = server.cpu_seconds()
                load = measure(server.port, REQUEST, connections=connections, seconds=seconds, tls=tls)
                cpu = server.cpu_seconds() - cpu_before
                server_runs.append(Run(load, cpu / (load.calls_per_second * seconds)))
    label = "TLS" if tls else "plain HTTP"
    pairs = list(zip(measured[bare][1:], measured[gateway][1:], strict=True))
    speed = statistics.median(ours.load.calls_per_second / theirs.load.calls_per_second for theirs, ours in pairs)
    cpu_speed = statistics.median(theirs.cpu_per_call / ours.cpu_per_call for theirs, ours in pairs)
    return [
        [f"{label}: bare ASGI app, {len(answer):,} bytes", *cells([it for it, _ in pairs], 1.0, 1.0)],
        [f"{label}: gateway, reply cache", *cells([it for _, it in pairs], speed, cpu_speed)],
    ]


@dataclass(frozen=True, slots=True)
class Run:
    load: Load
    cpu_per_call: float


@dataclass(frozen=True, slots=True)
class Serving:
    """A server process that is up."""

    port: int
    process_id: int

    def cpu_seconds(self) -> float:
        """What its threads have used, in the kernel too."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cells(runs: list[Run], speed: float, cpu_speed: float) -> list[str]:
    return [
        f"{statistics.median(run.load.calls_per_second for run in runs):,.0f}",
        f"{statistics.median(run.load.p50 for run in runs) * 1000:.2f} ms",
        f"{statistics.median(run.load.p99 for run in runs) * 1000:.2f} ms",
        f"{speed:.0%}",
        f"{statistics.median(run.cpu_per_call for run in runs) * 1e6:.1f} µs",
        f"{cpu_speed:.0%}",
    ]


def first_answer(port: int, tls: bool) -> bytes:
    import httpx

    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{PATH}"
    reply = httpx.post(url, content=BODY, headers={"Authorization": AUTHORIZATION}, verify=False)
    assert reply.status_code == 200, reply.text
    assert b"test_table" in reply.content
    return reply.content


Serve = Callable[[Settings, bytes, Connection], None]


@contextlib.contextmanager
def serving(serve: Serve, folder: str, tls: bool, answer: bytes) -> Iterator[Serving]:
    """The server in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    settings = load_settings(data_dir=Path(folder), port=0, tls=tls, admin_password=PASSWORD)
    process = context.Process(target=serve, args=(settings, answer, there))
    process.start()
    try:
        multiprocessing.connection.wait([here, process.sentinel], START_SECONDS_MAX)
        assert here.poll(), "the server did not start"
        assert process.pid is not None
        yield Serving(here.recv(), process.pid)
    finally:
        process.terminate()
        process.join()


def serve_gateway(settings: Settings, _answer: bytes, started: Connection) -> None:
    log_to_file(settings)
    ensure_first_user(settings)
    metastore = build_metastore(settings)
    load_demo(metastore.store, metastore.events)
    metastore.store.close()
    listeners = listening_sockets(settings.host, settings.port)
    run(settings, build, listeners, on_listening=lambda addresses: started.send(addresses[0][1]))


def serve_bare(settings: Settings, answer: bytes, started: Connection) -> None:
    # Loaded in the bare server's process alone: the gateway's own start is measured too.
    from benchmarks.bare import run_bare

    certificate = served_certificate(settings, Metrics(()))
    run_bare(bare_application(answer), started, None if certificate is None else certificate.context)


def bare_application(answer: bytes):
    """Checks the password as the gateway does, by a keyed hash of a header that was verified, and answers."""
    key = b"k" * 32
    known = {hashlib.blake2b(AUTHORIZATION.encode(), key=key, digest_size=16).digest(): "admin"}
    headers = [
        (b"content-type", b"application/vnd.apache.thrift.json"),
        (b"content-length", b"%d" % len(answer)),
    ]

    async def application(scope, receive, send) -> None:
        header = dict(scope["headers"])[b"authorization"]
        if hashlib.blake2b(header, key=key, digest_size=16).digest() not in known:
            raise AssertionError("wrong password")
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return application


def log_to_file(settings: Settings) -> None:
    """The access log is written as in operation, but not onto the terminal."""
    import sys

    from hms_gateway.runtime.logging import configure_logging

    sys.stderr = (settings.data_dir / "log").open("w", encoding="utf-8")
    configure_logging()


if __name__ == "__main__":
    main()
