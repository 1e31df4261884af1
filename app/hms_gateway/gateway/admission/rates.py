"""Rates of a user, or of a group together: calls, partitions, bytes of requests and replies per second.

Each rate is a bucket that fills with time, up to `burst_seconds` of it. A reply is paid for when it was sent, since its
length is not known before: who owes bytes or partitions waits until they have come in. Calls that keep or give back
what others wait for are paid for and never refused: a lock must not be lost because its owner reads a lot.

Where the protocol has no words for "later", a call waits until a rate lets it through: bounded like all others that
wait, and over when the client has gone.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hms_gateway.gateway.admission.identity import NOT_TRIED, ClientGone, HeaderList, Identity, Refused, overloaded
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Rate
from hms_gateway.runtime.shares import Holder, Ledger

EVERY_USER: Final = "*"
GROUP: Final = "@"
# So many callers are remembered; with one more all are forgotten.
CALLERS_MAX: Final = 10_000
# What calls that are never refused may owe: a member of a group who sends them without end holds up the others for as
# long, and not for days.
OWED_SECONDS_MAX: Final = 60.0
# A call that has to wait for longer is refused.
WAITED_SECONDS_MAX: Final = 30.0


class _Bucket:
    """The remainder of each rate by its name. Below zero is owed."""

    def __init__(self, rate: Rate, now: float) -> None:
        each = {name: getattr(rate, name) for name in ("calls_per_second", "bytes_per_second", "partitions_per_second")}
        self._per_second: dict[str, float] = {name: value for name, value in each.items() if value is not None}
        self._since = now
        self._most = {name: value * rate.burst_seconds for name, value in self._per_second.items()}
        if "calls_per_second" in self._most:
            # One call at least, however low the rate is.
            self._most["calls_per_second"] = max(1.0, self._most["calls_per_second"])
        self._left = dict(self._most)

    def fill(self, now: float) -> None:
        seconds, self._since = now - self._since, now
        for name, per_second in self._per_second.items():
            self._left[name] = min(self._most[name], self._left[name] + seconds * per_second)

    def wait(self) -> tuple[float, str]:
        """The seconds until a call may be made, and the rate that is in the way."""
        for name, per_second in self._per_second.items():
            needed = 1.0 if name == "calls_per_second" else 0.0
            if self._left[name] < needed:
                return (needed - self._left[name]) / per_second, name
        return 0.0, ""

    def pay(self, calls: int, size: int, partitions: int) -> None:
        paid = {"calls_per_second": calls, "bytes_per_second": size, "partitions_per_second": partitions}
        for name, per_second in self._per_second.items():
            self._left[name] -= paid[name]
            if name == "calls_per_second":
                self._left[name] = max(self._left[name], -per_second * OWED_SECONDS_MAX)


_Buckets = tuple[tuple[str, _Bucket], ...]


class Rates:
    """The rates of this process. Used from the event loop's thread."""

    def __init__(self, rates: Mapping[str, Rate], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._callers: dict[tuple[str, frozenset[str]], _Buckets] = {}
        self._shared: dict[str, _Bucket] = {}
        self._never_refused = never_refused()

    def wait(self, identity: Identity, method: str) -> tuple[float, str, str]:
        """Pay for a call: the seconds after which it may be made, whose rate is in the way, and which.

        Nothing is paid where it is not 0, and never is it for what keeps or gives back locks.
        """
        buckets, now = self._buckets(identity), self._monotonic()
        longest = (0.0, "", "")
        for whose, bucket in buckets:
            bucket.fill(now)
            seconds, rate = bucket.wait()
            if seconds > longest[0]:
                longest = seconds, whose, rate
        if longest[0] and method not in self._never_refused:
            return longest
        for _, bucket in buckets:
            bucket.pay(1, 0, 0)
        return 0.0, "", ""

    def check(self, identity: Identity, method: str) -> None:
        """Like `wait`, but raises Refused (429) if the call would have to wait."""
        seconds, whose, rate = self.wait(identity, method)
        if seconds:
            raise _too_many(seconds, whose, rate)

    def pay(self, identity: Identity, size: int, partitions: int = 0) -> None:
        """Pay for the bytes of a request and its reply, and for the partitions that it was about."""
        for _, bucket in self._buckets(identity):
            bucket.pay(0, size, partitions)

    def _buckets(self, identity: Identity) -> _Buckets:
        caller = (identity.user, identity.groups)
        known = self._callers.get(caller)
        if known is None:
            if len(self._callers) >= CALLERS_MAX:
                # All begin anew with full buckets.
                self._callers.clear()
                self._shared.clear()
            known = self._callers[caller] = tuple(self._made(identity))
        return known

    def _made(self, identity: Identity) -> Iterator[tuple[str, _Bucket]]:
        own = self._rates.get(identity.user) or self._rates.get(EVERY_USER)
        named = {f"user {identity.user}": own}
        named |= {f"group {group}": self._rates.get(GROUP + group) for group in identity.groups}
        for whose, rate in named.items():
            if rate is not None:
                yield whose, self._shared.setdefault(whose, _Bucket(rate, self._monotonic()))


class RateWaits:
    """Used from the event loop's thread. What waits holds its message, so there are only so many."""

    def __init__(self, rates: Rates, limits: Limits, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._places = Ledger(limits, "waiting_calls_max")

    async def wait(self, identity: Identity, method: str, share_address: str | None, gone: asyncio.Event) -> None:
        """Returns when the call may be made, and is paid for. Raises Refused, and ClientGone when `gone` is set."""
        seconds, whose, rate = self._rates.wait(identity, method)
        if not seconds:
            return
        holder = Holder(identity.user, share_address)
        bound = self._places.take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many calls waiting for their rate ({bound.name}); try again", bound.name)
        end = self._monotonic() + WAITED_SECONDS_MAX
        try:
            while seconds:
                if self._monotonic() + seconds > end:
                    raise _too_many(seconds, whose, rate)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(gone.wait(), seconds)
                    raise ClientGone
                seconds, whose, rate = self._rates.wait(identity, method)
        finally:
            self._places.give_back(1, holder)


def never_refused() -> frozenset[str]:
    """The methods that keep or release what others wait for, such as locks."""
    return frozenset(name for name, facts in method_facts().items() if facts.passes_rates)


def _too_many(seconds: float, whose: str, rate: str) -> Refused:
    """Nothing has happened; the client may try again after that time."""
    after = max(1, math.ceil(seconds))
    text = f"The rate of {whose} is used up (user_rates, {rate}); try again after {after} s"
    headers: HeaderList = ((b"retry-after", b"%d" % after), *(each for each in NOT_TRIED if each[0] != b"retry-after"))
    return Refused(429, text, headers=headers, reason="rate", limit=rate)
