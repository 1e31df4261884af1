"""Output of the commands: answers to standard output, everything about them to standard error.

A terminal obeys what names, comments and other texts of users contain: it sets titles and clipboards, clears its
screen, turns lines around. On a terminal all such characters are escapes, which JSON reads as the same text. A file or
another program gets the text unchanged. This is the one place for that.
"""

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import click

from hms_gateway.runtime.logging import printable
from hms_gateway.runtime.logins.login_tokens import LoginToken, TokenError, TokenSource

if TYPE_CHECKING:
    from rich.console import Console

    out: Console
    err: Console
    from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult


# The answer is that the call failed, as opposed to there being no answer.
EXIT_REFUSED = 1
EXIT_FAILED = 2
_OUTPUT_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@cache
def _console(name: str) -> "Console":

    return guarded_console(f"std{name}")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> "Console":
        """`out` and `err` when they are asked for: to load rich is an eighth of the time to a shell's first prompt."""
        if name not in ("out", "err"):
            raise AttributeError(f"module {__name__} has no attribute {name}")
        return _console(name)


def _complain(problem: str) -> None:
    from rich.markup import escape

    _console("err").print(f"[bold red]error:[/bold red] {escape(problem)}", soft_wrap=True, highlight=False)


def _order() -> None:
    """Let the answers so far come first where both streams go to one place; what stays is told with them."""
    with suppress(OSError):
        sys.stdout.flush()


def say(text: str) -> None:
    """Print a text to standard error, which is not the command's answer."""
    _order()
    print(text, file=sys.stderr, flush=True)


def hint(text: str) -> None:
    """Print a dim text to standard error."""
    _order()
    _console("err").print(text, style="dim", soft_wrap=True, highlight=False, markup=False)


def fail(text: str, advice: str = "", exit_code: int = EXIT_FAILED) -> NoReturn:
    """End the command with one red line, and a dim one with what to do about it."""
    _complain(text)
    if advice:
        hint(advice)
    raise click.exceptions.Exit(exit_code)


def first_line(what: str, file: Path) -> str:
    """The first line of a file with a secret. Ends the command when it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{what} {file} cannot be read: {error}")


def find_token(source: TokenSource) -> LoginToken:
    """The token in a file, or that a program prints. Ends the command without one."""
    try:
        return LoginToken(source)
    except TokenError as error:
        fail(str(error), error.hint)


def line_of_input(what: str) -> str:
    """The first line of standard input, for a secret. Ends the command when it is not text."""
    try:
        return sys.stdin.buffer.readline().decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        fail(f"the {what} on standard input is not UTF-8")


def drop_output() -> None:
    """Send the rest of standard output nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def unwritten(error: OSError) -> int:
    """The exit status where standard output takes no more; other errors are raised again."""
    if error.filename is not None or error.errno not in (errno.EPIPE, *_OUTPUT_ERRORS):
        raise error
    drop_output()
    if error.errno == errno.EPIPE:  # the reader has what it wanted; a failure before the last flush is one all the same
        ended = error.__context__
        return ended.code if isinstance(ended, SystemExit) and isinstance(ended.code, int) else 0
    _complain(f"the output cannot be written: {error.strerror}")
    return EXIT_FAILED


def fail_all(problems: Sequence[str]) -> NoReturn:
    """End the command with one red line for each problem."""
    for problem in problems[:-1]:
        _complain(problem)
    fail(problems[-1])


def fail_for_store(error: Exception) -> NoReturn:
    """End the command because of a `StoreError`."""
    fail(store_text(error))


def store_text(error: Exception) -> str:
    """The text of a `StoreError` for the operator, with the driver's words where there are any."""
    detail = getattr(error, "detail", "")
    return f"{error}: {detail}" if detail else str(error)


_KEPT = "\n\t"


class GuardedStream:
    """A stream to a terminal. `beneath` is for those who write colours: a `guarded_console`."""

    def __init__(self, beneath: IO[str]) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        self.beneath.write(printable(text, _KEPT))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


def guard_terminals() -> None:
    """From now on, whatever is written to standard output or error on a terminal is guarded."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            setattr(sys, name, GuardedStream(stream))


def guarded_console(name: str) -> "Console":
    """Writes to the stream `sys.NAME`, in colours of its own."""
    from rich.console import Console, RenderHook

    class Hook(RenderHook):
        def process_renderables(self, renderables: "list[ConsoleRenderable]") -> "list[ConsoleRenderable]":
            return [_Guarded(one) for one in renderables] if console.is_terminal else renderables

    console = Console(file=_Beneath(name))  # type: ignore[arg-type]
    console.push_render_hook(Hook())
    return console


class _Beneath:
    """The current stream of a name, without its guard."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        stream = getattr(sys, self._name)
        return getattr(getattr(stream, "beneath", stream), attribute)


class _Guarded:
    def __init__(self, content: "ConsoleRenderable") -> None:
        self._content = content

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.segment import Segment

        for segment in console.render(self._content, options):
            yield segment if segment.control else Segment(printable(segment.text, _KEPT), segment.style)
