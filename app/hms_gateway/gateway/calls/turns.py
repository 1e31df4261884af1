"""Whose job a free thread takes: users take turns, and neither one of them nor one address has all the threads.

A user holds at most three quarters of the places. The last quarter goes only to users who have none, so that several
greedy ones together leave some as well; and the last eighth, one place at least, is for other addresses. A user whose
jobs have kept a processor busy gets `busy` places: more threads would make nothing faster, since only one of them runs
Python at a time, and all others would wait for them. How busy jobs are is known when they end, so a user begins with
FIRST_PLACES, gets one more with each job that took little, and loses half of them with each that took long.
"""

from collections import OrderedDict, deque
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from hms_gateway.runtime.shares import Holder

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


_Lanes: TypeAlias = OrderedDict[str | None, deque[T]]


class Turns(Generic[T]):
    """Pure bookkeeping; the caller holds a lock and passes the time."""

    def __init__(self, places: int, per_user: int, per_address: int, busy: int) -> None:
        self._places = places
        self._each = max(1, min(per_user, places * 3 // 4))
        self._each_address = max(1, min(per_address, places - max(1, places // 8)))
        self._busy = min(busy, self._each)
        self._kept_free = places // 4
        self._taken = 0
        self._holding: dict[str, int] = {}
        self._of_address: dict[str, int] = {}
        # A user's jobs by address: those from one that has its share do not hold up the others.
        self._waiting: OrderedDict[str, _Lanes[T]] = OrderedDict()
        self._used: dict[str, _Used] = {}

    @property
    def waiting(self) -> int:
        """Jobs that wait for their turn."""
        return sum(len(jobs) for lanes in self._waiting.values() for jobs in lanes.values())

    def ask(self, holder: Holder, job: T, now: float) -> bool:
        """Whether the job has a place and may run now; else it waits for its turn."""
        user, address = holder.user or "", holder.address
        lanes = self._waiting.get(user)
        if (lanes is None or address not in lanes) and self._may_take(user, address, now):
            self._take(user, address)
            return True
        if lanes is None:
            lanes = self._waiting[user] = OrderedDict()
        lanes.setdefault(address, deque()).append(job)
        return False

    def end(self, holder: Holder, seconds: float, now: float) -> list[T]:
        """One place of the holder is free, after a job that used so much processor time; the jobs that may run now."""
        self._count(holder.user or "", seconds, now)
        return self.pause(holder, now)

    def pause(self, holder: Holder, now: float) -> list[T]:
        """The same for a job that goes on later: it asks for a place again, and ends with all that it has used."""
        user, address = holder.user or "", holder.address
        self._taken -= 1
        _decrease(self._holding, user)
        if address is not None:
            _decrease(self._of_address, address)
        return self._next(now) if self._waiting else []

    def narrow(self, holder: Holder, now: float) -> None:
        """The user gets as few places for now as one who keeps a processor busy: more would be work for nothing."""
        user = holder.user or ""
        self._used[user] = _Used(self._seconds_used(user, now), now, self._busy)

    def _next(self, now: float) -> list[T]:
        """One job of every user who may have a place, again and again while there are places."""
        chosen: list[T] = []
        has_more = True
        while has_more:
            has_more = False
            for user in list(self._waiting):
                for address in self._waiting[user]:
                    if self._may_take(user, address, now):
                        chosen.append(self._pop(user, address))
                        has_more = True
                        break
        return chosen

    def _pop(self, user: str, address: str | None) -> T:
        self._take(user, address)
        lanes = self._waiting[user]
        jobs = lanes[address]
        job = jobs.popleft()
        # Others come first now.
        lanes.move_to_end(address)
        self._waiting.move_to_end(user)
        if not jobs:
            del lanes[address]
        if not lanes:
            del self._waiting[user]
        return job

    def _take(self, user: str, address: str | None) -> None:
        self._taken += 1
        self._holding[user] = self._holding.get(user, 0) + 1
        if address is not None:
            self._of_address[address] = self._of_address.get(address, 0) + 1

    def _may_take(self, user: str, address: str | None, now: float) -> bool:
        holding, free = self._holding.get(user, 0), self._places - self._taken
        if not free or (address is not None and self._of_address.get(address, 0) >= self._each_address):
            return False
        return not holding or (free > self._kept_free and holding < self._allowed(user, now))

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


def _decrease(counts: dict[str, int], name: str) -> None:
    counts[name] -= 1
    if not counts[name]:
        del counts[name]
