"""The job `apply`: does the actions of a plan under a lease on their tables."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow
from pyspark.sql import SparkSession

from hms_gateway.pipeline.audit.applying import Applier, PlanHead, PlannedFix, read_actions, read_head
from hms_gateway.pipeline.audit.places import Fix
from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored, numbers, texts
from hms_gateway.pipeline.reports import bytes_text
from hms_gateway.rpc.structs import NoSuchObjectException


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyArguments:
    """Arguments of job `apply`: a plan that an audit has written. `digest` is filled in by the job."""

    plan: str
    digest: str = field(default="", metadata={"said": "other lines in the plan"})


@dataclass(frozen=True, kw_only=True)
class ApplyResult(JobResult):
    """The work done and not done: `refusals` are some of the actions not done, with their reasons."""

    refusals: Sequence[Mapping[str, str]] = ()


KIND: Final = "apply"
# Beyond these a plan is done with --yes only.
DROPPED_SHARE_MAX: Final = 0.05
DELETED_FILES_MAX: Final = 1_000
DELETED_BYTES_MAX: Final = 10 * 1024**3
_ACTIONS_A_BATCH: Final = 200
_REFUSALS_SHOWN: Final = 100
_DELETIONS: Final = (Fix.DELETE_LEFTOVER, Fix.DELETE_ORPHAN)
_ACTIONS: Final = pyarrow.schema(
    [
        *texts("do", "says", "database", "table", "partition", "location"),
        *numbers("files", "total_bytes"),
    ]
)


class _Planned(msgspec.Struct):
    """Counts of a plan, which the driver keeps instead of the actions."""

    drops: dict[str, int] = {}
    tables: set[str] = set()
    kinds: dict[str, int] = {}
    deleted_files: int = 0
    deleted_bytes: int = 0

    def add(self, action: PlannedFix) -> None:
        self.tables.add(action.table_name)
        self.kinds[action.do.value] = self.kinds.get(action.do.value, 0) + 1
        if action.do is Fix.DROP_PARTITION:
            self.drops[action.table_name] = self.drops.get(action.table_name, 0) + 1
        elif action.do in _DELETIONS:
            self.deleted_files += action.files
            self.deleted_bytes += action.total_bytes


def apply(
    options: JobOptions,
    arguments: ApplyArguments,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> ApplyResult:
    """Do what a plan says, as far as it still fits. Raises JobFailed, which names what is done only with `yes`."""
    head = read_head(arguments.plan)
    if head.url != options.connection.url:
        raise UsageRefused(f"plan {arguments.plan} is of an audit of {head.url}", "give its --url")
    planned = _planned(arguments.plan, options)
    digest = sha256(Path(arguments.plan).read_bytes()).hexdigest()
    given = dataclasses.replace(arguments, digest=digest)
    with Run.begin(KIND, options, given, spark=spark, progress=progress) as run:
        actions = run.store(
            "actions",
            lambda: _rows(arguments.plan, options),
            rows_a_batch=_ACTIONS_A_BATCH,
            together=("database", "table", "do"),
            schema=_ACTIONS,
        )
        if options.dry_run:
            return run.finish(ApplyResult, counts=planned.kinds)
        _check(run, planned)
        return _done(run, actions, planned, head)


def _done(run: Run, actions: Stored, planned: _Planned, head: PlanHead) -> ApplyResult:
    run.hold(sorted(planned.tables))
    counts = run.batches(actions, Applier(head, run.storage), name=KIND)
    refused = [
        {"location": one.item, "reason": one.reason}
        for one, _ in zip(run.refusals(KIND), range(_REFUSALS_SHOWN), strict=False)
    ]
    return run.finish(ApplyResult, counts=counts.counts, refused=counts.refused, refusals=refused)


def _planned(path: str, options: JobOptions) -> _Planned:
    planned = _Planned()
    for action in _wanted(path, options):
        planned.add(action)
    return planned


def _wanted(path: str, options: JobOptions) -> Iterator[PlannedFix]:
    return (action for action in read_actions(path) if options.wants(action.database, action.table))


def _rows(path: str, options: JobOptions) -> Iterator[Mapping[str, Any]]:
    """In the order of the plan, which an audit sorts by table, so that batches are large."""
    return (msgspec.to_builtins(action) for action in _wanted(path, options))


def _check(run: Run, planned: _Planned) -> None:
    """Raises UsageRefused for what is done only with `yes`."""
    if run.options.yes:
        return
    too_much = list(_too_many_drops(run, planned))
    if planned.deleted_files > DELETED_FILES_MAX or planned.deleted_bytes > DELETED_BYTES_MAX:
        files = f"{planned.deleted_files:,} file{'' if planned.deleted_files == 1 else 's'}"
        too_much.append(f"deletes {files} of {bytes_text(planned.deleted_bytes)}")
    if too_much:
        raise UsageRefused(f"the plan {'; '.join(too_much)}", "look at it, then give --yes")


def _too_many_drops(run: Run, planned: _Planned) -> Iterator[str]:
    with run.client() as client:
        for name, count in sorted(planned.drops.items()):
            database, _, table = name.partition(".")
            try:
                there = len(client.call("get_partition_names", database, table, -1))
            except NoSuchObjectException:
                continue
            if count > DROPPED_SHARE_MAX * there:
                yield f"drops {count:,} of the {there:,} partitions of {name}"
