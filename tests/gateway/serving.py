"""A real gateway server on loopback for tests, with a processor that answers what the test says."""

import asyncio
import contextlib
import io
import json
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from hms_gateway.gateway.admission.identity import Identity
from hms_gateway.gateway.admission.memory import BodyShares
from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.admission.rates import Rates
from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.assembly import call_sinks
from hms_gateway.gateway.http.asgi_endpoint import AsgiEndpoint
from hms_gateway.gateway.http.endpoint import Endpoint
from hms_gateway.gateway.observability.call_logs import AccessLog, AuditLog
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.traces import Traces
from hms_gateway.gateway.server import Server, bounded_connections
from hms_gateway.rpc.call import Releases
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType, MessageType, make_codecs
from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.support.patience import PATIENCE_SECONDS

PATH = "/gateway/default/hmshttpthrift/api/hms"
CALL = b'[1,"get_all_databases",1,1,{}]'
DATABASES = b'{"0":{"lst":["str",1,"default"]}}'
ANSWER = b'[1,"get_all_databases",2,1,{"0":{"lst":["str",1,"default"]}}]'
# A limit that tests wait for; a busy machine may reach it between a connection and its request (`is_answered`).
SECONDS_TO_SEND = 0.1

Answer = Callable[..., object]


class CannedProcessor:
    """Answers with bytes, chunks, None for a oneway, or raises; unknown methods as the real one does."""

    def __init__(self, **answers: object) -> None:
        self.answers: dict[str, Any] = {"get_all_databases": DATABASES, "shutdown": None, **answers}
        self.calls: list = []

    def process(self, codec, message, call):
        self.calls.append((message, call))
        if message.name not in self.answers:
            error = ApplicationError(f"Invalid method name: '{message.name}'", ApplicationErrorType.UNKNOWN_METHOD)
            return Reply(MessageType.EXCEPTION, codec.encode(_struct(error)), error.type.name)
        answer = self.answers[message.name]
        if callable(answer):
            answer = answer(message, call)
        if isinstance(answer, Exception):
            raise answer
        return Reply(MessageType.REPLY, answer, "ok")


def _struct(error):
    from hms_gateway.rpc.wire.message import TApplicationException

    return TApplicationException(error.message, int(error.type))


class Anybody:
    """Lets everybody in under one name."""

    def __init__(self, user: str = "ann") -> None:
        self.user = user
        self.closed = False

    def remembered(self, head):
        return Identity(self.user, head.peer)

    async def authenticate(self, head):
        raise AssertionError("never asked")

    def close(self) -> None:
        self.closed = True


class FakeCache:
    """Knows some replies; remembers what it is asked to.

    It answers at once, or only when it is awaited.
    """

    def __init__(self, known=None, awaitable=False, held=None) -> None:
        self.known = known or {}
        self.held = held
        self.awaitable = awaitable
        self.remembered: list[Any] = []
        self.answered: list[str] = []
        self.with_lists: frozenset[str] = frozenset()
        self.is_apart = False

    def ticket(self):
        return 42

    def follow(self): ...

    def lookup(self, key):
        found = self.known.get(key)
        if not self.awaitable:
            return found

        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        loop.call_soon(answer.set_result, found)
        return answer

    def scopes_of(self, key):
        return ()

    def version_tag(self, method, arguments, ticket):
        return None

    async def current(self, key, codec, tags):
        return self.held

    def note_answered(self, method):
        self.answered.append(method)

    def remember(self, key, arguments, payload, ticket, tagged=None):
        self.remembered.append((key, payload, ticket))


@dataclass
class Running:
    """A server that is up: where it is, and what it is made of."""

    port: int
    server: Server
    asgi_endpoint: AsgiEndpoint
    metrics: Metrics
    log: io.StringIO
    thread: threading.Thread
    scheme: str = "http"
    path: str = PATH
    stopped: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> Endpoint:
        return self.asgi_endpoint.endpoint

    @property
    def bodies(self) -> BodyShares:
        return self.asgi_endpoint.bodies

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{self.path}"

    @property
    def root(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()

    def log_lines(self) -> list[dict]:
        """What the access log holds once the server has stopped."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection from `source`, any address of 127.0.0.0/8."""
        address = ("127.0.0.1", self.port)
        connection = socket.create_connection(address, timeout=PATIENCE_SECONDS, source_address=(source, 0))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def exchange(self, request: bytes) -> bytes:
        """Send raw bytes and read until the server closes."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)


RECORD = CallRecord(0.25, 0.0, 0.0015, "id-1", "get_table", "änn", "ok", 200, True, "127.0.0.1", 10, 20)


def record(**changes: Any) -> CallRecord:
    """A call that has ended."""
    return replace(RECORD, **changes)


@contextlib.contextmanager
def running(
    processor: Any = None,
    *,
    cache: Any = None,
    authenticator: Any = None,
    limits: Limits | None = None,
    tls: ssl.SSLContext | None = None,
    origins: tuple[str, ...] = ("*",),
    ready: Callable[[], None] = lambda: None,
    proxies: Proxies | None = None,
    audit_log: AuditLog | None = None,
    rates: Rates | None = None,
    traces: Traces | None = None,
    releases: Releases | None = None,
    iceberg: Callable[[], Any] | None = None,
    **others: Any,
) -> Iterator[Running]:
    """Serve in a thread until the end of the block. `iceberg` is that of a metastore, `others` are settings."""
    limits, proxies = limits or Limits(), proxies or Proxies()
    limits = replace(limits, drain_seconds_max=min(limits.drain_seconds_max, PATIENCE_SECONDS))
    patience = {"header_seconds_max": PATIENCE_SECONDS, "idle_seconds_max": PATIENCE_SECONDS}
    settings = Settings(port=0, limits=limits, cors_origins=[*origins], **{**patience, **others})
    log = io.StringIO()
    access_log = AccessLog(stream=log)
    metrics = Metrics({"get_all_databases", "get_table", "shutdown"})
    stopped: list[str] = []
    endpoint = Endpoint(
        settings,
        codecs=make_codecs(limits),
        processor=processor or CannedProcessor(),
        cache=cast(Any, FakeCache() if cache is None else cache),
        authenticator=authenticator or Anybody(),
        proxies=proxies,
        metrics=metrics,
        sinks=call_sinks(metrics, access_log, audit_log, traces, rates),
        releases=releases,
        rates=rates,
        traces=traces,
    )
    asgi_endpoint = AsgiEndpoint(endpoint, settings)
    on_stop = (access_log.close, lambda: stopped.append("stopped"))
    connections = bounded_connections(limits, metrics)
    gateway = Gateway(
        asgi_endpoint,
        settings,
        connections=connections,
        certificate=None if tls is None else cast(Any, SimpleNamespace(context=tls)),
        ready=ready,
        on_stop=on_stop,
        iceberg=iceberg,
    )
    ports: queue.SimpleQueue[int] = queue.SimpleQueue()
    server = Server(gateway, on_listening=lambda addresses: ports.put(addresses[0][1]))
    # A daemon, so that a server that does not stop fails its test and does not keep the run from ending.
    thread = threading.Thread(target=server.run, name="server", daemon=True)
    thread.start()
    port = ports.get(timeout=PATIENCE_SECONDS)
    scheme = "http" if tls is None else "https"
    it = Running(port, server, asgi_endpoint, metrics, log, thread, scheme, stopped=stopped)
    try:
        yield it
    finally:
        it.stop()


def read_all(connection: socket.socket) -> bytes:
    pieces = []
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def read_response(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """One response with a Content-Length: status, headers, body."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        assert piece, f"closed after {data!r}"
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    status, headers = parse_head(head)
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        piece = connection.recv(65536)
        assert piece, "closed inside the body"
        body += piece
    return status, headers, body


def is_answered(connection: socket.socket) -> bool:
    """Whether a call is; a connection with a short limit may be closed before."""
    try:
        connection.sendall(post(CALL))
        return read_response(connection)[2] == ANSWER
    except (AssertionError, OSError):
        return False


def is_closed_after_a_line_end(server: Running) -> bool:
    with server.connect() as connection:
        if not is_answered(connection):
            return False
        connection.sendall(b"\r\n")
        read_all(connection)
    return True


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in fields}


def post(body: bytes, *headers: str, length: int | None = None, path: str = PATH) -> bytes:
    """A raw POST request."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers]
    if not any(line.lower().startswith("transfer-encoding") for line in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
