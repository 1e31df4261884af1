"""Work of `hms-gateway user` and `hms-gateway token`: the password file and the token file."""

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import click

from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import fail, hint, line_of_input, say
from hms_gateway.composition.authorization import authorization_of
from hms_gateway.gateway.auth.tokens import (
    AccessToken,
    TokenFileError,
    TokenUses,
    create_token,
    read_tokens,
    revoke_tokens,
)
from hms_gateway.gateway.auth.users import UserFileError, add_user, check_name, list_users, remove_user
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.runtime.settings import Settings

_HEADER: Final = ("Token ID", "User", "Created", "Expires", "Last used", "Note")


def create(settings: Settings, name: str, ttl: int, note: str) -> None:
    """Print the token alone to standard output, so that it can be written into a file."""
    try:
        is_known = name in list_users(settings.users_path)
        secret, token = create_token(settings.tokens_path, name, now=int(time.time()), seconds=ttl, note=note)
    except (TokenFileError, UserFileError) as error:
        fail(str(error))
    until = time_text(token.expires)
    say(f"token {token.id} of {name} in {settings.tokens_path}, until {until}; it is shown only once")
    if not is_known:
        text = f"{name} has no password in {settings.users_path}: the token is the only way in under this name"
        hint(text)
    print(secret)


def print_tokens(settings: Settings, form: str | None) -> None:
    """Print the tokens without their secrets."""
    tokens = tokens_of(settings)
    uses = TokenUses(settings.token_uses_path)
    write_rows(sys.stdout, rows_form(form), _HEADER, [_cells(token, uses) for token in tokens])


def tokens_of(settings: Settings, user: str | None = None) -> list[AccessToken]:
    """The tokens of a user, or all. Ends the command with an error when the file cannot be read."""
    try:
        return [token for token in read_tokens(settings.tokens_path) if user in (None, token.user)]
    except TokenFileError as error:
        fail(str(error))


def revoke(settings: Settings, ids: Collection[str], user: str | None) -> None:
    """Ends the command with an error when one of the ids is unknown; the others are revoked."""
    if not ids and user is None:
        fail("which token?", "hms-gateway token list shows their ids; --user NAME revokes all of a user")
    revoked = revoke_all(settings, ids=ids, users=() if user is None else (user,))
    for token in revoked:
        say(f"token {token.id} of {token.user} revoked")
    delegated = 0 if user is None else cancel_delegated(settings, user)
    if delegated:
        say(f"{counted(delegated, 'delegation token')} of {user} cancelled")
    unknown = set(ids) - {token.id for token in revoked}
    if unknown:
        fail(f"{settings.tokens_path} has no token {', '.join(sorted(unknown))}")


def revoke_all(settings: Settings, *, ids: Collection[str] = (), users: Collection[str] = ()) -> list[AccessToken]:
    """Revoke tokens, and return them. Ends the command with an error when the file cannot be changed."""
    try:
        revoked = revoke_tokens(settings.tokens_path, ids=ids, users=users)
        for token in revoked:
            TokenUses(settings.token_uses_path).forget(token)
    except TokenFileError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{settings.token_uses_path} cannot be written: {error.strerror}")
    return revoked


def cancel_delegated(settings: Settings, user: str) -> int:
    """Cancel the delegation tokens of a user, where there are any; how many. Ends the command when that cannot be."""
    # Only here: it takes the database.
    from hms_gateway.cli.operations.left_behind import cancel_of

    return cancel_of(settings, user)


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _cells(token: AccessToken, uses: TokenUses) -> tuple[str, ...]:
    last = uses.last(token)
    expires = f"{time_text(token.expires)}{' (expired)' if token.expires <= time.time() else ''}"
    return token.id, token.user, str(time_text(token.created)), expires, time_text(last) or "never", token.note


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


def _new_password(name: str, *, from_stdin: bool) -> str:
    """Read the first line of standard input, or ask twice; a password is never on the command line."""
    if from_stdin:
        return line_of_input("password")
    if not sys.stdin.isatty():
        fail("the password cannot be asked for without a terminal", "use --password-stdin")
    password: str = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt=True)
    return password


def add(settings: Settings, name: str, *, password_stdin: bool, inherits: bool, is_short_allowed: bool) -> None:
    """Add a user, who gets the grants and objects of the name if `inherits`; or set a new password."""
    password = _new_password(name, from_stdin=password_stdin)
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
    print(what)
    if is_new and count > 1 and settings.authorization != "off" and name not in settings.administrators:
        said = OF_A_NEW_USER[authorization_of(settings)].format(name=name)
        print(said)


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
    print(f"{name} removed{number}")
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
        print(f"{counted(delegated, 'delegation token')} of {name} cancelled")
    if left:
        print(f"{name} leaves behind {_listed(left)}\n{TAKE_AWAY}")


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
    hint(text)


def print_users(settings: Settings) -> None:
    """Print the names in the password file."""
    path = settings.users_path
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
        print(name)
