"""Which thread takes a job: one that is idle, a new one, or the first one that is free again.

An idle thread is reserved in the step that finds it, so every count is exact and no job is left between two threads.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Next(Enum):
    """What a free thread does without a job."""

    WAIT = "wait"
    END = "end"


class Handed(NamedTuple, Generic[T]):
    """Jobs for threads that wait, and jobs that each need a new thread."""

    woken: list[T]
    started: list[T]


class JobHanding(Generic[T]):
    """Pure bookkeeping; the caller holds a lock. Threads that are lent do not count towards `threads_max`."""

    def __init__(self, threads_max: int) -> None:
        self.threads = 0
        self._threads_max = threads_max
        self.lent = 0
        self._idle = 0
        self._is_closing = False
        # Jobs that the next free thread takes: no thread is idle and there is no room for another one.
        self._kept: deque[T] = deque()

    @property
    def kept(self) -> int:
        """Jobs whose turn it is and that wait for a thread."""
        return len(self._kept)

    def hand(self, jobs: Iterable[T]) -> Handed[T]:
        """Give the jobs to threads; those that find none are kept for `free`."""
        self._kept.extend(jobs)
        handed: Handed[T] = Handed([], [])
        while self._kept and self._running < self._threads_max:
            if self._idle:
                self._idle -= 1
                handed.woken.append(self._kept.popleft())
            else:
                self.threads += 1
                handed.started.append(self._kept.popleft())
        return handed

    def free(self, jobs: Iterable[T] = ()) -> T | Next:
        """What the calling thread does next, when `jobs` may run as well; `hand` is called after it."""
        self._kept.extend(jobs)
        is_one_too_many = self._running > self._threads_max
        if self._kept and not is_one_too_many:
            return self._kept.popleft()
        if is_one_too_many or self._is_closing or self._idle >= self._threads_max:
            self.threads -= 1
            return Next.END
        self._idle += 1
        return Next.WAIT

    def lend(self) -> None:
        """The calling thread does not count until `take_back`; `hand` is called after it, since there is room now."""
        self.lent += 1

    def take_back(self) -> None:
        self.lent -= 1

    @property
    def _running(self) -> int:
        """Threads that count: neither idle nor lent."""
        return self.threads - self.lent - self._idle

    def not_started(self, job: T) -> None:
        """No thread could be started for `job`; the next one that is free takes it."""
        self.threads -= 1
        self._kept.appendleft(job)

    def close(self) -> int:
        """From now on threads end without a job; how many idle ones are to be ended at once."""
        self._is_closing = True
        ended, self._idle = self._idle, 0
        self.threads -= ended
        return ended
