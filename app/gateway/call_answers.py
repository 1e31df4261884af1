"""How a decoded call is answered, whichever door it came through: in a worker thread, again while it has to wait."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from app.deferral import Deliver, Done, Given
from app.gateway.calls import Answered, CallRunner, Wrap, too_slow
from app.gateway.metrics import Metrics
from app.gateway.waiting import WaitingCalls
from app.limits import Limits
from app.rpc.call import Call
from app.rpc.processor import MessageProcessor, Reply
from app.rpc.releases import Releases
from app.rpc.repeatable import Begun, RepeatableProcessor
from app.wire import Codec, Message

# What is larger would hold the event loop up.
DEFERRED_BYTES_MAX = 4096


class CallAnswers:
    """The processor behind bounds. Used from the event loop's thread."""

    def __init__(
        self,
        processor: MessageProcessor,
        limits: Limits,
        metrics: Metrics,
        releases: Releases,
        *,
        threads: int,
        streams_max: int,
        call_seconds_max: float,
    ) -> None:
        self._processor = processor
        self._deferring = processor if isinstance(processor, RepeatableProcessor) else None
        self._call_seconds_max = call_seconds_max
        self._runner = CallRunner(
            limits, metrics, threads=threads, streams_max=streams_max, call_seconds_max=call_seconds_max
        )
        self._waiting = WaitingCalls(limits, metrics, releases)
        self._delivery: tuple[asyncio.AbstractEventLoop, Deliver] | None = None

    async def answer(
        self, codec: Codec, message: Message, call: Call, wrap: Wrap, until_gone: Callable[[], Awaitable[None]]
    ) -> Answered:
        """The reply to `message`; chunks of a long one go through `wrap`. `until_gone` returns when the client left.

        Raises Unavailable, ApplicationError, ClientGone, and Refused (503) when too much is going on.
        """
        if self._deferring is not None and len(message.payload) <= DEFERRED_BYTES_MAX:
            reply = await self._without_thread(self._deferring, codec, message, call)
            if reply is not None:
                return Answered(reply)
        return await self._waiting.answer(
            call,
            lambda call: self._runner.run(call.principal, partial(self._processor.process, codec, message, call), wrap),
            until_gone,
        )

    async def _without_thread(
        self, processor: RepeatableProcessor, codec: Codec, message: Message, call: Call
    ) -> Reply | None:
        """None when it takes a thread. Raises as `answer`."""
        begun = processor.begin(codec, message, call)
        if not isinstance(begun, Begun):
            return begun
        with self._runner.admitted(call.principal):
            loop = asyncio.get_running_loop()
            future: asyncio.Future[Given] = loop.create_future()
            try:
                begun.start(partial(_give, future), self._deliverer(loop))
            except Exception as error:
                return begun.finish(Given(None, error))
            timer = loop.call_later(self._call_seconds_max, _give_up, future, self._call_seconds_max)
            try:
                return begun.finish(await future)
            finally:
                timer.cancel()

    def _deliverer(self, loop: asyncio.AbstractEventLoop) -> Deliver:
        """The same for every call, so that those of one batch are told together."""
        if self._delivery is None or self._delivery[0] is not loop:

            def deliver(told: Sequence[tuple[Done, Given]]) -> None:
                loop.call_soon_threadsafe(_tell, told)

            self._delivery = loop, deliver
        return self._delivery[1]

    def stop_waiting(self) -> None:
        """Answer the calls that wait, so that the server can stop."""
        self._waiting.stop()

    def close(self) -> None:
        """Give back the threads. Call it when no request is being answered any more."""
        self._runner.close()


def _give(future: "asyncio.Future[Given]", given: Given) -> None:
    if not future.done():
        future.set_result(given)


def _give_up(future: "asyncio.Future[Given]", seconds: float) -> None:
    if not future.done():
        future.set_exception(too_slow(seconds))


def _tell(told: Sequence[tuple[Done, Given]]) -> None:
    for done, given in told:
        done(given)
