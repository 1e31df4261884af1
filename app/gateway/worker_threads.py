"""The threads that answer calls. A thread that has to wait for a slow client is replaced while it does."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

CLOSING_SECONDS_MAX = 1.0

Job = Callable[[], None]
_log = structlog.get_logger("hms_gateway.threads")


class WorkerThreads:
    """Runs jobs on up to `threads_max` threads, which are started when they are first needed.

    The standard pool costs more than twice as much per job and cannot lend a thread out.
    """

    def __init__(self, threads_max: int) -> None:
        self._threads_max = threads_max
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._lent = 0
        self._idle = threading.Semaphore(0)

    def submit(self, job: Job) -> None:
        """Run `job` soon; it must not raise."""
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False):
            self._start_thread()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside, the calling worker does not count: another may start in its place, so that other jobs go on."""
        with self._lock:
            self._lent += 1
        if not self._jobs.empty():
            self._start_thread()
        try:
            yield
        finally:
            with self._lock:
                self._lent -= 1

    def close(self) -> None:
        """Wait a moment for the jobs that were handed in; threads still running then end with the process."""
        with self._lock:
            threads = list(self._threads)
        for _ in threads:
            self._jobs.put(None)
        end = time.monotonic() + CLOSING_SECONDS_MAX
        for thread in threads:
            thread.join(timeout=max(0.0, end - time.monotonic()))

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
                self._idle.release()
                job = self._jobs.get()
            if job is None or not self._run_job(job):
                break
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _run_job(self, job: Job) -> bool:
        """Run it; False when this thread is one too many afterwards, because another took its place."""
        try:
            job()
        except BaseException:
            _log.exception("a job of the worker threads failed")
        with self._lock:
            return len(self._threads) - self._lent <= self._threads_max
