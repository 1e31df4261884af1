"""The threads that answer calls, shared out among users and addresses.

One that waits for a slow client is replaced meanwhile. One that waits for its unit of work gives its place to another
call, and goes on when it is its turn again: so many calls as come wait together, and are committed together.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import structlog

from hms_gateway.gateway.calls.job_handing import JobHanding, Next
from hms_gateway.gateway.calls.turns import Turns
from hms_gateway.runtime.shares import NO_HOLDER, Holder
from hms_gateway.runtime.suspension import wait_by

CLOSING_SECONDS_MAX = 1.0
# Threads of a user whose calls keep a processor busy. The event loop waits for each that wants to run Python.
BUSY_THREADS = 1
# Threads that wait for units of work, or for slow clients, and may be replaced.
REPLACED_MAX = 128

Job = Callable[[], None]
_log = structlog.get_logger("hms_gateway.threads")


class _HeldJob(NamedTuple):
    holder: Holder
    run: Job


class _Resumed(NamedTuple):
    """A thread that wants to go on, which `turn` lets it."""

    holder: Holder
    turn: threading.Lock


_Asked: TypeAlias = _HeldJob | _Resumed


class _Place(threading.local):
    """What the thread does with its place among the threads."""

    holder: Holder | None = None
    cpu_started: float = 0.0


class WorkerThreads:
    """Runs jobs on up to `threads_max` threads, a part of them for one user.

    They are started when first needed. The standard pool costs more than twice as much per job, cannot lend a thread
    out, and knows no users.
    """

    def __init__(self, threads_max: int, per_user: int | None = None) -> None:
        self._turns: Turns[_Asked] = Turns(threads_max, per_user or threads_max, threads_max, BUSY_THREADS)
        self._handing: JobHanding[_HeldJob] = JobHanding(threads_max)
        # One entry for each idle thread that is to go on: its job, or None to end.
        self._woken: queue.SimpleQueue[_HeldJob | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._have_ended = threading.Event()
        self._place = _Place()

    @property
    def waiting(self) -> int:
        """Jobs that no thread has begun."""
        with self._lock:
            return self._turns.waiting + self._handing.kept

    def submit(self, job: Job, holder: Holder = NO_HOLDER) -> None:
        """Run `job` when it is the holder's turn; it must not raise."""
        asked = _HeldJob(holder, job)
        with self._lock:
            started = self._hand([asked]) if self._turns.ask(holder, asked, time.monotonic()) else ()
        self._start_threads(started)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside, the calling worker does not count: another may start in its place, so that other jobs go on."""
        with self._lock:
            self._handing.lend()
            started = self._hand(self._give_place_back())
        self._start_threads(started)
        try:
            yield
        finally:
            with self._lock:
                self._handing.take_back()

    def narrow(self, holder: Holder) -> None:
        """No more than what a busy user gets at a time, until its jobs take little again."""
        with self._lock:
            self._turns.narrow(holder, time.monotonic())

    def _wait_aside(self, outcome: Future[Any]) -> Any:
        """Its result. Meanwhile the calling worker has no place; then it goes on when it is its turn."""
        holder = self._place.holder
        if holder is None or outcome.done() or not self._is_replaced(holder):
            return outcome.result()
        turn = threading.Lock()
        turn.acquire()
        outcome.add_done_callback(partial(self._ask_again, _Resumed(holder, turn)))
        turn.acquire()
        return outcome.result()

    def _is_replaced(self, holder: Holder) -> bool:
        """Whether others have the calling worker's place from now on."""
        with self._lock:
            if self._handing.lent >= REPLACED_MAX:
                return False
            self._handing.lend()
            started = self._hand(self._turns.pause(holder, time.monotonic()))
        self._start_threads(started)
        return True

    def _ask_again(self, asked: _Resumed, _: Future[Any]) -> None:
        """In the thread that has the result."""
        with self._lock:
            if self._turns.ask(asked.holder, asked, time.monotonic()):
                self._resume(asked)

    def _resume(self, asked: _Resumed) -> None:
        """With the lock held: it has a place."""
        self._handing.take_back()
        asked.turn.release()

    def close(self) -> None:
        """Wait a moment for the jobs that were handed in; threads still running then end with the process."""
        with self._lock:
            for _ in range(self._handing.close()):
                self._woken.put(None)
            is_running = self._handing.threads > 0
        if is_running:
            self._have_ended.wait(CLOSING_SECONDS_MAX)

    def _hand(self, asked: Iterable[_Asked]) -> list[_HeldJob]:
        """With the lock held: wake idle threads; the jobs that need a new thread each."""
        handed = self._handing.hand(self._new_jobs(asked))
        for job in handed.woken:
            self._woken.put(job)
        return handed.started

    def _new_jobs(self, asked: Iterable[_Asked]) -> list[_HeldJob]:
        """With the lock held: those that no thread has yet; threads that may go on do so."""
        jobs = []
        for each in asked:
            if isinstance(each, _Resumed):
                self._resume(each)
            else:
                jobs.append(each)
        return jobs

    def _start_threads(self, jobs: Iterable[_HeldJob]) -> None:
        for job in jobs:
            thread = threading.Thread(target=self._run, args=(job,), name="call", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                _log.warning("a thread cannot be started; the call waits for another one", error=str(error))
                with self._lock:
                    self._handing.not_started(job)

    def _run(self, job: _HeldJob) -> None:
        following: _HeldJob | None = job
        wait_by(self._wait_aside)
        while following is not None:
            self._place.holder = following.holder
            self._place.cpu_started = time.thread_time()
            try:
                following.run()
            except BaseException:
                _log.exception("a job of the worker threads failed")
            following = self._next_job()

    def _next_job(self) -> _HeldJob | None:
        """The job that this thread runs next; None when it is to end."""
        with self._lock:
            following = self._handing.free(self._new_jobs(self._give_place_back()))
            started = self._hand(())
            if self._handing.threads == 0:
                self._have_ended.set()
        self._start_threads(started)
        if following is Next.WAIT:
            return self._woken.get()
        return None if following is Next.END else following

    def _give_place_back(self) -> list[_Asked]:
        """With the lock held: what may run instead; none when the place was given back before."""
        holder, self._place.holder = self._place.holder, None
        if holder is None:
            return []
        return self._turns.end(holder, time.thread_time() - self._place.cpu_started, time.monotonic())
