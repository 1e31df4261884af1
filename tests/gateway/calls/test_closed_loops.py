"""Threads that have something for an event loop that is closed: they go on, and nothing is logged as a failure."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from hms_gateway.gateway.calls.dispatcher import Dispatcher
from hms_gateway.gateway.calls.thread_runner import ThreadRunner
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc import Call, Releases, RepeatableProcessor, Reply
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder
from hms_gateway.wire import MessageType, make_codecs
from tests.gateway.calls.test_suspended_calls import LOCK, Metastore, Store
from tests.support.patience import PATIENCE_SECONDS, until


class LateReplies:
    """A processor whose calls are answered when the test says so."""

    def __init__(self, payload: object) -> None:
        self.payload = payload
        self.go_on = threading.Event()
        self.made = threading.Event()

    def process(self, call: Call) -> Reply:
        assert self.go_on.wait(PATIENCE_SECONDS)
        self.made.set()
        return Reply(MessageType.REPLY, self.payload, "ok")


def begin(runner: ThreadRunner, process: Callable[[Call], Reply]) -> None:
    """Begin a call in a loop that is closed by then."""

    async def admit() -> None:
        runner.run(runner.admit(Call("ann"), process, lambda chunks: chunks, 0))

    asyncio.run(admit())


@pytest.fixture
def runner() -> Iterator[ThreadRunner]:
    runner = ThreadRunner(Limits(), Metrics(()), threads=1, streams_max=1, call_seconds_max=PATIENCE_SECONDS)
    yield runner
    runner.close()


def has_next_job(runner: ThreadRunner) -> bool:
    """Whether the only thread has come to the next job, so that it has done the one before."""
    begun = threading.Event()
    runner._threads.submit(begun.set, Holder("bob", None))
    return begun.wait(PATIENCE_SECONDS)


def test_a_reply_for_a_closed_loop_is_dropped(runner: ThreadRunner) -> None:
    late = LateReplies(b"{}")
    with capture_logs() as lines:
        begin(runner, late.process)
        late.go_on.set()
        assert late.made.wait(PATIENCE_SECONDS)
        assert has_next_job(runner)
    assert lines == []


def test_a_long_reply_for_a_closed_loop_is_closed_in_its_thread(runner: ThreadRunner) -> None:
    closed_in: list[str] = []

    def chunks() -> Iterator[bytes]:
        try:
            while True:
                yield b"1,"
        finally:
            closed_in.append(threading.current_thread().name)

    making = chunks()
    next(making)
    late = LateReplies(making)
    with capture_logs() as lines:
        begin(runner, late.process)
        late.go_on.set()
        until(lambda: closed_in != [])
        assert has_next_job(runner)
    assert closed_in == ["call"]
    assert lines == []


def test_an_outcome_for_a_closed_loop_is_dropped() -> None:
    store = Store()
    dispatcher = Dispatcher(
        RepeatableProcessor(Metastore(store), None),
        Limits(),
        Metrics(()),
        Releases(),
        threads=1,
        streams_max=1,
        call_seconds_max=PATIENCE_SECONDS,
    )
    codec = make_codecs(Limits()).tjson

    async def begin_lock() -> None:
        dispatcher.start(codec, codec.read_message(LOCK), Call("ann"), lambda chunks: chunks)
        await asyncio.sleep(0)

    asyncio.run(begin_lock())
    # In the thread that commits, which goes on with the next batch.
    store.commit()
    dispatcher.close()
