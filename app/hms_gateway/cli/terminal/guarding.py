"""The one place where what is written to a terminal is made harmless.

A terminal obeys what names, comments and other texts of users contain: it sets titles and clipboards, clears its
screen, turns lines around. On a terminal all such characters are escapes, which JSON reads as the same text. What goes
to a file or another program stays as it is.
"""

import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

from hms_gateway.runtime.logging import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult

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
    """The stream that has the name now, without its guard."""

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
