"""uvicorn's HTTP protocol with the bounds it lacks: time and size of headers.

uvicorn never times out a connection that says nothing or sends its headers one byte a minute. How many connections
there may be is the business of `door`.

A usual request that came whole is brought to `endpoint` here, without uvicorn's scope, cycle and ASGI messages, which
would cost more than a cached answer. What is usual is seen from the head alone; so nothing of uvicorn's is begun for
such a request until its last byte is there. A response that is there at once is written at once; one that has to be
waited for gets a cycle and a task of uvicorn's, so that uvicorn keeps the order of requests, sees the client go and
ends the connection in time. A request of which something is missing at the end of what was received goes to uvicorn as
if it had arrived just now.

`tests/gateway/http/test_uvicorn_internals.py` names what is used of uvicorn besides its documented interface.
"""

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from hms_gateway.gateway.admission.identity import CLIENT_CERTIFICATE
from hms_gateway.gateway.admission.memory import UNCOUNTED_BYTES, UnreadReplies
from hms_gateway.gateway.admission.request_rules import BROWSER_HEADERS
from hms_gateway.gateway.http.asgi_endpoint import ABORT, CLAIM, AsgiEndpoint
from hms_gateway.gateway.http.exchange import HELD_HEADER, TIMING_HEADER, Answer, Exchange, Pending, Response
from hms_gateway.gateway.http.request_body import Scope
from hms_gateway.rpc.call import Dialect
from hms_gateway.runtime.door import PiecewiseTransport, ShownCertificate
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.shares import Bound, Holder, Silence

HEADER_BYTES_MAX = 64 * 1024
# Requests with these are read or answered in ways that `asgi_endpoint` knows.
_ENCODED = {b"expect", b"upgrade", b"transfer-encoding", b"content-encoding"}
UNUSUAL_IN_LOADS = BROWSER_HEADERS | _ENCODED | {TIMING_HEADER}
UNUSUAL_HEADERS = UNUSUAL_IN_LOADS | {HELD_HEADER}

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_log = structlog.get_logger("hms_gateway.http")


class BoundedConfig(Config):
    """uvicorn's configuration and our bounds, which it hands to every connection."""

    def __init__(
        self,
        app: Any,
        settings: Settings,
        asgi_endpoint: AsgiEndpoint,
        dialect_of_url: Mapping[bytes, Dialect],
        unread_replies: UnreadReplies,
        load: "Load",
        **others: Any,
    ) -> None:
        super().__init__(app, http=BoundedHttpProtocol, **others)
        self.settings = settings
        self.asgi_endpoint = asgi_endpoint
        # The paths of the endpoint as they are in a request line.
        self.dialect_of_url = dialect_of_url
        self.unread_replies = unread_replies
        self.load_from_memory = load
        self.paths_of_loads = (f"{settings.iceberg_path}/".encode(),) if settings.iceberg_path else ()
        # Larger ones are counted while they arrive.
        self.whole_body_bytes_max = min(settings.limits.body_bytes_max, UNCOUNTED_BYTES)


Load: TypeAlias = Callable[[Exchange, bytes, bytes], Answer | None]
"""Answers a request to Iceberg's catalog by its path and query from memory; None for one that ASGI has to bring."""


class Counting(Protocol):
    """Who counts a connection."""

    def established(self, protocol: "BoundedHttpProtocol") -> None: ...

    def claim(self, user: str) -> Bound | None: ...

    def holder(self) -> Holder: ...

    def timed_out(self) -> None: ...

    def lost(self) -> None: ...


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection."""

    config: BoundedConfig

    def __init__(
        self, config: BoundedConfig, server_state: ServerState, app_state: dict[str, Any], counting: Counting
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._counting = counting
        self._settings = config.settings
        self._asgi_endpoint = config.asgi_endpoint
        self._dialect_of_url = config.dialect_of_url
        self._endpoint = config.asgi_endpoint.endpoint
        self._proxies = config.asgi_endpoint.endpoint.proxies
        self._header_timer: asyncio.TimerHandle | None = None
        self._certificate: ShownCertificate | None = None
        self._digests: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._reads_headers = True
        # A usual request: its headers, and the body as far as it has come.
        self._held_headers: dict[bytes, bytes] | None = None
        self._held_body = b""
        # The request that was read last, as long as it is answered without uvicorn.
        self._pending: tuple[Exchange, Pending] | None = None
        # What uvicorn answers now; its own `cycle` is that of the request that was read last.
        self._running: RequestResponseCycle | None = None
        # Whether it counts as the connection of its first request's user.
        self._is_claimed = False
        # The server stops: the next request is answered, and the connection ends with it.
        self._is_last = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._certificate = self._proxies.certificate_of(transport)
        # By default TLS keeps eight times as much, without a word.
        transport.set_write_buffer_limits(UNCOUNTED_BYTES)
        if self.config.is_ssl:
            # Not a cycle: a lost connection's memory, 26 KiB, would stay until the next collection of garbage.
            me = weakref.proxy(self)
            self.transport = cast(asyncio.Transport, PiecewiseTransport(transport, lambda: me._has_written()))
        self._counting.established(self)
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._held_headers = None
        self._let_uvicorn_wait()
        # On every way out, not only on a clean one as in uvicorn: the timer would keep the connection alive.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()
        self.config.unread_replies.resumed(self.transport)
        self._counting.lost()
        if self.is_silent():
            # They have methods of this connection, which would be a cycle as well.
            self.scope = self.cycle = self._running = None  # type: ignore[assignment]

    def pause_writing(self) -> None:
        super().pause_writing()
        self.config.unread_replies.paused(self.transport, self._counting.holder())

    def _has_written(self) -> None:
        if self.flow.write_paused:
            self.config.unread_replies.paused(self.transport, self._counting.holder())

    def resume_writing(self) -> None:
        super().resume_writing()
        self.config.unread_replies.resumed(self.transport)

    def data_received(self, data: bytes) -> None:
        is_first: bool = self.cycle is None
        if is_first and _looks_like_binary_thrift(data):
            _log.warning("a Thrift client without HTTP transport called; it needs the bridge", peer=self.client)
        super().data_received(data)
        if self._held_headers is not None:
            self._hand_over()
        if self._reads_headers:
            self._still_reading_headers(len(data))
        elif self.timeout_keep_alive_task is None and self.is_silent():
            # Line ends between requests, or the body of a request that was answered already: no time without end.
            self._reads_headers = True
            self._still_reading_headers(0)

    def on_message_begin(self) -> None:
        if self._pending is not None:
            self._let_uvicorn_wait()
        self._reads_headers = True
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        self._reads_headers = False
        self._header_bytes = 0
        if self._header_timer is not None:
            self._stop_header_timer()
        headers = dict(self.headers)
        if self._is_usual(headers):
            self._held_headers = headers
            self._held_body = b""
        else:
            self._begin()

    def on_body(self, body: bytes) -> None:
        if self._held_headers is None:
            super().on_body(body)
        else:
            self._held_body += body

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def shutdown(self) -> None:
        """The server stops. A request that is on its way cannot be refused any more: its sender may not repeat it.

        So a silent connection stays a little, until its client closes it or sends the last request.
        """
        self._let_uvicorn_wait()
        if self.is_silent() and self._settings.drain_idle_seconds:
            self._is_last = True
            self.loop.call_later(self._settings.drain_idle_seconds, self._close_if_silent)
        else:
            super().shutdown()

    def is_silent(self) -> bool:
        """Whether nothing is being done for this connection."""
        return self._pending is None and (self.cycle is None or self.cycle.response_complete)

    def _close_if_silent(self) -> None:
        if self.is_silent():
            self.transport.close()

    def silence(self, accepted_at: float) -> Silence | None:
        """See `shares.Counted`: idle connections were of use before, others have never had an answer."""
        if not self.is_silent():
            return None
        timer = self.timeout_keep_alive_task
        return (False, accepted_at) if timer is None else (True, timer.when() - self.timeout_keep_alive)

    def _is_usual(self, headers: dict[bytes, bytes]) -> bool:
        """True if the request, of which the head is here, is a small POST of a message that keeps its connection.

        Or the load of a table, on a connection that counts as its user's.
        """
        is_message = self.url in self._dialect_of_url
        if not is_message and not (self._is_claimed and self.url.startswith(self.config.paths_of_loads)):
            return False
        return (
            len(headers) == len(self.headers)
            and self.is_silent()
            and not self._is_last
            and b"host" in headers
            and headers.keys().isdisjoint(UNUSUAL_HEADERS if is_message else UNUSUAL_IN_LOADS)
            and int(headers.get(b"content-length", b"0")) <= self.config.whole_body_bytes_max
            and self.parser.get_method() == (b"POST" if is_message else b"GET")
            and self.parser.should_keep_alive()
            # Without this header only 1.1 keeps the connection, and asking for the version is slow.
            and (b"connection" not in headers or self.parser.get_http_version() == "1.1")
        )

    def on_message_complete(self) -> None:
        """Answer the held request, which is whole: at once, or when its answer is there."""
        headers, self._held_headers = self._held_headers, None
        if headers is None:
            super().on_message_complete()
            return
        body, self._held_body = self._held_body, b""
        peer = self.client[0] if self.client else ""
        dialect = self._dialect_of_url.get(self.url)
        if dialect is None:
            self._load(headers, body, peer)
            return
        try:
            head = self._proxies.head(headers, self.headers, b"", peer, self._certificate, self._digests)
        except Exception:
            self._have_read_anew(body)
            return
        exchange = Exchange(head, dialect)
        if not self._is_claimed:
            exchange.claim = self._claim
        answer: Answer
        try:
            answer = self._endpoint.answer_whole(exchange, body)
        except Exception as error:
            answer = self._endpoint.failures.response(exchange, error)
        self._go_on(exchange, answer)

    def _load(self, headers: dict[bytes, bytes], body: bytes, peer: str) -> None:
        """Answer a held request for a table, if that can be done from memory."""
        path, _, query = self.url.partition(b"?")
        answer: Answer | None = None
        with contextlib.suppress(Exception):
            head = self._proxies.head(headers, self.headers, query, peer, self._certificate, self._digests)
            exchange = Exchange(head, Dialect.HIVE_4)
            answer = self.config.load_from_memory(exchange, path, query)
        if answer is None:
            self._have_read_anew(body)
        else:
            self._go_on(exchange, answer)

    def _have_read_anew(self, body: bytes) -> None:
        """Let uvicorn have a request that is whole: what fails is answered there."""
        self._held_body = body
        self._hand_over()
        super().on_message_complete()

    def _claim(self, user: str) -> Bound | None:
        bound = self._counting.claim(user)
        self._is_claimed = bound is None
        return bound

    def _go_on(self, exchange: Exchange, answer: Answer) -> None:
        """Write the response if it is there and can be written at once."""
        whole = None
        if isinstance(answer, Response):
            if not (self.flow.write_paused or self.transport.is_closing()):
                # As uvicorn keeps it, once a second.
                defaults = self.server_state.default_headers
                try:
                    whole = exchange.whole(answer, defaults[0][1] if defaults else b"")
                except Exception:
                    # It fails in the task as well, which says so and answers.
                    whole = None
        elif isinstance(answer, Pending):
            self._pending = pending = (exchange, answer)
            answer.future.add_done_callback(partial(self._resume, pending))
            return
        if whole is None:
            self._wait_in_task(exchange, answer)
            return
        self.transport.write(whole)
        self.on_response_complete()
        self._endpoint.record(exchange)

    def _resume(self, pending: tuple[Exchange, Pending], _future: object) -> None:
        if self._pending is not pending:
            return
        self._pending = None
        exchange, answer = pending
        following: Answer
        try:
            following = answer.resume()
        except Exception as error:
            following = self._endpoint.failures.response(exchange, error)
        self._go_on(exchange, following)

    def _let_uvicorn_wait(self) -> None:
        """Something happens while a request is being answered: from now on uvicorn sees that it is."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._wait_in_task(*pending)

    def _wait_in_task(self, exchange: Exchange, answer: Answer) -> None:
        """Do what uvicorn does for a request that is complete, with the answer in place of the application."""
        self.cycle = cycle = RequestResponseCycle(
            scope=cast(Any, {"type": "http", "method": "POST", ABORT: self.transport.abort}),
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        self._start_asgi_task(cycle, cast(Any, partial(self._asgi_endpoint.conclude, exchange, answer)))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _hand_over(self) -> None:
        """Let uvicorn have the request that was held back."""
        self._held_headers = None
        self._begin()
        if self._held_body:
            super().on_body(self._held_body)

    def _begin(self) -> None:
        """What uvicorn does when a request begins and when its headers are complete."""
        url, headers, expects_continue = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        # The scope is made for the application; its type knows only what ASGI defines.
        scope = cast(Scope, self.scope)
        scope[ABORT] = self.transport.abort
        if not self._is_claimed:
            scope[CLAIM] = self._claim
        if self._certificate is not None:
            scope[CLIENT_CERTIFICATE] = self._certificate
        scope["headers"] = self.headers = headers
        self.url, self.expect_100_continue = url, expects_continue
        super().on_headers_complete()
        # The parser reports the trailers of a chunked body as headers; they must not become some of this request.
        self.headers = []
        if self._is_last:
            self.cycle.keep_alive = False

    def _still_reading_headers(self, received: int) -> None:
        self._header_bytes += received
        if self._header_bytes > HEADER_BYTES_MAX and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._header_timer is None:
            self._start_header_timer()

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(self._settings.header_seconds_max, self._headers_too_late)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _headers_too_late(self) -> None:
        self._header_timer = None
        if self.transport.is_closing() or not self._reads_headers:
            return
        self._counting.timed_out()
        if self._header_bytes:
            self.transport.write(_TOO_SLOW)
        self.transport.close()


def _looks_like_binary_thrift(data: bytes) -> bool:
    """A strict binary message, bare or behind the length of a frame."""
    return data[:2] == b"\x80\x01" or data[4:6] == b"\x80\x01"
