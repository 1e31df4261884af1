"""Messages as clients write them, and connections that send them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Literal

from msgspec.structs import replace

from hms_gateway.bridge.server.admission import BridgeOptions
from hms_gateway.bridge.server.metrics import BridgeMetrics
from hms_gateway.bridge.server.running import BridgeSettings, make_bridge
from hms_gateway.bridge.server.server import BridgeServer
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import Codec, MessageType, TApplicationException, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.support.patience import PATIENCE_SECONDS

CODECS = make_codecs(Limits())
BINARY, COMPACT = CODECS.binary, CODECS.compact


def call(name: str, *arguments: Any, codec: Codec = BINARY, seqid: int = 1, oneway: bool = False) -> bytes:
    """A call as Apache's clients write it."""
    before, after = codec.envelope(name, MessageType.ONEWAY if oneway else MessageType.CALL, seqid)
    return before + _encoded(codec, name, *arguments) + after


def old_call(name: str, *arguments: Any, seqid: int = 1) -> bytes:
    """The same with the header of the first Thrift versions."""
    head = len(name).to_bytes(4, "big") + name.encode() + b"\x01" + seqid.to_bytes(4, "big", signed=True)
    return head + _encoded(BINARY, name, *arguments)


def _encoded(codec: Codec, name: str, *arguments: Any) -> bytes:
    encoded = codec.encode(METHODS[name].arguments(*arguments))
    assert isinstance(encoded, bytes)
    return encoded


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


def result_of(reply: bytes, codec: Codec = BINARY) -> Any:
    """What a reply says: the result struct, or the TApplicationException."""
    message = codec.read_message(reply)
    if message.type is MessageType.EXCEPTION:
        return codec.decode(TApplicationException, message.payload)
    return codec.decode(METHODS[message.name].result, message.payload)


class Client:
    """A connection to the bridge that is asked for one message at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, data: bytes, codec: Codec = BINARY) -> Any:
        """Send a call, wait for the result."""
        await self.send(data)
        return result_of(await self.receive(), codec)

    async def receive(self) -> bytes:
        """One reply. Its end is where the bytes make a result."""
        received = b""
        while True:
            data = await asyncio.wait_for(self.reader.read(1 << 16), PATIENCE_SECONDS)
            if not data:
                raise ConnectionResetError(f"closed after {received!r}")
            received += data
            try:
                result_of(received, COMPACT if received[0] == 0x82 else BINARY)
            except Exception:
                continue
            return received

    async def rest(self) -> bytes:
        """Everything until the bridge closes."""
        with contextlib.suppress(ConnectionResetError):
            return await asyncio.wait_for(self.reader.read(), PATIENCE_SECONDS)
        return b""


@contextlib.asynccontextmanager
async def bridge(
    url: str, *, sasl: Literal["off", "allow", "require"] = "off", **changes: Any
) -> AsyncIterator[BridgeServer]:
    """A bridge on a free port, without patience for a gateway that is away. Its port is `server.port`."""
    options = {"credentials": Credentials("spark", "secret"), "patience_seconds": 0.0, "is_insecure": True, **changes}
    settings = BridgeSettings(url=url, server=BridgeOptions(port=0, sasl=sasl), **options)
    settings = replace(settings, limits=replace(settings.limits, drain_seconds_max=2.0))
    server = make_bridge(settings, BridgeMetrics())
    server.port = await server.start()  # type: ignore[attr-defined]
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def client(server: Any) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
