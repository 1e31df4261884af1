"""Clocks, and chores that are done now and then."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

# The time of day, as something that can be handed in.


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


# Work that no caller waits for, such as forgetting what has expired, done now and then in one thread.


_log = logging.getLogger(__name__)

_STOP_SECONDS_MAX: Final = 30.0


class Chore(msgspec.Struct, frozen=True):
    """Something to do every so many seconds. It must be harmless on every replica at once, and may fail.

    The first time is a full period away, or `first_seconds`: a server that starts has better things to do.
    """

    name: str
    every_seconds: float
    do: Callable[[], object]
    first_seconds: float | None = None


class Housekeeping:
    """Does its chores one after the other until it is stopped; a chore that fails is logged and tried again."""

    def __init__(self, chores: Sequence[Chore], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._chores = chores
        self._monotonic = monotonic
        self._due = [
            monotonic() + (chore.every_seconds if chore.first_seconds is None else chore.first_seconds)
            for chore in chores
        ]
        self._wants_stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        """Begin in a thread of its own. Once."""
        self._thread.start()

    def stop(self) -> None:
        """Wait for the chore that is being done, then do no more."""
        self._wants_stop.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS_MAX)

    def do_what_is_due(self) -> float:
        """Do every chore whose time has come; the seconds until the next one is due."""
        for number, chore in enumerate(self._chores):
            if self._wants_stop.is_set():
                break
            if self._monotonic() >= self._due[number]:
                _do(chore)
                self._due[number] = self._monotonic() + chore.every_seconds
        return max(0.0, min(self._due, default=self._monotonic() + 60.0) - self._monotonic())

    def _run(self) -> None:
        while not self._wants_stop.wait(self.do_what_is_due()):
            pass


def _do(chore: Chore) -> None:
    try:
        chore.do()
    except Exception:
        _log.exception("chore %s failed and will be tried again", chore.name)
