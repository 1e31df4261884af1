"""`hms-gateway user …`: who is in the password file."""

import sys
from pathlib import Path

import click

from hms_gateway.cli.operations.token_commands import cancel_delegated, counted, revoke_all
from hms_gateway.cli.terminal.output import fail, line_of_input, out
from hms_gateway.gateway.auth.users import UserFileError, add_user, list_users, remove_user
from hms_gateway.runtime.settings import Settings

SEVERAL_USERS = (
    'each of the users may do everything: set authorization = "grants" so that they may do what grants, roles, owners '
    'and rules give them, or "off" if that is meant so (docs/rights.md)'
)


def new_password(name: str, *, from_stdin: bool) -> str:
    """The password to set: the first line of standard input, or asked for twice. Never from the command line."""
    if from_stdin:
        return line_of_input("password")
    if not sys.stdin.isatty():
        fail("the password cannot be asked for without a terminal", "use --password-stdin")
    password: str = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt=True)
    return password


def add(settings: Settings, name: str, password: str) -> None:
    path = settings.users_path
    try:
        is_new = add_user(path, name, password)
        count = len(list_users(path))
    except UserFileError as error:
        fail(str(error))
    what = f"{name} added to {path}" if is_new else f"{name} has a new password in {path}"
    out.print(what, soft_wrap=True, highlight=False, markup=False)
    if is_new and count > 1 and settings.authorization is None:
        out.print(SEVERAL_USERS, soft_wrap=True, highlight=False, markup=False)


def remove(settings: Settings, name: str) -> None:
    """Tokens first: a removal that is cut short leaves no token of a name that the list of users does not show."""
    path = settings.users_path
    tokens = revoke_all(settings, users=[name])
    try:
        was_there = remove_user(path, name)
    except UserFileError as error:
        fail(str(error))
    if not was_there and not tokens:
        hint = f"hms-gateway token revoke --user {name} cancels delegation tokens" if settings.delegation_tokens else ""
        fail(f"{path} has no user {name}", hint)
    number = f" with {counted(len(tokens), 'token')}" if tokens else ""
    out.print(f"{name} removed{number}", highlight=False, markup=False)
    # Last, and said apart: a database that is away keeps no user.
    delegated = cancel_delegated(settings, name)
    if delegated:
        out.print(f"{counted(delegated, 'delegation token')} of {name} cancelled", highlight=False, markup=False)


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
