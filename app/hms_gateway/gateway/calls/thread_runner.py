"""Running calls in worker threads: who may start one, what happens when it takes too long."""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from hms_gateway.gateway.admission.refusals import Refused, overloaded
from hms_gateway.gateway.calls.making_turns import MakingTurns
from hms_gateway.gateway.calls.streaming import ReplyStream, SendingTurns
from hms_gateway.gateway.calls.worker_threads import WorkerThreads
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.processor import Reply, take_turns
from hms_gateway.runtime.event_loop import call_in_loop
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Shares, parts, shares_of
from hms_gateway.timing.spans import Span, begin_spans, end_spans, note_span

# One long reply of a user waits so long for another one to end, before it is refused.
LATE_SECONDS_MAX = 1.0

# In front of the users and addresses of urgent calls; no name begins with it.
URGENT = "\0"

Process = Callable[[Call], Reply]
# Put around the chunks of a long reply before they are pumped: envelope, compression.
Wrap = Callable[[Iterator[bytes]], Iterator[bytes]]


class CompletedCall(msgspec.Struct, frozen=True):
    """A reply; when its payload is long, `stream` has the chunks instead."""

    reply: Reply
    stream: ReplyStream | None = None


class InFlightCall:
    """A call that was admitted. Used from the event loop's thread.

    One that takes longer than `seconds_max` is given up: the client gets 503, and a change may still take effect, as
    with any lost connection. `process` answers it, and the chunks of a long reply go through `wrap`. `releases` is how
    many there had been when it was admitted, `spans` what its thread noted. `at_end` is called once, however it ends.
    """

    __slots__ = ("_timer", "admitted", "at_end", "call", "completed", "holder", "process", "releases", "spans", "wrap")

    def __init__(
        self, call: Call, holder: Holder, process: Process, wrap: Wrap, releases: int, seconds_max: float
    ) -> None:
        loop = asyncio.get_running_loop()
        self.call = call
        self.holder = holder
        self.process = process
        self.wrap = wrap
        self.releases = releases
        self.admitted = time.perf_counter()
        self.spans: list[Span] = []
        self.at_end: Callable[[InFlightCall], None] | None = None
        self.completed: asyncio.Future[CompletedCall] = loop.create_future()
        self._timer = loop.call_later(seconds_max, self._give_up, seconds_max)

    def complete(self, completed: CompletedCall) -> None:
        """Harmless when nothing waits for it any more; so is `fail`."""
        self.end()
        if not self.completed.done():
            self.completed.set_result(completed)

    def fail(self, error: BaseException) -> None:
        self.end()
        if not self.completed.done():
            # A future does not carry StopIteration.
            self.completed.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)

    def end(self) -> None:
        """It takes no time any more; harmless when it has ended."""
        self._timer.cancel()
        at_end, self.at_end = self.at_end, None
        if at_end is not None:
            at_end(self)

    def _give_up(self, seconds: float) -> None:
        text = f"The call took longer than {seconds:g} seconds; it may still take effect"
        self.fail(Refused(503, text, headers=((b"retry-after", b"10"),), reason="call_too_slow"))


class ThreadRunner:
    """Bounded: calls in flight and long replies on their way, in all, of one user and of one address.

    Used from the loop's thread.
    """

    def __init__(
        self, limits: Limits, metrics: Metrics, *, threads: int, streams_max: int, call_seconds_max: float
    ) -> None:
        self._metrics = metrics
        self._threads = WorkerThreads(threads, parts(Bound("threads", threads), limits)[0].value)
        self._call_seconds_max = call_seconds_max
        self._calls = shares_of(limits, "calls_in_flight_max")
        # Counted apart: a lock must not be lost because its owner, or anyone else, has a lot of calls in flight.
        self._urgent_calls = shares_of(limits, "calls_in_flight_max")
        self._making = MakingTurns()
        self._sending = SendingTurns()
        self._late: dict[str | None, tuple[InFlightCall, Reply, ReplyStream]] = {}
        streams = Bound("streams_max", streams_max)
        self._streams_of_user, of_address = parts(streams, limits)
        self._streams = Shares(streams, self._streams_of_user, of_address)

    @property
    def queued(self) -> int:
        """Admitted calls that wait for a thread."""
        return self._threads.waiting

    def admit(
        self, call: Call, process: Process, wrap: Wrap, releases: int, *, is_urgent: bool = False
    ) -> InFlightCall:
        """Count a call until `leave`; one that needs no thread counts all the same. Raises Refused (503).

        Urgent calls of a user count, and take threads, as if they were another user's of another address.
        """
        holder = _urgent(call.holder) if is_urgent else call.holder
        bound = self._shares_of(holder).take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many calls in flight ({bound.name}); try again", bound.name)
        self._metrics.calls_in_flight += 1
        return InFlightCall(call, holder, process, wrap, releases, self._call_seconds_max)

    def run(self, in_flight: InFlightCall) -> None:
        """Complete an admitted call in a thread.

        When it is given up it keeps its thread and its place among the calls until it has been processed.
        """
        self._threads.submit(partial(self._process, in_flight, asyncio.get_running_loop()), in_flight.holder)

    def close(self) -> None:
        self._threads.close()

    def leave(self, in_flight: InFlightCall) -> None:
        self._metrics.calls_in_flight -= 1
        self._shares_of(in_flight.holder).give_back(1, in_flight.holder)

    def _shares_of(self, holder: Holder) -> Shares:
        return self._urgent_calls if holder.user is not None and holder.user.startswith(URGENT) else self._calls

    def _process(self, in_flight: InFlightCall, loop: asyncio.AbstractEventLoop) -> None:
        """In the worker thread."""
        in_flight.spans = begin_spans(in_flight.call.notes)
        begun = note_span("queue", in_flight.admitted)
        take_turns(partial(self._making.of, in_flight.holder.user, loop))
        try:
            reply = in_flight.process(in_flight.call)
            note_span("call", begun)
            if reply.payload is None or isinstance(reply.payload, bytes):
                call_in_loop(loop, in_flight.complete, CompletedCall(reply))
            else:
                self._stream(in_flight, loop, reply, reply.payload)
        except BaseException as error:
            call_in_loop(loop, in_flight.fail, error)
        finally:
            end_spans()
            call_in_loop(loop, self.leave, in_flight)

    def _stream(
        self, in_flight: InFlightCall, loop: asyncio.AbstractEventLoop, reply: Reply, chunks: Iterator[bytes]
    ) -> None:
        """A long reply is pumped by the thread that made it: its snapshot may need that."""
        holder = in_flight.holder
        making = partial(self._making.of, holder.user, loop)
        stream = ReplyStream(iter(in_flight.wrap(chunks)), loop, making, self._sending, holder.user)
        begun = msgspec.structs.replace(reply, payload=None)
        if not call_in_loop(loop, self._deliver_stream, in_flight, begun, stream):
            stream.cancel()
        # With its place among the threads: those that come after it would be worked for and refused as well.
        stream.wait_until_decided()
        with self._threads.lent(), self._making.reply():
            stream.pump()
        call_in_loop(loop, self._stream_ended, holder, stream)

    def _deliver_stream(self, in_flight: InFlightCall, reply: Reply, stream: ReplyStream) -> None:
        if in_flight.completed.done():
            stream.cancel()
            return
        bound = self._streams.take(1, in_flight.holder)
        user = in_flight.holder.user
        if bound is None:
            self._begin_stream(in_flight, reply, stream)
            return
        # Calls that follow would be worked for and refused.
        self._threads.narrow(in_flight.holder)
        if bound == self._streams_of_user and user not in self._late:
            self._late[user] = in_flight, reply, stream
            asyncio.get_running_loop().call_later(LATE_SECONDS_MAX, self._refuse_late, user, in_flight, bound)
        else:
            self._refuse_stream(in_flight, stream, bound)

    def _begin_stream(self, in_flight: InFlightCall, reply: Reply, stream: ReplyStream) -> None:
        stream.is_counted = True
        stream.begin()
        self._metrics.streams_in_flight += 1
        self._sending.replies += 1
        in_flight.complete(CompletedCall(reply, stream))

    def _refuse_stream(self, in_flight: InFlightCall, stream: ReplyStream, bound: Bound) -> None:
        stream.cancel()
        # Not `overloaded`, which says that nothing has happened: a change may have been made.
        text = f"There are too many long replies on their way ({bound.name}); try again"
        in_flight.fail(Refused(503, text, headers=((b"retry-after", b"1"),), reason="overload", limit=bound.name))

    def _refuse_late(self, user: str | None, in_flight: InFlightCall, bound: Bound) -> None:
        """No other long reply of the user has ended meanwhile."""
        late = self._late.get(user)
        if late is not None and late[0] is in_flight:
            del self._late[user]
            self._refuse_stream(in_flight, late[2], bound)

    def _stream_ended(self, holder: Holder, stream: ReplyStream) -> None:
        if stream.is_counted:
            self._streams.give_back(1, holder)
            self._metrics.streams_in_flight -= 1
            self._sending.replies -= 1
        late = self._late.pop(holder.user, None)
        if late is not None:
            self._deliver_stream(*late)


def _urgent(holder: Holder) -> Holder:
    return Holder(URGENT + (holder.user or ""), None if holder.address is None else URGENT + holder.address)
