"""The pool: bounded, and a lent thread is replaced."""

import threading
from concurrent.futures import Future
from functools import partial

from hms_gateway.gateway.calls import worker_threads
from hms_gateway.gateway.calls.worker_threads import WorkerThreads
from hms_gateway.runtime.shares import Holder
from hms_gateway.runtime.suspension import awaited
from tests.support.patience import PATIENCE_SECONDS


def test_jobs_run_in_parallel_up_to_the_bound():
    pool = WorkerThreads(4)
    started = threading.Semaphore(0)
    go = threading.Event()
    running: set[int] = set()
    at_once = []

    def job(number):
        running.add(number)
        at_once.append(len(running))
        started.release()
        go.wait(PATIENCE_SECONDS)
        running.remove(number)

    for number in range(10):
        pool.submit(partial(job, number), Holder(f"user {number % 5}", None))
    for _ in range(4):
        assert started.acquire(timeout=PATIENCE_SECONDS)
    assert at_once == [1, 2, 3, 4]
    go.set()
    pool.close()
    assert len(at_once) == 10
    assert max(at_once) == 4


def test_a_job_handed_on_while_the_pool_closes_is_run(monkeypatch):
    """The thread that hands it on is one too many, and the other one knows already that the pool closes."""
    monkeypatch.setattr(worker_threads, "CLOSING_SECONDS_MAX", 0.0)
    pool = WorkerThreads(1)
    is_back, go_on, replaced, may_end, done = (threading.Event() for _ in range(5))
    replacing = []

    def lends():
        with pool.lent():
            assert replaced.wait(PATIENCE_SECONDS)
        is_back.set()
        go_on.wait(PATIENCE_SECONDS)

    def replaces():
        replacing.append(threading.current_thread())
        replaced.set()
        may_end.wait(PATIENCE_SECONDS)

    pool.submit(lends, Holder("a", None))
    pool.submit(replaces, Holder("b", None))
    pool.submit(done.set, Holder("c", None))
    assert is_back.wait(PATIENCE_SECONDS)
    pool.close()
    may_end.set()
    replacing[0].join(PATIENCE_SECONDS)
    go_on.set()
    assert done.wait(PATIENCE_SECONDS)


def test_a_job_waits_for_a_free_thread_when_none_can_be_started(monkeypatch):
    pool = WorkerThreads(2)
    go, done = threading.Event(), threading.Event()
    pool.submit(lambda: go.wait(PATIENCE_SECONDS), Holder("a", None))

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        pool.submit(done.set, Holder("b", None))
    go.set()
    assert done.wait(PATIENCE_SECONDS)
    pool.close()


def test_a_thread_is_used_again():
    pool = WorkerThreads(8)
    threads = set()
    for _ in range(20):
        done = threading.Event()
        pool.submit(lambda done=done: (threads.add(threading.current_thread()), done.set()))
        assert done.wait(PATIENCE_SECONDS)
    pool.close()
    assert len(threads) <= 2


def test_a_lent_thread_makes_room_for_another():
    pool = WorkerThreads(1)
    go, done = threading.Event(), threading.Event()

    def waits():
        with pool.lent():
            go.wait(PATIENCE_SECONDS)

    pool.submit(waits)
    pool.submit(done.set)
    assert done.wait(PATIENCE_SECONDS)
    go.set()
    pool.close()


def test_jobs_that_wait_for_units_of_work_are_as_many_as_come_and_go_on_in_turns():
    pool = WorkerThreads(2)
    committed: list[Future[int]] = [Future() for _ in range(5)]
    waiting, done = threading.Semaphore(0), threading.Semaphore(0)
    running: list[int] = []
    at_once = []

    def job(number: int) -> None:
        waiting.release()
        assert awaited(committed[number]) == number
        running.append(number)
        at_once.append(len(running))
        go_on.acquire(timeout=PATIENCE_SECONDS)
        running.remove(number)
        done.release()

    go_on = threading.Semaphore(0)
    for number in range(5):
        pool.submit(partial(job, number))
    for _ in range(5):
        assert waiting.acquire(timeout=PATIENCE_SECONDS)
    for number, each in enumerate(committed):
        each.set_result(number)
    for _ in range(5):
        go_on.release()
        assert done.acquire(timeout=PATIENCE_SECONDS)
    pool.close()
    assert max(at_once) <= 2


def test_a_unit_of_work_that_failed_raises_in_the_job_that_waits_for_it():
    pool = WorkerThreads(1)
    failed: Future[int] = Future()
    seen: list[BaseException] = []
    is_waiting, done = threading.Event(), threading.Event()

    def job() -> None:
        is_waiting.set()
        try:
            awaited(failed)
        except LookupError as error:
            seen.append(error)
        done.set()

    pool.submit(job)
    assert is_waiting.wait(PATIENCE_SECONDS)
    failed.set_exception(LookupError("no such table"))
    assert done.wait(PATIENCE_SECONDS)
    pool.close()
    assert [str(error) for error in seen] == ["no such table"]


def test_threads_that_may_be_replaced_are_bounded(monkeypatch):
    monkeypatch.setattr(worker_threads, "REPLACED_MAX", 1)
    pool = WorkerThreads(1)
    committed: list[Future[None]] = [Future(), Future()]
    waiting, done = threading.Semaphore(0), threading.Semaphore(0)

    def job(number: int) -> None:
        waiting.release()
        awaited(committed[number])
        done.release()

    for number in range(2):
        pool.submit(partial(job, number))
        assert waiting.acquire(timeout=PATIENCE_SECONDS)
    pool.submit(done.release)
    assert not done.acquire(blocking=False)
    for each in committed:
        each.set_result(None)
    for _ in range(3):
        assert done.acquire(timeout=PATIENCE_SECONDS)
    pool.close()


def test_a_job_that_fails_leaves_the_pool_usable():
    pool = WorkerThreads(1)
    pool.submit(lambda: 1 / 0)
    done = threading.Event()
    pool.submit(done.set)
    assert done.wait(PATIENCE_SECONDS)
    pool.close()
