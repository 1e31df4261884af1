"""Delegation tokens beside other tokens: `Authorization: Bearer …` with one as `get_delegation_token` gave it."""

from collections.abc import Callable

from hms_gateway.gateway.admission.identity import Authenticator, Identity, RequestHead
from hms_gateway.gateway.auth.token_authenticator import sent_token
from hms_gateway.gateway.auth.tokens import TOKEN_PREFIX
from hms_gateway.gateway.delegation.logins import DelegationLogins
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.logins.delegation_token import TEXT_BYTES_MAX, UnreadableToken, read_token_text


class DelegationAuthenticator:
    """Lets in users of delegation tokens. For requests with the scheme `Bearer`; other tokens are `following`'s."""

    def __init__(
        self,
        following: Authenticator,
        logins: DelegationLogins,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._following = following
        self._logins = logins
        self._share_of = share_of

    def remembered(self, head: RequestHead) -> Identity | None:
        return self._following.remembered(head)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a token that is not right, 503 while tokens cannot be looked up."""
        token = sent_token(head)
        if not _is_delegation(token):
            return await self._following.authenticate(head)
        login = await self._logins.by_text(token, self._share_of(head.address))
        return Identity(login.user, head.address, real_user=login.real_user, by_token=True)

    def close(self) -> None:
        self._following.close()


def _is_delegation(token: bytes) -> bool:
    """Signed tokens have dots, personal ones a beginning of their own."""
    if b"." in token or len(token) > TEXT_BYTES_MAX or token.startswith(TOKEN_PREFIX.encode()):
        return False
    try:
        read_token_text(token)
    except UnreadableToken:
        return False
    return True
