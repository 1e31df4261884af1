"""How a decoded call is completed, whichever listener it came through: in a worker thread, again while it has to wait.

Calls that hold no thread (`runtime.suspension`) are begun on the event loop, and completed when their unit of work is
committed. Calls that their handlers cannot answer yet wait on the event loop, and hold no thread (design D14).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import ClientGone, Refused, overloaded
from hms_gateway.gateway.admission.rates import never_refused
from hms_gateway.gateway.calls.streaming import MakingTurns, ReplyStream, SendingTurns
from hms_gateway.gateway.calls.worker_threads import WorkerThreads
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Call, Releases, Waiting
from hms_gateway.rpc.processor import MessageProcessor, Reply, take_turns
from hms_gateway.rpc.repeatable import Process, RepeatableProcessor, SuspendedCall
from hms_gateway.rpc.wire import Codec, Message
from hms_gateway.runtime.call_record import Span, TraceSpans, begin_spans, end_spans, note_span, set_notes
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Ledger
from hms_gateway.runtime.suspension import Done, Result, call_in_loop
from hms_gateway.runtime.tracebacks import forget_frames

# One long reply of a user waits so long for another one to end, before it is refused.
LATE_SECONDS_MAX = 1.0

# In front of the users and addresses of urgent calls; no name begins with it.
URGENT = "\0"

# Put around the chunks of a long reply before they are pumped: envelope, compression.
Wrap = Callable[[Iterator[bytes]], Iterator[bytes]]
UntilGone = Callable[[], Awaitable[None]]
"""Returns when the client has left."""

_log = structlog.get_logger("hms_gateway.waiting")


class CompletedCall(msgspec.Struct, frozen=True):
    """A reply; when its payload is long, `stream` has the chunks instead."""

    reply: Reply
    stream: ReplyStream | None = None


class InFlightCall:
    """A call that was admitted. Used from the event loop's thread.

    One that takes longer than `seconds_max` is given up: the client gets 503, and a change may still take effect, as
    with any lost connection. `process` answers it, and the chunks of a long reply go through `wrap`. `releases` is how
    many there had been when it was admitted, `spans` what its thread noted.
    """

    __slots__ = ("_timer", "admitted", "call", "completed", "holder", "ledger", "process", "releases", "spans", "wrap")

    def __init__(
        self,
        call: Call,
        holder: Holder,
        ledger: Ledger,
        process: Process,
        wrap: Wrap,
        releases: int,
        seconds_max: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.call = call
        self.holder = holder
        self.ledger = ledger
        self.process = process
        self.wrap = wrap
        self.releases = releases
        self.admitted = time.perf_counter()
        self.spans: list[Span] = []
        self.completed: asyncio.Future[CompletedCall] = loop.create_future()
        self._timer = loop.call_later(seconds_max, self._give_up, seconds_max)

    def complete(self, completed: CompletedCall | BaseException) -> None:
        """Harmless when nothing waits for it any more."""
        self._timer.cancel()
        if self.completed.done():
            return
        if isinstance(completed, CompletedCall):
            self.completed.set_result(completed)
        else:
            # A future does not carry StopIteration.
            is_stop = isinstance(completed, StopIteration)
            self.completed.set_exception(RuntimeError(repr(completed)) if is_stop else completed)

    def _give_up(self, seconds: float) -> None:
        text = f"The call took longer than {seconds:g} seconds; it may still take effect"
        self.complete(Refused(503, text, headers=((b"retry-after", b"10"),), reason="call_too_slow"))


class Dispatcher:
    """The processor behind bounds: calls in flight, calls that wait, and long replies on their way, in all, of one user
    and of one address. Used from the event loop's thread.
    """

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
        self._metrics = metrics
        self._releases = releases
        self._threads = WorkerThreads(limits, threads)
        self._call_seconds_max = call_seconds_max
        self._calls = Ledger(limits, "calls_in_flight_max")
        # Counted apart: a lock must not be lost because its owner, or anyone else, has a lot of calls in flight.
        self._urgent_calls = Ledger(limits, "calls_in_flight_max")
        self._urgent_methods = never_refused()
        self._streams = Ledger(limits, Bound("streams_max", streams_max))
        self._late: dict[str | None, tuple[InFlightCall, Reply, ReplyStream]] = {}
        self._making = MakingTurns()
        self._sending = SendingTurns()
        self._starting: list[tuple[SuspendedCall, Done, TraceSpans | None]] = []
        self._waiting = WaitingCalls(limits, metrics, releases)

    @property
    def queued(self) -> int:
        """Calls that wait for a thread."""
        return self._threads.waiting

    async def answer(
        self, codec: Codec, message: Message, call: Call, wrap: Wrap, until_gone: UntilGone
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
        process: Process = partial(self._processor.process, codec, message)
        begun = process if self._suspending is None else self._suspending.begin(codec, message, call)
        if isinstance(begun, Reply):
            return begun
        in_flight = self._admit(call, process, wrap, is_urgent=message.name in self._urgent_methods)
        self._go_on(in_flight, begun)
        return in_flight

    def run(self, process: Process, call: Call, wrap: Wrap) -> InFlightCall:
        """Have `process` answer a call in a thread. Raises, now or when it is completed, as `start`."""
        in_flight = self._admit(call, process, wrap)
        self._run(in_flight)
        return in_flight

    async def wait(self, started: InFlightCall, waiting: Waiting, until_gone: UntilGone) -> CompletedCall:
        """Complete a call that was started and has to wait. `until_gone` returns when the client left.

        Raises as `start`, and ClientGone.
        """
        forget_frames(waiting)

        async def attempt(call: Call) -> CompletedCall:
            again = self._admit(call, started.process, started.wrap)
            self._run(again)
            return await again.completed

        return await self._waiting.answer(started.call, attempt, until_gone, waiting, started.releases)

    def stop_waiting(self) -> None:
        """Answer the calls that wait, so that the server can stop."""
        self._waiting.stop()

    def close(self) -> None:
        """Give back the threads. Call it when no request is being answered any more."""
        self._threads.close()

    def _admit(self, call: Call, process: Process, wrap: Wrap, *, is_urgent: bool = False) -> InFlightCall:
        """Count a call until `_processed`; one that needs no thread counts all the same. Raises Refused (503).

        Urgent calls of a user count, and take threads, as if they were another user's of another address.
        """
        holder, ledger = (_urgent(call.holder), self._urgent_calls) if is_urgent else (call.holder, self._calls)
        bound = ledger.take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many calls in flight ({bound.name}); try again", bound.name)
        self._metrics.calls_in_flight += 1
        return InFlightCall(call, holder, ledger, process, wrap, self._releases.count, self._call_seconds_max)

    def _run(self, in_flight: InFlightCall) -> None:
        """Complete an admitted call in a thread.

        When it is given up it keeps its thread and its place among the calls until it has been processed.
        """
        self._threads.submit(partial(self._process, in_flight, asyncio.get_running_loop()), in_flight.holder)

    def _process(self, in_flight: InFlightCall, loop: asyncio.AbstractEventLoop) -> None:
        """In the worker thread."""
        in_flight.spans = begin_spans(in_flight.call.notes)
        begun = note_span("queue", in_flight.admitted)
        making = partial(self._making.of, in_flight.holder.user, loop)
        take_turns(making)
        try:
            reply = in_flight.process(in_flight.call)
            note_span("call", begun)
            if reply.payload is None or isinstance(reply.payload, bytes):
                call_in_loop(loop, self._processed, in_flight, CompletedCall(reply))
            else:
                chunks = iter(in_flight.wrap(reply.payload))
                stream = ReplyStream(chunks, loop, making, self._sending, in_flight.holder.user)
                self._stream(in_flight, loop, msgspec.structs.replace(reply, payload=None), stream)
                call_in_loop(loop, self._processed, in_flight, None)
        except BaseException as error:
            call_in_loop(loop, self._processed, in_flight, error)
        finally:
            end_spans()

    def _processed(self, in_flight: InFlightCall, outcome: CompletedCall | BaseException | None) -> None:
        """In the loop: the call counts no more. A long reply was completed when it began."""
        if outcome is not None:
            in_flight.complete(outcome)
        self._metrics.calls_in_flight -= 1
        in_flight.ledger.give_back(1, in_flight.holder)

    def _stream(
        self, in_flight: InFlightCall, loop: asyncio.AbstractEventLoop, reply: Reply, stream: ReplyStream
    ) -> None:
        """A long reply is pumped by the thread that made it: its snapshot may need that."""
        if not call_in_loop(loop, self._deliver_stream, in_flight, reply, stream):
            stream.cancel()
        # With its place among the threads: those that come after it would be worked for and refused as well.
        stream.wait_until_decided()
        self._threads.lend()
        with self._making.reply():
            stream.pump()
        call_in_loop(loop, self._stream_ended, in_flight.holder, stream)

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
        if bound == self._streams.per_user and user not in self._late:
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
        in_flight.complete(Refused(503, text, headers=((b"retry-after", b"1"),), reason="overload", limit=bound.name))

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

    def _go_on(self, in_flight: InFlightCall, begun: Reply | SuspendedCall | Process) -> None:
        """Those that came with the same look at the sockets are started together, and committed together."""
        if isinstance(begun, Reply):
            self._processed(in_flight, CompletedCall(begun))
        elif isinstance(begun, SuspendedCall):
            if not self._starting:
                asyncio.get_running_loop().call_soon(self._start)
            self._starting.append((begun, partial(self._written, in_flight, begun), in_flight.call.notes))
        else:
            in_flight.process = begun
            self._run(in_flight)

    def _written(self, in_flight: InFlightCall, suspended: SuspendedCall, result: Result) -> None:
        in_flight.spans.append(("write", in_flight.admitted, time.perf_counter()))
        if in_flight.completed.done():
            self._processed(in_flight, None)
            return
        try:
            self._go_on(in_flight, suspended.go_on(result))
        except Exception as error:
            self._processed(in_flight, error)

    def _start(self) -> None:
        starting, self._starting = self._starting, []
        for suspended, done, notes in starting:
            set_notes(notes)
            try:
                suspended.start(done)
            except Exception as error:
                done(Result(None, error))
        set_notes(None)


def _urgent(holder: Holder) -> Holder:
    return Holder(URGENT + (holder.user or ""), None if holder.address is None else URGENT + holder.address)


class WaitingCalls:
    """Calls handlers again until they answer. Used from the loop's thread."""

    def __init__(self, limits: Limits, metrics: Metrics, releases: Releases) -> None:
        self._metrics = metrics
        self._places = Ledger(limits, "waiting_calls_max")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pauses: set[asyncio.Event] = set()
        self._releases = releases
        self._is_stopped = False
        releases.subscribe(self._announced)

    def stop(self) -> None:
        """End every wait: the clients get an error that says to try again elsewhere."""
        self._is_stopped = True
        self._wake()

    async def answer(
        self,
        call: Call,
        attempt: Callable[[Call], Awaitable[CompletedCall]],
        until_gone: UntilGone,
        waiting: Waiting,
        seen: int,
    ) -> CompletedCall:
        """Result of `attempt`, called after each pause that a handler asks for; the first by `waiting`.

        `seen` is the number of releases before the handler was called. `until_gone` returns when the client is gone.
        Raises what `attempt` raises, ClientGone, and Refused (503) when too many calls wait or the server stops.
        """
        self._loop = asyncio.get_running_loop()
        started = self._loop.time()
        await self._take_place(call.holder, waiting)
        gone = asyncio.ensure_future(until_gone())
        self._metrics.calls_waiting += 1
        try:
            while True:
                await self._pause(waiting, gone, seen)
                seen = self._releases.count
                waited_seconds = self._loop.time() - started
                try:
                    return await attempt(
                        msgspec.structs.replace(call, waited_seconds=waited_seconds, resume=waiting.resume)
                    )
                except Waiting as further:
                    forget_frames(further)
                    waiting = further
                except Refused:
                    # The client does not know that something of its call waits, and repeats it as a new one.
                    await self._abandon(waiting)
                    raise
        finally:
            self._metrics.calls_waiting -= 1
            self._places.give_back(1, call.holder)
            gone.cancel()

    async def _take_place(self, holder: Holder, waiting: Waiting) -> None:
        bound = self._places.take(1, holder)
        if bound is not None:
            await self._abandon(waiting)
            raise overloaded(f"There are too many calls waiting ({bound.name}); try again", bound.name)

    async def _pause(self, waiting: Waiting, gone: "asyncio.Future[None]", seen: int) -> None:
        """Until it is time for another attempt. Raises ClientGone and Refused when none is wanted any more."""
        try:
            self._check()
            # One between the attempt and the pause after it would otherwise be missed.
            if seen == self._releases.count:
                await self._sleep(waiting.seconds, gone)
            self._check()
            if gone.done():
                raise ClientGone
        except BaseException:
            await self._abandon(waiting)
            raise

    def _check(self) -> None:
        if self._is_stopped:
            raise overloaded("The server is stopping; the call was not made")

    async def _sleep(self, seconds: float, gone: "asyncio.Future[None]") -> None:
        pause = asyncio.Event()
        woken = asyncio.ensure_future(pause.wait())
        self._pauses.add(pause)
        try:
            await asyncio.wait((woken, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._pauses.discard(pause)
            woken.cancel()

    async def _abandon(self, waiting: Waiting) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, waiting.abandon)
        except Exception as error:
            _log.warning("a waiting call could not be cancelled", problem=repr(error))

    def _announced(self) -> None:
        """In any thread, before the first call has waited and after the loop has ended too."""
        loop = self._loop
        if loop is not None:
            call_in_loop(loop, self._wake)

    def _wake(self) -> None:
        for pause in self._pauses:
            pause.set()
