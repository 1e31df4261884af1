"""Commands that are spellings of HiveQL statements: run one, and print its rows."""

import re
import sys
from typing import Final

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.hiveql.locking import this_host
from hms_gateway.cli.hiveql.shell_state import CommandRefused, ResultRows, ShellState, Statement
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail
from hms_gateway.client.metastore_client import MetastoreClient

# Words of the shell, and of the command line.
_COMMANDS: Final = (
    (re.compile(r"SHOW DATABASES lists"), "hms-gateway ls lists"),
    (re.compile(r"SHOW (?:TABLES IN|PARTITIONS) (\S+) lists"), r"hms-gateway ls \1 lists"),
)


def rows_of(statement: Statement, client: MetastoreClient, target: CallTarget) -> ResultRows:
    """Run a statement; its rows, none for a change. Ends the command when it is refused."""
    try:
        found = statement.run(ShellState(client, target.user, this_host()))
    except CommandRefused as error:
        text = str(error)
        for statement_words, command in _COMMANDS:
            text = statement_words.sub(command, text)
        fail(text, exit_code=EXIT_REFUSED)
    return found or ResultRows((), ())


def answer(target: CallTarget, statement: Statement, form: str | None = None) -> None:
    """Run a statement and print its rows in a form."""
    with connected(target) as client:
        found = rows_of(statement, client, target)
        if found.columns:
            write_rows(sys.stdout, rows_form(form), found.columns, found.rows)
