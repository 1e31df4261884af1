"""Work of `grant`, `revoke`, `grants`, `role` and `may`: statements of HiveQL, run for a command."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.statements import answer, print_rows, session
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.exports import placed_name
from hms_gateway.cli.hiveql import granting
from hms_gateway.cli.hiveql.shell_state import Cell, PlaceName, PrincipalName, ResultRows, ShellCaller, Statement
from hms_gateway.cli.hiveql.statement_reader import PRIVILEGES
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail
from hms_gateway.rpc.structs import HiveObjectRef, HiveObjectType, PrincipalType, ThriftException
from hms_gateway.rpc.wire import ApplicationError

_KINDS: Final = {"user": PrincipalType.USER, "role": PrincipalType.ROLE, "group": PrincipalType.GROUP}
_COLUMNS: Final = ("party", "right", "object", "grant_option", "grantor")
ROLE: Final = "role"
PUBLIC: Final = "public"
EVERYTHING: Final = "*"


def grant(target: CallTarget, **given: Any) -> None:
    """Grant a privilege or a role."""
    _change(target, is_revoked=False, **given)


def revoke(target: CallTarget, **given: Any) -> None:
    """Revoke a privilege or a role."""
    _change(target, is_revoked=True, is_option=False, **given)


def _change(target: CallTarget, privilege: str, thing: str, party: str, *, is_revoked: bool, is_option: bool) -> None:
    """Run the statement; notes what may be a slip."""
    principal = _party(party)
    statement: Statement
    if privilege == ROLE:
        statement = granting.grant_roles([thing], [principal], is_revoked, is_option)
    else:
        if privilege.upper() not in PRIVILEGES:
            known = ", ".join(PRIVILEGES).lower()
            fail(f"the privilege {privilege} is not known", f"known are {known}; and the word role")
        target, kind, place = _place(target, thing)
        statement = granting.grant_privileges([privilege.upper()], kind, place, [principal], is_revoked, is_option)
    hint = f"hms-gateway grants {party} lists what it has" if is_revoked else ""
    with session(target, hint) as state:
        if privilege != ROLE and not is_revoked:
            _need_object(state.caller, place)
        statement.run(state)
        if not is_revoked:
            for note in _notes(state.caller, target.user, principal):
                click.echo(f"note: {note}", err=True)


def show(target: CallTarget, party: str | None, thing: str | None, form: str | None) -> None:
    """Print grants to a party, on an object, or all."""
    principal = None if party is None else _party(party)
    place = None
    if thing is not None:
        target, _, place = _place(target, thing)
    with connected(target) as client:
        found = list(_grants(client, principal, place))
    print_rows(ResultRows(_COLUMNS, found), form)
    if all(thing == PUBLIC for _, _, thing, *_ in found) and party is not None and place is None and "." in party:
        click.echo(f"note: hms-gateway grants --on {party} shows who has rights on a table of that name", err=True)


def _grants(
    client: ShellCaller, principal: PrincipalName | None, place: PlaceName | None
) -> Iterator[tuple[Cell, ...]]:
    kind, name = (None, None) if principal is None else principal
    if place is not None:
        yield from _owners(client, principal, place)
    for one in client.call("list_privileges", name, kind, HiveObjectRef()):
        ref, info = one.hiveObject, one.grantInfo
        if place is None or _is_about(ref, place):
            who = _shown_party(one.principalType, one.principalName)
            yield who, info.privilege.lower(), _shown(ref), bool(info.grantOption), info.grantor
    if principal is not None and place is None:
        for role in client.call("list_roles", name, kind):
            yield _shown_party(principal.kind, principal.name), ROLE, role.roleName, None, None


def _owners(client: ShellCaller, principal: PrincipalName | None, place: PlaceName) -> Iterator[tuple[Cell, ...]]:
    """They have all rights, without a grant."""
    if not place.db_name:
        return
    database = client.call("get_database", place.db_name)
    owners = [(place.db_name, database.ownerType, database.ownerName)]
    if place.table_name is not None:
        table = client.call("get_table", place.db_name, place.table_name)
        owners.insert(0, (f"{place.db_name}.{place.table_name}", table.ownerType, table.owner))
    for thing, kind, owner in owners:
        if owner and (principal is None or principal == (kind or PrincipalType.USER, owner)):
            yield _shown_party(kind, owner), "own", thing, None, None


def _is_about(ref: HiveObjectRef, place: PlaceName) -> bool:
    """True for a grant on the object, on what it lies in, and on its partitions and columns."""
    if not ref.dbName:
        return True
    if ref.dbName.lower() != place.db_name.lower():
        return False
    return place.table_name is None or not ref.objectName or ref.objectName.lower() == place.table_name.lower()


def show_role(target: CallTarget, role: str | None, form: str | None) -> None:
    """Print the roles, or the members of one."""
    answer(target, granting.show_roles() if role is None else granting.show_principals(role), form)


def create_role(target: CallTarget, role: str) -> None:
    """Run CREATE ROLE."""
    answer(target, granting.create_role(role))


def drop_role(target: CallTarget, role: str) -> None:
    """Run DROP ROLE."""
    answer(target, granting.drop_role(role))


def explain(target: CallTarget, name: str, action: str, thing: str, groups: Iterable[str]) -> None:
    """Say if a user may do something; ends the command with EXIT_REFUSED for no."""
    target, _, place = _place(target, thing)
    with connected(target) as client:
        asked = (name, list(groups), action.lower(), place.db_name, place.table_name or "")
        answer = client.call("explain_right", *asked)
    click.echo(f"{'yes' if answer.is_allowed else 'no'}: {answer.why}")
    for note in answer.notes:
        click.echo(f"note: {note}")
    if not answer.is_allowed:
        raise click.exceptions.Exit(EXIT_REFUSED)


def _notes(client: ShellCaller, user: str | None, principal: PrincipalName) -> Iterator[str]:
    """Nothing where the metastore is no gateway, or the caller may not ask."""
    kind, name = principal
    is_user = kind == PrincipalType.USER
    with contextlib.suppress(ThriftException, ApplicationError):
        # Of others than users only what is true of all.
        said = client.call("explain_right", name if is_user else user, [], "see", "", "").notes
        yield from (note for note in said if is_user or not note.startswith(f"user {user} "))
    if kind == PrincipalType.GROUP:
        # It is any text that a login may prove, so a misspelt one is not refused.
        with contextlib.suppress(ThriftException, ApplicationError):
            held: list[Any] = client.call("list_privileges", name, kind, HiveObjectRef())
            if len([*held, *client.call("list_roles", name, kind)]) == 1:
                yield f"it is the first grant to group {name}; is that its name?"


def _need_object(client: ShellCaller, place: PlaceName) -> None:
    """The metastore ignores a grant on what does not exist, as Hive does; this ends the command."""
    if place.table_name is not None:
        client.call("get_table", place.db_name, place.table_name)
    elif place.db_name:
        client.call("get_database", place.db_name)


def _party(text: str) -> PrincipalName:
    kind, colon, name = text.partition(":")
    if text and not colon:
        return PrincipalName(PrincipalType.USER, text)
    if kind not in _KINDS or not name:
        fail(f"{text!r} is not a party", "write a user's name, user:NAME, group:NAME or role:NAME")
    return PrincipalName(_KINDS[kind], name)


def _place(target: CallTarget, text: str) -> tuple[CallTarget, HiveObjectType, PlaceName]:
    """The object, and the target with its catalog. Ends the command when it is not `*`, a database or a table."""
    if text == EVERYTHING:
        return target, HiveObjectType.GLOBAL, PlaceName("")
    target, named = placed_name(target, text)
    kind = HiveObjectType.TABLE if named.table_name else HiveObjectType.DATABASE
    return target, kind, PlaceName(named.db_name, named.table_name)


def _shown_party(kind: int | None, name: str | None) -> str:
    kinds = {number: word for word, number in _KINDS.items()}
    return f"{kinds.get(PrincipalType(kind or PrincipalType.USER), '?')}:{name}"


def _shown(ref: HiveObjectRef) -> str:
    names = [name for name in (ref.dbName, ref.objectName, ref.columnName) if name]
    return ".".join(names) or EVERYTHING
