"""Units of work that are awaited: by a thread (`awaited`), or by a handler that returns what is still to be run.

A handler of a `Deferred` runs once, up to what it needs of the database. The call holds no thread while a unit of work
on transactions and locks waits for its turn: units of work of 64 clients then need no threads to wait in, and meet in
the same batch.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast

from hms_gateway.runtime.call_keys import CallKey
from hms_gateway.runtime.call_record import TraceSpans
from hms_gateway.runtime.presented import Actor

T = TypeVar("T")
S = TypeVar("S")


class Result(NamedTuple):
    """The value of a unit of work, or why it failed."""

    value: object
    failure: BaseException | None = None

    def get(self) -> Any:
        """The value. Raises the failure."""
        if self.failure is not None:
            raise self.failure
        return self.value


Done: TypeAlias = Callable[[Result], None]


class Outdated(Exception):
    """A unit of work was decided on by what is not so any more. It has changed nothing."""


class Runner(Protocol):
    """A store, as far as it is used here."""

    def write(self, work: Any) -> Any:
        """The value of a unit of work, when it is committed."""

    def start(self, work: Any, done: Done) -> None:
        """Have it run, and its result handed over in the running event loop. Raises what the store raises at once."""


class Later(NamedTuple):
    """Receiver of the result, in the thread of its event loop."""

    done: Done
    loop: asyncio.AbstractEventLoop


class Job(NamedTuple):
    """A unit of work that waits for its batch: a TxnWork, or a function of a transaction of the store."""

    work: Any
    outcome: "Future[Any] | Later"
    key: CallKey | None
    actor: Actor | None = None
    notes: TraceSpans | None = None

    @property
    def open_key(self) -> CallKey | None:
        """The key of the call whose change this job is."""
        return None if self.key is None or self.key.is_concluded else self.key

    def ended(self, result: Result) -> Result:
        """The result. A call that succeeded has had its change from now on."""
        if self.key is not None and result.failure is None:
            self.key.is_concluded = True
        return result


class Deferred(NamedTuple, Generic[T]):
    """The return value of a handler that needs a unit of work for its answer.

    store      runs the work; without one the work is a function that has to wait, in a thread
    answer     makes the answer of the work's value; raises a refusal
    otherwise  leads to the answer where the work is Outdated
    """

    store: Runner | None
    work: Any
    answer: Callable[[Any], Any] = lambda value: value
    otherwise: Any = None

    def then(self, further: Callable[[T], S]) -> "Deferred[S]":
        """The same work, with an answer that is made of this one's."""
        return Deferred(self.store, self.work, lambda value: further(self.answer(value)))

    def run(self) -> Result:
        """Wait for the result."""
        try:
            return Result(self.work() if self.store is None else self.store.write(self.work))
        except Exception as error:
            return Result(None, error)

    def go_on(self, result: Result) -> Any:
        """The answer, or what it needs as well. Raises the failure."""
        if self.otherwise is not None and isinstance(result.failure, Outdated):
            return self.otherwise
        return self.answer(result.get())

    def result(self) -> T:
        """Wait for the answer. Raises the failure."""
        return cast(T, waited(self.go_on(self.run())))


def waited(answer: Any) -> Any:
    """The answer of a handler, when it is there."""
    return answer.result() if isinstance(answer, Deferred) else answer


def in_thread(work: Callable[[], T]) -> Deferred[T]:
    """For work that waits for more than a unit of work on transactions and locks."""
    return Deferred(None, partial(copy_context().run, work))


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
