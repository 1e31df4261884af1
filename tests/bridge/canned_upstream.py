"""An HTTP server whose answers the test decides, one by one: what a gateway, a proxy or a crash could do."""

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import MessageType, make_codecs
from hms_gateway.runtime.limits import Limits

PATH = "/gateway/default/hmshttpthrift/api/hms"
CODECS = make_codecs(Limits())


@dataclass
class Request:
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def method(self) -> str:
        return CODECS.sniff(self.body).read_message(self.body).name


Action = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class CannedUpstream:
    """Does the `actions` in order, one for each request; afterwards answers every call with `results`."""

    results: dict[str, Any] = field(default_factory=dict)
    actions: deque[Action] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}{PATH}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["CannedUpstream"]:
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while not writer.is_closing():
                request = await _read(reader)
                self.requests.append(request)
                action = self.actions.popleft() if self.actions else self.answer
                await action(request, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """What a gateway answers whose methods return `results`."""
        writer.write(http(self.reply(request.body)))
        await writer.drain()

    def reply(self, body: bytes) -> bytes:
        codec = CODECS.sniff(body)
        message = codec.read_message(body)
        if message.type is MessageType.ONEWAY:
            return b""
        value = self.results.get(message.name)
        result = METHODS[message.name].result
        before, after = codec.envelope(message.name, MessageType.REPLY, message.seqid)
        encoded = codec.encode(result() if value is None else result(success=value))
        assert isinstance(encoded, bytes)
        return before + encoded + after


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answering(raw: bytes) -> Action:
    """Send exactly these bytes."""

    async def action(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return action


def dropping(raw: bytes = b"") -> Action:
    """Send these bytes, perhaps none, and close the connection."""

    async def action(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()
        writer.close()

    return action


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split(" ")[1], headers, body)
