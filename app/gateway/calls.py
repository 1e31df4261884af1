"""Running calls in worker threads: who may start one, what happens when it takes too long."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from app.gateway.identity import Refused
from app.gateway.metrics import Metrics
from app.gateway.request_body import overloaded
from app.gateway.streaming import ReplyStream
from app.gateway.worker_threads import WorkerThreads
from app.limits import Limits
from app.rpc.processor import Reply

Work = Callable[[], Reply]
# Put around the chunks of a long reply before they are pumped: envelope, compression.
Wrap = Callable[[Iterator[bytes]], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply; when its payload is long, `stream` has the chunks instead."""

    reply: Reply
    stream: ReplyStream | None = None


class CallRunner:
    """Bounded: calls in flight, calls of one user, long replies on their way. Used from the loop's thread."""

    def __init__(
        self, limits: Limits, metrics: Metrics, *, threads: int, streams_max: int, call_seconds_max: float
    ) -> None:
        self._limits = limits
        self._metrics = metrics
        self._threads = WorkerThreads(threads)
        self._streams_max = streams_max
        self._call_seconds_max = call_seconds_max
        self._calls_of: defaultdict[str, int] = defaultdict(int)

    async def run(self, user: str, work: Work, wrap: Wrap) -> Answered:
        """Run `work` in a thread. Raises what it raises, and Refused (503) when too much is going on.

        A call that takes longer than call_seconds_max is given up: the client gets 503 while the thread goes on, so
        a change may still take effect, as with any lost connection.
        """
        self.admit(user)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answered] = loop.create_future()

        def job() -> None:
            try:
                self._run_job(work, wrap, loop, future)
            finally:
                loop.call_soon_threadsafe(self.leave, user)

        self._threads.submit(job)
        try:
            async with asyncio.timeout(self._call_seconds_max):
                return await future
        except TimeoutError:
            raise too_slow(self._call_seconds_max) from None

    def close(self) -> None:
        self._threads.close()

    def admit(self, user: str) -> None:
        """Count a call, which `leave` ends; one that needs no thread counts all the same. Raises Refused (503)."""
        if self._metrics.calls_in_flight >= self._limits.calls_in_flight_max:
            raise overloaded("Too many calls are in flight (calls_in_flight_max)")
        if self._calls_of[user] >= self._limits.calls_per_user_max:
            raise overloaded(f"User {user} has too many calls in flight (calls_per_user_max)")
        self._metrics.calls_in_flight += 1
        self._calls_of[user] += 1

    def leave(self, user: str) -> None:
        self._metrics.calls_in_flight -= 1
        self._calls_of[user] -= 1
        if not self._calls_of[user]:
            del self._calls_of[user]

    def _run_job(
        self, work: Work, wrap: Wrap, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Answered]"
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
        stream = ReplyStream(wrap(reply.payload), loop)
        loop.call_soon_threadsafe(self._deliver_stream, future, Answered(replace(reply, payload=None), stream))
        with self._threads.lent():
            stream.pump()
        loop.call_soon_threadsafe(self._stream_ended)

    def _deliver_stream(self, future: "asyncio.Future[Answered]", answered: Answered) -> None:
        assert answered.stream is not None
        self._metrics.streams_in_flight += 1
        if future.done():
            answered.stream.cancel()
        elif self._metrics.streams_in_flight > self._streams_max:
            answered.stream.cancel()
            # Not `overloaded`, which says that nothing has happened: a change may have been made.
            text = "Too many long replies are on their way (streams_max)"
            future.set_exception(Refused(503, text, headers=((b"retry-after", b"1"),), reason="overload"))
        else:
            future.set_result(answered)

    def _stream_ended(self) -> None:
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
