"""The jobs `compact` and `compact --clean`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from hms_gateway.pipeline.catalog import table_names
from hms_gateway.pipeline.compact.looking import (
    CANDIDATE,
    FOUND,
    LEFT,
    LEFTOVERS,
    NAMES,
    NOT_PLAIN,
    PASSED_OVER,
    TABLES,
    UNREADABLE,
    Look,
    RemoveLeftovers,
)
from hms_gateway.pipeline.compact.rules import TARGET_BYTES, left_alone
from hms_gateway.pipeline.compact.step import OLD_PLACES, PLACES, CleanStep, CompactStep, OldPlaces, PlacesOf
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult, PartitionNames, check_only
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored

GRACE_SECONDS: Final = 7 * 86_400.0
_TABLES_A_BATCH: Final = 20
_NAMES_A_BATCH: Final = 500
# A partition takes long, and is looked at again when its batch was not finished.
_PARTITIONS_A_BATCH: Final = 5
_SHOWN: Final = 100
_NOTHING: Final = dict.fromkeys(
    ("compacted", "unchanged", "files_before", "files_after", "bytes_before", "bytes_after", "rows"), 0
)
_NOTHING_CLEANED: Final = dict.fromkeys(("cleaned", "files", "bytes", "waiting"), 0)


@dataclass(frozen=True, kw_only=True)
class CompactArguments:
    """Arguments of `compact`; its options `only` and `where` choose tables and partitions.

    target_bytes  how large a file may become
    locks         ask for Hive's lock EXCL_WRITE on each partition while it is compacted
    """

    target_bytes: int = TARGET_BYTES
    locks: bool = False


@dataclass(frozen=True, kw_only=True)
class CleanArguments:
    """`grace_seconds` is how long old files stay after the swap, for readers that began before it."""

    grace_seconds: float = GRACE_SECONDS


@dataclass(frozen=True, kw_only=True)
class CompactResult(JobResult):
    """`left_alone` has reasons with the numbers of tables and partitions; `reasons` the first refusals."""

    left_alone: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


def compact(
    options: JobOptions,
    arguments: CompactArguments,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> CompactResult:
    """Make large files of small ones, partition by partition. Raises JobFailed."""
    check_only(options)
    with Run.begin("compact", options, arguments, spark=spark, progress=progress) as run:
        found = _found(run, options.where, arguments.target_bytes)
        candidates, alone = found.where(lambda of: of[0] == CANDIDATE), _left_alone(run, found)
        if options.dry_run:
            return run.finish(
                CompactResult, counts=_planned(run, candidates), left_alone=alone, passed_over=_passed_over(found)
            )
        leftovers = found.where(lambda of: of[0] == LEFTOVERS)
        run.hold(sorted({f"{batch.of[1]}.{batch.of[2]}" for batch in (*candidates.batches, *leftovers.batches)}))
        # What is in files is computed by executors: as many at once as there are processors.
        run.options = replace(options, calls=max(options.calls, run.spark.sparkContext.defaultParallelism))
        removed = run.batches(leftovers, RemoveLeftovers(run.storage), name="leftovers")
        step = CompactStep(run.id, arguments.target_bytes, arguments.locks, run.storage)
        done = run.batches(candidates, step, name="compact", unit="batches of partitions")
        counts = {**_NOTHING, **done.counts, "leftovers": removed["leftovers"]}
        return run.finish(
            CompactResult,
            counts=counts,
            refused=done.refused,
            left_alone=alone,
            reasons=_reasons(run, "compact"),
            passed_over=_passed_over(found),
        )


def clean(
    options: JobOptions,
    arguments: CleanArguments,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> CompactResult:
    """Remove the files that were compacted longer ago than the grace. Raises JobFailed."""
    check_only(options)
    with Run.begin("clean", options, arguments, spark=spark, progress=progress) as run:
        left = _found(run, options.where, TARGET_BYTES).where(lambda of: of[0] == LEFT)
        if options.dry_run:
            return run.finish(CompactResult, counts={"left": left.rows})
        run.hold(sorted({f"{batch.of[1]}.{batch.of[2]}" for batch in left.batches}))
        step = CleanStep(arguments.grace_seconds, run.storage)
        done = run.batches(_with_sharing(run, left), step, name="clean")
        counts = {**_NOTHING_CLEANED, **done.counts}
        return run.finish(CompactResult, counts=counts, refused=done.refused, reasons=_reasons(run, "clean"))


def _found(run: Run, where: str, target_bytes: int) -> Stored:
    options = run.options
    tables = run.store(
        "tables", lambda: _listed(run, options), schema=TABLES, rows_a_batch=_TABLES_A_BATCH, together=["database"]
    )
    names = run.derive(
        "names",
        tables,
        PartitionNames(options.client, NAMES, where, left_alone),
        NAMES,
        rows_a_batch=_NAMES_A_BATCH,
        together=["database", "table", "reason"],
    )
    look = Look(options.client, run.id, target_bytes, run.storage)
    return run.derive(
        "found", names, look, FOUND, rows_a_batch=_PARTITIONS_A_BATCH, together=["what", "database", "table"]
    )


def _listed(run: Run, options: JobOptions) -> list[dict[str, str]]:
    with run.client() as client:
        return [{"database": database, "table": table} for database, table in table_names(client, options.wants)]


def _planned(run: Run, candidates: Stored) -> dict[str, int]:
    sums = candidates.frame(run.spark).agg(*(sql.sum(name).alias(name) for name in ("files", "after", "bytes")))
    row = sums.collect()[0]
    sizes = {"files_before": row["files"], "files_after": row["after"], "bytes": row["bytes"]}
    return {"candidates": candidates.rows, **{name: int(number or 0) for name, number in sizes.items()}}


def _left_alone(run: Run, found: Stored) -> dict[str, int]:
    """Reasons, and of how many tables or partitions."""
    names = run.stored("names")
    assert names is not None
    counts: dict[str, int] = {}
    for batch in names.batches:
        if batch.of[2]:
            counts[batch.of[2]] = counts.get(batch.of[2], 0) + batch.rows
    others = found.where(lambda of: of[0] in (NOT_PLAIN, UNREADABLE, PASSED_OVER, LEFT)).frame(run.spark)
    for reason, number in others.groupBy("reason").count().orderBy(sql.desc("count")).limit(_SHOWN).collect():
        counts[reason] = counts.get(reason, 0) + number
    return counts


def _passed_over(found: Stored) -> int:
    return found.where(lambda of: of[0] == PASSED_OVER).rows


def _with_sharing(run: Run, left: Stored) -> Stored:
    """Adds to each whether something in the catalog lies in its old directory: then its files stay."""
    options = run.options
    every = run.store("every-table", lambda: _listed(run, replace(options, only=())), schema=TABLES, rows_a_batch=20)
    places = run.derive("places", every, PlacesOf(options.client, run.storage), PLACES)
    old = run.derive("old-places", left, OldPlaces(run.storage), OLD_PLACES).frame(run.spark)
    lying = places.frame(run.spark).distinct().withColumn("shared", sql.lit(True))
    joined = old.join(lying, "path", "left").fillna(False, ["shared"])
    return run.store("to-clean", joined.orderBy("database", "table", "name"), rows_a_batch=_PARTITIONS_A_BATCH)


def _reasons(run: Run, name: str) -> dict[str, str]:
    found = {}
    for refusal in run.refusals(name):
        found[refusal.item] = refusal.reason
        if len(found) == _SHOWN:
            break
    return found
