"""Kerberos in front of passwords: a ticket says who sends a request (protocol, Security Considerations; RFC 4559)."""

from collections.abc import Callable, Sequence

import structlog

from hms_gateway.gateway.admission.identity import Authenticator, HeaderList, Identity, RequestHead
from hms_gateway.gateway.admission.refusals import Refused, overloaded
from hms_gateway.gateway.auth.basic_credentials import scheme_of
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.kerberos import SCHEME, Accepted, KerberosError, short_name
from hms_gateway.runtime.logins.login_checks import LoginChecks, TooManyChecks

CHALLENGE: HeaderList = ((b"www-authenticate", SCHEME.encode()),)

_log = structlog.get_logger("hms_gateway.kerberos")


class TicketAuthenticator:
    """Lets in users of some realms under the first part of their principals; requests without ticket are the next's.

    `accept` is `ServiceKeys.accept`, `share_of` is `Proxies.share_of`. Without `realms`, the one of our own service
    counts. `challenges` are those of the next ones. Tickets are looked at in the threads of `checks`.
    """

    def __init__(
        self,
        following: Authenticator,
        accept: Callable[[bytes], Accepted],
        *,
        realms: Sequence[str] = (),
        challenges: HeaderList = (),
        checks: LoginChecks | None = None,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._following = following
        self._accept = accept
        self._realms = frozenset(realms)
        self._challenges: HeaderList = (*CHALLENGE, *challenges)
        self._share_of = share_of
        self._checks = checks or LoginChecks()

    def remembered(self, head: RequestHead) -> Identity | None:
        # A ticket is for one request.
        return self._following.remembered(head)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a ticket that is not accepted, 403 for a user of another realm, 503 for too many."""
        header = head.headers.get(b"authorization", b"")
        if scheme_of(header) == SCHEME.lower():
            return self._identity(await self._accepted(header.strip().partition(b" ")[2], head.address), head.address)
        try:
            return await self._following.authenticate(head)
        except Refused as refused:
            if refused.status == 401:
                refused.headers = (*CHALLENGE, *refused.headers)
            raise

    def close(self) -> None:
        self._checks.close()
        self._following.close()

    async def _accepted(self, token: bytes, address: str) -> Accepted:
        try:
            return await self._checks.run(self._accept, token, address=self._share_of(address))
        except TooManyChecks as error:
            raise overloaded(str(error), error.bound.name) from None
        except KerberosError as error:
            _log.info("ticket not accepted", problem=str(error))
            text = f"The Kerberos ticket is not accepted: {error}"
            raise Refused(401, text, headers=self._challenges, reason="ticket") from None

    def _identity(self, accepted: Accepted, address: str) -> Identity:
        realm = accepted.principal.rpartition("@")[2]
        if realm not in (self._realms or {accepted.service.rpartition("@")[2]}):
            text = f"Users of the realm {realm} are not let in: the setting kerberos.realms does not name it"
            raise Refused(403, text, reason="realm")
        user = short_name(accepted.principal)
        return Identity(user, address, headers=_reply_headers(accepted.answer), by_others=True)


def _reply_headers(answer: bytes) -> HeaderList:
    """The proof that we are who the client asked for, and that the next request needs a ticket of its own (curl)."""
    return ((b"www-authenticate", b"%b %b" % (SCHEME.encode(), answer)), (b"persistent-auth", b"false"))
