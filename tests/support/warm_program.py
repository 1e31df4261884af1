"""`hms-gateway` as a child process, forked from one that has its modules: loading them is nine tenths of a start.

The command runs from `hms_gateway.cli.main` to the end of its process, with arguments, variables, folder, umask and
standard streams of its own; a terminal as its input is that of its session. What it is forked from has loaded modules,
read the table of methods, and done nothing else. Tests of what Python itself does at a start (`/proc/PID/environ`, the
locale, imports) use `subprocess`.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

ROOT: Final = Path(__file__).parents[2]
COMMAND: Final = str(Path(sys.executable).with_name("hms-gateway"))
# A variable: the program is that of `gateway_command`.
TESTING: Final = "HMS_TESTS_FIXED_SETTINGS"
MODULE: Final = "-m"
MESSAGE_BYTES_MAX: Final = 2**17
LOADED: Final = (
    *(f"hms_gateway.cli.{name}" for name in ("application", "operations.serving", "calls.calling")),
    *(f"hms_gateway.{name}" for name in ("storage.migrations.steps", "catalog.rights.rules_file")),
    *(f"hms_gateway.{name}" for name in ("gateway.pages", "gateway.console.static_files", "runtime.settings_reading")),
    *(f"hms_gateway.storage.{name}" for name in ("files.remote", "dialects.postgres_pipeline", "dialects.mysql")),
    "hms_gateway.storage.dialects.sqlite",
    *("fsspec", "psycopg", "pymysql", "_strptime", "encodings.idna", "encodings.latin_1"),
    *(f"cryptography.{name}" for name in ("x509", "hazmat.backends.openssl", "hazmat.primitives.asymmetric.ec")),
    "cryptography.hazmat.primitives.serialization",
    *(f"sqlalchemy.dialects.{name}" for name in ("postgresql.psycopg", "mysql.pymysql", "mysql.mariadb")),
    *("httpx", "rich.console", "uvicorn.lifespan.on", "uvicorn.loops.uvloop", "uvloop"),
)


class WarmProgram:
    """A running command, with what tests use of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], *streams: int) -> None:
        """`words` are the command's, or MODULE, a module and its own; `streams` standard input, output and error."""
        self.args = [COMMAND, *words]
        self.returncode: int | None = None
        self._ended, tell = os.pipe()
        try:
            self.pid = _source().start(self.args, environment, (*streams, tell))
        finally:
            os.close(tell)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._ended)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(os.read(self._ended, 16))
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: int) -> None:
        # It may have ended, and nobody has been told yet.
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class WarmModule(WarmProgram):
    """A module of the tests as a program without input. Its errors are this process's, or among what it says."""

    def __init__(self, *words: str, says_errors: bool = False) -> None:
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading, encoding="utf-8")
        with open(os.devnull, "rb") as nothing, os.fdopen(writing, "wb") as output:
            handle = output.fileno()
            super().__init__([MODULE, *words], os.environ, nothing.fileno(), handle, handle if says_errors else 2)

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """All that it still says, when it has ended."""
        with self.stdout:
            said = self.stdout.read()
        self.wait(timeout)
        return said, None


def run_program(
    words: Sequence[str], environment: Mapping[str, str], text_in: str = "", seconds_max: float | None = None
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` gives for the command."""
    with contextlib.ExitStack() as opened:
        streams = [opened.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(3)]
        streams[0].write(text_in)
        streams[0].seek(0)
        program = WarmProgram(words, environment, *(stream.fileno() for stream in streams))
        try:
            status = program.wait(seconds_max)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
        for stream in streams:
            stream.seek(0)
        return subprocess.CompletedProcess(program.args, status, streams[1].read(), streams[2].read())


def stop_warm_programs() -> None:
    """No more of them: the process that they are forked from ends."""
    if _source.cache_info().currsize:
        _source().stop()
        _source.cache_clear()


class _Source:
    """The process that programs are forked from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm_program", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def start(self, words: Sequence[str], environment: Mapping[str, str], handles: Sequence[int]) -> int:
        mask = os.umask(0)
        os.umask(mask)
        message = json.dumps([list(words), dict(environment), os.getcwd(), mask]).encode()
        with self._lock:
            socket.send_fds(self._control, [message], handles)
            return int(self._control.recv(16))

    def stop(self) -> None:
        self._control.close()
        self._process.wait()


@cache
def _source() -> _Source:
    return _Source()


def _fill_tables() -> None:
    """Those that each start fills with what is the same for all."""
    from hms_gateway.handlers import steps
    from hms_gateway.rpc.binding import methods_of
    from hms_gateway.rpc.call import Dialect
    from hms_gateway.rpc.idl.method_facts import lasting_rights
    from tests.support.quick_hashes import hash_quickly
    from tests.support.shared_authorities import share_authorities

    share_authorities()
    lasting_rights()
    for dialect in Dialect:
        for method in methods_of(dialect).values():
            steps._text_paths(method)
            steps._context_paths(method)
    hash_quickly()


def _become_the_next(control: socket.socket) -> list[str]:
    """Fork for each message, and tell its sender how the child ended. Returns in the children only: their words."""
    signal.signal(signal.SIGCHLD, lambda *_: None)
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    tells: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            for pid, status in _ended():
                with contextlib.suppress(BrokenPipeError):  # nobody waits for it
                    os.write(tells[pid], str(status).encode())
                os.close(tells.pop(pid))
        if control in ready:
            message, handles, _, _ = socket.recv_fds(control, MESSAGE_BYTES_MAX, 4)
            if not message:
                sys.exit()
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for ours in (control, woken, waking):
                    ours.close()
                for handle in tells.values():
                    os.close(handle)
                words, environment, folder, mask = json.loads(message)
                _take_over(environment, folder, mask, handles)
                return list(words)
            *streams, tells[pid] = handles
            for handle in streams:
                os.close(handle)
            control.send(str(pid).encode())


def _ended() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found[0], os.waitstatus_to_exitcode(found[1])


def _take_over(environment: dict[str, str], folder: str, mask: int, handles: list[int]) -> None:
    for number, handle in enumerate(handles[:3]):
        os.dup2(handle, number)
    for handle in handles:
        os.close(handle)
    if os.isatty(0):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        # A shell starts what runs in its background without it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = _unbuffered(1, "strict"), _unbuffered(2, "backslashreplace")


def _run_module() -> None:
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _exit(main: Callable[[], Any]) -> NoReturn:
    """Run `main` and end the process as Python does, but for the destruction of all objects.

    It would copy each page of memory that the process has in common with the one that it is forked from, which takes as
    long as most commands.
    """
    try:
        sys.exit(main())
    except SystemExit as end:
        status = end.code
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it
            stream.flush()
    os._exit((status or 0) & 0xFF)


def _unbuffered(handle: int, errors: str) -> io.TextIOWrapper:
    raw: Any = os.fdopen(handle, "wb", buffering=0, closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, write_through=True)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    for name in LOADED:
        importlib.import_module(name)
    _fill_tables()
    gc.freeze()
    sys.argv = _become_the_next(socket.socket(fileno=int(sys.argv[1])))
    if os.environ.pop(TESTING, None):
        importlib.import_module("tests.support.gateway_command").take_liberties()
    # Processes that it starts (`multiprocessing`) begin as those of the command do.
    __spec__, __file__ = None, sys.argv[0]
    _exit(_run_module if sys.argv[1:2] == [MODULE] else sys.modules["hms_gateway.cli"].main)
