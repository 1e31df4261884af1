"""Tokens that the gateway gives out: of users, and for delegation."""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from hmac import compare_digest
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import NOT_TRIED, HeaderList, Identity, Refused, RequestHead, overloaded
from hms_gateway.gateway.auth.credentials import (
    BEARER,
    Credential,
    CredentialCache,
    Login,
    Shared,
    WrongTokens,
    sent_token,
)
from hms_gateway.gateway.auth.users import UserFileError, check_name, write_private, writing_alone
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.logins.delegation_token import (
    ANSWER_HEADER,
    PROOF_HEADER,
    TEXT_BYTES_MAX,
    DigestError,
    Proof,
    TokenName,
    TokenRefused,
    TokensAway,
    UnreadableToken,
    read_token_text,
)
from hms_gateway.runtime.logins.login_tokens import LoginChecks, TooManyChecks

# Personal access tokens beside passwords: `Authorization: Bearer …` with one that `hms-gateway token` made.
#
# The token file says who may call with which token until when, one JSON object per line. A token has 256 random bits,
# so that its SHA-256 is all that has to be kept: there is nothing to guess that a slow hash would protect. The time of
# its last use is that of an empty file, which several processes may touch.


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
        self.cache: CredentialCache = CredentialCache()
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


# Delegation tokens as logins, the same at each door: as text (`Authorization: Bearer`), or by a digest of SASL.
#
# A digest comes from the Thrift port, or in the header of a bridge. A bridge knows no passwords of tokens: it makes the
# challenge, and sends the client's response with each call that it makes in the name of the token's owner, under a
# login of its own. The gateway decides, by what is stored at the moment, and answers with its half of the digest, for
# which it takes the password: a bridge lets in only whom the gateway lets in, and none where the far side does not know
# the header. A response that was overheard is of use only to who may act for the owner anyway.


# A token that was cancelled, or has ended, is refused after so long where it was let in before; anew at once.
REMEMBERED_SECONDS: Final = 1.0
REMEMBERED_MAX: Final = 10_000
PASSWORD_IS_WRONG: Final = "its password is wrong"


class Delegated(NamedTuple):
    """The token's owner, the user who asked for it if that was another one, and our half of the digest."""

    user: str
    real_user: str
    answer: str


class DelegationLogins:
    """`password_of` is `DelegationTokens.password`; it is called in the threads of `checks`.

    `challenges` are those of a refused response.
    """

    def __init__(
        self,
        password_of: Callable[[bytes], bytes],
        checks: LoginChecks,
        *,
        challenges: HeaderList = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._password_of = password_of
        self._checks = checks
        self._challenges = challenges
        self._monotonic = monotonic
        self._known: OrderedDict[bytes | Proof, tuple[float, Delegated]] = OrderedDict()
        self._checking: Shared[bytes | Proof, Delegated] = Shared()

    async def login(self, shown: bytes | Proof, address: str | None, challenges: HeaderList | None = None) -> Delegated:
        """The login by a whole token, or by a client's response; `address` is whose share it takes. Raises Refused.

        Checked once, however many calls show it at the same time: a job has one token on many machines.
        """
        known = self._known.get(shown)
        if known is not None and self._monotonic() < known[0]:
            return known[1]
        try:
            return await self._checking.result(shown, partial(self._checked, shown, address))
        except TooManyChecks as error:
            raise overloaded(str(error), error.bound.name) from None
        except TokensAway:
            text = "Delegation tokens cannot be looked up; try again"
            raise Refused(503, text, headers=NOT_TRIED, reason="tokens_away") from None
        except (TokenRefused, UnreadableToken, DigestError) as error:
            text = f"The delegation token is not accepted: {error}"
            headers = self._challenges if challenges is None else challenges
            raise Refused(401, text, headers=headers, reason="delegation_token") from None

    async def _checked(self, shown: bytes | Proof, address: str | None) -> Delegated:
        until = self._monotonic() + REMEMBERED_SECONDS
        login = await self._checks.run(_delegated, shown, self._password_of, address=address)
        self._known[shown] = until, login
        self._known.move_to_end(shown)
        self._forget()
        return login

    def _forget(self) -> None:
        """Tokens that count no more: what was shown may be a secret."""
        now = self._monotonic()
        while self._known and (len(self._known) > REMEMBERED_MAX or next(iter(self._known.values()))[0] <= now):
            self._known.popitem(last=False)


class ProvenActing:
    """The proof that a bridge shows of its client's login, beside the user for whom it acts."""

    def __init__(
        self, logins: DelegationLogins | None, share_of: Callable[[str], str | None], challenges: HeaderList
    ) -> None:
        self._logins = logins
        self._share_of = share_of
        self._challenges = challenges

    async def check(self, head: RequestHead, identity: Identity) -> Identity:
        """`identity`, as that of a token's owner. Raises Refused: 401 where the header does not prove that it is."""
        if self._logins is None:
            raise self._refused("delegation tokens are not switched on; the setting delegation_tokens does it")
        try:
            proof = Proof.from_header(head.headers[PROOF_HEADER])
        except DigestError as error:
            raise self._refused(str(error)) from None
        login = await self._logins.login(proof, self._share_of(head.address))
        if login.user != identity.user:
            raise self._refused("it is not that of the user for whom the call is made")
        return identity._replace(headers=(*identity.headers, (ANSWER_HEADER, login.answer.encode())), by_token=True)

    def _refused(self, problem: str) -> Refused:
        text = f"The delegation token is not accepted: {problem}"
        return Refused(401, text, headers=self._challenges, reason="delegation_token")


def _delegated(shown: bytes | Proof, password_of: Callable[[bytes], bytes]) -> Delegated:
    """The login by a whole token, or by a client's response. Raises TokenRefused, UnreadableToken, DigestError,
    TokensAway.
    """
    if isinstance(shown, Proof):
        name = TokenName.decode(shown.token_name)
        password = password_of(shown.token_name)
        is_right, answer = shown.matches(password), shown.answer(password)
    else:
        encoded, sent = read_token_text(shown)
        name = TokenName.decode(encoded)
        is_right, answer = compare_digest(password_of(encoded), sent), ""
    if not is_right:
        raise TokenRefused(PASSWORD_IS_WRONG)
    return Delegated(name.owner, name.real_user, answer)


class DelegationLogin(Login):
    """Lets in users of delegation tokens: `Authorization: Bearer …` with one as `get_delegation_token` gave it."""

    scheme = BEARER

    def __init__(
        self,
        logins: DelegationLogins,
        share_of: Callable[[str], str | None] = share_of,
        *,
        challenges: HeaderList = (),
    ) -> None:
        self._logins = logins
        self._share_of = share_of
        self._challenges = challenges

    async def authenticate(self, head: RequestHead) -> Identity | None:
        """Raises Refused: 401 for a token that is not right, 503 while tokens cannot be looked up."""
        token = sent_token(head)
        if not _is_delegation(token):
            return None
        login = await self._logins.login(token, self._share_of(head.address), self._challenges)
        return Identity(login.user, head.address, real_user=login.real_user, by_token=True)


def _is_delegation(token: bytes) -> bool:
    """Signed tokens have dots, personal ones a beginning of their own."""
    if b"." in token or len(token) > TEXT_BYTES_MAX or token.startswith(TOKEN_PREFIX.encode()):
        return False
    try:
        read_token_text(token)
    except UnreadableToken:
        return False
    return True
