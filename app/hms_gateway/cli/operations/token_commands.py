"""`hms-gateway token …`: personal access tokens in the token file."""

import re
import sys
import time
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import err, fail
from hms_gateway.gateway.auth.tokens import (
    AccessToken,
    TokenFileError,
    TokenUses,
    create_token,
    read_tokens,
    revoke_tokens,
)
from hms_gateway.gateway.auth.users import UserFileError, list_users
from hms_gateway.runtime.settings import Settings

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION: Final = re.compile(r"([0-9]{1,9})([smhd])")
_HEADER: Final = ("Token ID", "User", "Created", "Expires", "Last used", "Note")


def create(settings: Settings, user: str, ttl: str, note: str) -> None:
    """The token alone goes to standard output, so that it can be written into a file."""
    try:
        is_known = user in list_users(settings.users_path)
        secret, token = create_token(
            settings.tokens_path, user, now=int(time.time()), seconds=duration_seconds(ttl), note=note
        )
    except (TokenFileError, UserFileError) as error:
        fail(str(error))
    text = f"token {token.id} of {user} in {settings.tokens_path}, until {_time(token.expires)}; it is shown only once"
    err.print(text, soft_wrap=True, highlight=False, markup=False)
    if not is_known:
        text = f"{user} has no password in {settings.users_path}: the token is the only way in under this name"
        err.print(text, style="dim", soft_wrap=True, highlight=False, markup=False)
    print(secret)


def print_tokens(settings: Settings, form: str) -> None:
    tokens = tokens_of(settings)
    uses = TokenUses(settings.token_uses_path)
    write_rows(sys.stdout, form, _HEADER, [_cells(token, uses) for token in tokens])


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
        err.print(f"token {token.id} of {token.user} revoked", highlight=False, markup=False)
    delegated = 0 if user is None else cancel_delegated(settings, user)
    if delegated:
        err.print(f"{counted(delegated, 'delegation token')} of {user} cancelled", highlight=False, markup=False)
    unknown = set(ids) - {token.id for token in revoked}
    if unknown:
        fail(f"{settings.tokens_path} has no token {', '.join(sorted(unknown))}")


def revoke_all(settings: Settings, *, ids: Collection[str] = (), users: Collection[str] = ()) -> list[AccessToken]:
    """What was revoked. Ends the command with an error when the file cannot be changed."""
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


def duration_seconds(text: str) -> int:
    """Ends the command with an error for what is not a duration such as 90d."""
    parts = _DURATION.fullmatch(text)
    if parts is None:
        fail(f"--ttl {text!r} is not a duration; write a number with s, m, h or d, such as 12h or 90d")
    return int(parts[1]) * _UNIT_SECONDS[parts[2]]


def _cells(token: AccessToken, uses: TokenUses) -> tuple[str, ...]:
    last = uses.last(token)
    expires = _time(token.expires) + (" (expired)" if token.expires <= time.time() else "")
    return (token.id, token.user, _time(token.created), expires, "never" if last is None else _time(last), token.note)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
