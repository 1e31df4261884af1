"""`hms-gateway pipeline audit`: what is not as it should be in catalog and directories."""

from typing import TYPE_CHECKING

import click
from rich.markup import escape
from rich.table import Table

from hms_gateway.cli.pipeline.job_options import JobCommand, with_job_options
from hms_gateway.cli.terminal.groups import command as command_of
from hms_gateway.cli.terminal.output import out

if TYPE_CHECKING:
    from hms_gateway.pipeline.audit.job import AuditResult

_EPILOG = """\b
Examples:
  hms-gateway pipeline audit --only 'sales.*' --html audit.html
  hms-gateway pipeline audit --fix plan.jsonl
  hms-gateway pipeline apply plan.jsonl

The exit status is 1 for a finding of the severity --fail-on or worse.
"""
_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}
_SHOWN = 40


@command_of("audit", epilog=_EPILOG)
@click.option(
    "--fix",
    default="",
    show_default=False,
    metavar="FILE",
    help="File to write a plan to, which `pipeline apply` carries out.",
)
@click.option("--delete-orphans", is_flag=True, help="Let the plan delete directories without a table or partition.")
@click.option(
    "--html", default="", show_default=False, metavar="FILE", help="File to write a report to, as a page of HTML."
)
@click.option(
    "--all", "all_footers", is_flag=True, help="Read the footers of all directories, not only of changed ones."
)
@click.option("--no-footers", is_flag=True, help="Read no footers.")
@click.option(
    "--quiet-hours",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="Hours without a change before a leftover or orphan is fixed; a younger one is a note.",
)
@click.option(
    "--small-bytes",
    type=click.IntRange(min=1),
    default=16 * 1024 * 1024,
    show_default=True,
    help="Mean file size in bytes below which files count as small.",
)
@click.option(
    "--small-files",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="Number of small files that makes a finding.",
)
@click.option(
    "--fail-on",
    type=click.Choice(("error", "warning", "note")),
    default="warning",
    show_default=True,
    help="Least severity that makes the exit status 1.",
)
@with_job_options
def command(
    job: JobCommand,
    fix: str,
    delete_orphans: bool,
    html: str,
    all_footers: bool,
    no_footers: bool,
    quiet_hours: float,
    small_bytes: int,
    small_files: int,
    fail_on: str,
) -> None:
    """Compare the catalog with directories and files, and report problems.

    Changes nothing. Findings: tables and partitions without a directory; directories without a table or partition;
    shared, misplaced, outside and empty directories; leftovers of engines; small files; mixed formats; wrong numFiles
    and totalSize; files with other columns than the table; corrupt and unreadable files.
    """
    from hms_gateway.pipeline.audit.job import AuditArguments, audit
    from hms_gateway.pipeline.audit.places import Severity

    arguments = AuditArguments(
        fix=fix,
        html=html,
        all_footers=all_footers,
        no_footers=no_footers,
        delete_orphans=delete_orphans,
        quiet_seconds=quiet_hours * 3_600,
        small_bytes=small_bytes,
        small_files=small_files,
        fail_on=Severity(fail_on),
    )
    job.run(audit, arguments, show)


def show(result: "AuditResult") -> None:
    if result.status == "planned":
        counts = result.counts
        text = f"{counts['places']:,} tables and partitions, {counts['roots']:,} directories to begin at"
        out.print(f"{text}; --resume {result.run} audits them", highlight=False)
        return
    for one in result.examples[:_SHOWN]:
        colour = _COLOURS[one["severity"]]
        head = f"[{colour}]{one['severity']:<8}[/{colour}]{one['kind']:<14}"
        name = ".".join(filter(None, (one["database"], one["table"])))
        full = name if one["partition"] is None else f"{name}/{one['partition']}"
        out.print(f"{head}{escape(full)}: {escape(one['text'])}", highlight=False, soft_wrap=True)
        out.print(f"        {escape(one['location'])}", style="dim", highlight=False, soft_wrap=True)
    _show_counts(result)


def _show_counts(result: "AuditResult") -> None:
    table = Table("severity", "kind", box=None, pad_edge=False)
    table.add_column("findings", justify="right")
    for name, count in result.kinds.items():
        severity, _, kind = name.partition(" ")
        table.add_row(severity, kind, f"{count:,}")
    if result.kinds:
        out.print(table)
    counts = result.counts
    looked = f"{counts['tables']:,} tables, {counts['directories']:,} directories, {counts['files']:,} files"
    found = ", ".join(f"{count:,} {severity}s" for severity, count in result.severities.items())
    out.print(f"{looked}: {found}", highlight=False)
    out.print(escape(f"all findings: {result.table}"), highlight=False, soft_wrap=True)
    if result.plan:
        text = f"plan {result.plan} has {result.actions:,} actions; hms-gateway pipeline apply does them"
        out.print(escape(text), highlight=False, soft_wrap=True)
    if result.html:
        out.print(escape(f"page {result.html}"), highlight=False, soft_wrap=True)
