"""Which processors threads may run on, and how soon: as the kernel says, of this process and of a busy gateway."""

import os
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hms_gateway.gateway.calls.worker_threads import WorkerThreads
from hms_gateway.gateway.one_processor import BUSY_SECONDS, NICENESS, NICENESS_MAX, OF_CALLS, OneProcessor
from tests.support.server import GatewayServer

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two processors of Linux"
)
SECONDS_MAX = 30.0


class Cpu:
    """What the process has used, as the test says."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Thread:
    """One that waits until the test is over."""

    def __init__(self, name: str) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._is_over.wait, name=name)
        self._thread.start()

    def processors(self) -> set[int]:
        assert self._thread.native_id is not None
        return os.sched_getaffinity(self._thread.native_id)

    def niceness(self) -> int:
        assert self._thread.native_id is not None
        return os.getpriority(os.PRIO_PROCESS, self._thread.native_id)

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()


@pytest.fixture
def everywhere() -> Iterator[set[int]]:
    before = os.sched_getaffinity(0)
    yield before
    for thread in threading.enumerate():
        if thread.native_id is not None:
            os.sched_setaffinity(thread.native_id, before)


@pytest.fixture
def threads(everywhere: set[int]) -> Iterator[tuple[Thread, Thread]]:
    """One that runs Python for calls, and one that does something else."""
    made = Thread("call"), Thread("passwords_0")
    yield made
    for thread in made:
        thread.end()


def look(processor: OneProcessor, cpu: Cpu, used: float) -> bool:
    """After so much was used."""
    cpu.seconds += used
    return processor.look()


def test_a_busy_process_runs_python_on_one(everywhere: set[int], threads: tuple[Thread, Thread]) -> None:
    of_calls, other = threads
    cpu = Cpu()
    processor = OneProcessor(cpu)
    assert look(processor, cpu, 2 * BUSY_SECONDS)
    assert os.sched_getaffinity(0) == everywhere, "it is the kernel's choice"
    processor.follow()
    assert processor.chosen in everywhere
    assert os.sched_getaffinity(0) == of_calls.processors() == {processor.chosen}
    assert other.processors() == everywhere
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert (of_calls.niceness(), other.niceness()) == (min(own + NICENESS, NICENESS_MAX), own)


def test_the_kernel_chooses_anew(everywhere: set[int], threads: tuple[Thread, Thread]) -> None:
    of_calls, _ = threads
    cpu = Cpu()
    processor = OneProcessor(cpu)
    for _ in range(2):
        assert look(processor, cpu, 2 * BUSY_SECONDS)
        assert os.sched_getaffinity(0) == everywhere
        processor.follow()
        assert of_calls.processors() == {processor.chosen}


def test_one_that_is_not_busy_any_more_runs_everywhere(everywhere: set[int], threads: tuple[Thread, Thread]) -> None:
    of_calls, _ = threads
    cpu = Cpu()
    processor = OneProcessor(cpu)
    look(processor, cpu, 2 * BUSY_SECONDS)
    processor.follow()
    assert not look(processor, cpu, BUSY_SECONDS / 2)
    assert processor.chosen is None
    assert os.sched_getaffinity(0) == of_calls.processors() == everywhere


def test_a_choice_of_the_administrator_stays(everywhere: set[int]) -> None:
    cpu = Cpu()
    processor = OneProcessor(cpu)
    look(processor, cpu, 2 * BUSY_SECONDS)
    processor.follow()
    (other, *_) = everywhere - {processor.chosen}
    os.sched_setaffinity(0, {other})
    for _ in range(3):
        look(processor, cpu, 2 * BUSY_SECONDS)
        assert os.sched_getaffinity(0) == {other}


def test_threads_of_calls_have_the_name_that_is_looked_for() -> None:
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    workers = WorkerThreads(1)
    workers.submit(lambda: names.put(threading.current_thread().name))
    assert names.get(timeout=10) == OF_CALLS
    workers.close()


def test_a_gateway_that_many_write_to(tmp_path: Path) -> None:
    with GatewayServer(tmp_path / "server") as server, ThreadPoolExecutor(8) as clients:
        together: set[str] = set()
        begin = time.monotonic()
        while len(together) < 3:
            assert time.monotonic() < begin + SECONDS_MAX, "its threads run anywhere"
            list(clients.map(lambda n: create_database(server, n), range(8)))
            together = {task for task in tasks(server.pid) if len(os.sched_getaffinity(int(task))) == 1}
        processors = [frozenset(os.sched_getaffinity(int(task))) for task in together if task in tasks(server.pid)]
    assert len(set(processors)) == 1, "the event loop, the writer and the threads of calls"


def create_database(server: GatewayServer, number: int) -> None:
    for _ in range(10):
        name = f"db_{number}_{time.perf_counter_ns()}"
        status, reply = server.post(b'[1,"create_database",1,1,{"1":{"rec":{"1":{"str":"%s"}}}}]' % name.encode())
        assert status == 200, reply


def tasks(pid: int) -> set[str]:
    return set(os.listdir(f"/proc/{pid}/task"))
