"""What job `apply` is given, and what it hands back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hms_gateway.pipeline.jobs.results import JobResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyArguments:
    """Arguments of job `apply`: a plan that an audit has written. `digest` is filled in by the job."""

    plan: str
    digest: str = field(default="", metadata={"said": "other lines in the plan"})


@dataclass(frozen=True, kw_only=True)
class ApplyResult(JobResult):
    """What was done, and what was not: `refusals` are some of those, with their reasons."""

    refusals: Sequence[Mapping[str, str]] = ()
