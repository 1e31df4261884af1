"""Commands that are spellings of HiveQL statements: the session of one command, and its rows on standard output."""

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Final

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.hiveql.locking import this_host
from hms_gateway.cli.hiveql.shell_state import CommandRefused, ResultRows, ShellState, Statement
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail

# Words of the shell, and of the command line.
_COMMANDS: Final = (
    (re.compile(r"SHOW DATABASES lists"), "hms-gateway ls lists"),
    (re.compile(r"SHOW (?:TABLES IN|PARTITIONS) (\S+) lists"), r"hms-gateway ls \1 lists"),
)


@contextlib.contextmanager
def session(target: CallTarget, refusal_hint: str = "") -> Iterator[ShellState]:
    """Context manager: the session of one command, which ends when a statement is refused; see `connected`."""
    with connected(target, refusal_hint) as client:
        try:
            yield ShellState(client, target.user, this_host())
        except CommandRefused as error:
            text = str(error)
            for statement_words, command in _COMMANDS:
                text = statement_words.sub(command, text)
            fail(text, exit_code=EXIT_REFUSED)


def print_rows(found: ResultRows | None, form: str | None) -> None:
    """Print the rows of a statement, if it has any, in a form."""
    if found is not None:
        write_rows(sys.stdout, rows_form(form), found.columns, found.rows)


def answer(target: CallTarget, statement: Statement, form: str | None = None) -> None:
    """Run a statement and print its rows in a form."""
    with session(target) as state:
        print_rows(statement.run(state), form)
