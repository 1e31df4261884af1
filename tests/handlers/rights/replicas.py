"""Gateways of one database in this process, with all their doors: HTTPS, the Thrift port, and a bridge in front.

A password names the groups of its user, so that each door takes every caller; logins have tests of their own.
"""

import asyncio
import contextlib
import itertools
import queue
import random
import socket
import ssl
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import uvloop

from hms_gateway.bridge.server.admission import BridgeOptions
from hms_gateway.bridge.server.metrics import BridgeMetrics
from hms_gateway.bridge.server.running import BridgeSettings, make_bridge
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.cache import ReplyCache
from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.composition.thrift_port import ThriftPort
from hms_gateway.gateway.admission.identity import Identity, Refused, RequestHead
from hms_gateway.gateway.assembly import build_gateway, served_certificate
from hms_gateway.gateway.auth.external_logins import ImpersonationRule, TrustedProxyAuthenticator
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.server import Server
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Caller, Dialect
from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import Codec, MessageType, TApplicationException, make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.support.catalog import place_empty_database
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, METASTORE_PATH, GatewayServer, free_port, trusting

CODECS = make_codecs(Limits())
PATHS = {Dialect.HIVE_2_3: API_PATH, Dialect.HIVE_4: METASTORE_PATH}
ADMINISTRATOR = "root"
BRIDGE = "bridge"
_PLAIN, _STARTED, _COMPLETE = b"PLAIN", 1, 5


class Asked(NamedTuple):
    """One call: who, by which dialect, in which protocol, and what."""

    caller: Caller
    dialect: Dialect
    protocol: str
    method: str
    payload: bytes

    @classmethod
    def of(cls, caller: Caller, dialect: Dialect, protocol: str, method: str, *values: Any) -> "Asked":
        payload = _codec(protocol).encode(methods_of(dialect)[method].arguments(*values))
        assert isinstance(payload, bytes)
        return cls(caller, dialect, protocol, method, payload)

    def message(self) -> bytes:
        before, after = _codec(self.protocol).envelope(self.method, MessageType.CALL, 1)
        return before + self.payload + after

    def answer(self, reply: bytes) -> Any:
        """What the reply says; `NAME: text` for an exception."""
        codec, method = _codec(self.protocol), methods_of(self.dialect)[self.method]
        message = codec.read_message(reply)
        if message.type is MessageType.EXCEPTION:
            error: Any = codec.decode(TApplicationException, message.payload)
            return f"TApplicationException: {error.message}"
        result: Any = codec.decode(method.result, message.payload)
        for field in method.definition.throws:
            if (raised := getattr(result, field.name)) is not None:
                return f"{type(raised).__name__}: {raised.message}"
        return None if method.definition.returns is None else result.success


class Door(Protocol):
    """A way into one replica. Used from one thread.

    `takes_groups` is whether a caller's groups come with it.
    """

    takes_groups: bool

    @property
    def dialects(self) -> Sequence[Dialect]: ...

    @property
    def protocols(self) -> Sequence[str]: ...

    def ask(self, asked: Asked) -> Any: ...

    def close(self) -> None: ...


def _codec(protocol: str) -> Codec:
    codec: Codec = getattr(CODECS, protocol)
    return codec


def _password(caller: Caller) -> str:
    return "in " + ",".join(sorted(caller.groups))


class NamedGroups:
    """Lets everybody in, with the groups that the password names."""

    def remembered(self, head: RequestHead) -> Identity | None:
        sent = head.headers.get(b"authorization", b"")
        if not sent.startswith(b"Basic "):
            return None
        user, _, password = b64decode(sent[6:]).decode().partition(":")
        return Identity(user, head.peer, groups=frozenset(password[3:].split(",")) - {""})

    async def authenticate(self, head: RequestHead) -> Identity:
        raise Refused(401, "who are you?")

    def close(self) -> None:
        pass


class _Socket:
    """A connection that is read by lengths and lines. It dies by itself when nothing comes."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname="localhost")
        self._file = self._socket.makefile("rb")
        self.send = self._socket.sendall

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise ConnectionResetError("the server has closed the connection")
        return data

    def line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the server has closed the connection")
        return line

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class HttpDoor:
    """HTTPS with both dialects and all protocols; calls with tags of replies held, and with keys."""

    dialects = tuple(Dialect)
    protocols = ("tjson", "binary", "compact")
    takes_groups = True

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._connect: Callable[[], _Socket] = lambda: _Socket(port, tls)
        self._socket: _Socket | None = None
        self.not_modified = 0

    def ask(self, asked: Asked) -> Any:
        status, _, body = self.post(asked)
        assert status == 200, (status, body)
        return asked.answer(body)

    def ask_holding(self, asked: Asked, held: dict[Any, tuple[bytes, bytes]]) -> Any:
        """With the tag of what anybody was answered to the same call before; that is the answer if it is current."""
        tag, known = held.get(asked[1:], (b'"none"', b""))
        status, headers, body = self.post(asked, b"if-none-match: " + tag)
        assert status in (200, 304), (status, body)
        if status == 304:
            self.not_modified += 1
            return asked.answer(known)
        if b"etag" in headers:
            held[asked[1:]] = headers[b"etag"], body
        return asked.answer(body)

    def post(self, asked: Asked, *fields: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
        """Status, headers and body."""
        body = asked.message()
        login = b64encode(f"{asked.caller.user}:{self.password(asked.caller)}".encode())
        head = [
            b"POST %b HTTP/1.1" % PATHS[asked.dialect].encode(),
            b"host: localhost",
            b"authorization: Basic " + login,
            b"content-type: " + _codec(asked.protocol).content_type.encode(),
            b"content-length: %d" % len(body),
            *fields,
        ]
        if self._socket is None:
            self._socket = self._connect()
        self._socket.send(b"\r\n".join(head) + b"\r\n\r\n" + body)
        return self._response(self._socket)

    @staticmethod
    def password(caller: Caller) -> str:
        return _password(caller)

    def _response(self, connection: _Socket) -> tuple[int, dict[bytes, bytes], bytes]:
        status = int(connection.line()[9:12])
        headers: dict[bytes, bytes] = {}
        while (line := connection.line().rstrip()) != b"":
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        if headers.get(b"transfer-encoding") != b"chunked":
            return status, headers, connection.read(int(headers.get(b"content-length", b"0")))
        pieces = []
        while size := int(connection.line(), 16):
            pieces.append(connection.read(size))
            connection.line()
        connection.line()
        return status, headers, b"".join(pieces)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


class ProcessDoor(HttpDoor):
    """HTTPS to a gateway of several processes, whose password file has all users."""

    takes_groups = False

    @staticmethod
    def password(caller: Caller) -> str:
        return caller.user


class ThriftDoor:
    """Thrift over TCP with SASL PLAIN, a connection for each caller: the Thrift port, or a bridge."""

    protocols = ("binary", "compact")
    takes_groups = True

    def __init__(self, port: int, dialect: Dialect) -> None:
        self.dialects = (dialect,)
        self._port = port
        self._connections: dict[Caller, _Socket] = {}

    def ask(self, asked: Asked) -> Any:
        connection = self._connections.get(asked.caller)
        if connection is None:
            connection = self._connections[asked.caller] = self._logged_in(asked.caller)
        message = asked.message()
        connection.send(len(message).to_bytes(4, "big") + message)
        return asked.answer(connection.read(int.from_bytes(connection.read(4), "big")))

    def _logged_in(self, caller: Caller) -> _Socket:
        connection = _Socket(self._port)
        response = f"\0{caller.user}\0{_password(caller)}".encode()
        for status, part in ((_STARTED, _PLAIN), (_COMPLETE, response)):
            connection.send(bytes([status]) + len(part).to_bytes(4, "big") + part)
        status, size = connection.read(1)[0], int.from_bytes(connection.read(4), "big")
        assert status == _COMPLETE, connection.read(size)
        connection.read(size)
        return connection

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


class ActingDoor(ThriftDoor):
    """A bridge that calls for the users whom its clients name, by `set_ugi`, under a login of its own."""

    takes_groups = False

    def _logged_in(self, caller: Caller) -> _Socket:
        connection = _Socket(self._port)
        named = Asked.of(caller, self.dialects[0], "binary", "set_ugi", caller.user, []).message()
        connection.send(len(named).to_bytes(4, "big") + named)
        connection.read(int.from_bytes(connection.read(4), "big"))
        return connection


class Replica:
    """One gateway that serves in a thread. Its bridge is in another loop."""

    def __init__(self, settings: Settings, dialect: Dialect) -> None:
        self.settings, self.dialect = settings, dialect
        self.metrics = Metrics(METHODS.keys())
        certificate = served_certificate(settings, self.metrics)
        self.metastore: Metastore = build_metastore(settings, self.metrics.calls_by_method)
        store, rights = self.metastore.store, self.metastore.rights
        assert rights is not None
        self.cache = ReplyCache(store, settings.limits, store.read, generation=rights.rules.look)
        port = settings.thrift_port
        assert port is not None
        gateway = build_gateway(
            settings,
            codecs=self.metastore.codecs,
            processor=self.metastore.processor,
            cache=self.cache,
            ready=store.ready,
            metrics=self.metrics,
            certificate=certificate,
            releases=self.metastore.releases,
            authenticator=TrustedProxyAuthenticator(
                NamedGroups(), proxy_users={BRIDGE: ImpersonationRule(frozenset("*"))}
            ),
            newest_event=store.version,
            on_stop=[self.cache.close, store.close],
            secondary_listener=lambda edge: ThriftPort(settings, port, self.metastore.codecs, edge),
        )
        ports: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._server = Server(gateway, on_listening=lambda addresses: ports.put(addresses[0][1]))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        self.port = ports.get(timeout=PATIENCE_SECONDS)
        self.thrift_port = port
        self.bridge_port = self.acting_port = 0

    def bridge_settings(self, encoding: Any, *, acts: bool) -> BridgeSettings:
        return BridgeSettings(
            url=f"https://localhost:{self.port}{PATHS[self.dialect]}",
            server=BridgeOptions(port=0, sasl="off" if acts else "require"),
            credentials=Credentials(BRIDGE, _password(Caller(BRIDGE))) if acts else None,
            is_insecure=True,
            encoding=encoding,
            keeps_keys=True,
            acts_for_users=acts,
            side_port=None,
        )

    def doors(self) -> list[Door]:
        """New ones, for one thread."""
        return [
            HttpDoor(self.port, trusting()),
            ThriftDoor(self.thrift_port, self.dialect),
            ThriftDoor(self.bridge_port, self.dialect),
            ActingDoor(self.acting_port, self.dialect),
        ]

    def stop(self) -> None:
        self._server.stop()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def replicas(folder: Path, rules: str, database_url: str | None = None, count: int = 2) -> Iterator[list[Replica]]:
    """Gateways of one database that enforce grants. `root` is their administrator."""
    if database_url is None:
        place_empty_database(folder / DATABASE_FILE)
    rules_file = folder / "rules.toml"
    rules_file.write_text(rules)
    with contextlib.ExitStack() as stack:
        made = []
        for _, dialect in zip(range(count), itertools.cycle(Dialect), strict=False):
            settings = Settings(
                data_dir=folder,
                port=free_port(),
                database_url=database_url,
                file_systems={"file": "ignore"},
                warehouse_dir="file:/w",
                administrators=[ADMINISTRATOR],
                authorization="grants",
                authorization_rules_file=rules_file,
                log_level="warning",
                thrift_port=free_port(),
                thrift_sasl="require",
                thrift_dialect=dialect.value,
            )
            made.append(replica := Replica(settings, dialect))
            stack.callback(replica.stop)
        stack.enter_context(_bridges(made))
        yield made


@contextlib.contextmanager
def processes(folder: Path, made: list[Replica], users: Sequence[str]) -> Iterator[ProcessDoor]:
    """A gateway of two processes over the database of the others."""
    of_first = made[0].settings
    settings = {
        "workers": 2,
        "file_systems.file": "ignore",
        "warehouse_dir": "file:/w",
        "administrators": [ADMINISTRATOR],
        "authorization": "grants",
        "authorization_rules_file": str(of_first.authorization_rules_file),
    }
    for user in (ADMINISTRATOR, *users):
        add_user(folder / "users", user, user)
    url = of_first.database_url or f"sqlite:///{of_first.data_dir / DATABASE_FILE}"
    with GatewayServer(folder, database=url, settings=settings) as served:
        yield ProcessDoor(served.port, trusting())


@contextlib.contextmanager
def _bridges(made: list[Replica]) -> Iterator[None]:
    """Two in front of each replica, one of which acts for its users; those of each second one speak TJSON."""
    started, wants_stop = threading.Event(), threading.Event()

    async def serve() -> None:
        servers: list[Any] = []
        for replica, encoding in zip(made, itertools.cycle(("binary", "tjson")), strict=False):
            passing, acting = (
                make_bridge(replica.bridge_settings(encoding, acts=acts), BridgeMetrics()) for acts in (False, True)
            )
            replica.bridge_port, replica.acting_port = await passing.start(), await acting.start()
            servers += passing, acting
        started.set()
        await asyncio.get_running_loop().run_in_executor(None, wants_stop.wait)
        for server in servers:
            await server.stop()

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    try:
        yield
    finally:
        wants_stop.set()
        thread.join(PATIENCE_SECONDS)


class Asker:
    """Asks the replicas, each call through some door, in some dialect and protocol. Used from one thread."""

    def __init__(self, made: list[Replica], choices: random.Random, others: Sequence[Door] = ()) -> None:
        self._random = choices
        self._doors = [*(door for one in made for door in one.doors()), *others]
        self._http = [door for door in self._doors if type(door) is HttpDoor]
        self._way = self._some_way()
        self._held: dict[Any, tuple[bytes, bytes]] = {}

    def ask(self, caller: Caller, method: str, *values: Any) -> Any:
        """What some door answers."""
        door, asked = self._some(caller, method, *values)
        if isinstance(door, HttpDoor) and self._random.random() < 0.3:
            return door.ask_holding(asked, self._held)
        return door.ask(asked)

    def with_key(self, caller: Caller, method: str, *values: Any) -> tuple[Any, "Repeatable"]:
        """What some HTTPS door answers to a call with a key, and what it takes to repeat it."""
        while True:
            door, asked = self._some(caller, method, *values)
            if type(door) is HttpDoor:
                break
        call = Repeatable(asked, f"{self._random.getrandbits(64):x}")
        status, _, body = door.post(asked, b"idempotency-key: " + call.key.encode())
        assert status == 200, (status, body)
        return asked.answer(body), call

    def repeat(self, call: "Repeatable", caller: Caller) -> Any:
        """What some replica answers to the same call with the same key."""
        door = self._random.choice(self._http)
        asked = call.asked._replace(caller=caller)
        status, _, body = door.post(asked, b"idempotency-key: " + call.key.encode())
        assert status == 200, (status, body)
        return asked.answer(body)

    def close(self) -> None:
        for door in self._doors:
            door.close()

    @property
    def not_modified(self) -> int:
        return sum(door.not_modified for door in self._http)

    def _some(self, caller: Caller, method: str, *values: Any) -> tuple[Door, Asked]:
        """Mostly the way of the call before, so that caches have it."""
        if self._random.random() < 0.3 or (caller.groups and not self._way[0].takes_groups):
            self._way = self._some_way(with_groups=bool(caller.groups))
        door, dialect, protocol = self._way
        return door, Asked.of(caller, dialect, protocol, method, *values)

    def _some_way(self, *, with_groups: bool = True) -> tuple[Door, Dialect, str]:
        door = self._random.choice([door for door in self._doors if door.takes_groups or not with_groups])
        return door, self._random.choice(door.dialects), self._random.choice(door.protocols)


class Repeatable(NamedTuple):
    """A call that was made with a key."""

    asked: Asked
    key: str
