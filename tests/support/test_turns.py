"""Test files in turns: what stays together, what begins, and a process that dies of a test."""

from types import SimpleNamespace

import pytest

from tests.support.turns import Scheduling, place, tell_less

_NAMES = (
    "pipeline/crawl/test_one.py::test",
    "pipeline/test_two.py::test",
    "wire/test_it.py::test_a",
    "wire/test_it.py::test_b",
)
TESTS = [f"tests/{name}" for name in _NAMES]


class Process:
    """A worker of xdist that only notes what it is given."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.given: list[str] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += [TESTS[index] for index in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def scheduling():
    return scheduling_of(2)


def scheduling_of(processes):
    option = SimpleNamespace(loadscopereorder=False)
    return Scheduling(SimpleNamespace(getvalue=lambda _: ["popen"] * processes, option=option), None)


def begin(scheduling, *processes):
    for process in processes:
        scheduling.add_node(process)
        scheduling.add_node_collection(process, TESTS)
    scheduling.schedule()


def test_a_sharing_room_is_one_processs_and_a_file_another_ones(scheduling):
    one, other = Process(0), Process(1)
    begin(scheduling, one, other)
    assert [one.given, other.given] == [TESTS[:2], TESTS[2:]]


def test_what_a_process_has_left_others_run_but_for_the_test_it_died_of(scheduling):
    one, other, third = Process(0), Process(1), Process(2)
    begin(scheduling, one, other)
    assert scheduling.remove_node(other) == TESTS[2]
    begin(scheduling, third)
    assert third.given == [TESTS[3]]


def test_a_file_that_a_dead_process_was_done_with_is_given_to_nobody():
    scheduling, one = scheduling_of(1), Process(0)
    begin(scheduling, one)
    assert one.given == TESTS
    for index in (0, 1):
        scheduling.mark_test_complete(one, index)
    assert scheduling.remove_node(one) == TESTS[2]
    assert [list(tests) for tests in scheduling.workqueue.values()] == [TESTS[2:]]


def test_what_takes_longest_begins():
    assert sorted([TESTS[2], TESTS[0]], key=place) == [TESTS[0], TESTS[2]]


class WorkerInteractor:
    """What xdist calls so tells the first process of events."""

    def __init__(self):
        self.told = []

    def sendevent(self, name, **told):
        self.told.append((name, told))


@pytest.mark.parametrize("durations", [None, 10])
def test_only_the_end_of_a_test_and_what_failed_is_told_unless_times_are_asked_for(durations):
    plugin = WorkerInteractor()
    manager = SimpleNamespace(get_plugins=lambda: {object(), plugin})
    tell_less(SimpleNamespace(option=SimpleNamespace(durations=durations), pluginmanager=manager))
    told = [("logstart", {"nodeid": "test"}), ("workerready", {})]
    told += [
        ("testreport", {"data": {"when": when, "outcome": outcome}})
        for when in ("setup", "call", "teardown")
        for outcome in ("passed", "failed")
    ]
    for name, more in told:
        plugin.sendevent(name, **more)
    needless = [told[0], told[2], told[6]]
    assert plugin.told == (told if durations else [one for one in told if one not in needless])
