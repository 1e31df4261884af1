"""`hms-gateway audit`: the command and its options; what it does is in `audit_commands`."""

from typing import TYPE_CHECKING

import click

from hms_gateway.cli.calls.target_options import with_target

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import Target

_EXAMPLES = """\b
Examples:
  hms-gateway audit --object sales.orders
  hms-gateway audit --by ann --since 7d --json
  hms-gateway audit --since 2026-11-21 --until 2026-11-22
"""


@click.command(epilog=_EXAMPLES)
@click.option("--by", "changed_by", metavar="NAME", help="Changes that this user made.")
@click.option("--object", "named", metavar="NAME", help="Changes of a database, or of database.table.")
@click.option("--since", metavar="TIME", help="A date, a date and time, or how long ago: 90m, 12h, 7d.")
@click.option("--until", metavar="TIME", help="As --since.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="The newest so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with the IDL's field names.")
@with_target
def audit(
    target: "Target",
    changed_by: str | None,
    named: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show who changed what, from where and by which call; the newest change first.

    For administrators. Changes without an event, such as grants, are in the audit log only."""
    from hms_gateway.cli.coordination import audit_commands

    wanted = audit_commands.Wanted(changed_by, named, since, until, limit)
    audit_commands.show(target, wanted, as_plain_json=as_json)
