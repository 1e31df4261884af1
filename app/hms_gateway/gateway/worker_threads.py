"""The threads that answer calls, shared out among users and addresses.

One that waits for a slow client is replaced meanwhile.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import structlog

from hms_gateway.gateway.turns import Turns
from hms_gateway.runtime.shares import NO_HOLDER, Holder

CLOSING_SECONDS_MAX = 1.0
# Threads of a user whose calls keep a processor busy. The event loop waits for each that wants to run Python.
BUSY_THREADS = 1

Job = Callable[[], None]
_log = structlog.get_logger("hms_gateway.threads")


class _HeldJob(NamedTuple):
    holder: Holder
    run: Job


class _Place(threading.local):
    """What the thread does with its place among the threads."""

    holder: Holder | None = None
    cpu_started: float = 0.0


class WorkerThreads:
    """Runs jobs on up to `threads_max` threads, a part of them for one user and for one address.

    They are started when first needed. The standard pool costs more than twice as much per job, cannot lend a thread
    out, and knows no users.
    """

    def __init__(self, threads_max: int, per_user: int | None = None, per_address: int | None = None) -> None:
        self._threads_max = threads_max
        self._turns: Turns[_HeldJob] = Turns(
            threads_max, per_user or threads_max, per_address or threads_max, BUSY_THREADS
        )
        # What has a place and waits for a thread to take it.
        self._jobs: queue.SimpleQueue[_HeldJob | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._lent = 0
        self._is_closing = False
        self._idle = threading.Semaphore(0)
        self._place = _Place()

    def submit(self, job: Job, holder: Holder = NO_HOLDER) -> None:
        """Run `job` when it is the holder's turn; it must not raise."""
        asked = _HeldJob(holder, job)
        with self._lock:
            may_run = self._turns.ask(holder, asked, time.monotonic())
        if may_run:
            self._hand(asked)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside, the calling worker does not count: another may start in its place, so that other jobs go on."""
        with self._lock:
            self._lent += 1
        for job in self._give_place_back():
            self._hand(job)
        try:
            yield
        finally:
            with self._lock:
                self._lent -= 1

    def close(self) -> None:
        """Wait a moment for the jobs that were handed in; threads still running then end with the process."""
        self._is_closing = True
        with self._lock:
            threads = list(self._threads)
        for _ in threads:
            self._jobs.put(None)
        end = time.monotonic() + CLOSING_SECONDS_MAX
        for thread in threads:
            thread.join(timeout=max(0.0, end - time.monotonic()))

    def _hand(self, job: _HeldJob) -> None:
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False):
            self._start_thread()

    def _start_thread(self) -> None:
        with self._lock:
            if len(self._threads) - self._lent >= self._threads_max:
                return
            thread = threading.Thread(target=self._run, name="call", daemon=True)
            self._threads.add(thread)
        thread.start()

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                if self._is_closing:
                    break
                self._idle.release()
                job = self._jobs.get()
            if job is None or not self._run_jobs(job):
                break
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _run_jobs(self, job: _HeldJob) -> bool:
        """Run it and those that may follow; False when this thread is one too many, because another took its place."""
        while True:
            self._run_job(job)
            following = self._give_place_back()
            with self._lock:
                is_wanted = len(self._threads) - self._lent <= self._threads_max
            if not is_wanted or not following:
                break
            job = following.pop(0)
            for other in following:
                self._hand(other)
        for other in following:
            self._hand(other)
        return is_wanted

    def _run_job(self, job: _HeldJob) -> None:
        self._place.holder = job.holder
        self._place.cpu_started = time.thread_time()
        try:
            job.run()
        except BaseException:
            _log.exception("a job of the worker threads failed")

    def _give_place_back(self) -> list[_HeldJob]:
        """The jobs that may run instead; none when the place was given back before."""
        holder, self._place.holder = self._place.holder, None
        if holder is None:
            return []
        used_seconds = time.thread_time() - self._place.cpu_started
        with self._lock:
            return self._turns.end(holder, used_seconds, time.monotonic())
