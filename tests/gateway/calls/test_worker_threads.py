"""The pool: bounded, a lent thread is replaced, and users take turns: none has all the places, others overtake."""

import threading
from collections.abc import Hashable
from concurrent.futures import Future
from functools import partial
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hms_gateway.gateway.calls import worker_threads
from hms_gateway.gateway.calls.worker_threads import (
    FIRST_PLACES,
    LITTLE_SECONDS,
    REMEMBERED_MAX,
    Asked,
    Job,
    Places,
    WorkerThreads,
)
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder
from hms_gateway.runtime.suspension import awaited
from tests.support.patience import PATIENCE_SECONDS, until


def test_jobs_run_in_parallel_up_to_the_bound():
    pool = WorkerThreads(Limits(), 4)
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


def test_an_idle_thread_keeps_neither_its_first_job_nor_its_last():
    pool, kept = WorkerThreads(Limits(), 1), []

    class Work:
        def __call__(self):
            """Run as a job whose message is large."""

    for _ in range(2):
        job = Work()
        kept.append(ref(job))
        pool.submit(job)
        del job
    until(lambda: [it() for it in kept] == [None, None])
    pool.close()


def refuse(_thread):
    raise RuntimeError("can't start new thread")


def test_a_job_for_which_no_thread_can_be_started_comes_before_those_that_wait_for_a_place(monkeypatch):
    pool = WorkerThreads(Limits(), 2)
    go, done = threading.Event(), threading.Event()
    order: list[str] = []
    pool.submit(lambda: go.wait(PATIENCE_SECONDS), Holder("a", None))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for user in "bcd":
        pool.submit(partial(order.append, user), Holder(user, None))
    pool.submit(done.set, Holder("e", None))
    assert pool.waiting == 4
    go.set()
    assert done.wait(PATIENCE_SECONDS)
    assert order == ["b", "c", "d"]
    pool.close()
    assert pool.waiting == 0


def test_a_thread_that_could_not_be_started_is_tried_again_with_the_next_job(monkeypatch):
    pool = WorkerThreads(Limits(), 8)
    go, done = threading.Event(), threading.Event()
    pool.submit(lambda: go.wait(PATIENCE_SECONDS), Holder("a", None))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        pool.submit(done.set, Holder("b", None))
    assert pool.waiting == 1
    pool.submit(lambda: go.wait(PATIENCE_SECONDS), Holder("c", None))
    assert pool.waiting == 0
    assert done.wait(PATIENCE_SECONDS)
    go.set()
    pool.close()


def test_a_job_without_a_thread_is_done_before_the_pool_ends(monkeypatch):
    pool = WorkerThreads(Limits(), 2)
    has_begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def job() -> None:
        has_begun.set()
        go.wait(PATIENCE_SECONDS)

    pool.submit(job, Holder("a", None))
    assert has_begun.wait(PATIENCE_SECONDS)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    pool.submit(done.set, Holder("b", None))
    monkeypatch.setattr(worker_threads, "CLOSING_SECONDS_MAX", 0.0)
    pool.close()
    go.set()
    assert done.wait(PATIENCE_SECONDS)


def test_a_thread_is_used_again():
    pool = WorkerThreads(Limits(), 8)
    threads = set()
    for _ in range(20):
        pool.submit(lambda: threads.add(threading.current_thread()))
        until(lambda: pool._idle)
    pool.close()
    assert len(threads) == 1


def test_a_lent_thread_makes_room_for_another():
    pool = WorkerThreads(Limits(), 1)
    go, done = threading.Event(), threading.Event()

    def waits():
        pool.lend()
        go.wait(PATIENCE_SECONDS)

    pool.submit(waits)
    pool.submit(done.set)
    assert done.wait(PATIENCE_SECONDS)
    go.set()
    pool.close()


def test_jobs_that_wait_for_units_of_work_are_as_many_as_come_and_go_on_in_turns():
    pool = WorkerThreads(Limits(), 2)
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
    pool = WorkerThreads(Limits(), 1)
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
    pool = WorkerThreads(Limits(), 1)
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
    pool = WorkerThreads(Limits(), 1)
    pool.submit(lambda: 1 / 0)
    done = threading.Event()
    pool.submit(done.set)
    assert done.wait(PATIENCE_SECONDS)
    pool.close()


PLACES, EACH, PER_ADDRESS = 8, 5, 7
USERS = st.sampled_from(["ann", "bob", "cid", "dot", "eve"])
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", None])
SHORT, LONG = LITTLE_SECONDS / 2, LITTLE_SECONDS * 2


class Turns:
    """Places of which each job is known by a name."""

    def __init__(self, places: int, per_user: float = 0.75) -> None:
        self.places = Places(Limits(share_per_user=per_user), places)
        self.jobs: dict[Job, Hashable] = {}

    def ask(self, user: str, job: Hashable, address: str | None = None, now: float = 0.0) -> bool:
        run = partial(self.jobs.__getitem__, job)
        self.jobs[run] = job
        return self.places.ask(Asked(Holder(user, address), run), now)

    def begun(self, now: float = 0.0) -> list[Hashable]:
        """The jobs that have waited and have a place now."""
        begun = []
        while (asked := self.places.next(now)) is not None:
            begun.append(self.jobs[asked.run])
        return begun

    def end(self, user: str, seconds: float = 0.0, address: str | None = None, now: float = 0.0) -> list[Hashable]:
        self.places.end(Holder(user, address), seconds, now)
        return self.begun(now)


def test_who_is_narrowed_gets_one_place_at_a_time_until_its_jobs_take_little() -> None:
    turns = Turns(PLACES)
    assert [turns.ask("ann", number) for number in range(3)] == [True] * 3
    turns.places.narrow("ann", 0.0)
    assert not turns.ask("ann", 3)
    assert turns.end("ann", LONG) == turns.end("ann", LONG) == []
    assert turns.end("ann", SHORT) == [3]
    assert turns.ask("ann", 4)


class TakingTurns(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns(PLACES, EACH / PLACES)
        self.running: list[Holder] = []
        self.waiting: list[tuple[Holder, int]] = []
        self.number = 0
        self.now = 0.0

    def begin(self, job: tuple[Holder, int]) -> None:
        assert not [one for one in self.waiting if one[0] == job[0] and one[1] < job[1]], "out of order"
        self.running.append(job[0])

    def begin_waiting(self) -> None:
        for job in self.turns.begun(self.now):
            self.waiting.remove(job)
            self.begin(job)

    @rule(user=USERS, address=ADDRESSES)
    def ask(self, user: str, address: str | None) -> None:
        self.number += 1
        job = (Holder(user, address), self.number)
        if self.turns.ask(user, job, address, self.now):
            self.begin(job)
        else:
            self.waiting.append(job)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), seconds=st.sampled_from([0.0, 0.1, 3.0]), passed=st.sampled_from([0.0, 0.5, 20.0]))
    def end(self, data, seconds: float, passed: float) -> None:
        self.now += passed
        holder = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.turns.places.end(holder, seconds, self.now)
        self.begin_waiting()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def pause(self, data) -> None:
        holder = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.turns.places.pause(holder)
        self.begin_waiting()

    @invariant()
    def nobody_has_more_than_the_share(self) -> None:
        assert len(self.running) <= PLACES
        users, addresses = [one.user for one in self.running], [one.address for one in self.running if one.address]
        assert all(users.count(user) <= EACH for user in users)
        assert all(addresses.count(address) <= PER_ADDRESS for address in addresses)

    @invariant()
    def who_has_none_waits_only_where_there_is_none(self) -> None:
        addresses = [one.address for one in self.running if one.address]
        for holder, _ in self.waiting:
            if holder.user not in [one.user for one in self.running]:
                assert len(self.running) == PLACES or addresses.count(holder.address) == PER_ADDRESS


TestTakingTurns = pytest.mark.slow(TakingTurns.TestCase)


def test_users_take_turns_however_many_jobs_one_has():
    turns = Turns(1)
    assert turns.ask("a", "a0")
    for job in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
        assert not turns.ask(job[0], job)
    order, running = [], ["a"]
    while running:
        begun = [str(job) for job in turns.end(running.pop(0))]
        order += begun
        running += [job[0] for job in begun]
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_greedy_users_together_leave_places_for_the_others():
    turns = Turns(8)
    assert sum(turns.ask(user, user) for _ in range(20) for user in ("a", "b")) == 6
    assert turns.ask("c", "c")
    assert turns.ask("d", "d")


def test_who_keeps_a_processor_busy_gets_one_place_until_that_is_over():
    turns = Turns(8)
    assert [turns.ask("a", "long") for _ in range(2)] == [True, True]
    assert turns.end("a", 5.0, now=5.0) == []
    assert [turns.ask("a", "more", now=5.0) for _ in range(3)] == [False] * 3
    assert turns.end("a", now=60.0) == ["more"] * 3


def test_who_begins_has_few_places_until_the_jobs_turn_out_to_take_little():
    turns = Turns(32)
    assert sum(turns.ask("a", number) for number in range(100)) == FIRST_PLACES
    assert len(turns.end("a", 0.001)) == 2
    assert turns.end("a", 1.0) == []


def places_after(*seconds: float) -> int:
    """How many jobs of a user run at once after some that took so much of a processor, one after the other."""
    turns = Turns(32)
    for taken in seconds:
        assert turns.ask("a", 0)
        assert turns.end("a", taken) == []
    return sum(turns.ask("a", number) for number in range(100))


def test_each_long_job_halves_the_places_and_each_short_one_brings_one_back():
    assert places_after(SHORT, SHORT, SHORT, SHORT) == FIRST_PLACES + 4 == 8
    assert places_after(SHORT, SHORT, SHORT, SHORT, LONG) == 4
    assert places_after(SHORT, SHORT, SHORT, SHORT, LONG, SHORT, LONG) == 2
    assert places_after(LONG, LONG) == places_after(LONG, LONG, LONG) == 1
    assert places_after(LONG, LONG, SHORT) == 2


def test_one_address_leaves_places_for_others_whatever_users_call_from_it():
    turns = Turns(32)
    assert sum(turns.ask(f"user {number}", number, "10.0.0.1") for number in range(40)) == 28
    # The last places are for users who have none.
    assert not turns.ask("user 1", 99, "10.0.0.2")
    assert turns.ask("ann", 100, "10.0.0.2")


def test_jobs_from_an_address_that_has_its_share_do_not_hold_up_the_same_user_elsewhere():
    turns = Turns(3)
    for number in range(2):
        assert turns.ask(f"other {number}", "other", "full")
    assert not turns.ask("ann", "waits", "full")
    assert turns.ask("ann", "begins", "free")
    assert turns.end("other 0", address="full") == ["waits"]


@pytest.mark.slow
@given(st.integers(1, 64))
def test_one_user_never_has_every_place(places: int):
    turns = Turns(places)
    running = sum(turns.ask("a", number) for number in range(200))
    for _ in range(100):
        running += len(turns.end("a")) - 1
    assert running == max(1, places * 3 // 4)


def test_users_of_long_ago_are_forgotten():
    turns = Turns(8)
    for number in range(REMEMBERED_MAX + 1):
        assert turns.ask(str(number), "job", now=float(number))
        turns.end(str(number), 0.01, now=float(number))
    assert len(turns.places._used) < 10
