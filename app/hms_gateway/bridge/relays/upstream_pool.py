"""The kept connections to the gateway: one for each call in flight, the one used last first."""

import asyncio
import contextlib
import ssl
from collections import deque

from hms_gateway.bridge.relays.upstream import (
    Origin,
    UpstreamConnection,
    UpstreamError,
    UpstreamNotTrusted,
    refused_certificate,
)

CONNECT_SECONDS_MAX = 10.0
# Servers close idle connections too (ours after 75 s); being first avoids the race.
IDLE_SECONDS_MAX = 60.0


class UpstreamPool:
    """Hands out connections, at most `connections_max` at once; who finds none waits in line."""

    def __init__(self, origin: Origin, connections_max: int) -> None:
        self._origin = origin
        self._connections_max = connections_max
        self._open: set[UpstreamConnection] = set()
        self._idle: list[UpstreamConnection] = []
        self._connecting = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._loop = asyncio.get_running_loop()

    @property
    def open_connections(self) -> int:
        return len(self._open)

    async def acquire(self, *, must_be_fresh: bool) -> UpstreamConnection:
        """A connection for one request, after which it comes back by itself.

        With `must_be_fresh` not one that the server may just be closing. Raises UpstreamError, NotTrusted.
        """
        while True:
            connection = self._idle_connection(must_be_fresh)
            if connection is not None:
                return connection
            if len(self._open) + self._connecting < self._connections_max:
                return await self._connect()
            await self._wait()

    def close(self) -> None:
        for connection in list(self._open):
            connection.close()

    def _idle_connection(self, must_be_fresh: bool) -> UpstreamConnection | None:
        # One that has shown a certificate before is not used until that ends.
        tls_context = None if self._origin.tls is None else self._origin.tls.context(at_once=False)
        while self._idle:
            connection = self._idle.pop()
            is_too_old = self._loop.time() - connection.idle_since > IDLE_SECONDS_MAX
            if not connection.is_usable():
                continue
            is_outdated = connection.tls_context is not tls_context
            if is_too_old or is_outdated or (must_be_fresh and not connection.is_fresh()):
                connection.close()
                self._open.discard(connection)
                continue
            return connection
        return None

    async def _connect(self) -> UpstreamConnection:
        origin = self._origin
        tls_context = None if origin.tls is None else origin.tls.context(at_once=True)
        server_name = origin.host if origin.tls is not None else None
        connection: UpstreamConnection | None = None
        self._connecting += 1
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                _, connection = await self._loop.create_connection(
                    lambda: UpstreamConnection(self._returned, tls_context),
                    origin.host,
                    origin.port,
                    ssl=tls_context,
                    server_hostname=server_name,
                )
        except ssl.SSLCertVerificationError as error:
            text = f"the certificate of {origin.host}:{origin.port} is not accepted: {error.verify_message}"
            raise UpstreamNotTrusted(text, was_sent=False) from error
        except TimeoutError as error:
            text = f"no connection to {origin.host}:{origin.port} within {CONNECT_SECONDS_MAX:g} seconds"
            raise UpstreamError(text, was_sent=False) from error
        except OSError as error:
            if isinstance(error, ssl.SSLError) and (refused := refused_certificate(error)) is not None:
                raise refused from error
            text = f"no connection to {origin.host}:{origin.port}: {error.strerror or error}"
            raise UpstreamError(text, was_sent=False) from error
        finally:
            self._connecting -= 1
            if connection is None:
                self._wake_one()
        self._open.add(connection)
        return connection

    def _returned(self, connection: UpstreamConnection) -> None:
        """A connection is free, or gone; the latter may be reported twice."""
        if connection.is_usable():
            self._idle.append(connection)
        else:
            self._open.discard(connection)
            with contextlib.suppress(ValueError):
                self._idle.remove(connection)
        self._wake_one()

    async def _wait(self) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
