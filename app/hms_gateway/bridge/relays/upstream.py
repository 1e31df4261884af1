"""HTTP/1.1 over kept connections to one server: just as much of a client as the bridge's calls need.

A general HTTP client costs more per call than everything else here together. Answers that are long are handed on while
they arrive; when they are not taken, nothing more is read from the server.
"""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import msgspec
import structlog

from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.logins.client_certificate import (
    ClientCertificate,
    ClientCertificateError,
    refuses_certificate,
    show,
)
from hms_gateway.runtime.logins.delegation_token import ANSWER_HEADER

# An answer up to this size is waited for as a whole.
HELD_BYTES_MAX = 256 * 1024
# Of an answer that is being handed on, so much may wait before the server is made to wait.
QUEUED_BYTES_MAX = 1024 * 1024
HEADER_BYTES_MAX = 64 * 1024
# A connection that has been idle for longer may be closed by the server in the very moment a request is sent.
FRESH_SECONDS = 2.0
CONNECT_SECONDS_MAX = 10.0
# Servers close idle connections too (ours after 75 s); being first avoids the race.
IDLE_SECONDS_MAX = 60.0

_log = structlog.get_logger("hms_gateway.bridge")


class UpstreamError(Exception):
    """No answer. With `was_sent` a part of the request may have reached the server."""

    def __init__(self, text: str, *, was_sent: bool) -> None:
        super().__init__(text)
        self.was_sent = was_sent


class UpstreamNotTrusted(UpstreamError):
    """The server's certificate is not accepted, or ours by the server: trying again does not help."""


class TooSlow(UpstreamError):
    """No answer in time."""


class ClientTls:
    """Checks the server against the system's authorities or those in the file `cacert`, or not at all, and shows it
    `certificate`.
    """

    def __init__(
        self,
        cacert: Path | None = None,
        *,
        is_insecure: bool = False,
        certificate: ClientCertificate | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises OSError (ssl.SSLError among them) when `cacert` cannot be used, CertificateError."""
        self._cacert = None if is_insecure else cacert
        self._is_insecure = is_insecure
        self._certificate = certificate
        files = [] if self._cacert is None else [self._cacert]
        files += [] if certificate is None else certificate.files
        self._watched = [WatchedFile(file, monotonic) for file in files]
        self._have_changed(at_once=True)
        self._context = self._make()

    def context(self, *, at_once: bool) -> ssl.SSLContext:
        """For the files of now, or with `at_once` False of within a second: another one after each change.

        Files that cannot be used leave the one before: of a certificate and its key one is written first.
        """
        if self._have_changed(at_once=at_once):
            try:
                self._context = self._make()
            except (OSError, ClientCertificateError) as error:
                _log.warning("a new certificate cannot be used; the previous one stays in use", problem=str(error))
        return self._context

    def _have_changed(self, *, at_once: bool) -> bool:
        return bool([file for file in self._watched if file.has_changed(at_once=at_once)])

    def _make(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self._is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._cacert is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cafile=self._cacert)
        if self._certificate is not None:
            show(context, self._certificate.text())
        return context


class Origin(msgspec.Struct, frozen=True):
    """Host and port of a server. `tls` None is plain HTTP."""

    host: str
    port: int
    tls: ClientTls | None

    @classmethod
    def of(cls, url: str, tls: ClientTls | None) -> "Origin":
        """The server of `url`. Raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an http:// or https:// address")
        is_secure = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if is_secure else 80), tls if is_secure else None)


class Answer:
    """One HTTP answer. `body` when all of it is there; else it comes by `chunks`, and `length` if it is known."""

    def __init__(self, connection: "UpstreamConnection", status: int, headers: dict[bytes, bytes]) -> None:
        self._connection = connection
        self.status = status
        self.content_type = headers.get(b"content-type", b"").decode("latin-1")
        self.request_id = headers.get(b"x-request-id", b"").decode("latin-1")
        self.is_not_tried = headers.get(b"x-call-outcome", b"") == b"not-tried"
        self.tag = headers.get(b"etag")
        self.login_answer = headers.get(ANSWER_HEADER, b"").decode("latin-1")
        length = headers.get(b"content-length", b"")
        self.length = int(length) if length.isdigit() else None
        self.body: bytes | None = None

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives; closing the iterator early closes the connection. Raises UpstreamError."""
        if self.body is not None:
            yield self.body
            return
        try:
            while chunk := await self._connection.next_chunk():
                yield chunk
        finally:
            self._connection.finish()

    def beginning(self) -> bytes:
        """The first bytes of the body; not fewer than a message's header has, unless it is shorter."""
        return self.body if self.body is not None else b"".join(self._connection.parts)

    async def whole(self, bytes_max: int) -> bytes | None:
        """The body, None when it is longer than `bytes_max`. Raises UpstreamError."""
        await self.held(bytes_max)
        self.abandon()
        return self.body

    async def held(self, bytes_max: int) -> None:
        """Wait until all of the body is there, or more than `bytes_max` of it. Raises UpstreamError."""
        if self.body is None and await self._connection.fill(bytes_max):
            self.body = self._connection.taken()

    def abandon(self) -> None:
        """The rest is not wanted: a connection with an unread answer is closed."""
        if self.body is None:
            self._connection.close()


class UpstreamConnection(asyncio.StreamReader):
    """One connection; one request at a time. Nothing more is read from the server than is wanted."""

    def __init__(
        self, give_back: Callable[["UpstreamConnection"], None], tls_context: ssl.SSLContext | None = None
    ) -> None:
        """`tls_context` is what it is made with."""
        super().__init__(limit=QUEUED_BYTES_MAX // 2)
        self.transport: asyncio.WriteTransport
        self.tls_context = tls_context
        # What arrived of the answer's body and was not taken yet.
        self.parts: deque[bytes] = deque()
        self.idle_since = 0.0
        self._give_back = give_back
        self._clock = asyncio.get_running_loop().time
        self._call_later = asyncio.get_running_loop().call_later
        self._parser: Any = None
        self._seconds_max = 0.0
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._size = self._unread = 0
        self._answer: Answer | None = None
        self._is_asked = False
        self._is_whole = False
        self._ends_with_connection = False
        self._may_stay_open = False
        self._is_new = True

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        super().set_transport(transport)
        self.transport = cast("asyncio.WriteTransport", transport)

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]
        """Called by asyncio. What arrives unasked could be taken for the next answer, and ends the connection."""
        self._unread += len(data)
        if self._is_asked:
            super().feed_data(data)
        else:
            self.close()

    def is_usable(self) -> bool:
        """True for an open connection."""
        return not self.transport.is_closing() and not self.at_eof()

    def is_fresh(self) -> bool:
        """True if the server can hardly have closed it unnoticed."""
        return self._is_new or self._clock() - self.idle_since < FRESH_SECONDS

    async def request(self, head: bytes, body: bytes, seconds_max: float) -> Answer:
        """Send one request, wait for its answer or the beginning of a long one. Raises UpstreamError, TooSlow."""
        if not self.is_usable():
            self.close()
            raise UpstreamError("the connection is closed", was_sent=False)
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._header_bytes, self._answer = {}, 0, None
        self._is_asked, self._is_whole, self._seconds_max = True, False, seconds_max
        self.transport.write(head + body)
        is_held = await self.fill(HELD_BYTES_MAX)
        answer = cast("Answer", self._answer)
        if is_held:
            answer.body = self.taken()
        return answer

    async def next_chunk(self) -> bytes:
        """More of a long answer, b"" at its end. Raises UpstreamError."""
        if not self.parts:
            await self.fill(0)
        chunk = self.parts.popleft() if self.parts else b""
        self._size -= len(chunk)
        return chunk

    async def fill(self, bytes_max: int) -> bool:
        """Wait until the answer is whole (True), or more than `bytes_max` of it are there. Raises UpstreamError."""
        timer = self._call_later(self._seconds_max, self.set_exception, TimeoutError())
        try:
            while not self._is_whole and (self._answer is None or self._size <= bytes_max):
                await self._read()
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()
        return self._is_whole and self._size <= bytes_max

    def taken(self) -> bytes:
        """The rest of a whole answer."""
        body = b"".join(self.parts)
        self.parts.clear()
        self._size = 0
        self.finish()
        return body

    def finish(self) -> None:
        """The answer has been taken, or will not be: the connection is ready for another request, or done with."""
        if not self._is_whole or self.parts or self._unread or not self._may_stay_open:
            self.close()
        elif self._is_asked:
            self._is_asked, self.idle_since = False, self._clock()
            self._is_new = False
            self._give_back(self)

    def close(self) -> None:
        """End the connection at once."""
        self.transport.abort()
        self._give_back(self)

    async def _read(self) -> None:
        """Take what the server sends next. Raises UpstreamError."""
        try:
            data = await self.read(QUEUED_BYTES_MAX)
            self._unread -= len(data)
            self._parser.feed_data(data)
        except TimeoutError as error:
            raise TooSlow(f"no answer within {self._seconds_max:g} seconds", was_sent=True) from error
        except httptools.HttpParserError as error:
            raise UpstreamError(f"the server's answer is not HTTP: {error}", was_sent=True) from error
        except OSError as error:
            raise self._closed(error) from error
        if not data and self._ends_with_connection:
            self._is_whole, self._may_stay_open = True, False
        elif not data:
            raise self._closed(None)

    def _closed(self, error: OSError | None) -> UpstreamError:
        """The error that the end of the connection is."""
        if isinstance(error, ssl.SSLError) and (refused := refused_certificate(error)) is not None:
            return refused
        if self._answer is not None:
            return UpstreamError(f"the answer ended early: {error or 'connection closed'}", was_sent=True)
        reason = f": {error}" if error else ""
        if self._is_new and self.tls_context is not None:
            # asyncio's servers end a refused handshake without an alert.
            reason += " before its first answer; one that refuses the bridge's certificate, or needs one, does so"
        return UpstreamError(f"the server closed the connection{reason}", was_sent=True)

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > HEADER_BYTES_MAX:
            raise ValueError("the headers of the answer are too long")
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if self._is_whole:
            raise ValueError("two answers to one request")
        status = self._parser.get_status_code()
        if status >= 200:
            self._answer = Answer(self, status, self._headers)
            is_delimited = b"content-length" in self._headers or b"transfer-encoding" in self._headers
            self._ends_with_connection = not is_delimited and status not in (204, 304)

    def on_body(self, chunk: bytes) -> None:
        self.parts.append(chunk)
        self._size += len(chunk)

    def on_message_complete(self) -> None:
        # 100 Continue is a message of its own to the parser.
        self._is_whole = self._answer is not None
        self._ends_with_connection = False
        # Only right here does the parser know.
        self._may_stay_open = self._parser.should_keep_alive()


def refused_certificate(error: ssl.SSLError) -> UpstreamNotTrusted | None:
    """The error of a server that refuses the bridge's certificate, or needs one; None for another error of TLS.

    It comes with TLS 1.3 when the request was sent already, and the server has not looked at that.
    """
    if not refuses_certificate(str(error)):
        return None
    return UpstreamNotTrusted(f"the server refuses the bridge's certificate, or needs one: {error}", was_sent=False)


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
        return sum(connection.is_usable() for connection in self._open)

    async def acquire(self, *, must_be_fresh: bool) -> UpstreamConnection:
        """A connection for one request, after which it comes back by itself.

        With `must_be_fresh` not one that the server may just be closing. Raises UpstreamError, UpstreamNotTrusted.
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
            is_outdated = is_too_old or connection.tls_context is not tls_context
            if connection.is_usable() and not is_outdated and (not must_be_fresh or connection.is_fresh()):
                return connection
            connection.close()
        return None

    async def _connect(self) -> UpstreamConnection:
        origin = self._origin
        tls_context = None if origin.tls is None else origin.tls.context(at_once=True)
        server_name = origin.host if origin.tls is not None else None
        connection = UpstreamConnection(self._returned, tls_context)
        protocol = asyncio.StreamReaderProtocol(connection)
        is_connected = False
        self._connecting += 1
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await self._loop.create_connection(
                    lambda: protocol, origin.host, origin.port, ssl=tls_context, server_hostname=server_name
                )
            is_connected = True
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
            if not is_connected:
                self._wake_one()
        self._open.add(connection)
        return connection

    def _returned(self, connection: UpstreamConnection) -> None:
        """A connection is free, or gone; the latter may be reported twice."""
        if connection.is_usable():
            self._idle.append(connection)
        else:
            self._open.discard(connection)
            with suppress(ValueError):
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
