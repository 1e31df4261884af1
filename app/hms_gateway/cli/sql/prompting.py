"""The shell for people: a prompt with completion, history and editing over several lines.

What runs statements is loaded by a thread while the first prompt is on the screen.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, DynamicCompleter, ThreadedCompleter
from prompt_toolkit.filters import has_completions, is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from hms_gateway.metastore.vocabulary.hiveql_tokens import is_complete, is_leaving

if TYPE_CHECKING:
    from hms_gateway.cli.sql.conversation import Conversation


class Late:
    """What `begin` makes in a thread, as soon as it is there."""

    def __init__(self, begin: "Callable[[], Conversation]") -> None:
        self._begin = begin
        self._thread: threading.Thread | None = None
        self._made: Conversation | None = None
        self._error: BaseException | None = None

    def start(self, *_: Any) -> None:
        """Once; later calls do nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._make, name="loading", daemon=True)
            self._thread.start()

    def __call__(self) -> "Conversation":
        """Raises what making it has raised."""
        self.start()
        assert self._thread is not None
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._made is not None
        return self._made

    def _make(self) -> None:
        try:
            self._made = self._begin()
        except BaseException as error:
            self._error = error


class Prompting:
    """Runs statements until the person leaves. Nothing is called before the first prompt."""

    def __init__(self, begin: "Callable[[], Conversation]", database: str) -> None:
        self._conversation = Late(begin)
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
        self._prompt.app.after_render += self._conversation.start

    def run(self) -> None:
        """What was typed when the metastore did not answer is there again in the next prompt."""
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
            conversation = self._conversation()
            typed = "" if conversation.run(text) else text
            self._database = conversation.database
        self._conversation().close()

    def _completer(self) -> Completer:
        return self._conversation().completer


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
