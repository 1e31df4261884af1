"""Running calls in worker threads: who may start one, what happens when it takes too long."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import msgspec

from hms_gateway.gateway.metrics import Metrics
from hms_gateway.gateway.refusals import Refused, overloaded
from hms_gateway.gateway.streaming import ReplyStream
from hms_gateway.gateway.worker_threads import WorkerThreads
from hms_gateway.rpc.processor import Reply
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Shares, bound_of

# Users share these, a few each: that many are never busy at the same time.
GATES = 64
# One waits for the database while the other encodes.
MADE_AT_ONCE = 2

Work = Callable[[], Reply]
# Put around the chunks of a long reply before they are pumped: envelope, compression.
Wrap = Callable[[Iterator[bytes]], Iterator[bytes]]


class Answered(msgspec.Struct, frozen=True):
    """A reply; when its payload is long, `stream` has the chunks instead."""

    reply: Reply
    stream: ReplyStream | None = None


class CallRunner:
    """Bounded: calls in flight and long replies on their way, in all, of one user and of one address.

    Used from the loop's thread.
    """

    def __init__(
        self, limits: Limits, metrics: Metrics, *, threads: int, streams_max: int, call_seconds_max: float
    ) -> None:
        self._metrics = metrics
        self._threads = WorkerThreads(threads, limits.threads_per_user_max, limits.threads_per_address_max)
        self._call_seconds_max = call_seconds_max
        self._calls = Shares(
            bound_of(limits, "calls_in_flight_max"),
            bound_of(limits, "calls_per_user_max"),
            bound_of(limits, "calls_per_address_max"),
        )
        # Chunks are made by threads that have given back their places, and make Python wait as much as others.
        self._gates = [threading.Semaphore(MADE_AT_ONCE) for _ in range(GATES)]
        self._streams = Shares(
            Bound("streams_max", streams_max),
            bound_of(limits, "streams_per_user_max"),
            bound_of(limits, "streams_per_address_max"),
        )

    async def run(self, holder: Holder, work: Work, wrap: Wrap) -> Answered:
        """Run `work` in a thread. Raises what it raises, and Refused (503) when too much is going on.

        A call that takes longer than call_seconds_max is given up: the client gets 503 while the thread goes on, so
        a change may still take effect, as with any lost connection.
        """
        self.admit(holder)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answered] = loop.create_future()

        def job() -> None:
            try:
                self._run_job(holder, work, wrap, loop, future)
            finally:
                loop.call_soon_threadsafe(self.leave, holder)

        self._threads.submit(job, holder)
        try:
            async with asyncio.timeout(self._call_seconds_max):
                return await future
        except TimeoutError:
            raise too_slow(self._call_seconds_max) from None

    def close(self) -> None:
        self._threads.close()

    def admit(self, holder: Holder) -> None:
        """Count a call, which `leave` ends; one that needs no thread counts all the same. Raises Refused (503)."""
        bound = self._calls.take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many calls in flight ({bound.name}); try again", bound.name)
        self._metrics.calls_in_flight += 1

    def leave(self, holder: Holder) -> None:
        self._metrics.calls_in_flight -= 1
        self._calls.give_back(1, holder)

    def _run_job(
        self,
        holder: Holder,
        work: Work,
        wrap: Wrap,
        loop: asyncio.AbstractEventLoop,
        future: "asyncio.Future[Answered]",
    ) -> None:
        """In the worker thread. A long reply is pumped by the thread that made it: its snapshot may need that."""
        try:
            reply = work()
        except BaseException as error:
            # A future does not carry StopIteration.
            failure = RuntimeError(repr(error)) if isinstance(error, StopIteration) else error
            loop.call_soon_threadsafe(_fail, future, failure)
            return
        if reply.payload is None or isinstance(reply.payload, bytes):
            loop.call_soon_threadsafe(_deliver, future, Answered(reply))
            return
        gate = self._gates[hash(holder.user) % GATES]
        stream = ReplyStream(iter(wrap(reply.payload)), loop, gate)
        loop.call_soon_threadsafe(
            self._deliver_stream, holder, future, Answered(msgspec.structs.replace(reply, payload=None), stream)
        )
        with self._threads.lent():
            stream.pump()
        loop.call_soon_threadsafe(self._stream_ended, holder, stream)

    def _deliver_stream(self, holder: Holder, future: "asyncio.Future[Answered]", answered: Answered) -> None:
        assert answered.stream is not None
        if future.done():
            answered.stream.cancel()
            return
        bound = self._streams.take(1, holder)
        if bound is None:
            answered.stream.is_counted = True
            self._metrics.streams_in_flight += 1
            future.set_result(answered)
            return
        answered.stream.cancel()
        # Not `overloaded`, which says that nothing has happened: a change may have been made.
        text = f"There are too many long replies on their way ({bound.name}); try again"
        refused = Refused(503, text, headers=((b"retry-after", b"1"),), reason="overload", limit=bound.name)
        future.set_exception(refused)

    def _stream_ended(self, holder: Holder, stream: ReplyStream) -> None:
        if stream.is_counted:
            self._streams.give_back(1, holder)
            self._metrics.streams_in_flight -= 1


def too_slow(seconds: float) -> Refused:
    """What a call is told that is given up."""
    return Refused(
        503,
        f"The call took longer than {seconds:g} seconds; it may still take effect",
        headers=((b"retry-after", b"10"),),
        reason="call_too_slow",
    )


def _deliver(future: "asyncio.Future[Answered]", answered: Answered) -> None:
    if not future.done():
        future.set_result(answered)


def _fail(future: "asyncio.Future[Answered]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
