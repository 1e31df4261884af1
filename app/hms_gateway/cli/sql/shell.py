"""Work of `hms-gateway sql`: statements of the command line, of files, of standard input, or of a person."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from hms_gateway.cli.calls.targets import CallTarget, target_of
from hms_gateway.cli.terminal import output
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.output import EXIT_FAILED, EXIT_REFUSED, fail, hint

if TYPE_CHECKING:
    from hms_gateway.cli.hiveql.shell_state import ShellState
    from hms_gateway.cli.sql.conversation import Conversation
    from hms_gateway.cli.sql.session import Output, SqlSession

EXIT_INTERRUPTED: Final = 128 + signal.SIGINT


class ShellOptions(msgspec.Struct, frozen=True):
    """Options of the command, but those about the metastore."""

    execute: Sequence[str]
    files: Sequence[Path]
    database: str
    form: str | None
    keep_going: bool
    hiveconf: Sequence[str]


def run_shell(target_words: Mapping[str, Any], **given: Any) -> None:
    """Ends the command with the exit status that the statements deserve."""
    target, options = target_of(**target_words), ShellOptions(**given)
    is_interactive = not options.execute and not options.files and sys.stdin.isatty() and sys.stdout.isatty()
    form = rows_form(options.form)
    if is_interactive:
        from hms_gateway.cli.sql.prompting import Prompting

        Prompting(lambda: _conversation(target, target_words, options, form), options.database.lower()).run()
        return
    with _exit_status(), contextlib.closing(_session(target, target_words, options, form)) as session:
        if not _run_all(session, options):
            raise click.exceptions.Exit(EXIT_REFUSED)


def _conversation(
    target: CallTarget, target_words: Mapping[str, Any], options: ShellOptions, form: str
) -> "Conversation":
    from hms_gateway.cli.sql.conversation import Conversation
    from hms_gateway.cli.sql.prompting import paged

    return Conversation(_session(target, target_words, options, form, paged), target)


def _session(
    target: CallTarget,
    target_words: Mapping[str, Any],
    options: ShellOptions,
    form: str,
    output: "Output | None" = None,
) -> "SqlSession":
    from hms_gateway.cli.hiveql.locking import this_host
    from hms_gateway.cli.hiveql.shell_state import ShellState
    from hms_gateway.cli.sql.repairing import repairing
    from hms_gateway.cli.sql.session import ReconnectingClient, SqlSession
    from hms_gateway.rpc.structs.catalogs import marked

    client = ReconnectingClient(target, hint)
    catalog, is_qualified, name = options.database.lower().rpartition(".")
    database = marked(catalog, name) if is_qualified else name
    state = ShellState(client, target.user, this_host(), database)
    _set_options(state, options.hiveconf)
    return SqlSession(client, state, form, output=output, repair=repairing(target, target_words))


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


def _run_all(session: "SqlSession", options: ShellOptions) -> bool:
    is_clean = True
    for source, text in _texts(options):
        is_clean = session.run_text(text, source, goes_on=options.keep_going) and is_clean
    sys.stdout.flush()
    return is_clean


def _texts(options: ShellOptions) -> Iterator[tuple[str, str]]:
    """Each with the name of its file."""
    for text in options.execute:
        yield "", text
    for file in options.files:
        try:
            yield str(file), file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            fail(f"--file {file} cannot be read: {error}")
    if not options.execute and not options.files:
        yield "", sys.stdin.read()


def _set_options(state: "ShellState", hiveconf: Sequence[str]) -> None:
    from hms_gateway.cli.hiveql.session import SetOption
    from hms_gateway.cli.hiveql.shell_state import CommandRefused

    for text in hiveconf:
        name, equals, value = text.partition("=")
        if not equals:
            fail(f"--hiveconf {text!r} is not NAME=VALUE")
        try:
            SetOption(name.strip(), value.strip()).run(state)
        except CommandRefused as error:
            fail(f"--hiveconf {text!r}: {error}")
