"""A MariaDB server of the test run's own: new data directory, Unix socket only, gone when the tests end.

It uses the programs in the folder that HMS_TESTS_MARIADB names, else those on the PATH.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql

from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_postgres import SHORT_FOLDER

# A test server may forget everything: durability would only cost time.
SERVER_OPTIONS = (
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--max-connections=200",
    "--skip-log-bin",
    "--skip-name-resolve",
)
DURABLE = ("--innodb-flush-log-at-trx-commit=1",)
POLL_SECONDS = 0.02
_NAMED = os.environ.get("HMS_TESTS_MARIADB")
_SEARCHED = (_NAMED, os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin")
_FOLDERS = os.pathsep.join(filter(None, _SEARCHED))


class MariadbUnavailable(Exception):
    """No MariaDB can be run here; the message says why."""


class PrivateMariadb:
    """One server. `stop()` and `start()` let a test take the database away for a while."""

    def __init__(self, *options: str, port: int | None = None, parent: Path | None = None) -> None:
        """Listens on the socket, and on loopback when it is given a port. `options` come after SERVER_OPTIONS.

        Its folder is made in `parent`, else in the folder of temporary files.
        """
        self._options = options
        self._port = port
        self._account = _account_when_root()
        self._server, install = (_program(name) for name in ("mariadbd", "mariadb-install-db"))
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="hms-my-", dir=parent or SHORT_FOLDER))
        self._data = self.folder / "data"
        self._kept = self.folder / "kept"
        self._log = self.folder / "server.log"
        self.socket = self.folder / "socket"
        try:
            if self._account is not None:
                os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
            self._install(install)
        except BaseException:
            self.delete()
            raise

    def url(self, database: str = "mysql", user: str = "root") -> str:
        """The SQLAlchemy URL of a database of this server."""
        return f"mariadb+pymysql://{user}@localhost/{database}?unix_socket={self.socket}"

    def name_of(self, url: str) -> str:
        """The database of one of its URLs."""
        return url.partition("?")[0].rpartition("/")[2]

    def connect(self, database: str = "mysql") -> "pymysql.Connection[pymysql.cursors.Cursor]":
        """A connection of the administrator that commits by itself."""
        return pymysql.connect(unix_socket=str(self.socket), user="root", database=database, autocommit=True)

    def administer(self, *statements: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def freeze(self) -> None:
        """Have it hang: connections are kept and taken, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def start(self) -> None:
        """Start and return when the server answers."""
        assert self._process is None, "it is running already"
        network = [f"--port={self._port}", "--bind-address=127.0.0.1"] if self._port else ["--skip-networking"]
        options = [f"--socket={self.socket}", *network, *SERVER_OPTIONS, *self._options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(self._server, *options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                **self._as_account(),  # type: ignore[call-overload]
            )
        for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
            try:
                self._process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if self._answers():
                    return
            else:
                break
        raise MariadbUnavailable(f"mariadbd did not start: {self._log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """Stop at once, cutting connections off, as a crash does."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def keep_files(self) -> None:
        """Keep a copy of the files of the stopped server, in the place of the copy before."""
        assert self._process is None, "it is running"
        shutil.rmtree(self._kept, ignore_errors=True)
        self._copy(self._data, self._kept)

    def go_back_to_kept_files(self) -> None:
        """Give the stopped server the files it had at `keep_files`: later commits are gone."""
        assert self._process is None, "it is running"
        shutil.rmtree(self._data)
        self._copy(self._kept, self._data)

    def _copy(self, source: Path, target: Path) -> None:
        # Owners are kept, which shutil does not.
        subprocess.run(["cp", "-a", source, target], check=True)

    def delete(self) -> None:
        """Stop where running, and remove every file."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        # Before it listens PyMySQL would leave a socket open for each try.
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(self.socket)):
                return False
        try:
            self.connect().close()
        except pymysql.Error:
            return False
        return True

    def _install(self, program: str) -> None:
        command = self._command(program, "--auth-root-authentication-method=normal", "--skip-test-db")
        if self._account is not None:
            command.append(f"--user={self._account.pw_name}")
        # It is a script that looks for the server on its PATH.
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env={**os.environ, "PATH": _FOLDERS},
        )
        if done.returncode:
            raise MariadbUnavailable(f"mariadb-install-db: {done.stdout.decode(errors='replace').strip()[-2000:]}")

    def _command(self, program: str, *arguments: str) -> list[str]:
        # Whatever the system's own server is set to.
        return [program, "--no-defaults", f"--datadir={self._data}", f"--tmpdir={self.folder}", *arguments]

    def _as_account(self) -> dict[str, object]:
        if self._account is None:
            return {}
        groups: Sequence[int] = []
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": groups}


class MariadbCopy:
    """The tables of a database and their rows, as often as they are wanted."""

    def __init__(self, server: PrivateMariadb, database: str) -> None:
        self._server = server
        # For each table how it is made, how a row is inserted, and its rows.
        self.content: list[tuple[str, str, Sequence[Any]]] = []
        with server.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            for (table,) in cursor.fetchall():
                cursor.execute(f"SHOW CREATE TABLE `{table}`")
                (_, made) = cursor.fetchone()  # type: ignore[misc]
                cursor.execute(f"SELECT * FROM `{table}`")
                places = ", ".join(["%s"] * len(cursor.description))
                self.content.append((made, f"INSERT INTO `{table}` VALUES ({places})", cursor.fetchall()))

    def copy_to(self, database: str) -> None:
        """Make them in an empty database."""
        with self._server.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("SET foreign_key_checks = 0")
            for made, _, _ in self.content:
                cursor.execute(made)
            for _, insert, rows in self.content:
                if rows:
                    cursor.executemany(insert, rows)


def _program(name: str) -> str:
    # Another version in the place of the named one would be a wrong result.
    found = shutil.which(name, path=_NAMED or _FOLDERS)
    if found is None:
        raise MariadbUnavailable(f"{name} is not installed")
    return found


def _account_when_root() -> pwd.struct_passwd | None:
    """MariaDB refuses to run as root; there it runs as an account that is on every system."""
    if os.geteuid() != 0:
        return None
    for name in ("mysql", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise MariadbUnavailable("running as root, and there is no account `mysql` or `nobody` to run a server as")
