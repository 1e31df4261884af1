"""Jobs handed to threads: none is lost or kept beside a thread that could run it, and never more run than may."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hms_gateway.gateway.calls.job_handing import JobHanding, Next

THREADS_MAX = 3


class Handing(RuleBasedStateMachine):
    """Threads that run jobs, threads that run on without counting, and threads that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.handing: JobHanding[int] = JobHanding(THREADS_MAX)
        self.number = 0
        self.kept: list[int] = []
        self.running = 0
        self.lent = 0
        self.waiting = 0
        self.is_closing = False

    def take(self, job: int) -> None:
        assert job == self.kept.pop(0), "out of order"
        self.running += 1

    def hand(self, count: int) -> None:
        jobs = self.new_jobs(count)
        handed = self.handing.hand(jobs)
        for job in handed.woken:
            self.waiting -= 1
            self.take(job)
        for job in handed.started:
            self.take(job)

    def new_jobs(self, count: int) -> list[int]:
        jobs = list(range(self.number, self.number + count))
        self.number += count
        self.kept += jobs
        return jobs

    @rule(count=st.integers(1, 3))
    def jobs_come(self, count: int) -> None:
        self.hand(count)

    @precondition(lambda self: self.running)
    @rule(count=st.integers(0, 2))
    def a_thread_is_free(self, count: int) -> None:
        self.running -= 1
        following = self.handing.free(self.new_jobs(count))
        if following is Next.WAIT:
            self.waiting += 1
        elif following is not Next.END:
            self.take(following)
        self.hand(0)

    @precondition(lambda self: self.running)
    @rule()
    def a_thread_is_lent(self) -> None:
        self.running, self.lent = self.running - 1, self.lent + 1
        self.handing.lend()
        self.hand(0)

    @precondition(lambda self: self.lent)
    @rule()
    def a_thread_is_taken_back(self) -> None:
        self.running, self.lent = self.running + 1, self.lent - 1
        self.handing.take_back()

    @rule()
    def a_thread_cannot_be_started(self) -> None:
        handed = self.handing.hand(self.new_jobs(1))
        for job in handed.woken:
            self.waiting -= 1
            self.take(job)
        for job in handed.started:
            self.handing.not_started(job)
        self.hand(0)

    @rule()
    def it_closes(self) -> None:
        self.is_closing = True
        assert self.handing.close() == self.waiting
        self.waiting = 0

    @invariant()
    def every_thread_is_counted(self) -> None:
        assert self.handing.threads == self.running + self.lent + self.waiting

    @invariant()
    def no_job_is_kept_beside_a_thread_that_could_run_it(self) -> None:
        if self.kept:
            assert self.running >= THREADS_MAX

    @invariant()
    def idle_threads_are_as_few_as_may_run(self) -> None:
        assert self.waiting <= THREADS_MAX

    @invariant()
    def none_waits_after_closing(self) -> None:
        assert not (self.is_closing and self.waiting)


TestHanding = pytest.mark.slow(Handing.TestCase)
