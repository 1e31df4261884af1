"""uvicorn's HTTP protocol with the bounds it lacks: time and size of headers.

uvicorn never times out a connection that says nothing or sends its headers one byte a minute. How many connections
there may be is the business of `door`.

A request that came whole and can be answered directly is answered here, before uvicorn makes scope, cycle and task for
it (`direct_answers`). So nothing of uvicorn's is begun for a request that may be such a one until its last byte is
there, or the end of what was received; then the request is either answered or handed over to uvicorn as if it had
arrived just now. Where the answer comes later, the request is held until then or until the next one arrives.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast
from weakref import ref

import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from hms_gateway.gateway.direct import BEGUN, CLAIM, CYCLE
from hms_gateway.gateway.direct_answers import DirectAnswers, Later
from hms_gateway.gateway.exchange import ABORT
from hms_gateway.gateway.identity import RequestHead
from hms_gateway.gateway.proxies import PROXY_CERTIFICATE
from hms_gateway.gateway.request_body import Scope
from hms_gateway.gateway.unread_replies import UNCOUNTED_BYTES, PiecewiseTransport, UnreadReplies
from hms_gateway.runtime.connections import Silence
from hms_gateway.runtime.shares import Bound, Holder

HEADER_BYTES_MAX = 64 * 1024

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_log = structlog.get_logger("hms_gateway.http")


class BoundedConfig(Config):
    """uvicorn's configuration and our bounds, which it hands to every connection."""

    def __init__(
        self,
        app: Any,
        *,
        header_seconds_max: float,
        drain_idle_seconds: float,
        unread_replies: UnreadReplies,
        direct_answers: DirectAnswers,
        **others: Any,
    ) -> None:
        super().__init__(app, http=BoundedHttpProtocol, **others)
        self.header_seconds_max = header_seconds_max
        self.drain_idle_seconds = drain_idle_seconds
        self.unread_replies = unread_replies
        self.direct_answers = direct_answers


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
        self._header_timer: asyncio.TimerHandle | None = None
        self._has_proxy_certificate = False
        self._header_bytes = 0
        self._reads_headers = True
        # A request that may be answered at once: its headers, and the body as far as it has come.
        self._held_headers: dict[bytes, bytes] | None = None
        self._held_body = b""
        # What answers the held request, which is whole.
        self._awaited: Later | None = None
        # Whether it counts as the connection of its first request's user.
        self._is_claimed = False
        # The server stops: the next request is answered, and the connection ends with it.
        self._is_last = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._has_proxy_certificate = self.config.direct_answers.proxies.has_certificate(transport)
        # By default TLS keeps eight times as much, without a word.
        transport.set_write_buffer_limits(UNCOUNTED_BYTES)
        if self.config.is_ssl:
            self.transport = cast(asyncio.Transport, PiecewiseTransport(transport, self._has_written))
        self._counting.established(self)
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._held_headers, self._awaited = None, None
        # On every way out, not only on a clean one as in uvicorn: the timer would keep the connection alive.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        self.config.unread_replies.resumed(self.transport)
        self._counting.lost()

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
        if self._held_headers is not None and self._awaited is None:
            self._hand_over()
        if self._reads_headers:
            self._still_reading_headers(len(data))
        elif self.timeout_keep_alive_task is None and self.is_silent():
            # Line ends between requests, or the body of a request that was answered already: no time without end.
            self._reads_headers = True
            self._still_reading_headers(0)

    def on_message_begin(self) -> None:
        self._await_no_longer()
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
        if self._may_be_answered_at_once(headers):
            self._held_headers = headers
            self._held_body = b""
        else:
            self._begin()

    def on_body(self, body: bytes) -> None:
        if self._held_headers is None:
            super().on_body(body)
        else:
            self._held_body += body

    def on_message_complete(self) -> None:
        if self._held_headers is not None:
            if self._answer_directly(self._held_headers):
                return
            self._hand_over()
        self._complete()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def shutdown(self) -> None:
        """The server stops. A request that is on its way cannot be refused any more: its sender may not repeat it.

        So a silent connection stays a little, until its client closes it or sends the last request.
        """
        self._await_no_longer()
        if self.is_silent() and self.config.drain_idle_seconds:
            self._is_last = True
            self.loop.call_later(self.config.drain_idle_seconds, self._close_if_silent)
        else:
            super().shutdown()

    def is_silent(self) -> bool:
        """Whether nothing is being done for this connection."""
        return self._awaited is None and (self.cycle is None or self.cycle.response_complete)

    def _close_if_silent(self) -> None:
        if self.is_silent():
            self.transport.close()

    def silence(self, accepted_at: float) -> Silence | None:
        """As `connections.Counted`: idle connections were of use before, others have never had an answer."""
        if not self.is_silent():
            return None
        timer = self.timeout_keep_alive_task
        return (False, accepted_at) if timer is None else (True, timer.when() - self.timeout_keep_alive)

    def _may_be_answered_at_once(self, headers: dict[bytes, bytes]) -> bool:
        return (
            len(headers) == len(self.headers)
            and self.is_silent()
            and not self._is_last
            and self.config.direct_answers.may_answer(self.url, headers)
            and self.parser.get_method() == b"POST"
            and self.parser.should_keep_alive()
            # Without this header only 1.1 keeps the connection, and telling the version is slow.
            and (b"connection" not in headers or self.parser.get_http_version() == "1.1")
        )

    def _answer_directly(self, headers: dict[bytes, bytes]) -> bool:
        # Waiting for a client that is slow to read is uvicorn's business.
        if self._cannot_write():
            return False
        answers = self.config.direct_answers
        peer = self.client[0] if self.client else ""
        head = answers.proxies.head(headers, self.headers, b"", peer, self._has_proxy_certificate)
        if not self._is_claimed and not self._claim_directly(head):
            return False
        defaults = self.server_state.default_headers
        date = defaults[0][1] if defaults else b""
        deliver = partial(self._deliver, headers)
        whole = answers.answer(self.url, head, self._held_body, date, deliver)
        if whole is None:
            return False
        if isinstance(whole, Later):
            self._awaited = whole
        else:
            self._respond(whole)
        return True

    def _claim_directly(self, head: RequestHead) -> bool:
        """Count the connection as its user's; False where `endpoint` has to find out who that is, or to refuse it."""
        user = self.config.direct_answers.user(head)
        return user is not None and self._claim(user) is None

    def _claim(self, user: str) -> Bound | None:
        bound = self._counting.claim(user)
        self._is_claimed = bound is None
        return bound

    def _deliver(self, headers: dict[bytes, bytes], make_response: Callable[[], bytes | None]) -> bool:
        """The answer to the held request with these headers; False if it is not held any more."""
        if self._held_headers is not headers:
            return False
        whole = None if self._cannot_write() else make_response()
        if whole is None:
            self._await_no_longer()
        else:
            self._awaited = None
            self._respond(whole)
        return True

    def _respond(self, whole: bytes) -> None:
        self._held_headers = None
        self.transport.write(whole)
        self.on_response_complete()

    def _cannot_write(self) -> bool:
        return self.flow.write_paused or self.transport.is_closing()

    def _await_no_longer(self) -> None:
        """Let uvicorn have the request that is whole and awaits its answer, if there is one."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            self._hand_over()
            if awaited.begun is not None:
                awaited.is_taken_over = True
                cast(Scope, self.scope)[BEGUN] = awaited.begun
            self._complete()

    def _complete(self) -> None:
        """What uvicorn does when a request is complete."""
        super().on_message_complete()
        # When all of a request came at once, the task that answers it starts after this and finds its body there.
        cast(Scope, self.cycle.scope)[CYCLE] = ref(self.cycle)

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
        if self._has_proxy_certificate:
            scope[PROXY_CERTIFICATE] = True
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
        self._header_timer = self.loop.call_later(self.config.header_seconds_max, self._headers_too_late)

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
