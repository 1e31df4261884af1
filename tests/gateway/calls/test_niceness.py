"""Threads that compute go behind others, and those that the system refuses that answer all the same."""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from structlog.testing import capture_logs

from hms_gateway.gateway.calls.worker_threads import NICENESS, be_nice
from tests.support.refused_calls import CANNOT_FILTER, refuse

T = TypeVar("T")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")


def in_thread(function: Callable[[], T]) -> T:
    """In a new one, which ends with what was done to it."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


def own_niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def nice_after(before: int) -> int:
    os.setpriority(os.PRIO_PROCESS, 0, max(before, own_niceness()))
    be_nice()
    return own_niceness()


def test_a_thread_gets_a_lower_priority_and_never_a_higher_one() -> None:
    assert in_thread(lambda: nice_after(0)) == max(NICENESS, own_niceness())
    assert in_thread(lambda: nice_after(15)) == max(15, own_niceness())


@pytest.mark.skipif(bool(CANNOT_FILTER), reason=CANNOT_FILTER)
def test_threads_that_may_not_be_nice_do_their_work_and_say_so() -> None:
    def work() -> list[int]:
        refuse(["setpriority"])
        # Where it has the priority already, nothing is asked for.
        lowest = own_niceness() + 1
        with ThreadPoolExecutor(2, initializer=be_nice, initargs=(lowest,)) as threads:
            return list(threads.map(lambda number: number, range(4)))

    with capture_logs() as lines:
        assert in_thread(work) == [0, 1, 2, 3]
    assert {(line["log_level"], line["event"].partition(",")[0]) for line in lines} == {
        ("debug", "the system refuses a lower priority")
    }
