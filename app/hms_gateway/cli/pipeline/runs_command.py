"""`hms-gateway pipeline runs`: the runs of a state folder."""

import sys

import click
import msgspec

from hms_gateway.cli.pipeline.job_options import failures, json_option, need_spark, state_option

_EXAMPLES = """\b
Examples:
  hms-gateway pipeline runs
  hms-gateway pipeline runs --json --state s3://lake/pipeline
"""
_HEADER = ("Run", "Status", "Began", "Ended", "Metastore")


@click.command("runs", epilog=_EXAMPLES)
@state_option
@json_option
def command(state: str, as_json: bool) -> None:
    """List the runs of jobs that the state folder knows, the newest last."""
    need_spark()
    from hms_gateway.pipeline.jobs.records import records
    from hms_gateway.pipeline.jobs.state import State

    with failures():
        found = records(State.of(state, {}))
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
        return
    rows = [
        (each["run"], each["status"], each["began"], each.get("ended") or "", each["options"]["url"]) for each in found
    ]
    print("\n".join(map("\t".join, [_HEADER, *rows])))
