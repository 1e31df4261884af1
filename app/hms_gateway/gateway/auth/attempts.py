"""Slowing down who guesses passwords: every failure makes the next attempt of that user from that address wait longer.

Pure bookkeeping over a clock that is handed in; the edge does the waiting. Other users, and headers that were verified
before, never come here.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from hms_gateway.gateway.admission.refusals import Refused

DELAY_SECONDS_FIRST = 0.25
DELAY_SECONDS_MAX = 8.0
# Attempts that would have to wait longer than this, because others wait already, are refused at once.
WAIT_SECONDS_MAX = 20.0
FREE_FAILURES = 3
FORGOTTEN_AFTER_SECONDS = 900.0
SOURCES_MAX = 10_000

Source = tuple[str, str]


class _Record(msgspec.Struct):
    failures: int
    next_attempt_at: float
    last_failure_at: float


class FailedAttempts:
    """Failures by (user, address). The first few are free: people mistype."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._records: OrderedDict[Source, _Record] = OrderedDict()

    def reserve(self, source: Source) -> float | None:
        """Seconds this attempt has to wait before it is looked at; None when too many wait already."""
        record = self._records.get(source)
        now = self._monotonic()
        if record is None or now - record.last_failure_at > FORGOTTEN_AFTER_SECONDS:
            return 0.0
        wait = max(0.0, record.next_attempt_at - now)
        if wait > WAIT_SECONDS_MAX:
            return None
        # Parallel attempts queue behind each other instead of all being looked at when the delay is over.
        record.next_attempt_at = max(now, record.next_attempt_at) + _delay(record.failures)
        return wait

    async def wait_for_turn(self, source: Source, sleep: Callable[[float], Awaitable[object]], *, limit: str) -> None:
        """Returns when this attempt may be looked at. Raises Refused with the name of the limit: too many wait."""
        wait = self.reserve(source)
        if wait is None:
            raise Refused(
                429,
                "Too many failed attempts, try again later",
                headers=((b"retry-after", b"30"),),
                reason="too_many_attempts",
                limit=limit,
                user=source[0],
            )
        if wait > 0:
            await sleep(wait)

    def failed(self, source: Source) -> None:
        now = self._monotonic()
        record = self._records.pop(source, None)
        if record is None or now - record.last_failure_at > FORGOTTEN_AFTER_SECONDS:
            record = _Record(0, now, now)
        record.failures += 1
        record.last_failure_at = now
        record.next_attempt_at = max(record.next_attempt_at, now + _delay(record.failures))
        self._records[source] = record
        if len(self._records) > SOURCES_MAX:
            self._records.popitem(last=False)

    def has_failed(self, source: Source) -> bool:
        """True if the last attempt was a recent failure."""
        return source in self._records

    def succeeded(self, source: Source) -> None:
        self._records.pop(source, None)


def _delay(failures: int) -> float:
    beyond = failures - FREE_FAILURES
    if beyond <= 0:
        return 0.0
    return min(DELAY_SECONDS_MAX, DELAY_SECONDS_FIRST * 2.0 ** min(beyond - 1, 30))
