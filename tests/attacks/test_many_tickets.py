"""M2: tickets to be checked had a total and no shares, so one host that sends them without end kept others out."""

import asyncio
import threading

import pytest

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.external_logins import TicketLogin
from hms_gateway.runtime.kerberos import Accepted
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.login_tokens import LoginChecks
from tests.support.patience import PATIENCE_SECONDS

FLOODER, ELSEWHERE, PROXY = "192.0.2.1", "198.51.100.7", "192.0.2.9"
TICKET = (b"authorization", b"Negotiate dGlja2V0")
LIMITS = Limits(ticket_checks_max=20, share_per_address=0.2)


class Tickets:
    """Tickets of ann's; their checks wait until all have come."""

    def __init__(self) -> None:
        self.all_have_come = threading.Event()
        self.authenticator = TicketLogin(
            self.accept,
            checks=LoginChecks(LIMITS),
            share_of=lambda address: None if address == PROXY else address,
        )

    def accept(self, token: bytes) -> Accepted:
        assert self.all_have_come.wait(PATIENCE_SECONDS)
        return Accepted("ann@EXAMPLE.TEST", "HTTP/gateway@EXAMPLE.TEST", b"")

    async def ask(self, address: str) -> str:
        """The user, or the limit that is in the way."""
        try:
            identity = await self.authenticator.authenticate(RequestHead(dict([TICKET]), [TICKET], b"", address))
        except Refused as refused:
            return refused.limit if refused.status == 503 and refused.limit in refused.text else refused.text
        return identity.user

    def together(self, *addresses: str) -> list[str]:
        async def scenario() -> list[str]:
            asked = [asyncio.create_task(self.ask(address)) for address in addresses]
            await asyncio.sleep(0)
            self.all_have_come.set()
            return await asyncio.gather(*asked)

        self.all_have_come.clear()
        return asyncio.run(scenario())


@pytest.fixture
def tickets():
    it = Tickets()
    yield it
    it.authenticator.close()


def test_tickets_of_one_address_leave_room_for_others(tickets):
    answers = tickets.together(*[FLOODER] * 40, ELSEWHERE)
    assert answers == ["ann"] * 4 + ["share_per_address of ticket_checks_max"] * 36 + ["ann"]
    # Every place was given back.
    assert tickets.together(FLOODER) == ["ann"]


def test_all_together_have_a_total_and_a_proxy_no_share(tickets):
    assert tickets.together(*[PROXY] * 22).count("ticket_checks_max") == 2
