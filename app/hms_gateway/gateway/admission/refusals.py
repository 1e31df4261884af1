"""Refusals of requests, and how those by limits are counted and logged."""

import time
from collections.abc import Callable

import structlog

from hms_gateway.gateway.admission.identity import HeaderList
from hms_gateway.gateway.observability.metrics import Metrics

# The bridge lets its clients repeat a change only when it knows that nothing has happened (clients §13).
NOT_TRIED: HeaderList = ((b"retry-after", b"1"), (b"x-call-outcome", b"not-tried"))
LOG_EVERY_SECONDS = 10.0

_log = structlog.get_logger("hms_gateway.limits")


class Refused(Exception):
    """The request is not served. `text` is safe to show and never says which half of a password was wrong.

    `limit` is the name of the limit that is in the way, if one is. `beginning` is the first part of the body when some
    of it was read already. `user` is as whom the sender tried to log in.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        headers: HeaderList = (),
        reason: str = "refused",
        limit: str = "",
        beginning: bytes | None = None,
        user: str = "",
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers
        self.reason = reason
        self.limit = limit
        self.beginning = beginning
        self.user = user


class ClientGone(Exception):
    """The connection was closed before the request was complete, or while the reply was sent."""


def overloaded(text: str, limit: str = "") -> Refused:
    """The answer when something of the server's is used up: nothing has happened, the client may try again soon."""
    return Refused(503, text, headers=NOT_TRIED, reason="overload", limit=limit)


class Refusals:
    """What limits refuse: one line for each limit is logged in LOG_EVERY_SECONDS, with the number of those left out.

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
