"""Calls that hold no thread while their unit of work waits for its turn.

The handler of such a call runs twice, and never waits. The first time its unit of work is taken from it before it is
run; the second time, when that is committed, it is given what the unit of work gave. So only calls can be deferred
whose handlers do nothing lasting but one unit of work, and nothing slow besides. Units of work of 64 clients then
need no threads to wait in, and meet in the same batch.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import NamedTuple, NoReturn, TypeAlias

from app.during import During


class Given(NamedTuple):
    """What a unit of work gave, or why it failed."""

    value: object
    failure: BaseException | None = None

    def get(self) -> object:
        """The value. Raises the failure."""
        if self.failure is not None:
            raise self.failure
        return self.value


Done: TypeAlias = Callable[[Given], None]
Deliver: TypeAlias = Callable[[Sequence[tuple[Done, Given]]], None]
"""Has each of them called where the calls are answered. Called from the thread that commits, once for a batch."""

Start: TypeAlias = Callable[[Done, Deliver], None]


class Taken(BaseException):
    """Ends the first run of a handler. `start` has the unit of work run; it raises what the store raises at once."""

    def __init__(self, start: Start) -> None:
        super().__init__()
        self.start = start


class NotDeferrable(BaseException):
    """Ends the first run of a handler that needs a thread after all. Nothing has happened."""


_TAKING = Given(None)
_stage: ContextVar[Given | None] = ContextVar("deferral", default=None)


def taking() -> During[Given | None]:
    """The first run: raises Taken or NotDeferrable where the handler comes to storage."""
    return During(_stage, _TAKING)


def giving(given: Given) -> During[Given | None]:
    """The second run."""
    return During(_stage, given)


def given_now() -> Given | None:
    """For units of work, in the second run: what this one gave. None where it has still to be run.

    Raises NotDeferrable in the first run, for units of work that cannot be taken.
    """
    stage = _stage.get()
    if stage is _TAKING:
        raise NotDeferrable
    return stage


def is_taking() -> bool:
    return _stage.get() is _TAKING


def take(start: Start) -> NoReturn:
    """Take a unit of work from the handler that is run for the first time."""
    raise Taken(start)
