"""The group `hms-gateway pipeline`; a command's module is loaded when it is named."""

from importlib import import_module
from typing import Any, Final

import click

from hms_gateway.cli.terminal.groups import Group

# The module of a command has it under the name `command`.
COMMANDS: Final = {
    "crawl": "hms_gateway.cli.pipeline.crawl_command",
    "stats": "hms_gateway.cli.pipeline.stats_command",
    "audit": "hms_gateway.cli.pipeline.audit_command",
    "apply": "hms_gateway.cli.pipeline.apply_command",
    "compact": "hms_gateway.cli.pipeline.compact_command",
    "snapshot": "hms_gateway.cli.pipeline.snapshot_command",
    "diff": "hms_gateway.cli.pipeline.diff_command",
    "migrate": "hms_gateway.cli.pipeline.migrate_command",
    "runs": "hms_gateway.cli.pipeline.runs_command",
}

_EPILOG: Final = """\b
Example:
  hms-gateway pipeline crawl /data/lake --dry-run

\b
The exit status is 0 without findings, 1 with findings or refusals, 2 for a failed
job, which --resume RUN continues.
"""


class LateGroup(Group):
    """Knows the names of its commands, and imports what is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: Any = import_module(COMMANDS[cmd_name]).command
        command: click.Command = found
        return command


@click.group(cls=LateGroup, epilog=_EPILOG)
def pipeline() -> None:
    """Run jobs over a metastore and its files, on Spark.

    They need Java 17 and PySpark: pip install 'hms-gateway[spark]'; in a checkout pip install -e '.[spark]'.
    """
