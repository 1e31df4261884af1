"""A load generator that costs little itself: keep-alive connections over raw sockets, one request in flight on each."""

import asyncio
import ssl
from dataclasses import dataclass
from time import perf_counter
from typing import cast

import uvloop


@dataclass(frozen=True, slots=True)
class Load:
    """What was measured: calls a second over all connections, and latencies in seconds."""

    calls_per_second: float
    p50: float
    p99: float


def measure(port: int, request: bytes, *, connections: int, seconds: float, tls: bool = False) -> Load:
    """Send `request` again and again; every answer has to be a 200 with a Content-Length. Raises AssertionError."""
    return uvloop.run(_measure(port, request, connections, seconds, tls))


def http_request(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class _Connection(asyncio.Protocol):
    """Sends the next request when the last answer is complete."""

    def __init__(self, request: bytes, latencies: list[float]) -> None:
        self._request = request
        self._latencies = latencies
        self._missing = 0
        self._started = 0.0
        self._is_running = True
        self.is_fine = True
        self._transport: asyncio.Transport
        self.finished = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        if self._missing == 0:
            head, _, body = data.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                self.is_fine = False
                self._transport.abort()
                return
            start = head.lower().index(b"content-length: ") + len(b"content-length: ")
            self._missing = int(head[start:].partition(b"\r\n")[0]) - len(body)
        else:
            self._missing -= len(data)
        if self._missing == 0:
            self._latencies.append(perf_counter() - self._started)
            if self._is_running:
                self._send()
            else:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def stop(self) -> None:
        self._is_running = False

    def _send(self) -> None:
        self._started = perf_counter()
        self._transport.write(self._request)


async def _measure(port: int, request: bytes, connections: int, seconds: float, tls: bool) -> Load:
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    pairs = [
        await loop.create_connection(lambda: _Connection(request, latencies), "127.0.0.1", port, ssl=context)
        for _ in range(connections)
    ]
    latencies.clear()
    begin = perf_counter()
    await asyncio.sleep(seconds)
    elapsed = perf_counter() - begin
    calls = len(latencies)
    for _, connection in pairs:
        connection.stop()
    await asyncio.wait([connection.finished for _, connection in pairs], timeout=5.0)
    assert calls, "no answer"
    assert all(connection.is_fine for _, connection in pairs), "an answer was not 200"
    ordered = sorted(latencies[:calls])
    return Load(calls / elapsed, ordered[calls // 2], ordered[min(calls - 1, calls * 99 // 100)])
