"""Personal access tokens beside passwords: `Authorization: Bearer …` with one that `hms-gateway token` made.

The token file says who may call with which token until when, one JSON object per line. A token has 256 random bits, so
that its SHA-256 is all that has to be kept: there is nothing to guess that a slow hash would protect. The time of its
last use is that of an empty file, which several processes may touch.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import HeaderList, Identity, RequestHead
from hms_gateway.gateway.admission.refusals import Refused
from hms_gateway.gateway.auth.credentials import (
    BEARER,
    Credential,
    CredentialCache,
    Login,
    WrongTokens,
    sent_token,
)
from hms_gateway.gateway.auth.users import UserFileError, check_name, write_private, writing_alone
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.file_versions import WatchedFile

# So that scanners of source code and logs can find one that was left there.
TOKEN_PREFIX: Final = "hmsgw_"
SECONDS_MAX: Final = 10 * 366 * 86_400
NOTE_CHARACTERS_MAX: Final = 200
_RANDOM_BYTES: Final = 32
_ID_CHARACTERS: Final = 12


class TokenFileError(Exception):
    """The token file or what should go into it is wrong; the text is meant for the operator."""


class AccessToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The stored part of a token. Times are seconds since 1970; `id` is the beginning of `sha256`."""

    id: str
    user: str
    sha256: str
    created: int
    expires: int
    note: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AccessToken).decode


def digest_of(token: str | bytes) -> str:
    """By which a token is found."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def read_tokens(path: Path) -> list[AccessToken]:
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


def create_token(path: Path, user: str, *, now: int, seconds: int, note: str = "") -> tuple[str, AccessToken]:
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
    token = AccessToken(digest[:_ID_CHARACTERS], user, digest, now, now + seconds, note)
    try:
        with writing_alone(path):
            _write(path, [*(kept for kept in read_tokens(path) if kept.expires > now), token])
    except OSError as error:
        raise TokenFileError(f"{path} cannot be written: {error}") from error
    return secret, token


def revoke_tokens(path: Path, *, ids: Collection[str] = (), users: Collection[str] = ()) -> list[AccessToken]:
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


def _write(path: Path, tokens: Collection[AccessToken]) -> None:
    write_private(path, (_encode(token).decode() + "\n" for token in tokens))


class TokenUses:
    """When tokens were used last, to the minute, in a folder with an empty file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, token: AccessToken) -> None:
        """It is used now. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        (self._folder / token.id).touch(0o600)

    def last(self, token: AccessToken) -> float | None:
        """Seconds since 1970; None when it was never used with this data folder."""
        try:
            return (self._folder / token.id).stat().st_mtime
        except OSError:
            return None

    def forget(self, token: AccessToken) -> None:
        """It is not one any more. Raises OSError."""
        (self._folder / token.id).unlink(missing_ok=True)


TOKEN_ACCEPTED: Final = "a token (Bearer)"
USE_NOTED_EVERY_SECONDS: Final = 60.0

_log = structlog.get_logger("hms_gateway.tokens")


class TokenFile:
    """The tokens as the running server sees them. A file that is gone has none; a broken one changes nothing."""

    def __init__(self, file: WatchedFile) -> None:
        self._file = file
        self._tokens: dict[str, AccessToken] = {}

    def find(self, digest: str, *, at_once: bool) -> AccessToken | None:
        """Also one that has expired. Without `at_once` the file may have changed a second ago."""
        if self._file.has_changed(at_once=at_once):
            self._read()
        return self._tokens.get(digest)

    def _read(self) -> None:
        try:
            self._tokens = {token.sha256: token for token in read_tokens(self._file.path)}
        except TokenFileError as error:
            _log.error("token file not read; the previous tokens stay valid", problem=str(error))


class TokenLogin(Login):
    """Lets in users of tokens.

    Wrong and expired tokens of an address wait as wrong passwords do; a right one never waits for them.
    """

    scheme = BEARER

    def __init__(
        self,
        tokens: TokenFile,
        uses: TokenUses,
        *,
        challenges: HeaderList,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._tokens = tokens
        self._uses = uses
        self.cache = CredentialCache()
        self._now = now
        self._monotonic = monotonic
        self._wrong = WrongTokens(monotonic, sleep, share_of)
        self._challenges = challenges
        self._noted: dict[str, float] = {}

    def holds(self, credential: Credential) -> bool:
        token: AccessToken = credential.evidence
        return self._tokens.find(token.sha256, at_once=False) == token and self._is_used(token)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a token that is not right, 429 when too many attempts wait."""
        sent = sent_token(head)
        token = self._tokens.find(digest_of(sent), at_once=True)
        if token is not None and self._is_used(token):
            found = Credential(token, token.user, by_token=True)
            self.cache.remember(head.headers[b"authorization"], found)
            return found.identity(head)
        await self._wrong.wait(head)
        if token is None:
            text = "The token is wrong or was revoked; hms-gateway token create makes another"
            raise Refused(401, text, headers=self._challenges, reason="wrong_token")
        text = f"The token {token.id} has expired; hms-gateway token create makes another"
        raise Refused(401, text, headers=self._challenges, reason="expired_token")

    def _is_used(self, token: AccessToken) -> bool:
        """True unless it has expired; notes the use."""
        if token.expires <= self._now():
            return False
        if self._monotonic() >= self._noted.get(token.id, 0.0):
            self._note(token)
        return True

    def _note(self, token: AccessToken) -> None:
        self._noted[token.id] = self._monotonic() + USE_NOTED_EVERY_SECONDS
        try:
            self._uses.note(token)
        except OSError as error:
            _log.warning("use of a token not recorded", token=token.id, problem=str(error))
