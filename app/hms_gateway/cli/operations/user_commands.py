"""`hms-gateway user …`: who is in the password file."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from hms_gateway.cli.operations.token_commands import counted, revoke_all, tokens_of
from hms_gateway.cli.terminal.output import err, fail, line_of_input, out
from hms_gateway.composition.authorization import authorization_of
from hms_gateway.gateway.auth.users import UserFileError, add_user, check_name, list_users, remove_user
from hms_gateway.runtime.settings import Settings

PASSWORD_CHARACTERS_MIN: Final = 8
SHOWN_MAX: Final = 20

TAKE_AWAY: Final = "take it away with hms-gateway revoke and token revoke, and name other owners"
# By what holds for the installation; None where it cannot be found out.
OF_A_NEW_USER: Final[Mapping[str | None, str]] = {
    "grants": "{name} sees the database default, and what grants, roles, owners and rules give (docs/rights.md)",
    "off": 'each of the users may do everything, unless the gateway has another setting: authorization = "grants" lets '
    "them do what grants, roles, owners and rules give (docs/rights.md)",
    None: "what {name} may do is said by the gateway's setting authorization (docs/rights.md)",
}


def new_password(name: str, *, from_stdin: bool) -> str:
    """The password to set: the first line of standard input, or asked for twice. Never from the command line."""
    if from_stdin:
        return line_of_input("password")
    if not sys.stdin.isatty():
        fail("the password cannot be asked for without a terminal", "use --password-stdin")
    password: str = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt=True)
    return password


def add(settings: Settings, name: str, password: str, *, inherits: bool, is_short_allowed: bool) -> None:
    """`inherits`: what was granted to the name, and what it owns, is meant to be this user's."""
    path = settings.users_path
    try:
        check_name(name)
        if 0 < len(password) < PASSWORD_CHARACTERS_MIN and not is_short_allowed:
            fail(
                f"the password has {len(password)} characters; take {PASSWORD_CHARACTERS_MIN} or more",
                "--allow-short takes it as it is",
            )
        if not inherits and name not in list_users(path):
            _refuse_heir(settings, name)
        is_new = add_user(path, name, password)
        count = len(list_users(path))
    except UserFileError as error:
        fail(str(error))
    what = f"{name} added to {path}" if is_new else f"{name} has a new password in {path}"
    out.print(what, soft_wrap=True, highlight=False, markup=False)
    if is_new and count > 1 and settings.authorization != "off" and name not in settings.administrators:
        said = OF_A_NEW_USER[authorization_of(settings)].format(name=name)
        out.print(said, soft_wrap=True, highlight=False, markup=False)


def remove(settings: Settings, name: str) -> None:
    """Tokens first: a removal that is cut short leaves no token of a name that the list of users does not show."""
    path = settings.users_path
    tokens = revoke_all(settings, users=[name])
    try:
        was_there = remove_user(path, name)
    except UserFileError as error:
        fail(str(error))
    if not was_there and not tokens:
        fail(f"{path} has no user {name}", f"hms-gateway token revoke --user {name} cancels delegation tokens")
    number = f" with {counted(len(tokens), 'token')}" if tokens else ""
    out.print(f"{name} removed{number}", highlight=False, markup=False)
    # Last, and said apart: a database that is away keeps no user. Only here: it takes the database.
    from hms_gateway.catalog.tokens import cancel_all
    from hms_gateway.cli.operations.left_behind import catalog, left_behind

    with catalog(settings) as store:
        if store is None:
            _say_unknown(settings, name)
            return
        delegated = cancel_all(store, name)
        left = left_behind(store, name)
    if delegated:
        out.print(f"{counted(delegated, 'delegation token')} of {name} cancelled", highlight=False, markup=False)
    if left:
        out.print(f"{name} leaves behind {_listed(left)}\n{TAKE_AWAY}", soft_wrap=True, highlight=False, markup=False)


def _refuse_heir(settings: Settings, name: str) -> None:
    """Ends the command where a new user would get what another one of the name had."""
    from hms_gateway.cli.operations.left_behind import catalog, left_behind

    left = [f"the token {token.id}" for token in tokens_of(settings, name)]
    with catalog(settings) as store:
        if store is not None:
            left += left_behind(store, name)
        elif settings.users_path.exists():
            _say_unknown(settings, name)
    if left:
        fail(f"{name} would have {_listed(left)}", f"{TAKE_AWAY}, or add --inherit if all this is meant for the user")


def _listed(left: Sequence[str]) -> str:
    more = f" and {len(left) - SHOWN_MAX} more" if len(left) > SHOWN_MAX else ""
    return "; ".join(left[:SHOWN_MAX]) + more


def _say_unknown(settings: Settings, name: str) -> None:
    """Without a `database_url` the gateway may have another catalog than the one that is not in the data folder."""
    if settings.database_url is not None:
        return
    text = (
        f"there is no catalog in {settings.data_dir}: what {name} was granted or owns is not known; give the command "
        "the gateway's settings (--config)"
    )
    err.print(text, style="dim", soft_wrap=True, highlight=False, markup=False)


def print_users(path: Path) -> None:
    if not path.exists():
        fail(
            f"the password file {path} does not exist",
            "the first `hms-gateway serve` or `user add` with this --data-dir makes it",
        )
    try:
        names = list_users(path)
    except UserFileError as error:
        fail(str(error))
    for name in names:
        out.print(name, highlight=False, markup=False)
