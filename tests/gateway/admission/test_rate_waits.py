"""Calls that wait for their rate: so many of a user, and none of a client that has gone."""

import asyncio

import pytest

from hms_gateway.gateway.admission.identity import ClientGone, Identity, Refused
from hms_gateway.gateway.admission.rates import WAITED_SECONDS_MAX, Rates, RateWaits
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Rate
from tests.support.patience import PATIENCE_SECONDS

ANN, BOB = Identity("ann", ""), Identity("bob", "")


class Waits:
    """One call of each user was made, and the next is due in so many seconds of a clock that stays."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.rates = Rates({"*": Rate(calls_per_second=1 / seconds, burst_seconds=1e-6)}, lambda: self.now)
        self.waits = RateWaits(self.rates, Limits(waiting_calls_max=3), lambda: self.now)
        self.gone = asyncio.Event()
        for user in (ANN, BOB):
            self.rates.check(user, "get_table")

    def begin(self, user: Identity = ANN, method: str = "get_table") -> asyncio.Task[None]:
        return asyncio.ensure_future(self.waits.wait(user, method, "10.0.0.1", self.gone))


async def a_turn() -> None:
    """Tasks that were begun have come to what they wait for."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_call_of_a_client_that_has_gone_ends_and_gives_its_place_back():
    async def run() -> None:
        waits = Waits(seconds=20.0)
        waiting = waits.begin()
        await a_turn()
        waits.gone.set()
        with pytest.raises(ClientGone):
            await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        waits.gone.clear()
        another = waits.begin()
        await a_turn()
        assert not another.done()
        another.cancel()

    asyncio.run(run())


def test_so_many_calls_of_a_user_wait_and_one_more_is_refused_at_once():
    async def run() -> None:
        waits = Waits(seconds=20.0)
        waiting = [waits.begin(), waits.begin(BOB)]
        await a_turn()
        with pytest.raises(Refused, match=r"waiting for their rate \(share_per_user of waiting_calls_max\)"):
            await waits.begin()
        # What gives back locks does not wait.
        await waits.begin(method="unlock")
        assert not any(one.done() for one in waiting)
        for one in waiting:
            one.cancel()

    asyncio.run(run())


def test_one_that_would_wait_for_long_is_refused_and_the_others_are_made_when_their_rate_is_there():
    async def run() -> None:
        with pytest.raises(Refused, match="user ann is used up"):
            await Waits(seconds=WAITED_SECONDS_MAX + 1).begin()
        waits = Waits(seconds=0.01)
        waiting = waits.begin()
        await a_turn()
        waits.now += 1.0
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)

    asyncio.run(run())
