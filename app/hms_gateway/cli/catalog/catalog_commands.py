"""The short commands and their options; what they do is in the modules beside this one."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hms_gateway.cli.calls.target_options import FILE, with_target

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import Target

_FORMATS: Final = ("table", "json", "csv", "tsv", "vertical")
_DIFF_EXAMPLES: Final = """\b
A side is a file of `hms-gateway export`, or the URL of a metastore, which is
called with the same user and password; without AFTER it is the one of --url.

\b
Examples:
  hms-gateway diff yesterday.jsonl
  hms-gateway diff --only sales yesterday.jsonl today.jsonl
  hms-gateway diff --ignore 'parameters.transient_*' https://a.example.org/metastore https://b.example.org/metastore
"""
_EXPORT_EXAMPLES: Final = """\b
Examples:
  hms-gateway export sales -o sales.jsonl
  hms-gateway export sales.orders | gzip > orders.jsonl.gz
  hms-gateway export > all.jsonl
"""
limit_option = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N.")
format_option = click.option("--format", "form", type=click.Choice(_FORMATS), help="How to print.", show_default=False)


@click.command("ls")
@click.argument("name", required=False, metavar="[DB[.TABLE]]")
@click.option("--long", "-l", "is_long", is_flag=True, help="Show type, owner, time and location of tables.")
@limit_option
@format_option
@with_target
def ls(target: "Target", name: str | None, is_long: bool, limit: int | None, form: str | None) -> None:
    """List databases, the tables of a database, or the partitions of a table; one name per line."""
    from hms_gateway.cli.catalog import listing

    default = ("table" if sys.stdout.isatty() else "tsv") if is_long else "names"
    listing.run_list(target, name, is_long=is_long, limit=limit, form=form or default)


@click.command("describe")
@click.argument("name", metavar="DB[.TABLE[/PARTITION]]")
@format_option
@with_target
def describe(target: "Target", name: str, form: str | None) -> None:
    """Describe a database, table or partition (key=value/…); as JSON with the IDL's field names."""
    from hms_gateway.cli.catalog import listing

    listing.run_describe(target, name, form=form or ("table" if sys.stdout.isatty() else "tsv"))


@click.command("export", epilog=_EXPORT_EXAMPLES)
@click.argument("name", required=False, metavar="[DB[.TABLE]]")
@click.option("--output", "-o", type=FILE, metavar="FILE", help="File to write instead of standard output.")
@with_target
def export(target: "Target", name: str | None, output: Path | None) -> None:
    """Write the catalog, a database or a table as JSON lines.

    Contains databases, functions, tables, partitions, primary and foreign keys; no statistics, grants or files.
    """
    from hms_gateway.cli.catalog import exporting

    exporting.run_export(target, name, output)


@click.command("import")
@click.argument("file", required=False, type=FILE, metavar="[FILE]")
@click.option(
    "--exact",
    is_flag=True,
    help="Keep creation times, and make no directory (administrators of a gateway only).",
)
@click.option("--skip-existing", is_flag=True, help="Leave what is there as it is, instead of ending.")
@with_target
def import_(target: "Target", file: Path | None, exact: bool, skip_existing: bool) -> None:
    """Make what `hms-gateway export` has written to FILE, or standard input.

    Ends at the first object that the metastore refuses; what is made until then stays.
    """
    from hms_gateway.cli.catalog import exporting

    exporting.run_import(target, file, is_exact=exact, skips_existing=skip_existing)


@click.command("diff", epilog=_DIFF_EXAMPLES)
@click.argument("before")
@click.argument("after", required=False)
@click.option("--only", metavar="DB[.TABLE]", help="Compare only this database or table.")
@click.option("--ignore", multiple=True, metavar="FIELD", help="Fields that may differ, * for any text; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print an object for each difference.")
@with_target
def diff(
    target: "Target", before: str, after: str | None, only: str | None, ignore: tuple[str, ...], as_json: bool
) -> None:
    """Compare two catalogs, or a catalog and an export: `-` is only in BEFORE, `+` only in AFTER, `~` differs.

    The exit status is 0 when they are the same, 1 when they differ.
    """
    from hms_gateway.cli.catalog import comparing

    comparing.run_diff(target, before, after, only=only, ignored=ignore, as_json=as_json)


@click.command("tail")
@click.argument("name", required=False, metavar="[DB[.TABLE]]")
@click.option("--lines", "-n", type=click.IntRange(min=0), default=10, help="Begin with so many of the last events.")
@click.option("--since", type=click.IntRange(min=0), metavar="EVENT", help="Begin after the event with this number.")
@click.option("--follow/--no-follow", default=True, help="Go on with the events that come, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print an object for each event, with its message.")
@with_target
def tail(target: "Target", name: str | None, lines: int, since: int | None, follow: bool, as_json: bool) -> None:
    """Follow the notification log: what changes in the catalog, as it happens."""
    from hms_gateway.cli.catalog import tailing

    tailing.run_tail(target, name, lines=lines, since=since, follows=follow, as_json=as_json)
