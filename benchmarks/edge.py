"""What a cached call costs in CPU time, without sockets: the HTTP protocol class over transports that keep nothing.

Beside it the bare ASGI app of `benchmarks.http` in the same harness. Less noisy than calls a second over sockets, and
so the place to judge a change of a microsecond. `--otel-share 0` has traces switched on without tracing a call, `1`
traces each, with all that is done to send spans to a collector, which is another process.
"""

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import uvloop
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from benchmarks.http import PASSWORD, REQUEST, bare_application, log_to_file
from benchmarks.report import print_table
from hms_gateway.composition.demo import load_demo
from hms_gateway.composition.main import build, build_metastore
from hms_gateway.gateway.http.http_protocol import BoundedConfig, BoundedHttpProtocol
from hms_gateway.gateway.logins import ensure_first_user
from hms_gateway.gateway.server import Server
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.settings_reading import load_settings
from hms_gateway.runtime.shares import Holder

CONNECTIONS = 16
# Takes whatever is posted; the first line that it prints is its port.
COLLECTOR: Final = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Taker(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = HTTPServer(("127.0.0.1", 0), Taker)
print(server.server_port, flush=True)
server.serve_forever()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--calls", type=int, default=8_000, help="of each run")
    parser.add_argument("--otel-share", type=float, help="of the calls that are traced; without, traces are off")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        traces: dict[str, Any] = {}
        if arguments.otel_share is not None:
            traces = {"otel": {"endpoint": stack.enter_context(collector()), "share": arguments.otel_share}}
        settings = load_settings(data_dir=Path(folder), port=0, tls=False, admin_password=PASSWORD, **traces)
        log_to_file(settings)
        ensure_first_user(settings)
        metastore = build_metastore(settings)
        load_demo(metastore.store, metastore.events)
        metastore.store.close()
        uvloop.run(compare(settings, arguments.runs, arguments.calls))


@contextlib.contextmanager
def collector() -> Iterator[str]:
    """The address of a process that takes spans."""
    with subprocess.Popen([sys.executable, "-c", COLLECTOR], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


async def compare(settings: Settings, runs: int, calls: int) -> None:
    gateway = build(settings)
    server = Server(gateway)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    config = server.config
    assert isinstance(config, BoundedConfig)
    gateway_links = links(config, lambda: BoundedHttpProtocol(config, server.server_state, {}, Uncounted()))
    answer = await first_answer(gateway_links[0])
    bare_config = Config(
        bare_application(answer), ws="none", log_config=None, access_log=False, proxy_headers=False, server_header=False
    )
    bare_config.load()
    bare_links = links(bare_config, lambda: HttpToolsProtocol(bare_config, state(), {}))
    measured: dict[str, list[float]] = {"bare ASGI app": [], "gateway, reply cache": []}
    for _ in range(runs):
        measured["bare ASGI app"].append(await seconds_per_call(bare_links, calls))
        measured["gateway, reply cache"].append(await seconds_per_call(gateway_links, calls))
    bare = statistics.median(measured["bare ASGI app"])
    print_table(
        f"CPU time of a cached get_table without sockets, {len(answer):,} bytes",
        ["", "median", "best", "of the bare app's speed"],
        [
            [name, *(f"{it * 1e6:.1f} µs" for it in (statistics.median(times), min(times))),
             f"{bare / statistics.median(times):.0%}"]
            for name, times in measured.items()
        ],
    )  # fmt: skip


class Uncounted:
    """There is no door."""

    def established(self, protocol: BoundedHttpProtocol) -> None: ...

    def claim(self, user: str) -> None: ...

    def holder(self) -> Holder:
        return Holder("", "")

    def timed_out(self) -> None: ...

    def lost(self) -> None: ...


class Sink(asyncio.Transport):
    """Takes everything at once and keeps the last piece."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 50000), "sockname": ("127.0.0.1", 30443)})
        self.count = 0
        self.last = b""

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.count += 1
        self.last = data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


Link = tuple[HttpToolsProtocol, Sink]


def state() -> ServerState:
    made = ServerState()
    made.default_headers = [(b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")]
    return made


def links(config: Config, connect: Any) -> list[Link]:
    made = []
    for _ in range(CONNECTIONS):
        protocol = connect()
        protocol.server_state.default_headers = state().default_headers
        sink = Sink()
        protocol.connection_made(sink)
        made.append((protocol, sink))
    return made


async def first_answer(link: Link, request: bytes = REQUEST) -> bytes:
    """Sent twice: the first call fills the cache."""
    protocol, sink = link
    for _ in range(2):
        sink.count = 0
        protocol.data_received(request)
        while not sink.count:
            await asyncio.sleep(0.001)
    assert sink.last.startswith(b"HTTP/1.1 200 "), sink.last
    body = sink.last.partition(b"\r\n\r\n")[2]
    assert b"test_table" in body, sink.last
    return body


async def seconds_per_call(links: list[Link], calls: int, request: bytes = REQUEST) -> float:
    started = time.process_time()
    for _ in range(calls // len(links)):
        for protocol, sink in links:
            sink.count = 0
            protocol.data_received(request)
        while not all(sink.count for _, sink in links):
            await asyncio.sleep(0)
    return (time.process_time() - started) / (calls // len(links) * len(links))


if __name__ == "__main__":
    main()
