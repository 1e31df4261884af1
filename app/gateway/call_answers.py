"""How a decoded call is answered, whichever door it came through: in a worker thread, again while it has to wait."""

from collections.abc import Awaitable, Callable
from functools import partial

from app.gateway.calls import Answered, CallRunner, Wrap
from app.gateway.metrics import Metrics
from app.gateway.waiting import WaitingCalls
from app.limits import Limits
from app.rpc.call import Call
from app.rpc.processor import MessageProcessor
from app.rpc.releases import Releases
from app.wire import Codec, Message


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
        self._runner = CallRunner(
            limits, metrics, threads=threads, streams_max=streams_max, call_seconds_max=call_seconds_max
        )
        self._waiting = WaitingCalls(limits, metrics, releases)

    async def answer(
        self, codec: Codec, message: Message, call: Call, wrap: Wrap, until_gone: Callable[[], Awaitable[None]]
    ) -> Answered:
        """The reply to `message`; chunks of a long one go through `wrap`. `until_gone` returns when the client left.

        Raises Unavailable, ApplicationError, ClientGone, and Refused (503) when too much is going on.
        """
        return await self._waiting.answer(
            call,
            lambda call: self._runner.run(call.principal, partial(self._processor.process, codec, message, call), wrap),
            until_gone,
        )

    def stop_waiting(self) -> None:
        """Answer the calls that wait, so that the server can stop."""
        self._waiting.stop()

    def close(self) -> None:
        """Give back the threads. Call it when no request is being answered any more."""
        self._runner.close()
