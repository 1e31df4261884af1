"""`hms-gateway pipeline audit`: what is not as it should be in catalog and directories."""

from typing import TYPE_CHECKING

import click
from rich.markup import escape
from rich.table import Table

from hms_gateway.cli.pipeline.job_options import Job, with_job_options
from hms_gateway.cli.terminal.output import out

if TYPE_CHECKING:
    from hms_gateway.pipeline.audit.arguments import AuditResult

_EPILOG = """\b
Examples:
  hms-gateway pipeline audit --only 'sales.*' --html audit.html
  hms-gateway pipeline audit --fix plan.jsonl
  hms-gateway pipeline apply plan.jsonl

The exit status is 1 when something of the severity --fail-on, or worse, was found.
"""
_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}
_SHOWN = 40


@click.command("audit", short_help="Find what is wrong in catalog and directories.", epilog=_EPILOG)
@click.option(
    "--fix",
    default="",
    show_default=False,
    metavar="FILE",
    help="Write a plan of what `pipeline apply` can do about findings.",
)
@click.option("--delete-orphans", is_flag=True, help="Let the plan delete directories that belong to nothing.")
@click.option("--html", default="", show_default=False, metavar="FILE", help="Write a page with plots.")
@click.option("--all", "all_footers", is_flag=True, help="Read all footers, not only those of changed directories.")
@click.option("--no-footers", is_flag=True, help="Read no footers.")
@click.option(
    "--quiet-hours",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="Leftovers and orphans that changed since are notes, and are not fixed.",
)
@click.option(
    "--small-bytes",
    type=click.IntRange(min=1),
    default=16 * 1024 * 1024,
    show_default=True,
    help="Files of a smaller mean size are small.",
)
@click.option(
    "--small-files",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="So many small files are a finding.",
)
@click.option(
    "--fail-on",
    type=click.Choice(("error", "warning", "note")),
    default="warning",
    show_default=True,
    help="The least severity for exit status 1.",
)
@with_job_options
def command(
    job: Job,
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
    """Compare the catalog with directories and files, and say what is not as it should be.

    Nothing is changed. Findings: tables and partitions without directory, directories
    without table or partition, shared, misplaced and outside ones, leftovers of
    engines, empty ones, small files, mixed formats, wrong numFiles and totalSize,
    files whose columns are not those of the table, corrupt and unreadable ones.
    """
    from hms_gateway.pipeline.audit.arguments import AuditArguments
    from hms_gateway.pipeline.audit.job import audit
    from hms_gateway.pipeline.audit.rules.values import Severity

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
