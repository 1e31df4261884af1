"""A program on a pseudo-terminal: what a person types, and what is on the screen afterwards."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Iterator, Mapping

from tests.support.patience import PATIENCE_SECONDS
from tests.support.warm_program import WarmProgram

_ASKED_FOR_THE_CURSOR = b"\x1b[6n"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Terminal:
    """24 lines of 100 characters. `expect` waits for a text behind what was expected before."""

    def __init__(self, program: WarmProgram, descriptor: int) -> None:
        self.pid = program.pid
        self._program = program
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
        return self._program.wait()

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
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    descriptor, theirs = pty.openpty()
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    try:
        program = WarmProgram(words, {**inherited, "TERM": "xterm", **environment}, theirs, theirs, theirs)
    finally:
        os.close(theirs)
    try:
        yield Terminal(program, descriptor)
    finally:
        program.kill()
        program.wait()
        os.close(descriptor)
