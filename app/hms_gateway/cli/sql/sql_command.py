"""`hms-gateway sql`: the command and its options; what it does is in `shell`."""

from pathlib import Path
from typing import Any, Final

import click

from hms_gateway.cli.calls.target_options import FILE, TARGET_NAMES, check_words, target_of, target_options
from hms_gateway.cli.terminal.format_options import format_option
from hms_gateway.cli.terminal.groups import command

_EPILOG: Final = """\b
Statements are HiveQL: SHOW, DESCRIBE, CREATE, ALTER, DROP, LOCK, UNLOCK,
EXPLAIN LOCKS, GRANT, REVOKE, ABORT TRANSACTIONS, MSCK REPAIR, USE, SET.
They end with a semicolon. docs/shell.md lists them.

\b
Examples:
  hms-gateway sql
  hms-gateway sql -e "show tables in sales"
  hms-gateway sql --format json -e "show partitions sales.orders" | jq .partition
  hms-gateway sql --database sales -f tables.sql
  echo "describe formatted sales.orders" | hms-gateway sql
"""


@command("sql", epilog=_EPILOG)
@click.option("--execute", "-e", multiple=True, metavar="STATEMENTS", help="Statements to run; repeatable.")
@click.option(
    "--file", "-f", "files", multiple=True, type=FILE, metavar="FILE", help="File with statements to run; repeatable."
)
@click.option("--database", default="default", metavar="NAME", help="Database of tables that are named without one.")
@format_option
@click.option("--keep-going", is_flag=True, help="Continue after a failed statement; the exit status is 1.")
@click.option("--hiveconf", multiple=True, metavar="NAME=VALUE", help="Setting of the session, as by SET; repeatable.")
@target_options
def sql(
    execute: tuple[str, ...],
    files: tuple[Path, ...],
    database: str,
    form: str | None,
    keep_going: bool,
    hiveconf: tuple[str, ...],
    **given: Any,
) -> None:
    """Run HiveQL statements about the catalog, or start a shell for them.

    Without -e and -f, reads statements from standard input; on a terminal this is a shell with completion, history and
    editing. The exit status is 1 when a statement is refused, 2 when the metastore does not answer, 130 after Ctrl-C.
    """
    check_words({"execute": execute, "database": database, **given})
    target_words = {name: given[name] for name in TARGET_NAMES}
    from hms_gateway.cli.sql import shell

    shell.run_shell(
        target_of(**target_words),
        target_words,
        shell.ShellOptions(execute, files, database, form, keep_going, hiveconf),
    )
