"""`hms-gateway leases …`: the commands and their options; what they do is in `lease_commands`."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.target_options import with_target

if TYPE_CHECKING:
    from app.cli.calling import Target

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
What follows -- is run while the lease is held: it is extended as long as the
command runs, dropped afterwards, and its id is in HMS_LEASE_ID. A change that
presents the id (header x-hms-lease-id) is refused once the lease is lost.

\b
Examples:
  hms-gateway leases grab --exclusive sales.orders --shared sales.customers
  hms-gateway leases grab -x sales.orders/ds=1 --seconds 60 --wait 30 -- ./load.sh
"""

leases = typer.Typer(
    help="Leases: objects that are somebody's until a time, whatever happens to the holder.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)

ObjectsArgument = Annotated[list[str], typer.Argument(metavar="OBJECT...")]
SomeObjectsArgument = Annotated[list[str] | None, typer.Argument(metavar="[OBJECT]...", show_default=False)]
ExclusiveOption = Annotated[
    list[str] | None, typer.Option("--exclusive", "-x", metavar="OBJECT", help="For writing; repeatable.")
]
DatabaseOption = Annotated[str, typer.Option(metavar="NAME", help="Database of tables named without one.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON with the IDL's field names.")]


@leases.command(epilog=_GRAB_EXAMPLES)
@with_target
def grab(
    target: "Target",
    command: Annotated[list[str] | None, typer.Argument(metavar="[-- COMMAND...]", show_default=False)] = None,
    exclusive: ExclusiveOption = None,
    shared: Annotated[
        list[str] | None, typer.Option("--shared", "-s", metavar="OBJECT", help="For reading; repeatable.")
    ] = None,
    seconds: Annotated[int, typer.Option(help="How long the lease lasts, and each extension.")] = 3600,
    wait: Annotated[int, typer.Option(help="Seconds to wait for who is in the way.")] = 0,
    database: DatabaseOption = "default",
) -> None:
    """Grab a lease on all objects or none, and print its id. Leaves with 1 when somebody is in the way."""
    from app.cli import lease_commands

    lease_commands.grab(target, exclusive or [], shared or [], database, seconds, wait, command or [])


@leases.command()
@with_target
def show(
    target: "Target",
    objects: SomeObjectsArgument = None,
    database: DatabaseOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show the leases on the objects and all that lies in them, as SHOW LEASE; '*' or nothing shows every lease."""
    from app.cli import lease_commands

    lease_commands.show(target, objects or ["*"], database, as_plain_json=as_json)


@leases.command()
@with_target
def extend(
    target: "Target",
    lease_id: int,
    objects: SomeObjectsArgument = None,
    exclusive: ExclusiveOption = None,
    seconds: Annotated[int, typer.Option(help="From now; 0 is what the lease was granted for.")] = 0,
    database: DatabaseOption = "default",
) -> None:
    """Let your lease, or some of its objects, last longer, and print until when.

    A shared object that is named with --exclusive becomes exclusive when no other lease is in the way.
    """
    from app.cli import lease_commands

    lease_commands.extend(target, lease_id, objects or [], exclusive or [], database, seconds)


@leases.command()
@with_target
def drop(
    target: "Target", lease_id: int, objects: SomeObjectsArgument = None, database: DatabaseOption = "default"
) -> None:
    """Give your lease up, or some of its objects. What is gone already is no error."""
    from app.cli import lease_commands

    lease_commands.drop(target, lease_id, objects or [], database)


@leases.command("force-drop")
@with_target
def force_drop(target: "Target", objects: ObjectsArgument, database: DatabaseOption = "default") -> None:
    """Take objects, and all that lies in them, away from whoever leases them: DROP FORCE LEASE (administrators only).

    '*' takes every lease there is.
    """
    from app.cli import lease_commands

    lease_commands.force_drop(target, objects, database)
