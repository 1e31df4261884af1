"""Calls whose unit of work waits for its turn: some hold no thread meanwhile, others have one that waits by `awaited`.

The handler of a call that holds none runs twice, and never waits. The first run records its unit of work and suspends
the call before that is run; the second, when it is committed, resumes the call with its result. So only calls can be
suspended whose handlers do nothing lasting but one unit of work, and nothing slow besides. Units of work of 64 clients
then need no threads to wait in, and meet in the same batch.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, TypeVarTuple, cast

from hms_gateway.runtime.presented import bound

T = TypeVar("T")


class Result(NamedTuple):
    """The value of a unit of work, or why it failed."""

    value: object
    failure: BaseException | None = None

    def get(self) -> object:
        """The value. Raises the failure."""
        if self.failure is not None:
            raise self.failure
        return self.value


Done: TypeAlias = Callable[[Result], None]
Deliver: TypeAlias = Callable[[Sequence[tuple[Done, Result]]], None]
"""Has each of them called where the calls are answered. Called from the thread that commits, once for a batch."""

Start: TypeAlias = Callable[[Done, Deliver], None]


class Suspended(BaseException):
    """Ends the first run of a handler. `start` has the unit of work run; it raises what the store raises at once."""

    def __init__(self, start: Start) -> None:
        super().__init__()
        self.start = start


class NotSuspendable(BaseException):
    """Ends the first run of a handler that needs a thread after all. Nothing has happened."""


_RECORDING = Result(None)
_stage: ContextVar[Result | None] = ContextVar("suspension", default=None)


def recording() -> bound[Result | None]:
    """The first run: raises Suspended or NotSuspendable where the handler comes to storage."""
    return bound(_stage, _RECORDING)


def resuming(result: Result) -> bound[Result | None]:
    """The second run."""
    return bound(_stage, result)


def resumed_result() -> Result | None:
    """For units of work, in the second run: the result of this one. None where it has still to be run.

    Raises NotSuspendable in the first run, for units of work that cannot be run later.
    """
    stage = _stage.get()
    if stage is _RECORDING:
        raise NotSuspendable
    return stage


def is_recording() -> bool:
    return _stage.get() is _RECORDING


def suspend(start: Start) -> NoReturn:
    """Suspend the call whose handler is run for the first time."""
    raise Suspended(start)


Wait: TypeAlias = Callable[["Future[Any]"], Any]
"""Gives the result of a future."""


class _Thread(threading.local):
    wait: Wait | None = None


_thread = _Thread()


def wait_by(wait: Wait) -> None:
    """From now on the calling thread waits for units of work by `wait`, which may let others go on meanwhile."""
    _thread.wait = wait


def awaited(outcome: "Future[T]") -> T:
    """The result of a unit of work, when it is there. Raises what it failed with."""
    wait = _thread.wait
    return outcome.result() if wait is None else cast(T, wait(outcome))


# Calls from other threads into the thread of an event loop.


Arguments = TypeVarTuple("Arguments")


def call_in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[[*Arguments], object], *arguments: *Arguments
) -> bool:
    """Have the loop call `function` soon, from any thread. False when it is closed: nothing waits there any more."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise
        return False
    return True
