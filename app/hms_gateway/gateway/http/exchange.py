"""One HTTP request and its response, without any I/O: the adapters make it, `endpoint` fills it in."""

import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from hms_gateway.cache import Reading, ReplyKey, TagReading
from hms_gateway.gateway.admission.identity import HeaderList, Identity, RequestHead
from hms_gateway.gateway.calls.streaming import ReplyStream
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.wire import Codec, Message
from hms_gateway.runtime.call_record import Objects, Span, Trace, TraceSpans, seconds_by_name
from hms_gateway.runtime.shares import Bound, Holder

KEY_HEADER: Final = b"idempotency-key"
LEASE_HEADER: Final = b"x-hms-lease-id"
LOCK_HEADER: Final = b"x-hms-lock-id"
TXN_HEADER: Final = b"x-hms-txn-id"
RECORDED_HEADER: Final = b"x-hms-recorded-at"
WRITE_IDS_HEADER: Final = b"x-hms-valid-write-ids"
CAPABILITIES_HEADER: Final = b"x-hms-capabilities"
# Which answer the client has already.
HELD_HEADER: Final = b"if-none-match"
# A client that wants to know what its call's time went to (`server_timing`).
TIMING_HEADER: Final = b"x-hms-server-timing"
# Values that handlers see, by the fields of `Call`.
_SAID: Final = {
    LEASE_HEADER: "lease",
    LOCK_HEADER: "lock_id",
    TXN_HEADER: "txn_id",
    KEY_HEADER: "key",
    RECORDED_HEADER: "recorded_at",
    WRITE_IDS_HEADER: "valid_write_ids",
    CAPABILITIES_HEADER: "capabilities",
}
# Of answers that are written at once; others say how the connection goes on.
_WRITTEN_HEADERS: Final = frozenset({b"etag", b"content-encoding", b"vary"})
TEXT = b"text/plain; charset=utf-8"
_STATUS_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}


class Response(NamedTuple):
    """What answers a request; the body of a long reply comes in chunks."""

    status: int
    content_type: bytes | None
    body: bytes | ReplyStream = b""
    headers: HeaderList = ()


class Pending(NamedTuple):
    """An answer of which the next step has to wait for `future`; `resume` takes it, and raises as the path does."""

    future: "asyncio.Future[Any]"
    resume: Callable[[], "Answer"]


Answer: TypeAlias = Response | Pending | Coroutine[Any, Any, Response]
"""The response, or what is left of the path to it. Raises ClientGone, and what `failures` makes a response of."""


class Exchange:
    """State of one request. `until_gone` returns when the client has left; it is set before anything is awaited."""

    until_gone: Callable[[], Coroutine[Any, Any, None]]
    identity: Identity | None = None
    codec: Codec
    message: Message
    # Whether there is a message; without one `method` is what could be read of its name.
    is_read = False
    method = ""
    # As whom the sender tried to log in, where the login was refused.
    tried_user = ""
    # Of a connection that counts as no user's yet: counts it as the given user's (`Connections.claim`).
    claim: Callable[[str], Bound | None] | None = None
    # The first part of a body that was not looked at. Not the refusal's: requests with the same password may share one.
    beginning = b""
    # What the client has already of the answer (`HELD_HEADER`); such requests come through ASGI.
    held: bytes | None = None
    # Under which the reply may be kept in the cache.
    key: ReplyKey | None = None
    # Of a reader that says which write ids it sees. `tagged` has to be called before the reply is read.
    reading: Reading | None = None
    tagged: TagReading | None = None
    # Of a call that was not answered by the cache: what its arguments name, and what its thread did.
    objects: Objects = ()
    partitions: int = 0
    spans: Sequence[Span] = ()
    # Of a call that is traced, or whose client asked for `TIMING_HEADER`; `trace` is of the former only.
    notes: TraceSpans | None = None
    trace: Trace | None = None
    outcome = "ok"
    cached = False
    status = 0
    bytes_in = 0
    bytes_out = 0

    def __init__(self, head: RequestHead, dialect: Dialect) -> None:
        self.started = time.perf_counter()
        self.head = head
        self.dialect = dialect
        given = head.headers.get(b"x-request-id")
        # A new id is one that no other process makes.
        self.request_id = given if given is not None and _is_sane(given) else b"%b-%x" % (_process, next(_numbers))

    @property
    def says_more(self) -> bool:
        """True if headers tell handlers something besides the arguments."""
        return not self.head.headers.keys().isdisjoint(_SAID)

    def call(self, holder: Holder) -> Call:
        """The request as handlers see it."""
        identity = self.identity
        assert identity is not None
        said: dict[str, Any] = {}
        for header, field in _SAID.items():
            value = self.head.headers.get(header)
            if value is not None:
                said[field] = value.decode("latin-1")
        return Call(
            principal=identity.user,
            groups=identity.groups,
            dialect=self.dialect,
            request_id=self.request_id.decode("latin-1"),
            client_address=identity.address,
            holder=holder,
            first=self.tagged,
            last=None if self.tagged is None else self.tagged.confirm,
            real_user=identity.real_user,
            may_get_token=not identity.by_token,
            may_administer=identity.may_administer,
            notes=self.notes,
            **said,
        )

    def whole(self, response: Response, date: bytes) -> bytes | None:
        """The bytes of a response that is about to be written; None for one that ASGI has to send.

        uvicorn checks every header of every reply with regular expressions and writes head and body apart: a quarter
        of the time of a cached call. Here `date` is uvicorn's, and the values of the others are free of line ends.
        """
        status, content_type, body, headers = response
        identity = self.identity
        if not isinstance(body, bytes) or (identity is not None and identity.headers):
            return None
        about = b""
        if headers:
            if any(name not in _WRITTEN_HEADERS for name, _ in headers):
                return None
            about = b"".join([b"%b: %b\r\n" % header for header in headers])
        self.status = status
        self.bytes_out = len(body)
        if content_type is None:
            # 304 has no body, and so no length.
            return b"%bdate: %b\r\nx-request-id: %b\r\n%b\r\n" % (_STATUS_LINES[status], date, self.request_id, about)
        return b"%bdate: %b\r\nx-request-id: %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b\r\n%b" % (
            _STATUS_LINES[status],
            date,
            self.request_id,
            content_type,
            len(body),
            about,
            body,
        )


async def settled(answer: Answer) -> Response:
    """Go the rest of the path."""
    while isinstance(answer, Pending):
        with contextlib.suppress(Exception):
            await answer.future
        answer = answer.resume()
    return answer if isinstance(answer, Response) else await answer


_is_sane = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}").fullmatch
_process = secrets.token_hex(4).encode()
_numbers = count(1)


# The metric that each span counts for.
_METRICS = {"parse": "parse", "cache": "cache", "queue": "queue", "read": "db", "write": "db", "call": "call"}


def server_timing(exchange: Exchange) -> bytes:
    """In milliseconds, as W3C Server Timing has it; what the call did not need is left out."""
    noted = () if exchange.notes is None else exchange.notes.parts
    spans = [*((part.name, part.begin, part.end) for part in noted), *exchange.spans]
    known = [(_METRICS[name], begin, end) for name, begin, end in spans if name in _METRICS]
    found = {**seconds_by_name(known), "total": time.perf_counter() - exchange.started}
    described = "cache;desc=hit" if exchange.cached else "cache"
    return ", ".join(
        f"{described if name == 'cache' else name};dur={seconds * 1000:.3f}" for name, seconds in found.items()
    ).encode()
