"""Delegation tokens as logins, the same at each door: as text (`Authorization: Bearer`), or by a digest of SASL.

A digest comes from the Thrift port, or in the header of a bridge. A bridge knows no passwords of tokens: it makes the
challenge, and sends the client's response with each call that it makes in the name of the token's owner, under a login
of its own. The gateway decides, by what is stored at the moment, and answers with its half of the digest, for which it
takes the password: a bridge lets in only whom the gateway lets in, and none where the far side does not know the
header. A response that was overheard is of use only to who may act for the owner anyway.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from hmac import compare_digest
from typing import Final, NamedTuple, TypeVar

from hms_gateway.gateway.admission.identity import HeaderList, Identity, RequestHead
from hms_gateway.gateway.admission.refusals import NOT_TRIED, Refused, overloaded
from hms_gateway.gateway.auth.credentials import BEARER, Login, sent_token
from hms_gateway.gateway.auth.tokens import TOKEN_PREFIX
from hms_gateway.runtime.addresses import share_of
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
from hms_gateway.runtime.logins.login_checks import LoginChecks, TooManyChecks

T = TypeVar("T", bytes, Proof)

# A token that was cancelled, or has ended, is refused after so long where it was let in before; anew at once.
REMEMBERED_SECONDS: Final = 1.0
REMEMBERED_MAX: Final = 10_000
PASSWORD_IS_WRONG: Final = "its password is wrong"


class Delegated(NamedTuple):
    """Whose token it is, who asked for it if that was another one, and our half of the digest."""

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
        self._checking: dict[bytes | Proof, asyncio.Task[Delegated]] = {}

    async def by_proof(self, proof: Proof, address: str | None) -> Delegated:
        """The login by a client's response; `address` is whose share it takes. Raises Refused."""
        return await self._login(proof, _check_proof, address, self._challenges)

    async def by_text(self, text: bytes, address: str | None, challenges: HeaderList = ()) -> Delegated:
        """The login by a whole token. Raises Refused, with these challenges."""
        return await self._login(text, _check_text, address, challenges)

    async def _login(
        self,
        shown: T,
        check: Callable[[T, Callable[[bytes], bytes]], Delegated],
        address: str | None,
        challenges: HeaderList,
    ) -> Delegated:
        """Checked once, however many calls show it at the same time: a job has one token on many machines."""
        known = self._known.get(shown)
        if known is not None and self._monotonic() < known[0]:
            return known[1]
        checking = self._checking.get(shown)
        if checking is None:
            checking = self._checking[shown] = asyncio.ensure_future(self._checked(shown, check, address))
            checking.add_done_callback(partial(self._has_checked, shown))
        try:
            return await asyncio.shield(checking)
        except TooManyChecks as error:
            raise overloaded(str(error), error.bound.name) from None
        except TokensAway:
            text = "Delegation tokens cannot be looked up; try again"
            raise Refused(503, text, headers=NOT_TRIED, reason="tokens_away") from None
        except (TokenRefused, UnreadableToken, DigestError) as error:
            text = f"The delegation token is not accepted: {error}"
            raise Refused(401, text, headers=challenges, reason="delegation_token") from None

    async def _checked(
        self, shown: T, check: Callable[[T, Callable[[bytes], bytes]], Delegated], address: str | None
    ) -> Delegated:
        until = self._monotonic() + REMEMBERED_SECONDS
        login = await self._checks.run(check, shown, self._password_of, address=address)
        self._known[shown] = until, login
        self._known.move_to_end(shown)
        self._forget()
        return login

    def _has_checked(self, shown: bytes | Proof, checking: "asyncio.Task[Delegated]") -> None:
        del self._checking[shown]
        if not checking.cancelled():
            # The clients may have gone, and then the failure is of no interest.
            checking.exception()

    def _forget(self) -> None:
        """Those that count no more: what was shown may be a secret."""
        now = self._monotonic()
        while self._known and (len(self._known) > REMEMBERED_MAX or next(iter(self._known.values()))[0] <= now):
            self._known.popitem(last=False)


class ProvenActing:
    """What a bridge shows of its client's login, beside the user for whom it acts."""

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
        login = await self._logins.by_proof(proof, self._share_of(head.address))
        if login.user != identity.user:
            raise self._refused("it is not that of the user for whom the call is made")
        return identity._replace(headers=(*identity.headers, (ANSWER_HEADER, login.answer.encode())), by_token=True)

    def _refused(self, problem: str) -> Refused:
        text = f"The delegation token is not accepted: {problem}"
        return Refused(401, text, headers=self._challenges, reason="delegation_token")


def _check_proof(proof: Proof, password_of: Callable[[bytes], bytes]) -> Delegated:
    """Raises TokenRefused, UnreadableToken, DigestError, TokensAway."""
    name = TokenName.decode(proof.token_name)
    password = password_of(proof.token_name)
    if not proof.matches(password):
        raise TokenRefused(PASSWORD_IS_WRONG)
    return Delegated(name.owner, name.real_user, proof.answer(password))


def _check_text(text: bytes, password_of: Callable[[bytes], bytes]) -> Delegated:
    """Raises TokenRefused, UnreadableToken, TokensAway."""
    encoded, password = read_token_text(text)
    name = TokenName.decode(encoded)
    if not compare_digest(password_of(encoded), password):
        raise TokenRefused(PASSWORD_IS_WRONG)
    return Delegated(name.owner, name.real_user, "")


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
        login = await self._logins.by_text(token, self._share_of(head.address), self._challenges)
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
