"""How a decoded call is completed, whichever listener it came through: in a worker thread, again while it has to wait.

Calls that hold no thread (`runtime.suspension`) are begun on the event loop, and completed when their unit of work is
committed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from hms_gateway.gateway.admission.rates import keeps_or_gives_back
from hms_gateway.gateway.calls.thread_runner import CompletedCall, InFlightCall, ThreadRunner, Wrap
from hms_gateway.gateway.calls.waiting import WaitingCalls
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Call, Releases, Waiting
from hms_gateway.rpc.processor import MessageProcessor, Reply
from hms_gateway.rpc.repeatable import RepeatableProcessor, SuspendedCall
from hms_gateway.runtime.event_loop import call_in_loop
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.suspension import Deliver, Done, Result, Start
from hms_gateway.timing.spans import TraceSpans, set_notes
from hms_gateway.wire import Codec, Message

# What is larger would hold the event loop up.
SUSPENDED_BYTES_MAX = 4096


class Dispatcher:
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
        self._suspending = processor if isinstance(processor, RepeatableProcessor) else None
        self._runner = ThreadRunner(
            limits, metrics, threads=threads, streams_max=streams_max, call_seconds_max=call_seconds_max
        )
        self._waiting = WaitingCalls(limits, metrics, releases)
        self._delivery: tuple[asyncio.AbstractEventLoop, Deliver] | None = None
        self._starting: list[tuple[Start, Done, TraceSpans | None]] = []

    @property
    def queued(self) -> int:
        """Calls that wait for a thread."""
        return self._runner.queued

    async def answer(
        self, codec: Codec, message: Message, call: Call, wrap: Wrap, until_gone: Callable[[], Awaitable[None]]
    ) -> CompletedCall:
        """`start`, and `wait` if need be."""
        started = self.start(codec, message, call, wrap)
        if isinstance(started, Reply):
            return CompletedCall(started)
        try:
            return await started.completed
        except Waiting as waiting:
            return await self.wait(started, waiting, until_gone)

    def start(self, codec: Codec, message: Message, call: Call, wrap: Wrap) -> Reply | InFlightCall:
        """Start a call; chunks of a long reply go through `wrap`. The reply at once, where no thread is needed for it.

        Raises, now or when it is completed, Unavailable, ApplicationError, Refused (503) when too much is going on, and
        Waiting for a call that goes on with `wait`.
        """
        suspended = None
        if self._suspending is not None and len(message.payload) <= SUSPENDED_BYTES_MAX:
            suspended = self._suspending.begin(codec, message, call)
        if isinstance(suspended, Reply):
            return suspended
        processor = self._processor
        if self._suspending is not None and call.key is None:
            processor = self._suspending.processor
        process = partial(processor.process, codec, message)
        in_flight = self._runner.admit(
            call, process, wrap, self._waiting.releases, is_urgent=keeps_or_gives_back(message.name)
        )
        if suspended is None:
            self._runner.run(in_flight)
        else:
            self._start_together(suspended, in_flight)
        return in_flight

    async def wait(
        self, started: InFlightCall, waiting: Waiting, until_gone: Callable[[], Awaitable[None]]
    ) -> CompletedCall:
        """Complete a call that was started and has to wait. `until_gone` returns when the client left.

        Raises as `start`, and ClientGone.
        """

        async def attempt(call: Call) -> CompletedCall:
            again = self._runner.admit(call, started.process, started.wrap, self._waiting.releases)
            self._runner.run(again)
            return await again.completed

        return await self._waiting.answer(started.call, attempt, until_gone, waiting, started.releases)

    def _start_together(self, suspended: SuspendedCall, in_flight: InFlightCall) -> None:
        """Those that came with the same look at the sockets are started together, and committed together."""

        def finish(result: Result) -> None:
            in_flight.spans.append(("write", in_flight.admitted, time.perf_counter()))
            if in_flight.completed.done():
                in_flight.end()
                return
            try:
                reply = suspended.finish(result)
            except Exception as error:
                in_flight.fail(error)
                return
            if reply is not None:
                in_flight.complete(CompletedCall(reply))
                return
            # It needs a thread after all.
            in_flight.at_end = None
            self._runner.run(in_flight)

        in_flight.at_end = self._runner.leave
        if not self._starting:
            asyncio.get_running_loop().call_soon(self._start)
        self._starting.append((suspended.start, finish, in_flight.call.notes))

    def _start(self) -> None:
        starting, self._starting = self._starting, []
        deliver = self._deliverer(asyncio.get_running_loop())
        for start, done, notes in starting:
            set_notes(notes)
            try:
                start(done, deliver)
            except Exception as error:
                done(Result(None, error))
        set_notes(None)

    def _deliverer(self, loop: asyncio.AbstractEventLoop) -> Deliver:
        """The same for every call, so that those of one batch are delivered together."""
        if self._delivery is None or self._delivery[0] is not loop:

            def deliver(outcomes: Sequence[tuple[Done, Result]]) -> None:
                call_in_loop(loop, _deliver, outcomes)

            self._delivery = loop, deliver
        return self._delivery[1]

    def stop_waiting(self) -> None:
        """Answer the calls that wait, so that the server can stop."""
        self._waiting.stop()

    def close(self) -> None:
        """Give back the threads. Call it when no request is being answered any more."""
        self._runner.close()


def _deliver(outcomes: Sequence[tuple[Done, Result]]) -> None:
    for done, result in outcomes:
        done(result)
