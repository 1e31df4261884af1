"""The time of day, as something that can be handed in."""

import time
from typing import Protocol


class Clock(Protocol):
    def seconds(self) -> int:
        """Seconds since the epoch, for createTime, DDL_TIME and event times (semantics §0.3)."""

    def milliseconds(self) -> int:
        """Milliseconds since the epoch, for transactions and locks (semantics §0.3)."""


class SystemClock:
    def seconds(self) -> int:
        return int(time.time())

    def milliseconds(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, seconds: int = 1_700_000_000) -> None:
        self._seconds = seconds

    def seconds(self) -> int:
        return self._seconds

    def milliseconds(self) -> int:
        return self._seconds * 1000

    def advance(self, seconds: int) -> None:
        self._seconds += seconds
