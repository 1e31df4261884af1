"""`hms-gateway audit`: the command and its options; what it does is in `audit_commands`."""

from typing import TYPE_CHECKING

import click

from hms_gateway.cli.calls.target_options import with_target
from hms_gateway.cli.terminal.format_options import format_option, rows_form
from hms_gateway.cli.terminal.groups import command

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import CallTarget

_EXAMPLES = """\b
Examples:
  hms-gateway audit --object sales.orders
  hms-gateway audit --by ann --since 7d --json
  hms-gateway audit --since 2026-11-21 --until 2026-11-22
"""


@command(epilog=_EXAMPLES)
@click.option("--by", "changed_by", metavar="NAME", help="Show only changes by this user.")
@click.option("--object", "named", metavar="NAME", help="Show only changes of this database, or database.table.")
@click.option(
    "--since", metavar="TIME", help="Begin of the time span: a date, a date and time, or an age such as 90m, 12h, 7d."
)
@click.option("--until", metavar="TIME", help="End of the time span, written as for --since.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, metavar="N", help="Show at most the newest N changes."
)
@format_option
@click.option("--json", "as_json", is_flag=True, help="Print the structs as JSON, with the IDL's field names.")
@with_target
def audit(
    target: "CallTarget",
    changed_by: str | None,
    named: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    form: str | None,
    as_json: bool,
) -> None:
    """Show the last changes with user, address and call, the newest first.

    For administrators. Changes without an event, such as grants, are in the audit log only."""
    from hms_gateway.cli.coordination import audit_commands

    wanted = audit_commands.ChangeFilter(changed_by, named, since, until, limit)
    audit_commands.show(target, wanted, rows_form(form), as_plain_json=as_json)
