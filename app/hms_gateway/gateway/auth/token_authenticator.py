"""Personal access tokens beside passwords: `Authorization: Bearer …` with one that `hms-gateway token` made.

Finding a token costs one fast hash, so none has to be remembered: one that was revoked is refused within a second.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from hms_gateway.gateway.admission.identity import HeaderList, Identity, RequestHead
from hms_gateway.gateway.admission.refusals import Refused
from hms_gateway.gateway.auth.attempts import FailedAttempts
from hms_gateway.gateway.auth.basic_credentials import basic_challenge
from hms_gateway.gateway.auth.tokens import Token, TokenFileError, TokenUses, digest_of, read_tokens
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.file_versions import WatchedFile

SCHEME: Final = "bearer"
TOKEN_ACCEPTED: Final = "a token (Bearer)"
USE_NOTED_EVERY_SECONDS: Final = 60.0
# Wrong tokens count together: unlike passwords they name no user.
_ANY_USER: Final = ""

_log = structlog.get_logger("hms_gateway.tokens")


class TokenFile:
    """The tokens as the running server sees them. A file that is gone has none; a broken one changes nothing."""

    def __init__(self, file: WatchedFile) -> None:
        self._file = file
        self._tokens: dict[str, Token] = {}

    def find(self, token: bytes, *, at_once: bool) -> Token | None:
        """Also one that has expired. Without `at_once` the file may have changed a second ago."""
        if self._file.has_changed(at_once=at_once):
            self._read()
        return self._tokens.get(digest_of(token)) if self._tokens else None

    def _read(self) -> None:
        try:
            self._tokens = {token.sha256: token for token in read_tokens(self._file.path)}
        except TokenFileError as error:
            _log.error("token file not read; the previous tokens stay valid", problem=str(error))


class WrongTokens:
    """Makes wrong tokens of an address wait as wrong passwords do."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        share_of: Callable[[str], str | None],
    ) -> None:
        self._attempts = FailedAttempts(monotonic)
        self._sleep = sleep
        self._share_of = share_of

    async def wait(self, head: RequestHead) -> None:
        """Returns when the caller may know that the token is wrong. Raises Refused (429): too many wait."""
        source = (_ANY_USER, self._share_of(head.address) or head.address)
        await self._attempts.wait_for_turn(source, self._sleep, limit="wrong_tokens")
        self._attempts.failed(source)


class TokenAuthenticator:
    """Lets in users of tokens. For requests with the scheme `Bearer` only.

    Wrong and expired tokens of an address wait as wrong passwords do; a right one never waits for them.
    """

    def __init__(
        self,
        tokens: TokenFile,
        uses: TokenUses,
        *,
        realm: str,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._tokens = tokens
        self._uses = uses
        self._now = now
        self._monotonic = monotonic
        self._wrong = WrongTokens(monotonic, sleep, share_of)
        self._challenges = wrong_token_challenges(realm)
        self._noted: dict[str, float] = {}

    def remembered(self, head: RequestHead) -> Identity | None:
        token = self._tokens.find(sent_token(head), at_once=False)
        return None if token is None or token.expires <= self._now() else self._identity(token, head)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a token that is not right, 429 when too many attempts wait."""
        token = self._tokens.find(sent_token(head), at_once=True)
        if token is not None and token.expires > self._now():
            return self._identity(token, head)
        await self._wrong.wait(head)
        if token is None:
            text = "The token is wrong or was revoked; hms-gateway token create makes another"
            raise Refused(401, text, headers=self._challenges, reason="wrong_token")
        text = f"The token {token.id} has expired; hms-gateway token create makes another"
        raise Refused(401, text, headers=self._challenges, reason="expired_token")

    def close(self) -> None:
        """Nothing to close: there are no threads."""

    def _identity(self, token: Token, head: RequestHead) -> Identity:
        if self._monotonic() >= self._noted.get(token.id, 0.0):
            self._note(token)
        return Identity(token.user, head.address, by_token=True)

    def _note(self, token: Token) -> None:
        self._noted[token.id] = self._monotonic() + USE_NOTED_EVERY_SECONDS
        try:
            self._uses.note(token)
        except OSError as error:
            _log.warning("use of a token not recorded", token=token.id, problem=str(error))


def bearer_challenge(realm: str) -> tuple[bytes, bytes]:
    """The header of a refusal that asks for a token."""
    return b"www-authenticate", f'Bearer realm="{realm}"'.encode()


def wrong_token_challenges(realm: str) -> HeaderList:
    """The headers of a refusal of a token."""
    wrong = f'Bearer realm="{realm}", error="invalid_token"'.encode()
    return basic_challenge(realm), (b"www-authenticate", wrong)


def sent_token(head: RequestHead) -> bytes:
    """The part of the header after the scheme."""
    return head.headers[b"authorization"].strip().partition(b" ")[2].strip()
