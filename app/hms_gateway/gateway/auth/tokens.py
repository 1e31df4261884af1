"""The token file: who may call with which token until when, one JSON object per line.

A token has 256 random bits, so that its SHA-256 is all that has to be kept: there is nothing to guess that a slow hash
would protect. When a token was used last is the time of a file of its own, which several processes may touch.
"""

import hashlib
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from hms_gateway.gateway.auth.private_file import write_private, writing_alone
from hms_gateway.gateway.auth.users import UserFileError, check_name

# So that scanners of source code and logs can find one that was left there.
TOKEN_PREFIX: Final = "hmsgw_"
SECONDS_MAX: Final = 10 * 366 * 86_400
NOTE_CHARACTERS_MAX: Final = 200
_RANDOM_BYTES: Final = 32
_ID_CHARACTERS: Final = 12


class TokenFileError(Exception):
    """The token file or what should go into it is wrong; the text is meant for the operator."""


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The stored part of a token. Times are seconds since 1970; `id` is the beginning of `sha256`."""

    id: str
    user: str
    sha256: str
    created: int
    expires: int
    note: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Token).decode


def digest_of(token: str | bytes) -> str:
    """By which a token is found."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def read_tokens(path: Path) -> list[Token]:
    """In the order in which they were made; empty without a file. Raises TokenFileError."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TokenFileError(f"{path} cannot be read: {error}") from error
    tokens = []
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                tokens.append(_decode(line))
        except msgspec.MsgspecError as error:
            raise TokenFileError(f"{path} line {number} is not a token: {error}") from error
    return tokens


def create_token(path: Path, user: str, *, now: int, seconds: int, note: str = "") -> tuple[str, Token]:
    """A new token, which cannot be shown again, and what is kept of it. Tokens that have expired are left out.

    Raises TokenFileError.
    """
    try:
        check_name(user)
    except UserFileError as error:
        raise TokenFileError(str(error)) from error
    if not 0 < seconds <= SECONDS_MAX:
        raise TokenFileError(f"a token is valid for 1 second to {SECONDS_MAX // 86_400} days")
    if len(note) > NOTE_CHARACTERS_MAX or not note.isprintable():
        raise TokenFileError(f"a note has at most {NOTE_CHARACTERS_MAX} characters, and no control characters")
    secret = TOKEN_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    digest = digest_of(secret)
    token = Token(digest[:_ID_CHARACTERS], user, digest, now, now + seconds, note)
    try:
        with writing_alone(path):
            _write(path, [*(kept for kept in read_tokens(path) if kept.expires > now), token])
    except OSError as error:
        raise TokenFileError(f"{path} cannot be written: {error}") from error
    return secret, token


def revoke_tokens(path: Path, *, ids: Collection[str] = (), users: Collection[str] = ()) -> list[Token]:
    """Remove those with these ids or of these users; what was removed. Raises TokenFileError."""
    if not path.exists():
        return []
    try:
        with writing_alone(path):
            tokens = read_tokens(path)
            revoked = [token for token in tokens if token.id in ids or token.user in users]
            if revoked:
                _write(path, [token for token in tokens if token not in revoked])
    except OSError as error:
        raise TokenFileError(f"{path} cannot be written: {error}") from error
    return revoked


def _write(path: Path, tokens: Collection[Token]) -> None:
    write_private(path, (_encode(token).decode() + "\n" for token in tokens))


class TokenUses:
    """When tokens were used last, to the minute, in a folder with an empty file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, token: Token) -> None:
        """It is used now. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        (self._folder / token.id).touch(0o600)

    def last(self, token: Token) -> float | None:
        """Seconds since 1970; None when it was never used with this data folder."""
        try:
            return (self._folder / token.id).stat().st_mtime
        except OSError:
            return None

    def forget(self, token: Token) -> None:
        """It is not one any more. Raises OSError."""
        (self._folder / token.id).unlink(missing_ok=True)
