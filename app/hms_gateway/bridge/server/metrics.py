"""Metrics and call log of a bridge, and the port of /healthz and /metrics: the Thrift port speaks no HTTP."""

import asyncio
import datetime
from collections.abc import Callable
from typing import IO, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from hms_gateway.rpc.structs import METHODS
from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.logging import LineWriter, render_json


class CallLog(LineWriter):
    """Takes records at once, writes them soon. `close` writes what is left."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        super().__init__("call log", stream)

    def write(self, record: CallRecord) -> None:
        self.write_line(_line(record))


def _line(record: CallRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.time, datetime.UTC)
    fields = {
        "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z",
        "level": "warning" if record.problem else "info",
        "event": "bridge call",
        "method": record.method,
        "user": record.user,
        "ms": round(record.seconds * 1000, 3),
        "bytes_in": record.bytes_in,
        "bytes_out": record.bytes_out,
        "outcome": record.outcome,
        "address": record.address,
        "request_id": record.request_id,
    }
    if record.problem:
        fields["problem"] = record.problem
    return render_json(None, "", fields)


SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
UNKNOWN_METHOD = "unknown"


class Recorder(Protocol):
    """Records calls and refusals; `BridgeMetrics` in the bridge."""

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None: ...

    def write(self, record: CallRecord) -> None: ...

    def refused(self, reason: str, *, user: str = "", address: str = "") -> None: ...


class BridgeMetrics:
    """Counters of one bridge, and its call log. Method names come from outside, so unknown ones share a label."""

    def __init__(self, call_log: CallLog | None = None) -> None:
        self.call_log = call_log
        self.certificate_expires_seconds: int | None = None
        self.certificate_unusable = 0
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "hms_bridge_call_seconds",
            "Time to answer a call",
            ["method"],
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )
        self._calls = Counter("hms_bridge_calls", "Calls", ["method", "outcome"], registry=self.registry)
        self._refused = Counter(
            "hms_bridge_connections_refused", "Connections closed without a call", ["reason"], registry=self.registry
        )
        self._bytes = Counter("hms_bridge_bytes", "Bytes of messages", ["direction"], registry=self.registry)
        self._bytes_in, self._bytes_out = self._bytes.labels("in"), self._bytes.labels("out")
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge whose value is asked for when it is shown."""
        Gauge(f"hms_bridge_{name}", text, registry=self.registry).set_function(value)

    def write(self, record: CallRecord) -> None:
        """Record one call that was answered, or not."""
        name = record.method if record.method in METHODS else UNKNOWN_METHOD
        self._seconds.labels(name).observe(record.seconds)
        self._calls.labels(name, record.outcome).inc()
        self._bytes_in.inc(record.bytes_in)
        self._bytes_out.inc(record.bytes_out)
        if self.call_log is not None:
            self.call_log.write(record)

    def refused(self, reason: str, *, user: str = "", address: str = "") -> None:
        """A connection was closed; whose it was is in the log."""
        self._refused.labels(reason).inc()

    def text(self) -> bytes:
        """Everything in the Prometheus text format."""
        return generate_latest(self.registry)


REQUEST_BYTES_MAX = 8 * 1024
REQUEST_SECONDS_MAX = 10.0

Page = Callable[[], bytes]


class SidePort:
    """Answers GETs of the pages it was given; one request for each connection."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, chosen by the system if 0 was asked for. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _response(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        page = self._pages.get(path)
        if page is None:
            status, body = b"404 Not Found", b"Not found\n"
        elif method not in (b"GET", b"HEAD"):
            status, body = b"405 Method Not Allowed", b"Send GET\n"
        else:
            status, body = b"200 OK", page()
        kind = b"text/plain; version=0.0.4; charset=utf-8"
        response = b"HTTP/1.1 %b\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        return response % (status, kind, len(body)) + (b"" if method == b"HEAD" else body)
