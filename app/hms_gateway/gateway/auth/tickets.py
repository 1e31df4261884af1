"""Kerberos in front of passwords: a ticket says who sends a request (protocol, Security Considerations; RFC 4559)."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from hms_gateway.gateway.admission.identity import Authenticator, HeaderList, Identity, RequestHead
from hms_gateway.gateway.admission.refusals import Refused, overloaded
from hms_gateway.gateway.auth.basic_credentials import scheme_of
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.kerberos import SCHEME, Accepted, KerberosError, short_name
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder, Shares, bound_of

THREADS = 2
CHALLENGE: HeaderList = ((b"www-authenticate", SCHEME.encode()),)

_log = structlog.get_logger("hms_gateway.kerberos")


class TicketAuthenticator:
    """Lets in users of some realms under the first part of their principals; requests without ticket are the next's.

    `accept` is `ServiceKeys.accept`, `share_of` is `Proxies.share_of`. Without `realms`, the one of our own service
    counts. `challenges` are those of the next ones. Tickets that wait are shared out among addresses: whose they are is
    known when they have been checked.
    """

    def __init__(
        self,
        following: Authenticator,
        accept: Callable[[bytes], Accepted],
        *,
        realms: Sequence[str] = (),
        challenges: HeaderList = (),
        limits: Limits | None = None,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._following = following
        self._accept = accept
        self._realms = frozenset(realms)
        self._challenges: HeaderList = (*CHALLENGE, *challenges)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ticket")
        self._share_of = share_of
        limits = limits or Limits()
        total = bound_of(limits, "ticket_checks_max")
        self._checks = Shares(total, total, bound_of(limits, "ticket_checks_per_address_max"))

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
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._following.close()

    async def _accepted(self, token: bytes, address: str) -> Accepted:
        holder = Holder(None, self._share_of(address))
        bound = self._checks.take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many tickets to check ({bound.name}); try again", bound.name)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._accept, token)
        except KerberosError as error:
            _log.info("ticket not accepted", problem=str(error))
            text = f"The Kerberos ticket is not accepted: {error}"
            raise Refused(401, text, headers=self._challenges, reason="ticket") from None
        finally:
            self._checks.give_back(1, holder)

    def _identity(self, accepted: Accepted, address: str) -> Identity:
        realm = accepted.principal.rpartition("@")[2]
        if realm not in (self._realms or {accepted.service.rpartition("@")[2]}):
            text = f"Users of the realm {realm} are not let in: the setting kerberos_realms does not name it"
            raise Refused(403, text, reason="realm")
        return Identity(short_name(accepted.principal), address, headers=_reply_headers(accepted.answer))


def _reply_headers(answer: bytes) -> HeaderList:
    """The proof that we are who the client asked for, and that the next request needs a ticket of its own (curl)."""
    return ((b"www-authenticate", b"%b %b" % (SCHEME.encode(), answer)), (b"persistent-auth", b"false"))
