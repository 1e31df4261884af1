"""`hms-gateway leases …`: the commands and their options; what they do is in `lease_commands`."""

from typing import TYPE_CHECKING

import click

from hms_gateway.cli.calls.target_options import with_target
from hms_gateway.cli.terminal.format_options import format_option, rows_form
from hms_gateway.cli.terminal.groups import Group, examples

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import CallTarget

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

exclusive_option = click.option(
    "--exclusive", "-x", multiple=True, metavar="OBJECT", help="Object to lease for writing; repeatable."
)
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
@click.option("--shared", "-s", multiple=True, metavar="OBJECT", help="Object to lease for reading; repeatable.")
@click.option("--seconds", type=int, default=3600, metavar="N", help="How long the lease, and each extension, lasts.")
@click.option("--wait", type=int, default=0, metavar="N", help="Seconds to wait for conflicting leases to end.")
@database_option
@with_target
def grab(
    target: "CallTarget",
    command: tuple[str, ...],
    exclusive: tuple[str, ...],
    shared: tuple[str, ...],
    seconds: int,
    wait: int,
    database: str,
) -> None:
    """Grab a lease on all of the objects or none, and print its id.

    The exit status is 1 when another lease conflicts.
    """
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.grab(target, exclusive, shared, database, seconds, wait, command)


@leases.command(epilog=examples("hms-gateway leases show", "hms-gateway leases show sales.orders"))
@some_objects_argument
@database_option
@format_option
@click.option("--json", "as_json", is_flag=True, help="Print the structs as JSON, with the IDL's field names.")
@with_target
def show(target: "CallTarget", objects: tuple[str, ...], database: str, form: str | None, as_json: bool) -> None:
    """List the leases on some objects and on all that lies in them, or every lease.

    '*', or no object, lists every lease.
    """
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.show(target, objects or ["*"], database, form=rows_form(form), as_plain_json=as_json)


@leases.command(epilog=examples("hms-gateway leases extend 7 --seconds 600"))
@lease_argument
@some_objects_argument
@exclusive_option
@click.option(
    "--seconds", type=int, default=0, metavar="N", help="Seconds from now; 0 extends by the original duration."
)
@database_option
@with_target
def extend(
    target: "CallTarget",
    lease_id: int,
    objects: tuple[str, ...],
    exclusive: tuple[str, ...],
    seconds: int,
    database: str,
) -> None:
    """Extend one of your leases, or some of its objects, and print the new end.

    A shared object named by --exclusive becomes exclusive if no other lease conflicts.
    """
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.extend(target, lease_id, objects, exclusive, database, seconds)


@leases.command(epilog=examples("hms-gateway leases drop 7", "hms-gateway leases drop 7 sales.orders"))
@lease_argument
@some_objects_argument
@database_option
@with_target
def drop(target: "CallTarget", lease_id: int, objects: tuple[str, ...], database: str) -> None:
    """Drop one of your leases, or some of its objects.

    Dropping a lease that has ended succeeds.
    """
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.drop(target, lease_id, objects, database)


@leases.command(
    "force-drop", epilog=examples("hms-gateway leases force-drop sales.orders", "hms-gateway leases force-drop '*'")
)
@click.argument("objects", nargs=-1, required=True, metavar="OBJECT...")
@database_option
@with_target
def force_drop(target: "CallTarget", objects: tuple[str, ...], database: str) -> None:
    """Drop objects from the leases of all users.

    For administrators. Includes objects within these; '*' drops every lease. The exit status is 1 if no lease has any
    of the objects.
    """
    from hms_gateway.cli.coordination import lease_commands

    lease_commands.force_drop(target, objects, database)
