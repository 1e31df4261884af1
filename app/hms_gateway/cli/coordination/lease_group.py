"""`hms-gateway leases …`: the commands and their options; what they do is in `lease_commands`."""

from typing import TYPE_CHECKING

import click

from hms_gateway.cli.calls.target_options import with_target
from hms_gateway.cli.terminal.groups import Group

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import Target

_EXAMPLES = """\b
Objects are database.table, database.table/partition, or database.* for a
database; they need not exist.

\b
Examples:
  hms-gateway leases grab --exclusive sales.orders --seconds 600 -- ./load.sh
  hms-gateway leases show '*'
  hms-gateway leases force-drop sales.orders
"""
_GRAB_EXAMPLES = """\b
COMMAND runs while the lease is held: this command extends the lease until
COMMAND ends, then drops it. HMS_LEASE_ID is the lease's id. The gateway refuses
a change that presents the id (header x-hms-lease-id) once the lease is lost.

\b
Examples:
  hms-gateway leases grab --exclusive sales.orders --shared sales.customers
  hms-gateway leases grab -x sales.orders/ds=1 --seconds 60 --wait 30 -- ./load.sh
"""

exclusive_option = click.option("--exclusive", "-x", multiple=True, metavar="OBJECT", help="For writing; repeatable.")
database_option = click.option(
    "--database", default="default", metavar="NAME", help="Database of tables that are named without one."
)
lease_argument = click.argument("lease_id", type=int)
some_objects_argument = click.argument("objects", nargs=-1, metavar="[OBJECT]...")


@click.group(cls=Group, epilog=_EXAMPLES)
def leases() -> None:
    """Grab, show, extend and drop leases: locks for a fixed time, for scripts and operators."""


@leases.command(epilog=_GRAB_EXAMPLES)
@click.argument("command", nargs=-1, metavar="[-- COMMAND...]")
@exclusive_option
@click.option("--shared", "-s", multiple=True, metavar="OBJECT", help="For reading; repeatable.")
@click.option("--seconds", type=int, default=3600, help="Seconds that the lease and each extension last.")
@click.option("--wait", type=int, default=0, help="Seconds to wait for conflicting leases to end.")
@database_option
@with_target
def grab(
    target: "Target",
    command: tuple[str, ...],
    exclusive: tuple[str, ...],
    shared: tuple[str, ...],
    seconds: int,
    wait: int,
    database: str,
) -> None:
    """Grab a lease on all objects or none, and print its id.

    The exit status is 1 when another lease conflicts."""
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.grab(target, exclusive, shared, database, seconds, wait, command)


@leases.command()
@some_objects_argument
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON with the IDL's field names.")
@with_target
def show(target: "Target", objects: tuple[str, ...], database: str, as_json: bool) -> None:
    """Show leases as SHOW LEASE does.

    Shows those on the objects and on all that lies in them; '*' or no object shows every lease."""
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.show(target, objects or ["*"], database, as_plain_json=as_json)


@leases.command()
@lease_argument
@some_objects_argument
@exclusive_option
@click.option(
    "--seconds", type=int, default=0, help="Seconds from now; 0 is the duration for which the lease was granted."
)
@database_option
@with_target
def extend(
    target: "Target",
    lease_id: int,
    objects: tuple[str, ...],
    exclusive: tuple[str, ...],
    seconds: int,
    database: str,
) -> None:
    """Extend your lease, or some of its objects, and print the new end.

    A shared object that is named with --exclusive becomes exclusive if no other lease conflicts.
    """
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.extend(target, lease_id, objects, exclusive, database, seconds)


@leases.command()
@lease_argument
@some_objects_argument
@database_option
@with_target
def drop(target: "Target", lease_id: int, objects: tuple[str, ...], database: str) -> None:
    """Drop your lease, or some of its objects. Dropping what has ended succeeds."""
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.drop(target, lease_id, objects, database)


@leases.command("force-drop")
@click.argument("objects", nargs=-1, required=True, metavar="OBJECT...")
@database_option
@with_target
def force_drop(target: "Target", objects: tuple[str, ...], database: str) -> None:
    """Drop objects from the leases of all users, as DROP FORCE LEASE does (administrators only).

    Also drops all that lies in the objects; '*' drops every lease.
    """
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.force_drop(target, objects, database)
