"""Units of work that wait for their turn, and what becomes of them."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeAlias

from hms_gateway.runtime.call_keys import CallKey
from hms_gateway.runtime.suspension import Deliver, Done, Result
from hms_gateway.storage.writing.snapshot import SqlTransaction

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
    later: dict[Deliver, list[tuple[Done, Result]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        result = result_of(job, outcome)
        if isinstance(job.outcome, Later):
            later.setdefault(job.outcome.deliver, []).append((job.outcome.done, result))
        elif result.failure is not None:
            job.outcome.set_exception(result.failure)
        else:
            job.outcome.set_result(result.value)
    for deliver, told in later.items():
        try:
            deliver(told)
        except Exception:
            # Whoever waited is gone with its event loop; the others are not.
            _log.warning("%s outcomes could not be delivered", len(told), exc_info=True)


def result_of(job: Job, outcome: Outcome) -> Result:
    """What the caller is told. A call that succeeded has had its change from now on."""
    if isinstance(outcome, Failure):
        return Result(None, outcome.reason)
    if job.key is not None:
        job.key.is_concluded = True
    return Result(outcome.value)
