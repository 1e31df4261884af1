"""The short commands and their options; what they do is in the modules beside this one."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hms_gateway.cli.calls.target_options import FILE, with_target
from hms_gateway.cli.terminal.format_options import format_option, rows_form, with_json
from hms_gateway.cli.terminal.groups import command, examples

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import CallTarget

_DIFF_EXAMPLES: Final = """\b
A side is a file of `hms-gateway export`, or the URL of a metastore, which is
called with the same user and password; without AFTER it is the one of --url.

\b
Examples:
  hms-gateway diff yesterday.jsonl
  hms-gateway diff --only sales yesterday.jsonl today.jsonl
  hms-gateway diff --ignore 'parameters.transient_*' https://a.example.org/metastore https://b.example.org/metastore
"""
_DESCRIBE_EXAMPLES: Final = """\b
Examples:
  hms-gateway describe sales.orders
  hms-gateway describe sales.orders/region=eu/ds=2026-01-01
  hms-gateway describe sales --format json
"""
_LS_EXAMPLES: Final = """\b
Examples:
  hms-gateway ls
  hms-gateway ls -l sales
  hms-gateway ls sales.orders --limit 10
  hms-gateway ls sales.orders/region=eu
"""
_IMPORT_EXAMPLES: Final = """\b
Examples:
  hms-gateway import sales.jsonl
  hms-gateway import --skip-existing < sales.jsonl
  hms-gateway import sales.jsonl --relocate file:/old/warehouse=file:/new/warehouse
"""
_EXPORT_EXAMPLES: Final = """\b
Examples:
  hms-gateway export sales -o sales.jsonl
  hms-gateway export sales.orders | gzip > orders.jsonl.gz
  hms-gateway export > all.jsonl
"""


limit_option = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List at most N names.")


@command("ls", epilog=_LS_EXAMPLES)
@click.argument("name", required=False, metavar="[DB[.TABLE[/PARTITION]]]")
@click.option(
    "--long", "-l", "is_long", is_flag=True, help="Show owner, time of creation, location and more of each object."
)
@limit_option
@format_option
@with_target
def ls(target: "CallTarget", name: str | None, is_long: bool, limit: int | None, form: str | None) -> None:
    """List databases, the tables of a database, or the partitions of a table."""
    from hms_gateway.cli.catalog import listing

    default = rows_form(None) if is_long else "names"
    listing.run_list(target, name, is_long=is_long, limit=limit, form=form or default)


@command("describe", epilog=_DESCRIBE_EXAMPLES)
@click.argument("name", metavar="DB[.TABLE[/PARTITION]]")
@format_option
@with_target
def describe(target: "CallTarget", name: str, form: str | None) -> None:
    """Describe a database, table or partition.

    --format json prints the struct with the IDL's field names.
    """
    from hms_gateway.cli.catalog import listing

    listing.run_describe(target, name, form=rows_form(form))


@command("export", epilog=_EXPORT_EXAMPLES)
@click.argument("name", required=False, metavar="[DB[.TABLE]]")
@click.option("--output", "-o", type=FILE, metavar="FILE", help="File to write; unset means standard output.")
@with_target
def export(target: "CallTarget", name: str | None, output: Path | None) -> None:
    """Write the catalog, a database or a table as JSON lines.

    Contains databases, functions, tables, partitions, primary and foreign keys; no statistics, grants or files.
    """
    from hms_gateway.cli.catalog import exporting

    exporting.run_export(target, name, output)


@command("import", epilog=_IMPORT_EXAMPLES)
@click.argument("file", required=False, type=FILE, metavar="[FILE]")
@click.option(
    "--exact",
    is_flag=True,
    help="Keep creation times and create no directory (administrators of a gateway only).",
)
@click.option(
    "--skip-existing",
    is_flag=True,
    help="Keep existing objects; without this option the first one ends the import.",
)
@click.option(
    "--relocate",
    "relocated",
    multiple=True,
    metavar="OLD=NEW",
    help="Replace directory OLD by NEW in locations, such as another warehouse; repeatable.",
)
@with_target
def import_(
    target: "CallTarget", file: Path | None, exact: bool, skip_existing: bool, relocated: tuple[str, ...]
) -> None:
    """Create the objects of an export, from FILE or standard input.

    Stops at the first refused object; earlier objects stay. Copies no files.
    """
    from hms_gateway.cli.catalog import exporting

    exporting.run_import(target, file, relocated, is_exact=exact, skips_existing=skip_existing)


@command("diff", epilog=_DIFF_EXAMPLES)
@click.argument("before")
@click.argument("after", required=False)
@click.option("--only", metavar="DB[.TABLE]", help="Compare only this database or table.")
@click.option(
    "--ignore", multiple=True, metavar="FIELD", help="Field that may differ, * stands for any text; repeatable."
)
@with_target
@with_json()
def diff(
    target: "CallTarget", before: str, after: str | None, only: str | None, ignore: tuple[str, ...], form: str | None
) -> None:
    """Compare two catalogs, or a catalog and an export.

    `-` is only in BEFORE, `+` only in AFTER, `~` differs. Compares the part of the catalog that an export contains. The
    exit status is 0 for equal, 1 for different catalogs.
    """
    from hms_gateway.cli.catalog import comparing

    comparing.run_diff(target, before, after, only=only, ignored=ignore, form=form)


@command("tail", epilog=examples("hms-gateway tail -n 50", "hms-gateway tail sales.orders --no-follow --json"))
@click.argument("name", required=False, metavar="[DB[.TABLE]]")
@click.option(
    "--lines", "-n", type=click.IntRange(min=0), default=10, metavar="N", help="Show the last N events first."
)
@click.option(
    "--since",
    type=click.IntRange(min=0),
    metavar="EVENT",
    help="Show the events after this one first; replaces --lines.",
)
@click.option("--follow/--no-follow", default=True, help="Wait for further events, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each event, with its message.")
@with_target
def tail(target: "CallTarget", name: str | None, lines: int, since: int | None, follow: bool, as_json: bool) -> None:
    """Show the last changes of the catalog, then new ones."""
    from hms_gateway.cli.catalog import tailing

    tailing.run_tail(target, name, lines=lines, since=since, follows=follow, as_json=as_json)
