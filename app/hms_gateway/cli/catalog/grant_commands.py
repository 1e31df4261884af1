"""`hms-gateway grant`, `revoke` and `grants`: privileges and roles of a running metastore."""

from typing import TYPE_CHECKING, Any, Final

import click

from hms_gateway.cli.calls.target_options import with_target
from hms_gateway.cli.terminal.output import fail

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import Target
    from hms_gateway.structs import HiveObjectRef, PrivilegeBag

_KINDS: Final = {"user": 1, "role": 2, "group": 3}
_NAMES: Final = {number: name for name, number in _KINDS.items()}
_EXAMPLES: Final = """\b
An object is *, a database or database.table. A party is a user, group:NAME or
role:NAME. A role itself is given by `role NAME`.

\b
Examples:
  hms-gateway grant select sales.orders alice
  hms-gateway grant all sales group:sales-team
  hms-gateway grant role analyst group:staff
  hms-gateway revoke select sales.orders alice
  hms-gateway grants role:analyst
"""

_privilege_argument = click.argument("privilege", help="select, insert, create, ... or all; or the word role.")
_object_argument = click.argument("thing", metavar="OBJECT", help="*, database, database.table; or the role's name.")
_party_argument = click.argument("party", help="A user, group:NAME or role:NAME.")


@click.command(epilog=_EXAMPLES)
@_privilege_argument
@_object_argument
@_party_argument
@click.option("--grant-option", is_flag=True, help="The party may grant it on.")
@with_target
def grant(target: "Target", privilege: str, thing: str, party: str, grant_option: bool) -> None:
    """Grant a privilege on an object, or a role, to a user, group or role."""
    name, kind = _party(party)
    grantor = target.user or "admin"
    if privilege == "role":
        _call(target, "grant_role", thing, name, kind, grantor, 1, grant_option)
    else:
        bag = _bag(privilege, thing, name, kind, grantor, is_option=grant_option)
        _need_object(target, thing)
        _call(target, "grant_privileges", bag)


@click.command(epilog=_EXAMPLES)
@_privilege_argument
@_object_argument
@_party_argument
@with_target
def revoke(target: "Target", privilege: str, thing: str, party: str) -> None:
    """Take a privilege or a role away again."""
    name, kind = _party(party)
    if privilege == "role":
        _call(target, "revoke_role", thing, name, kind)
    else:
        _call(target, "revoke_privileges", _bag(privilege, thing, name, kind, None))


@click.command(epilog=_EXAMPLES)
@click.argument("party", required=False, help="A user, group:NAME or role:NAME; of everybody without one.")
@with_target
def grants(target: "Target", party: str | None) -> None:
    """Show privileges and roles that have been granted, one for each line."""
    from hms_gateway.structs import HiveObjectRef

    name, kind = (None, None) if party is None else _party(party)
    for one in _call(target, "list_privileges", name, kind, HiveObjectRef()):
        option = " with grant option" if one.grantInfo.grantOption else ""
        who = _shown_party(one.principalName, one.principalType)
        click.echo(f"{who}\t{one.grantInfo.privilege.lower()}\t{_shown(one.hiveObject)}{option}")
    if name is not None and kind is not None:
        for role in _call(target, "list_roles", name, kind):
            click.echo(f"{_shown_party(name, kind)}\trole\t{role.roleName}")


def _call(target: "Target", method: str, *values: Any) -> Any:
    from hms_gateway.cli.calls.calling import connected

    with connected(target) as client:
        return client.call(method, *values)


def _need_object(target: "Target", thing: str) -> None:
    """The metastore ignores a grant on what does not exist, as Hive does; this ends the command."""
    database, _, table = thing.partition(".")
    if table:
        _call(target, "get_table", database, table)
    elif thing != "*":
        _call(target, "get_database", database)


def _party(text: str) -> tuple[str, int]:
    kind, colon, name = text.partition(":")
    if text and not colon:
        return text, _KINDS["user"]
    if kind not in _KINDS or not name:
        fail(f"{text!r} is not a party", "write a user's name, user:NAME, group:NAME or role:NAME")
    return name, _KINDS[kind]


def _shown_party(name: str, kind: int) -> str:
    return f"{_NAMES.get(kind, '?')}:{name}"


def _bag(
    privilege: str, thing: str, name: str, kind: int, grantor: str | None, *, is_option: bool = False
) -> "PrivilegeBag":
    from hms_gateway.sql.statement_reader import PRIVILEGES
    from hms_gateway.structs import HiveObjectPrivilege, PrivilegeBag, PrivilegeGrantInfo

    if privilege.upper() not in PRIVILEGES:
        fail(f"the privilege {privilege} is not known", f"known are {', '.join(PRIVILEGES).lower()}; and the word role")
    info = PrivilegeGrantInfo(privilege.upper(), 0, grantor, _KINDS["user"], is_option)
    return PrivilegeBag([HiveObjectPrivilege(_ref(thing), name, kind, info)])


def _ref(thing: str) -> "HiveObjectRef":
    from hms_gateway.structs import HiveObjectRef, HiveObjectType

    if thing == "*":
        return HiveObjectRef(objectType=HiveObjectType.GLOBAL)
    check_object(thing)
    database, dot, table = thing.partition(".")
    kind = HiveObjectType.TABLE if dot else HiveObjectType.DATABASE
    return HiveObjectRef(objectType=kind, dbName=database, objectName=table or None)


def check_object(text: str) -> None:
    """Ends the command when the text is not `*`, a database or a table."""
    parts = text.split(".")
    if len(parts) > 2 or not all(part.strip() for part in parts):
        fail(f"{text!r} is not an object", "write *, database or database.table")


def _shown(ref: Any) -> str:
    names = [name for name in (ref.dbName, ref.objectName, ref.columnName) if name]
    return ".".join(names) or "*"
