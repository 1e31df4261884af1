"""The pool: bounded, and a lent thread is replaced."""

import threading

from hms_gateway.gateway.worker_threads import WorkerThreads
from hms_gateway.runtime.shares import Holder

PATIENCE_SECONDS = 20


def test_jobs_run_in_parallel_up_to_the_bound():
    pool = WorkerThreads(4)
    started = threading.Semaphore(0)
    go = threading.Event()
    counts = []

    def job():
        counts.append(threading.current_thread())
        started.release()
        go.wait(PATIENCE_SECONDS)

    for number in range(10):
        pool.submit(job, Holder(f"user {number % 5}", None))
    for _ in range(4):
        assert started.acquire(timeout=PATIENCE_SECONDS)
    assert not started.acquire(timeout=0.02)
    go.set()
    pool.close()
    assert len(counts) == 10
    assert len(set(counts)) == 4


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


def test_a_job_that_fails_leaves_the_pool_usable():
    pool = WorkerThreads(1)
    pool.submit(lambda: 1 / 0)
    done = threading.Event()
    pool.submit(done.set)
    assert done.wait(PATIENCE_SECONDS)
    pool.close()
