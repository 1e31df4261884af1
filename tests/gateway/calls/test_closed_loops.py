"""Threads that have something for an event loop that is closed: they go on, and nothing is logged as a failure."""

import asyncio
import threading
from collections.abc import Iterator

from structlog.testing import capture_logs

from hms_gateway.gateway.calls.dispatcher import Dispatcher
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Call, Releases
from hms_gateway.rpc.processor import MessageProcessor, Reply
from hms_gateway.rpc.repeatable import RepeatableProcessor
from hms_gateway.rpc.wire import Codec, Message, MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder
from tests.gateway.calls.test_suspended_calls import LOCK, READ, Metastore, Store
from tests.support.patience import PATIENCE_SECONDS, until


class LateReplies:
    """A processor whose calls are answered when the test says so."""

    def __init__(self, payload: object) -> None:
        self.payload = payload
        self.go_on = threading.Event()
        self.made = threading.Event()

    def process(self, codec: Codec, message: Message, call: Call) -> Reply:
        assert self.go_on.wait(PATIENCE_SECONDS)
        self.made.set()
        return Reply(MessageType.REPLY, self.payload, "ok")


CODEC = make_codecs(Limits()).tjson


def dispatcher_of(processor: MessageProcessor) -> Dispatcher:
    bounds = {"threads": 1, "streams_max": 1, "call_seconds_max": PATIENCE_SECONDS}
    return Dispatcher(processor, Limits(), Metrics(()), Releases(), **bounds)


def begin(dispatcher: Dispatcher, body: bytes = READ) -> None:
    """Begin a call in a loop that is closed by then."""

    async def start() -> None:
        dispatcher.start(CODEC, CODEC.read_message(body), Call("ann"), lambda chunks: chunks)
        await asyncio.sleep(0)

    asyncio.run(start())


def has_next_job(dispatcher: Dispatcher) -> bool:
    """Whether the only thread has come to the next job, so that it has done the one before."""
    begun = threading.Event()
    dispatcher._threads.submit(begun.set, Holder("bob", None))
    return begun.wait(PATIENCE_SECONDS)


def test_a_reply_for_a_closed_loop_is_dropped() -> None:
    late = LateReplies(b"{}")
    dispatcher = dispatcher_of(late)
    with capture_logs() as lines:
        begin(dispatcher)
        late.go_on.set()
        assert late.made.wait(PATIENCE_SECONDS)
        assert has_next_job(dispatcher)
    assert lines == []
    dispatcher.close()


def test_a_long_reply_for_a_closed_loop_is_closed_in_its_thread() -> None:
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
    dispatcher = dispatcher_of(late)
    with capture_logs() as lines:
        begin(dispatcher)
        late.go_on.set()
        until(lambda: closed_in != [])
        assert has_next_job(dispatcher)
    assert closed_in == ["call"]
    assert lines == []
    dispatcher.close()


def test_an_outcome_for_a_closed_loop_is_dropped() -> None:
    store = Store()
    dispatcher = dispatcher_of(RepeatableProcessor(Metastore(store), None))
    begin(dispatcher, LOCK)
    # In the thread that commits, which goes on with the next batch.
    store.commit()
    dispatcher.close()
