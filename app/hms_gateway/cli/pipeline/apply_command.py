"""`hms-gateway pipeline apply`: does what the plan of an audit says."""

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from hms_gateway.cli.pipeline.job_options import JobCommand, with_job_options
from hms_gateway.cli.terminal.groups import command as command_of
from hms_gateway.cli.terminal.output import err, out

if TYPE_CHECKING:
    from hms_gateway.pipeline.audit.apply_job import ApplyResult

_EPILOG = """\b
Examples:
  hms-gateway pipeline apply plan.jsonl --dry-run
  hms-gateway pipeline apply plan.jsonl --yes
"""


@command_of("apply", epilog=_EPILOG)
@click.argument("plan")
@with_job_options
def command(job: JobCommand, plan: str) -> None:
    """Carry out the plan in the file PLAN, written by `pipeline audit --fix`.

    Takes an exclusive lease for each action, and skips it if catalog or directory differ from the plan. Unwanted lines
    can be deleted from the plan. Above 5 % of a table's partitions, 1,000 files or 10 GiB it needs --yes.
    """
    from hms_gateway.pipeline.audit.apply_job import ApplyArguments, apply

    job.run(apply, ApplyArguments(plan=plan), show)


def show(result: "ApplyResult") -> None:
    for one in result.refusals:
        err.print(escape(f"not done: {one['location']} {one['reason']}"), highlight=False, soft_wrap=True)
    done = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in sorted(result.counts.items()))
    if result.status == "planned":
        out.print(escape(f"planned: {done or 'nothing'}; --resume {result.run} does it"), highlight=False)
        return
    out.print(escape(f"{done or 'nothing to do'}; {result.refused:,} not done"), highlight=False)
