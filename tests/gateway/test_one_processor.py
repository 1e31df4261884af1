"""Which processors threads may run on, and how soon: as the kernel says, of this process and of a server in it."""

import contextlib
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.gateway import one_processor
from hms_gateway.gateway.calls.worker_threads import WorkerThreads
from hms_gateway.gateway.one_processor import BUSY_SECONDS, NICENESS, NICENESS_MAX, OF_CALLS, TOGETHER, OneProcessor
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage import open_store
from tests.gateway.serving import CALL, post, read_response, running
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two processors of Linux"
)


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


def test_threads_have_the_names_that_are_looked_for(tmp_path: Path) -> None:
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    workers = WorkerThreads(1)
    workers.submit(lambda: names.put(threading.current_thread().name))
    with contextlib.closing(open_store(f"sqlite:///{tmp_path}/catalog.db", SystemClock(), Limits())) as store:
        store.write(lambda _: names.put(threading.current_thread().name))
    assert {names.get(timeout=PATIENCE_SECONDS) for _ in TOGETHER} == set(TOGETHER)
    workers.close()


def test_a_server_has_its_threads_on_one(everywhere: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_processor, "BUSY_SECONDS", 0)
    monkeypatch.setattr(one_processor, "LOOK_SECONDS", 0.01)
    with running(one_processor=True) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        read_response(connection)

        def are_together() -> bool:
            threads = [thread for thread in threading.enumerate() if thread is server.thread or thread.name == OF_CALLS]
            placed = {frozenset(os.sched_getaffinity(thread.native_id or 0)) for thread in threads}
            return len(threads) > 1 and len(placed) == 1 and len(placed.pop()) == 1

        until(are_together, "its threads run anywhere")
