"""Whose job a free thread takes: users take turns, and none of them has all the threads.

A user holds at most `each` places. The last quarter of the places goes only to users who have none, so that several
greedy ones together leave some as well. A user whose jobs have kept a processor busy gets `busy` places: more threads
would make nothing faster, since only one of them runs Python at a time, and all others would wait for them. How busy
jobs are is known when they end, so a user begins with FIRST_PLACES, gets one more with each job that took little, and
loses half of them with each that took long.
"""

from collections import OrderedDict, deque
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

# A user is busy whose jobs took more than this part of a processor's time lately.
BUSY_PART = 0.5
HALF_LIFE_SECONDS = 1.0
FIRST_PLACES = 4
# A job that took a processor for longer halves the places.
LITTLE_SECONDS = 0.01
# What a steady part of a processor adds up to, when half of it is forgotten in every half-life.
_SUM_OF_ONE = HALF_LIFE_SECONDS / 0.6931
# So many users' times are kept before those are dropped that do not matter.
REMEMBERED_MAX = 1_000


class _Used(NamedTuple):
    """Processor time of a user's jobs, of which half is forgotten in every half-life, and the places it has."""

    seconds: float
    since: float
    places: int


class Turns(Generic[T]):
    """Pure bookkeeping; the caller holds a lock and passes the time."""

    def __init__(self, places: int, each: int, busy: int) -> None:
        self._places = places
        self._each = max(1, min(each, places * 3 // 4))
        self._busy = min(busy, self._each)
        self._kept_free = places // 4
        self._taken = 0
        self._holding: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._used: dict[str, _Used] = {}

    def ask(self, user: str, job: T, now: float) -> bool:
        """Whether the job has a place and may run now; else it waits for its turn."""
        if user not in self._waiting and self._may_take(user, now):
            self._take(user)
            return True
        self._waiting.setdefault(user, deque()).append(job)
        return False

    def end(self, user: str, seconds: float, now: float) -> list[T]:
        """One place of the user is free, after a job that used so much processor time; the jobs that may run now."""
        self._taken -= 1
        left = self._holding[user] - 1
        if left:
            self._holding[user] = left
        else:
            del self._holding[user]
        self._count(user, seconds, now)
        if not self._waiting:
            return []
        return self._next(now)

    def _next(self, now: float) -> list[T]:
        """One job of every user who may have a place, again and again while there are places."""
        chosen: list[T] = []
        has_more = True
        while has_more:
            has_more = False
            for user in [user for user in self._waiting if self._may_take(user, now)]:
                if self._may_take(user, now):
                    chosen.append(self._pop(user))
                    has_more = True
        return chosen

    def _pop(self, user: str) -> T:
        self._take(user)
        jobs = self._waiting[user]
        job = jobs.popleft()
        # Others come first now.
        self._waiting.move_to_end(user)
        if not jobs:
            del self._waiting[user]
        return job

    def _take(self, user: str) -> None:
        self._taken += 1
        self._holding[user] = self._holding.get(user, 0) + 1

    def _may_take(self, user: str, now: float) -> bool:
        holding, free = self._holding.get(user, 0), self._places - self._taken
        if not holding:
            return free > 0
        return free > self._kept_free and holding < self._allowed(user, now)

    def _allowed(self, user: str, now: float) -> int:
        return self._busy if self._is_busy(user, now) else self._places_of(user)

    def _is_busy(self, user: str, now: float) -> bool:
        return self._seconds_used(user, now) > BUSY_PART * _SUM_OF_ONE

    def _seconds_used(self, user: str, now: float) -> float:
        used = self._used.get(user)
        if used is None:
            return 0.0
        kept: float = 0.5 ** ((now - used.since) / HALF_LIFE_SECONDS)
        return used.seconds * kept

    def _count(self, user: str, seconds: float, now: float) -> None:
        places = self._places_of(user)
        places = max(self._busy, places // 2) if seconds > LITTLE_SECONDS else min(self._each, places + 1)
        self._used[user] = _Used(self._seconds_used(user, now) + seconds, now, places)
        if len(self._used) > REMEMBERED_MAX:
            self._used = {user: used for user, used in self._used.items() if self._is_busy(user, now)}

    def _places_of(self, user: str) -> int:
        used = self._used.get(user)
        return min(self._each, FIRST_PLACES) if used is None else used.places
