"""Sends messages that attack to a real gateway, through HTTP and the Thrift port, and watches what it does to it.

    python -m tests.attacks.fuzzer --messages 300000 --seed 7
    python -m tests.attacks.fuzzer --messages 1000000 --grants

prints, now and then, how many messages were sent, what was answered, the resident memory, the longest delay of the
event loop and the internal errors. With `--grants` rights are enforced, users with all, some and no rights call, and a
bridge is a door, too. It ends with status 1 after an internal error, a traceback, an answer of 5xx other than 503, or
when the gateway dies.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hms_gateway.composition.demo import DATABASE
from hms_gateway.gateway.auth.users import add_user
from tests.attacks.messages import AttackMessage, messages
from tests.bridge.bridge_process import BridgeProcess
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, METASTORE_PATH, PASSWORD, USER, GatewayServer, basic, free_port

PROBE_SECONDS = 0.02
CLIENTS = 8
RULES = f'[[rule]]\nusers = ["ann"]\nactions = ["select", "insert", "alter"]\nobjects = ["{DATABASE}", "default"]\n'
# With rights of all kinds: an administrator, who has some, who has none.
USERS = (USER, "ann", "bob")
TRACEBACK = "Traceback (most recent call last)"
_SASL_STARTS, _SASL_COMPLETE = 1, 5
_INTERNAL = re.compile(r'^hms_gateway_calls_total\{method="(\w+)",outcome="INTERNAL_ERROR"\} ([0-9.e+]+)', re.MULTILINE)


@dataclass
class Observations:
    """What a run saw. `statuses` are HTTP's, `thrift` says how messages through the Thrift port ended."""

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    thrift: Counter[str] = field(default_factory=Counter)
    silent: list[AttackMessage] = field(default_factory=list)
    failed: list[tuple[int, AttackMessage]] = field(default_factory=list)
    delay_seconds_max: float = 0.0
    resident_bytes: list[int] = field(default_factory=list)
    internal_errors: dict[str, int] = field(default_factory=dict)

    def is_good(self) -> bool:
        return not self.internal_errors and not self.failed and not self.silent


@dataclass(frozen=True)
class Attacked:
    """A gateway without TLS, as behind a proxy, and its doors for Thrift; with a bridge, rights are enforced."""

    server: GatewayServer
    thrift_port: int
    bridge: BridgeProcess | None = None

    @property
    def users(self) -> tuple[str, ...]:
        return (USER,) if self.bridge is None else USERS

    def has_traceback(self) -> bool:
        logs = [self.server.log_text(), "" if self.bridge is None else self.bridge.log_text()]
        return any(TRACEBACK in log for log in logs)


class Fuzzer:
    """One run against a running gateway."""

    def __init__(self, attacked: Attacked, seed: int) -> None:
        self._server, self._bridge = attacked.server, attacked.bridge
        self._thrift_port = attacked.thrift_port
        self._users = itertools.cycle(attacked.users)
        self._messages = messages(seed)
        self.seen = Observations()

    async def run(self, count: int, clients: int = CLIENTS) -> None:
        """Send the next `count` messages, with several clients at a time."""
        left = iter(range(count))
        probe = asyncio.create_task(self._probe())
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(clients):
                    group.create_task(self._client(number, left))
        finally:
            probe.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await probe
        self.seen.internal_errors = await self._internal_errors()
        self.seen.resident_bytes.append(resident_bytes(self._server.pid))

    def _next(self, left: Iterator[int]) -> AttackMessage | None:
        if next(left, None) is None:
            return None
        self.seen.sent += 1
        return next(self._messages)

    async def _client(self, number: int, left: Iterator[int]) -> None:
        """Every fourth one uses another door than HTTP, every eighth the bridge if there is one."""
        if number % 4 != 3:
            await self._through_http(left)
        elif self._bridge is not None and number % 8 == 7:
            await self._through_thrift(left, self._bridge.port)
        else:
            await self._through_thrift(left, self._thrift_port)

    async def _through_http(self, left: Iterator[int]) -> None:
        while (message := self._next(left)) is not None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
            try:
                while message is not None and await self._post(reader, writer, message):
                    message = self._next(left)
            finally:
                writer.close()

    async def _post(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: AttackMessage) -> bool:
        """Whether the connection can take another message."""
        path = METASTORE_PATH if len(message.body) % 2 else API_PATH
        authorization = basic(next(self._users), PASSWORD)["Authorization"]
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n"
        writer.write(f"{head}Content-Length: {len(message.body)}\r\n\r\n".encode() + message.body)
        try:
            status, is_open = await asyncio.wait_for(_http_answer(reader), PATIENCE_SECONDS)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            self.seen.silent.append(message)
            return False
        self.seen.statuses[status] += 1
        if status >= 500 and status != 503:
            self.seen.failed.append((status, message))
        return is_open

    async def _through_thrift(self, left: Iterator[int], port: int) -> None:
        while (message := self._next(left)) is not None:
            self.seen.thrift[await self._exchange(message, port)] += 1

    async def _exchange(self, message: AttackMessage, port: int) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            if self._bridge is not None:
                await asyncio.wait_for(_log_in(reader, writer, next(self._users)), PATIENCE_SECONDS)
                writer.write(len(message.body).to_bytes(4, "big"))
            writer.write(message.body)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
            return "answered" if answer else "closed"
        except TimeoutError:
            self.seen.silent.append(message)
            return "silent"
        except (OSError, asyncio.IncompleteReadError):
            return "closed"
        finally:
            writer.close()

    async def _probe(self) -> None:
        """How long the event loop lets a request wait that needs nothing else."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            while True:
                start = time.perf_counter()
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await _http_answer(reader)
                self.seen.delay_seconds_max = max(self.seen.delay_seconds_max, time.perf_counter() - start)
                await asyncio.sleep(PROBE_SECONDS)
        finally:
            writer.close()

    async def _internal_errors(self) -> dict[str, int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = (await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)).decode()
        finally:
            writer.close()
        return {method: int(float(count)) for method, count in _INTERNAL.findall(text)}


async def _http_answer(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """Status of the next answer, and whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head[9:12])
    if b"transfer-encoding: chunked" in head:
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readexactly(2)
    else:
        length = re.search(rb"\r\ncontent-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
    return status, b"connection: close" not in head


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in use and in RAM."""
    text = Path(f"/proc/{pid}/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _log_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str) -> None:
    """SASL PLAIN, as Thrift frames it."""
    response = f"\0{user}\0{PASSWORD}".encode()
    for status, part in ((_SASL_STARTS, b"PLAIN"), (_SASL_COMPLETE, response)):
        writer.write(bytes([status]) + len(part).to_bytes(4, "big") + part)
    head = await reader.readexactly(5)
    await reader.readexactly(int.from_bytes(head[1:], "big"))
    assert head[0] == _SASL_COMPLETE


@contextlib.contextmanager
def attacked(folder: Path, *, grants: bool = False) -> Iterator[Attacked]:
    """A gateway that runs until the end of the block, with its Thrift port open; with grants also a bridge."""
    thrift_port = free_port()
    settings = {"tls": False, "thrift_port": thrift_port, "log_level": "warning", "log_format": "text"}
    if not grants:
        with GatewayServer(folder, settings=settings, demo=True) as server:
            yield Attacked(server, thrift_port)
        return
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    for user in USERS:
        add_user(folder / "users", user, PASSWORD)
    settings |= {"authorization": "grants", "authorization_rules_file": str(rules), "thrift_sasl": "require"}
    with (
        GatewayServer(folder, settings=settings, demo=True) as server,
        BridgeProcess(server, "--sasl", "require") as bridge,
    ):
        yield Attacked(server, thrift_port, bridge)


async def _run(arguments: argparse.Namespace, gateway: Attacked) -> bool:
    fuzzer = Fuzzer(gateway, arguments.seed)
    while fuzzer.seen.sent < arguments.messages:
        await fuzzer.run(min(arguments.every, arguments.messages - fuzzer.seen.sent))
        seen = fuzzer.seen
        print(
            f"{seen.sent:>8} messages  {seen.resident_bytes[-1] / 2**20:6.0f} MiB  "
            f"delay {seen.delay_seconds_max * 1000:5.0f} ms  HTTP {dict(seen.statuses)}  Thrift {dict(seen.thrift)}  "
            f"internal {sum(seen.internal_errors.values())}",
            flush=True,
        )
        for status, message in seen.failed[:5]:
            print(f"  {status}: {message.method} {message.encoding} {message.body[:300]!r}")
        for message in seen.silent[:5]:
            print(f"  no answer: {message.method} {message.encoding} {message.body[:300]!r}")
    return fuzzer.seen.is_good() and not gateway.has_traceback()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=300_000, help="how many to send (default 300000)")
    parser.add_argument("--every", type=int, default=10_000, help="print a line after so many (default 10000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed sends the same messages (default 1)")
    parser.add_argument("--grants", action="store_true", help="rights are enforced; three users, and a bridge")
    parser.add_argument("--folder", type=Path, help="keep the gateway's data and log here")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        gateway = stack.enter_context(attacked(folder, grants=arguments.grants))
        return 0 if asyncio.run(_run(arguments, gateway)) else 1


if __name__ == "__main__":
    sys.exit(main())
