"""Calls that their handlers cannot answer yet: they wait here, on the event loop, and hold no thread (design D14)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import structlog

from hms_gateway.gateway.admission.refusals import ClientGone, Refused, overloaded
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Call, Releases, Waiting
from hms_gateway.runtime.event_loop import call_in_loop
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder, shares_of

T = TypeVar("T")

_log = structlog.get_logger("hms_gateway.waiting")


class WaitingCalls:
    """Calls handlers again until they answer. Used from the loop's thread."""

    def __init__(self, limits: Limits, metrics: Metrics, releases: Releases) -> None:
        self._metrics = metrics
        self._places = shares_of(limits, "waiting_calls_max")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pauses: set[asyncio.Event] = set()
        self._releases = releases
        self._is_stopped = False
        releases.subscribe(self._announced)

    @property
    def releases(self) -> int:
        """How many there have been; asked before an attempt."""
        return self._releases.count

    def stop(self) -> None:
        """End every wait: the clients get an error that says to try again elsewhere."""
        self._is_stopped = True
        self._wake()

    async def answer(
        self,
        call: Call,
        attempt: Callable[[Call], Awaitable[T]],
        until_gone: Callable[[], Awaitable[None]],
        waiting: Waiting,
        seen: int,
    ) -> T:
        """What `attempt` gives, called after each pause that a handler asks for; the first by `waiting`.

        `seen` is what `releases` was before the handler was called. `until_gone` returns when the client is gone.
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
