"""`hms-gateway grant`, `revoke`, `grants`, `role` and `may` with their options; what they do is in `granting`."""

from typing import TYPE_CHECKING, Final

import click

from hms_gateway.cli.calls.target_options import with_target
from hms_gateway.cli.terminal.format_options import format_option, rows_form
from hms_gateway.cli.terminal.groups import Group, command, examples

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import CallTarget

_EXAMPLES: Final = """\b
An object is *, a database or database.table. A party is a user, group:NAME or
role:NAME. A role itself is given by `role NAME`.

\b
Examples:
  hms-gateway grant select sales.orders alice
  hms-gateway grant all sales group:sales-team
  hms-gateway grant role analyst group:staff
"""
_GRANTS_EXAMPLES: Final = """\b
Examples:
  hms-gateway grants alice
  hms-gateway grants role:analyst
  hms-gateway grants --on sales.orders
"""
_MAY_EXAMPLES: Final = """\b
Examples:
  hms-gateway may alice select sales.orders
  hms-gateway may alice create sales --group sales-team
"""

_privilege_argument = click.argument("privilege", help="select, insert, create, ... or all; or the word role.")
_object_argument = click.argument("thing", metavar="OBJECT", help="*, database, database.table; or the role's name.")
_party_argument = click.argument("party", help="A user, group:NAME or role:NAME.")
_role_argument = click.argument("role", help="Name of the role.")


@command(epilog=_EXAMPLES)
@_privilege_argument
@_object_argument
@_party_argument
@click.option("--grant-option", is_flag=True, help="Let the party grant it to others.")
@with_target
def grant(target: "CallTarget", privilege: str, thing: str, party: str, grant_option: bool) -> None:
    """Grant a privilege on an object, or a role, to a user, group or role.

    Prints a note if authorization is off, or the user or group is unknown.
    """
    from hms_gateway.cli.catalog import granting

    granting.change(target, privilege, thing, party, is_revoked=False, is_option=grant_option)


@command(epilog=examples("hms-gateway revoke select sales.orders alice", "hms-gateway revoke role analyst group:staff"))
@_privilege_argument
@_object_argument
@_party_argument
@with_target
def revoke(target: "CallTarget", privilege: str, thing: str, party: str) -> None:
    """Revoke a privilege or a role."""
    from hms_gateway.cli.catalog import granting

    granting.change(target, privilege, thing, party, is_revoked=True, is_option=False)


@command(epilog=_GRANTS_EXAMPLES)
@click.argument("party", required=False, help="A user, group:NAME or role:NAME; unset means all.")
@click.option(
    "--on",
    "thing",
    metavar="OBJECT",
    help="Show the parties with rights on this database or database.table, owners too.",
)
@format_option
@with_target
def grants(target: "CallTarget", party: str | None, thing: str | None, form: str | None) -> None:
    """List what was granted to a party or on an object.

    --on includes grants on everything, on the database of a table, and on the tables of a database. Rules are not
    listed; `hms-gateway may` evaluates them.
    """
    from hms_gateway.cli.catalog import granting

    granting.show(target, party, thing, rows_form(form))


@click.group(
    cls=Group, epilog=examples("hms-gateway role create analyst", "hms-gateway grant role analyst group:staff")
)
def role() -> None:
    """Create, drop and list roles."""


@role.command("create", epilog=examples("hms-gateway role create analyst"))
@_role_argument
@with_target
def create_role(target: "CallTarget", role: str) -> None:
    """Create a role; `hms-gateway grant` gives it privileges and members."""
    from hms_gateway.cli.catalog import granting

    granting.create_role(target, role)


@role.command("drop", epilog=examples("hms-gateway role drop analyst"))
@_role_argument
@with_target
def drop_role(target: "CallTarget", role: str) -> None:
    """Drop a role with its grants."""
    from hms_gateway.cli.catalog import granting

    granting.drop_role(target, role)


@role.command("list", epilog=examples("hms-gateway role list", "hms-gateway role list analyst"))
@click.argument("role", required=False, help="Name of a role, to list who has it.")
@format_option
@with_target
def list_roles(target: "CallTarget", role: str | None, form: str | None) -> None:
    """List the roles, or the members of one."""
    from hms_gateway.cli.catalog import granting

    granting.show_role(target, role, rows_form(form))


@command(epilog=_MAY_EXAMPLES)
@click.argument("name", metavar="USER", help="Name of the user.")
@click.argument("action", help="see, select, insert, update, delete, create, alter, drop, lock, own or admin.")
@click.argument("thing", metavar="OBJECT", help="A database, database.table, or * for everything.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Group that the login proves; repeatable.")
@with_target
def may(target: "CallTarget", name: str, action: str, thing: str, groups: tuple[str, ...]) -> None:
    """Tell if a user may do something, and the grant, role, rule or ownership that decides.

    Asks the gateway as an administrator; the answer includes its rules and groups_file. The exit status is 1 for no.
    """
    from hms_gateway.cli.catalog import granting

    granting.explain(target, name, action, thing, groups)
