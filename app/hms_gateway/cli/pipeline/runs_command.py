"""`hms-gateway pipeline runs`: the runs of a state folder and of a metastore, and going on with one."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click
import msgspec

from hms_gateway.cli.pipeline.job_options import JobCommand, failures, with_late_job_options
from hms_gateway.cli.terminal.format_options import format_option, rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.groups import command as command_of
from hms_gateway.cli.terminal.output import fail

_EXAMPLES = """\b
Examples:
  hms-gateway pipeline runs
  hms-gateway pipeline runs --resume crawl-20260101T020000-1a2b3c
  hms-gateway pipeline runs --json --of-metastore
"""
_HEADER = ("run", "status", "began", "ended", "metastore")


@command_of("runs", epilog=_EXAMPLES)
@click.option("--of-metastore", is_flag=True, help="List the runs of all state folders that the metastore knows.")
@format_option
@with_late_job_options
def command(make: Callable[[], JobCommand], *, state: str, as_json: bool, of_metastore: bool, form: str | None) -> None:
    """List the runs of jobs, the newest last, or resume one (--resume).

    A resumed run keeps its original arguments, including --url, --only and --where; --state has to name its folder.
    """
    resumed = click.get_current_context().params.get("resume")
    if resumed:
        _resume(make(), resumed)
    from hms_gateway.pipeline.jobs.records import known_runs, records
    from hms_gateway.pipeline.jobs.state import State

    with failures():
        found = known_runs(make().options.connection) if of_metastore else records(State.of(state, {}))
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
        return
    rows = [tuple(str(each.get(name) or "") for name in ("run", "status", "began", "ended", "url")) for each in found]
    write_rows(sys.stdout, rows_form(form), _HEADER, rows)


def _resume(job: JobCommand, run: str) -> None:
    from hms_gateway.pipeline.jobs.records import options_of, record_of

    with failures():
        record = record_of(job.options)
    kind = record["kind"]
    try:
        work, arguments = job_of(kind)
    except AttributeError:
        fail(f"run {run} is of {kind}, which is not known here", f"hms-gateway pipeline {kind} --resume {run}")
    given = msgspec.convert(record["arguments"], arguments)
    JobCommand(options_of(job.options, record), as_json=job.as_json).run(work, given, show_of(kind))


def job_of(kind: str) -> tuple[Any, Any]:
    """The function of a job and the class of its arguments. Raises AttributeError."""
    from hms_gateway import pipeline

    return getattr(pipeline, f"run_{kind}"), getattr(pipeline, f"{kind.capitalize()}Arguments")


def show_of(kind: str) -> Callable[[Any], None]:
    """What prints the result of a job of a kind: the same as its own command has."""
    command_of, name = ("compact", "show_cleaned") if kind == "clean" else (kind, "show")
    shown: Callable[[Any], None] = getattr(import_module(f"{__package__}.{command_of}_command"), name)
    return shown
