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
