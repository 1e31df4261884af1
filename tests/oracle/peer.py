"""The real Apache Hive Metastore as a child process: Thrift binary over TCP, and TJSON over HTTP."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hms_gateway.rpc.structs import HiveObjectRef, HiveObjectType, PrincipalType
from tests.bridge.bridge_process import connected
from tests.support.server import free_port

SCRIPTS = Path(__file__).parent
PREPARE_SECONDS_MAX = 300
START_SECONDS_MAX = 180
STOP_SECONDS_MAX = 30
NOTHING_TO_RUN = 3
# What is in it is thrown away: Derby need not wait for the disk.
JAVA_OPTIONS = ("-Dderby.system.durability=test",)
# A test's server ends before it would have paid to compile its code well: this takes a third of the CPU time.
SHORT_LIFE = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# The same for each program of a JDK that a test runs.
SHORT_LIVES = {"JAVA_TOOL_OPTIONS": " ".join(SHORT_LIFE)}


class PeerUnavailable(Exception):
    """The machine has no Java or no jars; the text says which."""


class PeerDidNotStart(Exception):
    """Everything was there and still it did not run; the text ends with its output."""


def prepared_folder() -> Path:
    """The folder with jars and compiled classes, prepared when it was not. Raises PeerUnavailable."""
    folder = Path(os.environ.get("HMS_PEER_DIR") or Path(sys.prefix) / "hms-peer")
    if os.name != "posix" or shutil.which("java") is None:
        raise PeerUnavailable("no Java")
    folder.mkdir(parents=True, exist_ok=True)
    # Another worker of the test run may be preparing it.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        finished = _run("hms-setup.sh", str(folder), environment={}, seconds_max=PREPARE_SECONDS_MAX)
    if finished.returncode == NOTHING_TO_RUN:
        raise PeerUnavailable(finished.stderr.strip())
    if finished.returncode:
        raise PeerDidNotStart(finished.stdout + finished.stderr)
    return folder


@dataclass(frozen=True)
class HiveDatabase:
    """A database of Hive's schema that is there already: its JDBC URL, a user, and class and jar of the driver."""

    url: str
    user: str
    driver: tuple[str, Path]


class RealMetastore:
    """One metastore over a database of its own below `folder`. Usable as a context manager.

    The database is an embedded Derby, or with `postgres_port` a PostgreSQL that listens there, whose user is `hive`, or
    `database`.
    Where its speed is `measured`, Java compiles as it does for everybody.
    With a notification log (`notifies`) it cannot add 100 partitions at once: Derby's column for events is too short.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        notifies: bool = True,
        postgres_port: int | None = None,
        database: HiveDatabase | None = None,
        measured: bool = False,
    ) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.port, self.http_port = free_port(), free_port()
        self._settings = settings or {}
        self._notifies = notifies
        self._postgres_port = postgres_port
        self._database = database
        self._measured = measured

    def start(self) -> Self:
        """Start and return when it answers. Raises PeerUnavailable and PeerDidNotStart."""
        environment = {
            "PEER_DIR": str(prepared_folder()),
            "HMS_RUN": str(self.folder),
            "HMS_NOTIFY": str(int(self._notifies)),
            "HMS_HEAP": "1g",
            "HMS_JAVA_OPTS": " ".join(JAVA_OPTIONS if self._measured else (*JAVA_OPTIONS, *SHORT_LIFE)),
            "HMS_CONF": "\n".join(f"{name}={value}" for name, value in self._settings.items()),
        }
        backend = "derby"
        if self._postgres_port is not None:
            backend, environment["HMS_PG_PORT"] = "postgres", str(self._postgres_port)
        if self._database is not None:
            driver, jar = self._database.driver
            backend = self._database.url
            environment |= {"HMS_DB_USER": self._database.user, "HMS_DB_DRIVER": f"{driver}={jar}"}
        ports = (str(self.port), str(self.http_port))
        finished = _run("hms-start.sh", backend, *ports, environment=environment, seconds_max=START_SECONDS_MAX)
        if finished.returncode:
            raise PeerDidNotStart(f"{finished.stdout}{finished.stderr}\n{self.log_text()}")
        if backend == "postgres":
            self._make_tables_of_grants()
        return self

    def _make_tables_of_grants(self) -> None:
        """Reading grants makes their tables. Made by the first create_table, they would wait for that call for ever."""
        kinds = (HiveObjectType.DATABASE, HiveObjectType.TABLE, HiveObjectType.PARTITION, HiveObjectType.COLUMN)
        with connected(self) as client:
            for kind in kinds:
                client.list_privileges("nobody", PrincipalType.USER, HiveObjectRef(kind, None, None, None, None))

    def stop(self) -> None:
        _run("hms-stop.sh", str(self.folder / "pid"), environment={}, seconds_max=STOP_SECONDS_MAX)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log_text(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace") if log.exists() else ""


def _run(
    script: str, *arguments: str, environment: Mapping[str, str], seconds_max: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPTS / script), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        env={**os.environ, "PYTHON": sys.executable, **environment},
    )
