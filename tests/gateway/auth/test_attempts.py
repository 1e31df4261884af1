"""The bookkeeping of failed attempts, on a clock that stands still until told."""

from hms_gateway.gateway.auth.credentials import (
    DELAY_SECONDS_MAX,
    FREE_FAILURES,
    SOURCES_MAX,
    WAIT_SECONDS_MAX,
    FailedAttempts,
)

SOURCE = ("ann", "10.0.0.1")


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.attempts = FailedAttempts(lambda: self.now)

    def fail(self, times: int) -> None:
        for _ in range(times):
            self.attempts.failed(SOURCE)


def test_the_first_failures_cost_nothing():
    bench = Bench()
    bench.fail(FREE_FAILURES)
    assert bench.attempts.reserve(SOURCE) == 0.0


def test_the_delay_doubles_up_to_a_cap():
    bench = Bench()
    delays = []
    bench.fail(FREE_FAILURES)
    for _ in range(12):
        bench.fail(1)
        delay = bench.attempts.reserve(SOURCE)
        delays.append(delay)
        bench.now += 2 * delay + DELAY_SECONDS_MAX
    assert delays[1] == 2 * delays[0]
    assert max(delays) == DELAY_SECONDS_MAX


def test_parallel_attempts_queue_behind_each_other_and_too_many_are_refused():
    bench = Bench()
    bench.fail(20)
    waits = []
    while (wait := bench.attempts.reserve(SOURCE)) is not None:
        waits.append(wait)
    assert waits == [DELAY_SECONDS_MAX * (number + 1) for number in range(len(waits))]
    assert waits[-1] <= WAIT_SECONDS_MAX < waits[-1] + DELAY_SECONDS_MAX


def test_time_forgets():
    bench = Bench()
    bench.fail(20)
    bench.now += 10_000
    assert bench.attempts.reserve(SOURCE) == 0.0
    bench.fail(1)
    assert bench.attempts.reserve(SOURCE) == 0.0


def test_the_number_of_sources_is_bounded():
    bench = Bench()
    bench.fail(20)
    for number in range(SOURCES_MAX):
        bench.attempts.failed((f"user {number}", "10.0.0.1"))
    assert bench.attempts.reserve(SOURCE) == 0.0


def test_who_comes_from_the_address_of_guesses_waits_for_half_a_minute_after_the_last_of_them():
    """As docs/security.md says of what is not defended."""
    bench = Bench()
    bench.fail(20)
    while bench.attempts.reserve(SOURCE) is not None:
        pass
    assert bench.attempts.reserve(("ann", "10.0.0.2")) == 0.0
    assert bench.attempts.reserve(("bob", "10.0.0.1")) == 0.0
    bench.now += WAIT_SECONDS_MAX + DELAY_SECONDS_MAX
    assert bench.attempts.reserve(SOURCE) == 0.0
