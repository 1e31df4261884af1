"""The time of day, as something that can be handed in."""

import time
from typing import Protocol


class Clock(Protocol):
    def seconds(self) -> int:
        """Seconds since the epoch, for createTime, DDL_TIME and event times (semantics §0.3)."""


class SystemClock:
    def seconds(self) -> int:
        return int(time.time())


class ManualClock:
    """A clock that stands still until told."""

    def __init__(self, seconds: int = 1_700_000_000) -> None:
        self._seconds = seconds

    def seconds(self) -> int:
        return self._seconds

    def advance(self, seconds: int) -> None:
        self._seconds += seconds
