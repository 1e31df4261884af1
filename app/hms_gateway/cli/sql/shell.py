"""Work of `hms-gateway sql`: statements of the command line, of files, of standard input, or of a person."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hms_gateway.cli.calls.targets import target_of
from hms_gateway.cli.terminal import output
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.output import EXIT_FAILED, EXIT_REFUSED, fail, hint

if TYPE_CHECKING:
    from hms_gateway.cli.hiveql.shell_state import ShellState
    from hms_gateway.cli.sql.conversation import Conversation
    from hms_gateway.cli.sql.session import Output, SqlSession

EXIT_INTERRUPTED: Final = 128 + signal.SIGINT


def run_shell(
    target_words: Mapping[str, Any],
    *,
    execute: Sequence[str],
    files: Sequence[Path],
    database: str,
    form: str | None,
    keep_going: bool,
    hiveconf: Sequence[str],
) -> None:
    """Ends the command with the exit status that the statements deserve."""
    target = target_of(**target_words)

    def session(output: "Output | None" = None) -> "SqlSession":
        from hms_gateway.cli.hiveql.locking import this_host
        from hms_gateway.cli.hiveql.shell_state import ShellState
        from hms_gateway.cli.sql.session import ReconnectingClient, SqlSession, repairing
        from hms_gateway.rpc.structs.catalogs import marked

        client = ReconnectingClient(target, hint)
        catalog, is_qualified, name = database.lower().rpartition(".")
        state = ShellState(client, target.user, this_host(), marked(catalog, name) if is_qualified else name)
        _set_options(state, hiveconf)
        state.repair = repairing(target, target_words)
        return SqlSession(client, state, rows_form(form), output=output)

    def conversation() -> "Conversation":
        from hms_gateway.cli.sql.conversation import Conversation
        from hms_gateway.cli.sql.prompting import paged

        return Conversation(session(paged), target)

    if not execute and not files and sys.stdin.isatty() and sys.stdout.isatty():
        from hms_gateway.cli.sql.prompting import Prompting

        Prompting(conversation, database.lower()).run()
        return
    with _exit_status(), contextlib.closing(session()) as opened:
        is_clean = True
        for source, text in _texts(execute, files):
            is_clean = opened.run_text(text, source, goes_on=keep_going) and is_clean
        sys.stdout.flush()
        if not is_clean:
            raise click.exceptions.Exit(EXIT_REFUSED)


@contextlib.contextmanager
def _exit_status() -> Iterator[None]:
    """Ends the command as its statements ended."""
    from hms_gateway.cli.sql.session import StatementFailed, Unanswered

    try:
        yield
    except StatementFailed as error:
        raise click.exceptions.Exit(EXIT_REFUSED) from error
    except Unanswered as error:
        raise click.exceptions.Exit(EXIT_FAILED) from error
    except KeyboardInterrupt as error:
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from error
    except BrokenPipeError as error:
        output.drop_output()
        raise click.exceptions.Exit(0) from error


def _texts(execute: Sequence[str], files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Each with the name of its file."""
    for text in execute:
        yield "", text
    for file in files:
        try:
            yield str(file), file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            fail(f"--file {file} cannot be read: {error}")
    if not execute and not files:
        yield "", sys.stdin.read()


def _set_options(state: "ShellState", hiveconf: Sequence[str]) -> None:
    from hms_gateway.cli.hiveql.session import set_option
    from hms_gateway.cli.hiveql.shell_state import CommandRefused

    for text in hiveconf:
        name, equals, value = text.partition("=")
        if not equals:
            fail(f"--hiveconf {text!r} is not NAME=VALUE")
        try:
            set_option(name.strip(), value.strip()).run(state)
        except CommandRefused as error:
            fail(f"--hiveconf {text!r}: {error}")
