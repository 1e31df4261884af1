"""How a decoded call is answered, whichever door it came through: in a worker thread, again while it has to wait."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

from hms_gateway.gateway.calls import Answered, CallRunner, Wrap, too_slow
from hms_gateway.gateway.metrics import Metrics
from hms_gateway.gateway.waiting import WaitingCalls
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.processor import MessageProcessor, Reply
from hms_gateway.rpc.releases import Releases
from hms_gateway.rpc.repeatable import Deferred, RepeatableProcessor
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder
from hms_gateway.runtime.suspension import Deliver, Done, Result, Start
from hms_gateway.wire import Codec, Message

# What is larger would hold the event loop up.
DEFERRED_BYTES_MAX = 4096

Begun: TypeAlias = asyncio.Future[Reply | None]
"""The reply to a call that is under way."""


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
        self._starting: list[tuple[Start, Done]] = []

    async def answer(
        self,
        codec: Codec,
        message: Message,
        call: Call,
        wrap: Wrap,
        until_gone: Callable[[], Awaitable[None]],
        begun: Begun | None = None,
    ) -> Answered:
        """The reply to `message`; chunks of a long one go through `wrap`. `until_gone` returns when the client left.

        `begun` is what `begin` gave when it was asked before. Raises Unavailable, ApplicationError, ClientGone, and
        Refused (503) when too much is going on.
        """
        reply = begun or self.begin(codec, message, call)
        if isinstance(reply, asyncio.Future):
            reply = await reply
        if reply is not None:
            return Answered(reply)
        return await self._waiting.answer(
            call,
            lambda call: self._runner.run(call.holder, partial(self._processor.process, codec, message, call), wrap),
            until_gone,
        )

    def is_deferrable(self, method: str) -> bool:
        """Whether it is worth asking `begin` about a call."""
        return self._deferring is not None and method in self._deferring.deferred

    def begin(self, codec: Codec, message: Message, call: Call) -> Reply | Begun | None:
        """Begin a call that needs no thread (`runtime.suspension`); None for others, to which nothing has happened.

        The reply comes at once or later; None comes later for a call that takes a thread after all. Raises as `answer`,
        and then nothing has happened either.
        """
        if self._deferring is None or len(message.payload) > DEFERRED_BYTES_MAX:
            return None
        deferred = self._deferring.begin(codec, message, call)
        if not isinstance(deferred, Deferred):
            return deferred
        loop = asyncio.get_running_loop()
        self._runner.admit(call.holder)
        ending = _Ending(self._runner, call.holder, deferred, loop.create_future())
        ending.timer = loop.call_later(self._call_seconds_max, ending.give_up, self._call_seconds_max)
        if not self._starting:
            # Those that came with the same look at the sockets are started together, and committed together.
            loop.call_soon(self._start)
        self._starting.append((deferred.start, ending.give))
        return ending.reply

    def _start(self) -> None:
        starting, self._starting = self._starting, []
        deliver = self._deliverer(asyncio.get_running_loop())
        for start, give in starting:
            try:
                start(give, deliver)
            except Exception as error:
                give(Result(None, error))

    def _deliverer(self, loop: asyncio.AbstractEventLoop) -> Deliver:
        """The same for every call, so that those of one batch are told together."""
        if self._delivery is None or self._delivery[0] is not loop:

            def deliver(told: Sequence[tuple[Done, Result]]) -> None:
                loop.call_soon_threadsafe(_tell, told)

            self._delivery = loop, deliver
        return self._delivery[1]

    def stop_waiting(self) -> None:
        """Answer the calls that wait, so that the server can stop."""
        self._waiting.stop()

    def close(self) -> None:
        """Give back the threads. Call it when no request is being answered any more."""
        self._runner.close()


class _Ending:
    """What ends a call that has begun: what its unit of work gave, or that it took too long."""

    __slots__ = ("_deferred", "_holder", "_runner", "reply", "timer")

    def __init__(self, runner: CallRunner, holder: Holder, deferred: Deferred, reply: Begun) -> None:
        self._runner = runner
        self._holder = holder
        self._deferred = deferred
        self.reply = reply
        self.timer: asyncio.TimerHandle | None = None

    def give(self, result: Result) -> None:
        if self.reply.done():
            return
        try:
            self.reply.set_result(self._deferred.finish(result))
        except Exception as error:
            self.reply.set_exception(error)
        self._end()

    def give_up(self, seconds: float) -> None:
        self.reply.set_exception(too_slow(seconds))
        self._end()

    def _end(self) -> None:
        self._runner.leave(self._holder)
        if self.timer is not None:
            self.timer.cancel()


def _tell(told: Sequence[tuple[Done, Result]]) -> None:
    for done, result in told:
        done(result)
