"""Units of work that wait for their turn, and what becomes of them."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeAlias

from hms_gateway.runtime.call_keys import CallKey
from hms_gateway.runtime.presented import Actor
from hms_gateway.runtime.suspension import Deliver, Done, Result
from hms_gateway.storage.writing.transaction import SqlTransaction
from hms_gateway.timing.spans import TraceSpans

_log = logging.getLogger(__name__)


class Later(NamedTuple):
    """Who gets the outcome, and how."""

    done: Done
    deliver: Deliver


class Job(NamedTuple):
    work: Callable[[SqlTransaction], Any]
    outcome: "Future[Any] | Later"
    key: CallKey | None
    actor: Actor | None = None
    notes: TraceSpans | None = None

    @property
    def open_key(self) -> CallKey | None:
        """The key of the call whose change this job is."""
        return None if self.key is None or self.key.is_concluded else self.key


class Success(NamedTuple):
    value: Any


class Failure(NamedTuple):
    reason: BaseException


Outcome: TypeAlias = Success | Failure


def deliver_outcomes(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
    """Give the callers their outcomes, those with the same `deliver` together."""
    later: dict[Deliver, list[tuple[Done, Result]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        result = result_of(job, outcome)
        if isinstance(job.outcome, Later):
            later.setdefault(job.outcome.deliver, []).append((job.outcome.done, result))
        elif result.failure is not None:
            job.outcome.set_exception(result.failure)
        else:
            job.outcome.set_result(result.value)
    for deliver, outcomes_of in later.items():
        try:
            deliver(outcomes_of)
        except Exception:
            # The callers that waited are gone with their event loop; the others are not.
            _log.warning("%s outcomes could not be delivered", len(outcomes_of), exc_info=True)


def result_of(job: Job, outcome: Outcome) -> Result:
    """The caller's outcome. A call that succeeded has had its change from now on."""
    if isinstance(outcome, Failure):
        return Result(None, outcome.reason)
    if job.key is not None:
        job.key.is_concluded = True
    return Result(outcome.value)
