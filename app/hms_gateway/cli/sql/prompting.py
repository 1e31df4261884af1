"""The shell for people: a prompt with completion, history and editing, and a pager for long outputs.

A thread loads the code that runs statements while the first prompt is on the screen.
"""

import contextlib
import os
import shlex
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, DynamicCompleter, ThreadedCompleter
from prompt_toolkit.filters import has_completions, is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from hms_gateway.cli.terminal.output import GuardedStream
from hms_gateway.metastore.vocabulary.hiveql_tokens import is_complete, is_leaving

if TYPE_CHECKING:
    from hms_gateway.cli.sql.conversation import Conversation


class Prompting:
    """Runs statements until the person leaves. Nothing is called before the first prompt."""

    def __init__(self, begin: "Callable[[], Conversation]", database: str) -> None:
        self._begin = begin
        self._loading: Future[Conversation] | None = None
        self._database = database
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(),
            completer=ThreadedCompleter(DynamicCompleter(self._completer)),
            complete_while_typing=False,
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation=_continuation,
            enable_history_search=True,
        )
        self._prompt.app.after_render += self._load

    def run(self) -> None:
        """Prompt and run; words that got no answer of the metastore are there again in the next prompt."""
        typed = ""
        while True:
            try:
                text = self._prompt.prompt(f"{self._database}> ", default=typed)
            except KeyboardInterrupt:
                typed = ""
                continue
            except EOFError:
                break
            if is_leaving(text):
                break
            conversation = self._load().result()
            typed = "" if conversation.run(text) else text
            self._database = conversation.database
        self._load().result().close()

    def _load(self, *_: Any) -> "Future[Conversation]":
        """Begin once, in a thread."""
        if self._loading is None:
            self._loading = Future()
            # The end of the program does not wait for it.
            threading.Thread(target=_fulfil, args=(self._loading, self._begin), name="loading", daemon=True).start()
        return self._loading

    def _completer(self) -> Completer:
        return self._load().result().completer


def _fulfil(future: "Future[Conversation]", make: "Callable[[], Conversation]") -> None:
    try:
        future.set_result(make())
    except BaseException as error:
        future.set_exception(error)


def _continuation(width: int, line_number: int, is_soft_wrap: bool) -> str:
    return " " * max(0, width - 2) + "> "


def _bindings() -> KeyBindings:
    bindings = KeyBindings()
    bindings.add("enter", filter=~is_searching & ~has_completions)(_enter)
    return bindings


def _enter(event: KeyPressEvent) -> None:
    """Run what is complete; go on in the next line otherwise."""
    buffer = event.current_buffer
    if _is_ready(buffer.text):
        buffer.validate_and_handle()
    else:
        buffer.newline()


def _is_ready(text: str) -> bool:
    return is_complete(text) or is_leaving(text) or text.strip().lower() in ("help", "?")


def _history() -> History:
    """In a file of this person alone; in memory where there cannot be one."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hms-gateway"
    file = folder / "sql_history"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


# Quit when it fits on a screen, colours as they are, long lines not wrapped, the screen stays.
_LESS: Final = "less -FRSX"


@contextlib.contextmanager
def paged() -> Iterator[IO[str]]:
    """The pager of this terminal (PAGER, or less), for one statement's output."""
    try:
        shlex.split(os.environ.setdefault("PAGER", _LESS))
    except ValueError:  # a quotation mark without its other one
        os.environ["PAGER"] = _LESS
    with click.get_pager_file() as stream:
        yield cast("IO[str]", GuardedStream(stream))
