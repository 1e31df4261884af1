"""Replies that are not read: counted by what waits, cut off when nothing moves."""

import asyncio

from hms_gateway.gateway.admission.identity import Refusals
from hms_gateway.gateway.admission.memory import UnreadReplies
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder
from tests.support.patience import PATIENCE_SECONDS

LIMITS = Limits(unread_reply_bytes_max=100, share_per_user=0.4, share_per_address=0.6)


class Buffer:
    """A transport's. The client takes so much between two looks at it."""

    def __init__(self, size: int, taken: int = 0) -> None:
        self.size, self.taken = size, taken
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        size = self.size
        self.size = max(0, self.size - self.taken)
        return size

    def abort(self) -> None:
        self.is_aborted = True


class Counted:
    def __init__(self, stall_seconds_max: float = 3_600.0) -> None:
        self.metrics = Metrics(())
        self.replies = UnreadReplies(LIMITS, Refusals(self.metrics), stall_seconds_max=stall_seconds_max)

    def paused(self, size: int, user: str, address: str | None, taken: int = 0) -> Buffer:
        buffer = Buffer(size, taken)
        self.replies.paused(buffer, Holder(user, address))
        return buffer


def test_the_oldest_of_the_user_or_the_address_in_the_way_goes():
    async def scenario() -> None:
        it = Counted()
        ann = it.paused(30, "ann", "a")
        first, second = it.paused(15, "mallory", "b"), it.paused(15, "mallory", "c")
        third = it.paused(15, "mallory", "d")
        assert [one.is_aborted for one in (ann, first, second, third)] == [False, True, False, False]
        fourth = it.paused(35, "bob", "a")
        assert ann.is_aborted
        assert not fourth.is_aborted
        assert it.metrics.limited == {
            "share_per_user of unread_reply_bytes_max": 1,
            "share_per_address of unread_reply_bytes_max": 1,
        }
        assert it.replies.ledger.taken == 65

    asyncio.run(scenario())


def test_when_all_together_have_too_much_the_user_with_most_loses_one():
    async def scenario() -> None:
        it = Counted()
        quiet = it.paused(10, "ann", "a")
        hogs = [it.paused(20, user, None) for user in ("bob", "bob", "cid", "dot")]
        last = it.paused(20, "eve", "e")
        assert [one.is_aborted for one in (quiet, *hogs, last)] == [False, True, False, False, False, False]
        assert it.metrics.limited == {"unread_reply_bytes_max": 1}

    asyncio.run(scenario())


def test_when_a_user_has_too_much_and_all_together_as_well_the_user_with_most_loses_one():
    async def scenario() -> None:
        it = Counted()
        ann = it.paused(30, "ann", "a")
        most, least = it.paused(40, "bob", "b"), it.paused(20, "cid", "c")
        last = it.paused(15, "ann", "d")
        assert [one.is_aborted for one in (ann, most, least, last)] == [True, True, False, False]
        assert it.metrics.limited == {"unread_reply_bytes_max": 1, "share_per_user of unread_reply_bytes_max": 1}

    asyncio.run(scenario())


def test_a_single_reply_fits_however_long_it_is_and_what_is_taken_is_given_back():
    async def scenario() -> None:
        it = Counted()
        buffer = it.paused(1_000_000, "ann", "a")
        assert (buffer.is_aborted, it.replies.ledger.taken) == (False, 40)
        for _ in range(2):
            it.replies.resumed(buffer)
        assert it.replies.ledger.taken == 0

    asyncio.run(scenario())


def test_only_a_client_that_takes_nothing_is_cut_off():
    async def scenario() -> None:
        it = Counted(stall_seconds_max=0.0)
        stalled, slow = it.paused(20, "ann", "a"), it.paused(20, "bob", "b", taken=1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while it.replies.ledger.taken:
                await asyncio.sleep(0)
        assert (stalled.is_aborted, slow.is_aborted, slow.size) == (True, False, 0)
        assert it.metrics.limited == {"write_stall_seconds_max": 1}

    asyncio.run(scenario())
