"""What limits refuse: counted by limit, and logged with its cause, a few lines at most however many there are."""

import time
from collections.abc import Callable

import structlog

from app.gateway.metrics import Metrics

LOG_EVERY_SECONDS = 10.0

_log = structlog.get_logger("hms_gateway.limits")


class Refusals:
    """Of each limit one line is logged in LOG_EVERY_SECONDS, with the number of those left out before it.

    Used from the event loop's thread.
    """

    def __init__(self, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._next_line_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def note(self, limit: str, *, user: str = "", address: str = "") -> None:
        """One request or connection was refused or cut off because of `limit`, a name out of a few."""
        self._metrics.limited[limit] += 1
        now = self._monotonic()
        if now < self._next_line_at.get(limit, now):
            self._left_out[limit] = self._left_out.get(limit, 0) + 1
            return
        self._next_line_at[limit] = now + LOG_EVERY_SECONDS
        _log.warning("limit reached", limit=limit, user=user, address=address, left_out=self._left_out.pop(limit, 0))
