"""Units of work that wait for their turn, and what becomes of them."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeAlias

from app.call_keys import CallKey
from app.deferral import Deliver, Done, Given
from app.storage.snapshot import SqlTransaction

_log = logging.getLogger(__name__)


class Later(NamedTuple):
    """Who is told, and by whom."""

    done: Done
    deliver: Deliver


class Job(NamedTuple):
    work: Callable[[SqlTransaction], Any]
    outcome: "Future[Any] | Later"
    key: CallKey | None

    @property
    def open_key(self) -> CallKey | None:
        """The key of the call whose change this job is."""
        return None if self.key is None or self.key.is_concluded else self.key


class Success(NamedTuple):
    value: Any


class Failure(NamedTuple):
    reason: BaseException


Outcome: TypeAlias = Success | Failure


def tell(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
    """Give the callers their outcomes, those who are told by the same `deliver` together."""
    later: dict[Deliver, list[tuple[Done, Given]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        given = given_by(job, outcome)
        if isinstance(job.outcome, Later):
            later.setdefault(job.outcome.deliver, []).append((job.outcome.done, given))
        elif given.failure is not None:
            job.outcome.set_exception(given.failure)
        else:
            job.outcome.set_result(given.value)
    for deliver, told in later.items():
        try:
            deliver(told)
        except Exception:
            # Whoever waited is gone with its event loop; the others are not.
            _log.warning("%s outcomes could not be told", len(told), exc_info=True)


def given_by(job: Job, outcome: Outcome) -> Given:
    """What the caller is told. A call that succeeded has had its change from now on."""
    if isinstance(outcome, Failure):
        return Given(None, outcome.reason)
    if job.key is not None:
        job.key.is_concluded = True
    return Given(outcome.value)
