"""`hms-gateway pipeline snapshot`: the whole catalog as Parquet."""

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from hms_gateway.cli.pipeline.job_options import JobCommand, with_job_options
from hms_gateway.cli.terminal.groups import command as command_of
from hms_gateway.cli.terminal.output import out

if TYPE_CHECKING:
    from hms_gateway.pipeline.snapshot.job import SnapshotResult

_EPILOG = """\b
Examples:
  hms-gateway pipeline snapshot var/snapshots/monday
  hms-gateway pipeline snapshot s3://lake/snapshots/monday --only 'sales.*'
"""


@command_of("snapshot", epilog=_EPILOG)
@click.argument("path")
@with_job_options
def command(job: JobCommand, path: str) -> None:
    """Write the whole catalog, in its state at one event, to PATH as Parquet.

    Reads objects that change meanwhile again, until they are stable. The folder appears when it is complete, with
    _manifest.json in it.
    """
    from hms_gateway.pipeline.snapshot.job import SnapshotArguments, snapshot

    job.run(snapshot, SnapshotArguments(path=path), show)


def show(result: "SnapshotResult") -> None:
    if result.status == "planned":
        out.print(f"{result.counts['pieces']} pieces to read; --resume {result.run} reads them", highlight=False)
        return
    for kind, number in result.counts.items():
        out.print(f"{kind:<12} {number:>10,}", highlight=False)
    out.print(
        escape(f"snapshot {result.path} of event {result.event}, digest {result.digest}"),
        highlight=False,
        soft_wrap=True,
    )
