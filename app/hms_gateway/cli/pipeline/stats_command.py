"""`hms-gateway pipeline stats`: statistics of tables, partitions and columns."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from hms_gateway.cli.pipeline.job_options import JobCommand, with_job_options
from hms_gateway.cli.terminal.groups import command as command_of
from hms_gateway.cli.terminal.output import fail, out

if TYPE_CHECKING:
    from hms_gateway.pipeline.stats.job import StatsResult

_SHOWN_MAX = 20
_EPILOG = """\b
The exit status is 1 for problems of files or locations, and for partitions that
changed meanwhile and are left for the next run.

\b
Examples:
  hms-gateway pipeline stats --only 'sales.*'
  hms-gateway pipeline stats --full --only sales.orders --where "ds >= '2026-01-01'"
  hms-gateway pipeline stats --report stats.html
"""


@command_of("stats", epilog=_EPILOG)
@click.option(
    "--from-footers/--full",
    "from_footers",
    default=True,
    help="Read the footers of Parquet and ORC files only (default), or all data with Spark.",
)
@click.option(
    "--all", "is_all", is_flag=True, help="Include tables and partitions without changes since their last statistics."
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File to write a report to, as a page of HTML.",
)
@with_job_options
def command(job: JobCommand, from_footers: bool, is_all: bool, report: Path | None) -> None:
    """Compute statistics of tables, partitions and columns, and store them in the catalog.

    Rows, nulls, smallest and largest values come from the footers of files; with --full they come from the data, with
    distinct values. Skips tables and partitions without changes since their last statistics.
    """
    from hms_gateway.pipeline.stats.job import StatsArguments, stats

    def done(*given: Any, **named: Any) -> "StatsResult":
        result = stats(*given, **named)
        if report is not None:
            _write(result, report)
        return result

    job.run(done, StatsArguments(is_full=not from_footers, is_all=is_all), show)


def _write(result: "StatsResult", file: Path) -> None:
    from hms_gateway.pipeline.stats.job import page_of

    try:
        file.write_text(page_of(result), encoding="utf-8")
    except OSError as error:
        fail(f"report {file} cannot be written: {error.strerror}", "the statistics are written; give another --report")


def show(result: "StatsResult") -> None:
    for name in ("partitions", "written", "fresh", "failed", "files", "rows"):
        out.print(f"{name:<12} {result.counts[name]:>14,}", highlight=False)
    coverage = result.coverage
    for name, before, after, whole in (
        ("rows counted", coverage.partitions_before, coverage.partitions_after, coverage.partitions),
        ("columns", coverage.columns_before, coverage.columns_after, coverage.columns),
    ):
        out.print(f"{name:<12} {_share(before, whole):>14} -> {_share(after, whole)}", highlight=False)
    lines = [f"{note['path']} {note['reason']}" for note in result.notes]
    lines += [f"{each['item']} {each['reason']}" for each in result.refusals]
    lines += [
        f"{each['database']}.{each['table']} column {each['column']} of {each['partitions']:,}: {each['reason']}"
        for each in result.left_out
    ]
    lines += [f"{each['database']}.{each['table']} {each['reason']}" for each in result.passed_by]
    for line in lines[:_SHOWN_MAX]:
        out.print(escape(line), highlight=False, soft_wrap=True)
    if len(lines) > _SHOWN_MAX:
        out.print(f"and {len(lines) - _SHOWN_MAX:,} more in {escape(result.folder)}", highlight=False, soft_wrap=True)
    if result.status == "planned":
        out.print(f"nothing is written; --resume {result.run} does it", highlight=False)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
