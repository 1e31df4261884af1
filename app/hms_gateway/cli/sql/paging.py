"""Output of the shell: short ones as they are, longer ones through the pager of the terminal."""

import contextlib
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Final, cast

from hms_gateway.cli.terminal.guarding import GuardedStream

_DEFAULT_PAGER: Final = "less"
# Quit when it fits on a screen, colours as they are, long lines not wrapped, the screen stays.
_LESS_OPTIONS: Final = "FRSX"


class PagedStream(io.TextIOBase):
    """Keeps what fits on a screen until it is closed; gives it and the rest to a pager as soon as it does not fit.

    Writing raises BrokenPipeError when the person has left the pager.
    """

    def __init__(self, lines_max: int, command: list[str] | None, stream: IO[str] | None = None) -> None:
        self._lines_max = lines_max
        self._command = command
        self._stream = stream or sys.stdout
        self._kept: list[str] = []
        self._lines = 0
        self._pager: subprocess.Popen[str] | None = None

    def write(self, text: str, /) -> int:
        if self._command is None:
            return self._stream.write(text)
        if self._pager is not None:
            assert self._pager.stdin is not None
            return self._pager.stdin.write(text)
        self._kept.append(text)
        self._lines += text.count("\n")
        if self._lines >= self._lines_max:
            self._start(self._command)
        return len(text)

    def _start(self, command: list[str]) -> None:
        environment = {"LESS": _LESS_OPTIONS, **os.environ}
        try:
            self._pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
        except OSError:
            self._command = None
            self._stream.write("".join(self._kept))
        else:
            assert self._pager.stdin is not None
            self._pager.stdin.write("".join(self._kept))
        self._kept.clear()

    def finish(self) -> None:
        """Show what is left, and wait until the person leaves the pager. Ctrl-C is the pager's then."""
        if self._pager is None:
            self._stream.write("".join(self._kept))
            self._stream.flush()
            return
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with contextlib.suppress(BrokenPipeError):
                assert self._pager.stdin is not None
                self._pager.stdin.close()
            self._pager.wait()
        finally:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def paged() -> Iterator[IO[str]]:
    """A stream for one statement's output on this terminal."""
    stream = PagedStream(shutil.get_terminal_size().lines - 1, pager_command())
    try:
        yield cast("IO[str]", GuardedStream(cast("IO[str]", stream)))
    finally:
        stream.finish()


def pager_command() -> list[str] | None:
    """PAGER, else less where it is installed; None for none, which `PAGER=` and `PAGER=cat` ask for."""
    try:
        words = shlex.split(os.environ.get("PAGER", _DEFAULT_PAGER))
    except ValueError:  # a quotation mark without its other one
        return None
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return words
