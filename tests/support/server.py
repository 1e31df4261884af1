"""The real server as a child process: a free port on loopback, TLS, a user with a password, its output in a file."""

import contextlib
import http.client
import itertools
import os
import random
import socket
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Self

from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.runtime.limits import FixedLimits
from hms_gateway.runtime.settings import FixedSettings
from tests.support.catalog import place_empty_database
from tests.support.ending import Process, end
from tests.support.gateway_command import CLOCK
from tests.support.patience import PATIENCE_SECONDS
from tests.support.warm_program import COMMAND, TESTING, WarmProgram

API_PATH = "/gateway/default/hmshttpthrift/api/hms"
METASTORE_PATH = "/metastore"
USER = "admin"
PASSWORD = "correct horse: battery"
# Below those that Linux, macOS and Windows give to outgoing connections.
PORTS = range(10_000, 32_000)
POLL_SECONDS = 0.005  # asking costs 0.15 ms, and what is asked too late is counted as a slow start


class ServerDidNotStart(Exception):
    """The process ended or never became ready; the text ends with its output."""


class GatewayServer:
    """One `hms-gateway serve`. Usable as a context manager; `start()` returns when `/readyz` says so.

    Without `database` and `demo` it finds an empty SQLite database: making one is a third of a start. Rights are off
    unless the settings say something else; None is a setting that is not set.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        demo: bool = False,
        database: str | None = None,
        settings: Mapping[str, object] | None = None,
        limits: Mapping[str, float] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.user, self.password = USER, PASSWORD
        self.log = data_dir / "server.log"
        self._database = database
        self._demo = demo
        self._variables = dict(environment or {})
        self._config = data_dir / "settings.toml"
        self._process: Process | None = None
        data_dir.mkdir(parents=True, exist_ok=True)
        self._tls = (settings or {}).get("tls", True)
        fixed = {*FixedSettings.__struct_fields__, *FixedLimits.__struct_fields__}
        is_changed = CLOCK in self._variables or fixed & {*(settings or {}), *(limits or {})}
        self._program = _testing_command() if is_changed else [COMMAND]
        self._config.write_text(_toml({"authorization": "off", **(settings or {})}, limits or {}))

    @property
    def url(self) -> str:
        """The MS-HMSHTTP address."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{API_PATH}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start and return when ready. Raises ServerDidNotStart."""
        assert self._process is None, "it is running already"
        if self._database is None and not self._demo:
            place_empty_database(self.data_dir / DATABASE_FILE)
        with self.log.open("ab") as output:
            self._process = started(self._command(), self._environment(), output)
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> int | None:
        """Ask to stop, insist after a while; the exit status, None when it was not running."""
        process, self._process = self._process, None
        if process is None:
            return None
        return end(process, PATIENCE_SECONDS)

    def kill(self) -> None:
        """End it without a chance to finish anything; `start()` runs it again over the same data."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def post(self, body: bytes, path: str = API_PATH, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """One POST on a new connection with the user's password; status and body of the answer."""
        with self.connection() as connection:
            connection.request("POST", path, body, {**basic(self.user, self.password), **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()

    @contextlib.contextmanager
    def connection(self, timeout_seconds: float = 30) -> Iterator[http.client.HTTPConnection]:
        connection = (
            http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout_seconds, context=_trusting_all())
            if self._tls
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_seconds)
        )
        try:
            yield connection
        finally:
            connection.close()

    def is_ready(self) -> bool:
        try:
            with self.connection(timeout_seconds=5) as connection:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def _command(self) -> list[str]:
        command = [*self._program, "serve", "--config", str(self._config)]
        command += ["--data-dir", str(self.data_dir), "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--database", self._database] if self._database else []
        command += ["--demo"] if self._demo else []
        return command

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
        # An installed gateway has its bytecode, so compiling it is no part of a start.
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)
        own = {"HMS_GATEWAY_ADMIN_PASSWORD": self.password, "PYTHONUNBUFFERED": "1"}
        return {**inherited, **own, **self._variables}

    def _wait_until_ready(self, process: Process) -> None:
        for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
            # Waiting for its end is the pause between two questions.
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(POLL_SECONDS)
                raise ServerDidNotStart(f"ended with status {status}\n{self.log_text()}")
            if self.is_ready():
                return
        raise ServerDidNotStart(f"not ready after {PATIENCE_SECONDS} s\n{self.log_text()}")


def basic(user: str, password: str) -> dict[str, str]:
    """The header of Basic authentication."""
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def started(command: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> Process:
    """The command in a process of its own, in tests a warm one where it is ours. Its output is all that it says."""
    # Benchmarks measure starts and memory.
    is_test = "PYTEST_VERSION" in os.environ
    testing = _testing_command()
    if is_test and command[: len(testing)] == testing:
        command, environment = [COMMAND, *command[len(testing) :]], {**environment, TESTING: "1"}
    if is_test and command[0] == COMMAND:
        with open(os.devnull, "rb") as nothing:
            return WarmProgram(command[1:], environment, nothing.fileno(), output.fileno(), output.fileno())
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=dict(environment)
    )


def _testing_command() -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("gateway_command.py"))]


def free_port() -> int:
    """A port nobody listens on right now, and that this test run gives to nobody else.

    None of those that the system gives to outgoing connections: one of them might take it before it is used.
    """
    while True:
        port = next(_ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _ports_of_this_process() -> Iterator[int]:
    """Each process of a test run has ports of its own; runs at the same time begin at different ones."""
    number, count = (os.environ.get(f"PYTEST_XDIST_WORKER{name}", "") for name in ("", "_COUNT"))
    own = PORTS[int(number.removeprefix("gw") or 0) :: int(count or 1)]
    return itertools.cycle((*own[(first := random.SystemRandom().randrange(len(own))) :], *own[:first]))


_ports = _ports_of_this_process()


def trusting() -> ssl.SSLContext:
    """TLS without checking who the other side is: the server made its certificate itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# To make one takes longer than to ask whether a server is ready.
_trusting_all = cache(trusting)


def _toml(settings: Mapping[str, object], limits: Mapping[str, float]) -> str:
    """The settings file. Values are numbers, booleans and strings without special characters."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in settings.items() if value is not None]
    lines += ["[limits]", *(f"{name} = {value}" for name, value in limits.items())]
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
