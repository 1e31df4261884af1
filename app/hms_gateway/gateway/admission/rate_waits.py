"""Calls that wait until a rate lets them through, where the protocol has no words for "later": bounded like all others
that wait, and over when the client has gone.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from hms_gateway.gateway.admission.identity import Identity
from hms_gateway.gateway.admission.rates import Rates, too_many
from hms_gateway.gateway.admission.refusals import ClientGone, overloaded
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder, shares_of

# A call that has to wait for longer is refused.
SECONDS_MAX: Final = 30.0


class RateWaits:
    """Used from the event loop's thread. What waits holds its message, so there are only so many."""

    def __init__(self, rates: Rates, limits: Limits, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._places = shares_of(limits, "waiting_calls_max")

    async def wait(self, identity: Identity, method: str, share_address: str | None, gone: asyncio.Event) -> None:
        """Returns when the call may be made, and is paid for. Raises Refused, and ClientGone when `gone` is set."""
        seconds, whose, rate = self._rates.wait(identity, method)
        if not seconds:
            return
        holder = Holder(identity.user, share_address)
        bound = self._places.take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many calls waiting for their rate ({bound.name}); try again", bound.name)
        end = self._monotonic() + SECONDS_MAX
        try:
            while seconds:
                if self._monotonic() + seconds > end:
                    raise too_many(seconds, whose, rate)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(gone.wait(), seconds)
                    raise ClientGone
                seconds, whose, rate = self._rates.wait(identity, method)
        finally:
            self._places.give_back(1, holder)
