"""The bridge as a server: a Thrift port that hands its messages to a relay, and how it starts and stops."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import NamedTuple

import structlog

from hms_gateway.bridge.relays.relay import Relay
from hms_gateway.bridge.server.admission import Admission
from hms_gateway.bridge.server.client_connection import ClientConnection
from hms_gateway.bridge.server.metrics import BridgeMetrics
from hms_gateway.bridge.server.serving import BridgeOptions, CallRecords, Meter, ServedConnection
from hms_gateway.bridge.thrift.session import share_address
from hms_gateway.rpc.wire import Codecs, make_codecs
from hms_gateway.runtime.addresses import is_loopback
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Connections, Holder, Ledger

BACKLOG = 2048

_log = structlog.get_logger("hms_gateway.bridge")


class BridgeServer:
    """Accepts Thrift clients and answers them through `relay`."""

    def __init__(
        self,
        relay: Relay,
        options: BridgeOptions,
        limits: Limits,
        *,
        codecs: Codecs | None = None,
        metrics: Meter | None = None,
        call_log: CallRecords | None = None,
        admission: Admission | None = None,
        connections: Connections | None = None,
        memory: Ledger | None = None,
    ) -> None:
        self.admission = admission or Admission(options)
        self.relay = relay
        self.options = options
        self.limits = limits
        self.codecs = codecs or make_codecs(limits)
        self.metrics = metrics or BridgeMetrics()
        self.call_log = call_log
        self._counted = connections or Connections(Ledger(limits, "connections_max"), self._refused)
        self._memory = memory or Ledger(limits, "body_memory_bytes_max")
        self._connections: set[ServedConnection] = set()
        self._arriving: dict[ServedConnection, _Arriving] = {}
        self._server: asyncio.Server | None = None
        self._all_gone: asyncio.Future[None] | None = None
        self.metrics.watch("connections", "Clients connected", lambda: self.connections)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    async def start(self) -> int:
        """Listen; the port, chosen by the system if 0 was asked for. Raises OSError, ValueError for an address
        that others can reach when that is not allowed."""
        options = self.options
        if not options.allows_remote and not is_loopback(options.host):
            raise ValueError(
                f"{options.host} can be reached by others, who would act with this bridge's password: "
                "listen on 127.0.0.1, or say --allow-remote"
            )
        loop = asyncio.get_running_loop()
        self.admission.start()
        try:
            self._server = await loop.create_server(
                lambda: ClientConnection(self),
                options.host,
                options.port,
                backlog=BACKLOG,
                reuse_port=options.shares_port or None,
            )
        except BaseException:
            self.admission.stop()
            raise
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        """Take no more clients, let calls in flight finish for `drain_seconds_max`, then cut off the rest."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.drain()
        if self._connections:
            self._all_gone = asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.limits.drain_seconds_max):
                    await self._all_gone
        if self._connections:
            _log.warning("stopping with calls in flight", connections=len(self._connections))
            for connection in list(self._connections):
                connection.cut()
        self.admission.stop()
        await self.relay.close()

    def _refused(self, limit: str, holder: Holder) -> None:
        self.metrics.refused(limit, user=holder.user or "", address=holder.address or "")
        _log.warning("a connection was closed or refused", limit=limit, address=holder.address or "")

    def welcome(self, connection: ServedConnection, host: str) -> bool:
        """Whether one more may stay, which comes from `host`."""
        if self._all_gone is not None or not self._counted.enter(connection, share_address(host)):
            return False
        self._connections.add(connection)
        return True

    def claim(self, connection: ServedConnection, user: str) -> Bound | None:
        """Count the connection as that of a user who has logged in; the bound that is in the way."""
        return self._counted.claim(connection, user)

    def keep(self, connection: ServedConnection, size: int, user: str, host: str) -> Bound | None:
        """Keep `size` bytes of a message of the user's that has not all arrived; the bound that is in the way."""
        before = self._arriving.pop(connection, None)
        if before is not None:
            self._memory.give_back(*before)
        if not size:
            return None
        arriving = _Arriving(size, Holder(user, share_address(host)))
        bound = self._memory.take(*arriving)
        if bound is None:
            self._arriving[connection] = arriving
        return bound

    def goodbye(self, connection: ServedConnection) -> None:
        self._counted.leave(connection)
        self._connections.discard(connection)
        self.keep(connection, 0, "", "")
        if not self._connections and self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)


class _Arriving(NamedTuple):
    """Amount and holder of a message on its way in, as a `Ledger` counts them."""

    size: int
    holder: Holder


async def serve_until_told(server: BridgeServer, on_listening: Callable[[int], None]) -> None:
    """Run until SIGTERM or SIGINT, then drain. Raises OSError, ValueError like `start`."""
    loop = asyncio.get_running_loop()
    stop_asked = asyncio.Event()
    on_listening(await server.start())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_asked.set)
    try:
        await stop_asked.wait()
    finally:
        await server.stop()
