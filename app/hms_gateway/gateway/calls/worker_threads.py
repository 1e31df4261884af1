"""The threads that answer calls: users take turns, and neither one of them nor one address has all the threads.

The last quarter of the places goes only to users who have none, so that several greedy ones together leave some as
well; and the last eighth, one place at least, is for other addresses. A user whose jobs have kept a processor busy gets
one place: more threads would make nothing faster, since only one of them runs Python at a time, and the event loop
waits for each. How busy jobs are is known when they end, so a user begins with FIRST_PLACES, gets one more with each
job that took little, and loses half of them with each that took long.

A job that waits for its unit of work gives its place to another one, and goes on when it is its turn again: so many
calls as come wait together, and are committed together.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import structlog

from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import NO_HOLDER, Bound, FairQueue, Holder, Ledger
from hms_gateway.runtime.suspension import wait_by

CLOSING_SECONDS_MAX = 1.0
# Threads that wait for units of work, and are replaced.
REPLACED_MAX = 128
# A user is busy whose jobs took more than this part of a processor's time lately.
BUSY_PART = 0.5
HALF_LIFE_SECONDS = 1.0
FIRST_PLACES = 4
# A job that took a processor for longer halves the places.
LITTLE_SECONDS = 0.01
# What that part adds up to, when half of it is forgotten in every half-life.
BUSY_SECONDS = BUSY_PART * HALF_LIFE_SECONDS / 0.6931
# So many users' times are kept before those are dropped that do not matter.
REMEMBERED_MAX = 1_000

Job = Callable[[], None]
_log = structlog.get_logger("hms_gateway.threads")


class Asked(NamedTuple):
    """A job that wants a place, or the thread of one that wants to go on, which `turn` lets it."""

    holder: Holder
    run: Job
    turn: "threading.Lock | None" = None


class _Used(NamedTuple):
    """Processor time of a user's jobs, of which half is forgotten in every half-life, and the places it has."""

    seconds: float
    since: float
    places: int

    def recent_seconds(self, now: float) -> float:
        kept: float = 0.5 ** ((now - self.since) / HALF_LIFE_SECONDS)
        return self.seconds * kept


class Places:
    """Places for jobs, and the jobs that wait for one. Pure; the caller holds a lock and passes the time."""

    def __init__(self, limits: Limits, places: int) -> None:
        self.total = places
        self._ledger = Ledger(limits, Bound("threads", places))
        # More than users who have some may take together, so that another user of the same address finds one.
        self._ledger.per_address = Bound("threads of an address", max(1, places - max(1, places // 8)))
        self._kept_free = places // 4
        self._first_places = min(self._ledger.per_user.value, FIRST_PLACES)
        self._waiting: FairQueue[Asked] = FairQueue()
        self._used: dict[str | None, _Used] = {}

    def __len__(self) -> int:
        """The number of jobs that wait."""
        return len(self._waiting)

    def ask(self, asked: Asked, now: float) -> bool:
        """True if there is a place for the job now; else it waits for its turn."""
        user, address = asked.holder
        if not self._waiting.has(user, address) and self._take(now, asked):
            return True
        self._waiting.add(asked, user, address)
        return False

    def next(self, now: float) -> Asked | None:
        """The job that has waited and has a place now."""
        return self._waiting.next(partial(self._take, now))

    def end(self, holder: Holder, seconds: float, now: float) -> None:
        """The place of a job is free that used so much processor time."""
        before = self._used.get(holder.user) or _Used(0.0, now, self._first_places)
        places = before.places // 2 if seconds > LITTLE_SECONDS else before.places + 1
        places = max(1, min(self._ledger.per_user.value, places))
        self._used[holder.user] = _Used(before.recent_seconds(now) + seconds, now, places)
        if len(self._used) > REMEMBERED_MAX:
            self._used = {user: used for user, used in self._used.items() if used.recent_seconds(now) > BUSY_SECONDS}
        self._ledger.give_back(1, holder)

    def pause(self, holder: Holder) -> None:
        """The same for a job that goes on later: it asks for a place again, and ends with all that it has used."""
        self._ledger.give_back(1, holder)

    def narrow(self, user: str | None, now: float) -> None:
        """The user gets one place at a time, until its jobs take little again: more would be work for nothing."""
        used = self._used.get(user)
        self._used[user] = _Used(0.0 if used is None else used.recent_seconds(now), now, 1)

    def _take(self, now: float, asked: Asked) -> bool:
        """Take a place, if the user may have one more."""
        user = asked.holder.user
        held = self._ledger.of_user(user)
        if held and (held >= self._allowed(user, now) or self.total - self._ledger.taken <= self._kept_free):
            return False
        return self._ledger.take(1, asked.holder) is None

    def _allowed(self, user: str | None, now: float) -> int:
        used = self._used.get(user)
        if used is None:
            return self._first_places
        return 1 if used.recent_seconds(now) > BUSY_SECONDS else used.places


class _OfThread(threading.local):
    """The holder of the place that a thread has."""

    holder: Holder | None = None
    cpu_started: float = 0.0


class WorkerThreads:
    """Runs jobs on so many threads, a part of them for one user and one address. They are started when needed.

    The standard pool costs more than twice as much per job, has no thread that gives up its place, and knows no users.
    """

    def __init__(self, limits: Limits, threads_max: int) -> None:
        self._places = Places(limits, threads_max)
        self._lock = threading.Lock()
        # One entry for each idle thread that is to go on: its job, or None to end.
        self._woken: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._idle = 0
        # Jobs with a place for which no thread could be started.
        self._without_thread: deque[Asked] = deque()
        self._threads = 0
        self._replaced = 0
        self._is_closing = False
        self._have_ended = threading.Event()
        self._here = _OfThread()

    @property
    def waiting(self) -> int:
        """Jobs that no thread has begun."""
        with self._lock:
            return len(self._places) + len(self._without_thread)

    def submit(self, job: Job, holder: Holder = NO_HOLDER, turn: "threading.Lock | None" = None) -> None:
        """Run `job` when it is the holder's turn; it must not raise. One that goes on waits for `turn` instead."""
        asked = Asked(holder, job, turn)
        with self._lock:
            if self._places.ask(asked, time.monotonic()):
                self._begin(asked)

    def lend(self) -> None:
        """The calling job has no place any more: others go on in its stead."""
        with self._lock:
            self._end()
            self._begin_waiting()

    def narrow(self, holder: Holder) -> None:
        """No more than one place for the user, until its jobs take little again."""
        with self._lock:
            self._places.narrow(holder.user, time.monotonic())

    def close(self) -> None:
        """Wait a moment for the jobs that were handed in; threads still running then end with the process."""
        with self._lock:
            self._is_closing = True
            for _ in range(self._idle):
                self._woken.put(None)
            self._threads -= self._idle
            self._idle = 0
            is_running = self._threads > 0
        if is_running:
            self._have_ended.wait(CLOSING_SECONDS_MAX)

    def _begin(self, asked: Asked) -> None:
        """Have a job with a place run by an idle thread, a new one, or the next free one. The lock is held."""
        if asked.turn is not None:
            self._replaced -= 1
            asked.turn.release()
        elif self._idle > 0:
            self._idle -= 1
            self._woken.put(asked)
        else:
            self._without_thread.append(asked)
            self._start_threads()

    def _start_threads(self) -> None:
        while self._without_thread:
            job = self._without_thread[0]
            try:
                threading.Thread(target=self._run, args=([job],), name="call", daemon=True).start()
            except RuntimeError as error:
                _log.warning("a thread cannot be started; the call waits for another one", error=str(error))
                return
            self._threads += 1
            self._without_thread.popleft()

    def _begin_waiting(self) -> None:
        """Give places that are free to jobs that have waited. The lock is held."""
        while (asked := self._places.next(time.monotonic())) is not None:
            self._begin(asked)

    def _run(self, first: list[Asked]) -> None:
        """Run jobs; the one in `first` is taken out, since a thread keeps its arguments as long as it lives."""
        following: Asked | None = first.pop()
        wait_by(self._wait_aside)
        while following is not None:
            self._here.holder = following.holder
            self._here.cpu_started = time.thread_time()
            try:
                following.run()
            except BaseException:
                _log.exception("a job of the worker threads failed")
            following = None  # its message may be large, and the thread idle for long
            following = self._next_job()

    def _next_job(self) -> Asked | None:
        """The job that this thread runs next; None when it is to end."""
        with self._lock:
            self._end()
            following = self._without_thread.popleft() if self._without_thread else None
            while (asked := self._places.next(time.monotonic())) is not None:
                if following is None and asked.turn is None:
                    following = asked
                else:
                    self._begin(asked)
            if following is not None:
                return following
            if self._idle >= (0 if self._is_closing else self._places.total):
                self._threads -= 1
                if self._threads == 0:
                    self._have_ended.set()
                return None
            self._idle += 1
        return self._woken.get()

    def _end(self) -> None:
        """Give back the place of the calling job; harmless when it has none any more. The lock is held."""
        holder, self._here.holder = self._here.holder, None
        if holder is not None:
            self._places.end(holder, time.thread_time() - self._here.cpu_started, time.monotonic())

    def _wait_aside(self, outcome: Future[Any]) -> Any:
        """Its result. Meanwhile the calling job has no place; then it goes on when it is its turn."""
        holder = self._here.holder
        if holder is None or outcome.done():
            return outcome.result()
        turn = threading.Lock()
        turn.acquire()
        with self._lock:
            is_replaced = self._replaced < REPLACED_MAX
            if is_replaced:
                self._replaced += 1
                self._places.pause(holder)
                self._begin_waiting()
        if is_replaced:
            outcome.add_done_callback(lambda _: self.submit(turn.release, holder, turn))
            turn.acquire()
        return outcome.result()
