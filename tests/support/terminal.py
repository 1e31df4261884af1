"""A program on a pseudo-terminal: what a person types, and what is on the screen afterwards."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS

_ASKED_FOR_THE_CURSOR = b"\x1b[6n"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Terminal:
    """24 lines of 100 characters. `expect` waits for a text behind what was expected before."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._raw = b""
        self._answered = 0
        self._seen = 0

    @property
    def text(self) -> str:
        """All that was written, without what moves the cursor."""
        return _CONTROL.sub("", self._raw.decode(errors="replace")).replace("\r", "")

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def expect(self, wanted: str) -> str:
        """What came up to the text."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (at := self.text.find(wanted, self._seen)) < 0:
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"{wanted!r} does not come after {self.text[self._seen :]!r}")
        before = self.text[self._seen : at]
        self._seen = at + len(wanted)
        return before

    def wait(self) -> int:
        """The exit status."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if not select.select([self._descriptor], [], [], PATIENCE_SECONDS)[0]:
            return False
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:
            return False
        self._raw += data
        asked = self._raw.count(_ASKED_FOR_THE_CURSOR)
        for _ in range(asked - self._answered):
            os.write(self._descriptor, b"\x1b[1;1R")
        self._answered = asked
        return bool(data)


@contextlib.contextmanager
def on_terminal(*words: str, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Run hms-gateway with these words; it is killed in the end."""
    command = str(Path(sys.executable).with_name("hms-gateway"))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    pid, descriptor = pty.fork()
    if pid == 0:
        # A shell starts what runs in its background without it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(command, [command, *words], {**inherited, "TERM": "xterm", **environment})
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    try:
        yield Terminal(pid, descriptor)
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(descriptor)
