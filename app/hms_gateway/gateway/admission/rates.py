"""Rates of a user, or of a group together: calls, partitions, bytes of requests and replies per second.

Each rate is a bucket that fills with time, up to `burst_seconds` of it. A reply is paid for when it was sent, since its
length is not known before: who owes bytes or partitions waits until they have come in. Calls that keep or give back
what others wait for are paid for and never refused: a lock must not be lost because its owner reads a lot.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hms_gateway.gateway.admission.identity import HeaderList, Identity
from hms_gateway.gateway.admission.refusals import NOT_TRIED, Refused
from hms_gateway.idl.method_facts import method_facts
from hms_gateway.runtime.settings import Rate

EVERY_USER: Final = "*"
GROUP: Final = "@"
# So many callers are remembered; with one more all are forgotten.
CALLERS_MAX: Final = 10_000
# What calls that are never refused may owe: a member of a group who sends them without end holds up the others for as
# long, and not for days.
OWED_SECONDS_MAX: Final = 60.0


class _Bucket:
    """The remainder of one rate. Below zero is owed."""

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._since = now
        # One call at least, however low the rate is.
        self._calls = max(1.0, (rate.calls_per_second or 0.0) * rate.burst_seconds)
        self._bytes = (rate.bytes_per_second or 0.0) * rate.burst_seconds
        self._partitions = (rate.partitions_per_second or 0.0) * rate.burst_seconds

    def fill(self, now: float) -> None:
        seconds, self._since = now - self._since, now
        rate = self._rate
        if rate.calls_per_second is not None:
            most = max(1.0, rate.calls_per_second * rate.burst_seconds)
            self._calls = min(most, self._calls + seconds * rate.calls_per_second)
        if rate.bytes_per_second is not None:
            most = rate.bytes_per_second * rate.burst_seconds
            self._bytes = min(most, self._bytes + seconds * rate.bytes_per_second)
        if rate.partitions_per_second is not None:
            most = rate.partitions_per_second * rate.burst_seconds
            self._partitions = min(most, self._partitions + seconds * rate.partitions_per_second)

    def wait(self) -> tuple[float, str]:
        """The seconds until a call may be made, and the rate that is in the way."""
        rate = self._rate
        if rate.calls_per_second is not None and self._calls < 1.0:
            return (1.0 - self._calls) / rate.calls_per_second, "calls_per_second"
        if rate.bytes_per_second is not None and self._bytes < 0.0:
            return -self._bytes / rate.bytes_per_second, "bytes_per_second"
        if rate.partitions_per_second is not None and self._partitions < 0.0:
            return -self._partitions / rate.partitions_per_second, "partitions_per_second"
        return 0.0, ""

    def pay(self, calls: int, size: int, partitions: int) -> None:
        owed_max = (self._rate.calls_per_second or 0.0) * OWED_SECONDS_MAX
        self._calls = max(self._calls - calls, -owed_max)
        self._bytes -= size
        self._partitions -= partitions


_Buckets = tuple[tuple[str, _Bucket], ...]


class Rates:
    """The rates of this process. Used from the event loop's thread."""

    def __init__(self, rates: Mapping[str, Rate], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._callers: dict[tuple[str, frozenset[str]], _Buckets] = {}
        self._shared: dict[str, _Bucket] = {}

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
        if longest[0] and not keeps_or_gives_back(method):
            return longest
        for _, bucket in buckets:
            bucket.pay(1, 0, 0)
        return 0.0, "", ""

    def check(self, identity: Identity, method: str) -> None:
        """Like `wait`, but raises Refused (429) if the call would have to wait."""
        seconds, whose, rate = self.wait(identity, method)
        if seconds:
            raise too_many(seconds, whose, rate)

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


def keeps_or_gives_back(method: str) -> bool:
    """True for methods that keep or release what others wait for, such as locks."""
    facts = method_facts().get(method)
    return facts is not None and facts.passes_rates


def too_many(seconds: float, whose: str, rate: str) -> Refused:
    """Nothing has happened; the client may try again after that time."""
    after = max(1, math.ceil(seconds))
    text = f"The rate of {whose} is used up (user_rates, {rate}); try again after {after} s"
    headers: HeaderList = ((b"retry-after", b"%d" % after), *(each for each in NOT_TRIED if each[0] != b"retry-after"))
    return Refused(429, text, headers=headers, reason="rate", limit=rate)
