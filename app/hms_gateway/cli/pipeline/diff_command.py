"""`hms-gateway pipeline diff`: what differs between two snapshots."""

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from hms_gateway.cli.pipeline.job_options import (
    conf_option,
    failures,
    json_option,
    master_option,
    need_spark,
    settings_of,
)
from hms_gateway.cli.terminal.groups import command as command_of
from hms_gateway.cli.terminal.output import out

if TYPE_CHECKING:
    from hms_gateway.pipeline.snapshot.diff import DiffResult, ObjectChange

_EPILOG = """\b
The exit status is 0 for equal snapshots, 1 for different ones, 2 if they cannot
be compared.

\b
Examples:
  hms-gateway pipeline diff var/snapshots/monday var/snapshots/tuesday
  hms-gateway pipeline diff A B --ignore 'parameters.transient_*' --output changes
"""
_SIGNS = {"added": ("+", "green"), "dropped": ("-", "red"), "changed": ("~", "yellow")}


@command_of("diff", epilog=_EPILOG)
@click.argument("before")
@click.argument("after")
@click.option(
    "--only", multiple=True, metavar="'DB.TABLE'", help="Tables to compare, * stands for any text; repeatable."
)
@click.option(
    "--ignore", multiple=True, metavar="FIELD", help="Field that may differ, * stands for any text; repeatable."
)
@click.option(
    "--output",
    default="",
    show_default=False,
    metavar="PLACE",
    help="Folder or URL to write all differences to, as Parquet.",
)
@click.option(
    "--shown", type=click.IntRange(min=0), default=1_000, show_default=True, help="Number of differences to print."
)
@master_option
@conf_option
@json_option
def command(
    before: str,
    after: str,
    only: tuple[str, ...],
    ignore: tuple[str, ...],
    output: str,
    shown: int,
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare two snapshots: missing, new and changed objects."""
    need_spark()
    from hms_gateway.pipeline.snapshot.diff import DiffArguments, diff

    given = DiffArguments(before=before, after=after, only=only, ignored=ignore, output=output, shown=shown)
    with failures():
        result = diff(given, master=master, conf=settings_of(conf))
    if as_json:
        print(result.as_json())
    else:
        _show(result)
    raise click.exceptions.Exit(result.exit_status)


def _show(result: "DiffResult") -> None:
    for each in result.differences:
        out.print(_line(each), highlight=False, soft_wrap=True)
    for kind, counts in result.counts.items():
        out.print(f"{kind}: " + ", ".join(f"{number:,} {change}" for change, number in counts.items()), highlight=False)
    events = f"event {result.before.event} to event {result.after.event}"
    out.print(f"{result.total:,} objects differ, {events}" if result.total else f"no difference, {events}")
    if result.output:
        out.print(escape(f"all differences are in {result.output}"), highlight=False)


def _line(each: "ObjectChange") -> str:
    sign, color = _SIGNS[each.change]
    text = f"{sign} {each.kind:<12} {each.name}"
    if each.field:
        text += f" {each.field}: {_value(each.before)} -> {_value(each.after)}"
    return f"[{color}]{escape(text)}[/{color}]"


def _value(text: str | None) -> str:
    return "(none)" if text is None else repr(text)
